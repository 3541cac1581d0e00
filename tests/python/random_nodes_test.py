"""Random numbers of compiled models: their distributions, and that a seed repeats them."""

from __future__ import annotations

import math
from collections.abc import Callable

import opserve
import opserve.torch
import pytest
import torch
from optim_helpers import backend, fresh  # noqa: F401
from torch.nn import functional as F

SHAPE = (200, 151)
COUNT = SHAPE[0] * SHAPE[1]
WEIGHTS = torch.tensor([1.0, 1.0, 2.0])  # 0, 1 and 2: the mean is 1.25
Function = Callable[[torch.Tensor], torch.Tensor]

# Function, smallest and largest value, mean, standard deviation.
CASES: dict[str, tuple[Function, float, float, float, float]] = {
    "bernoulli": (lambda x: torch.empty_like(x).bernoulli_(0.3), 0, 1, 0.3, math.sqrt(0.21)),
    "bernoulli-never": (lambda x: torch.empty_like(x).bernoulli_(0.0), 0, 0, 0, 0),
    "bernoulli-always": (lambda x: torch.empty_like(x).bernoulli_(1.0), 1, 1, 1, 0),
    "bernoulli-each": (lambda x: torch.bernoulli(x + 0.7), 0, 1, 0.7, math.sqrt(0.21)),
    "rand": (lambda x: torch.rand(SHAPE) + x, 0, 1, 0.5, math.sqrt(1 / 12)),
    "rand_like": (torch.rand_like, 0, 1, 0.5, math.sqrt(1 / 12)),
    "randn": (lambda x: torch.randn(SHAPE) + x, -6, 6, 0, 1),
    "randn_like": (torch.randn_like, -6, 6, 0, 1),
    "randint": (lambda x: torch.randint(7, SHAPE) + x, 0, 6, 3, 2),
    "randint-low": (lambda x: torch.randint(-3, 4, SHAPE) + x, -3, 3, 0, 2),
    "uniform": (lambda x: torch.empty_like(x).uniform_(2, 5), 2, 5, 3.5, math.sqrt(9 / 12)),
    "normal": (lambda x: torch.empty_like(x).normal_(1, 2), -11, 13, 1, 2),
    "exponential": (lambda x: torch.empty_like(x).exponential_(2.0), 1e-9, 9, 0.5, 0.5),
    "normal-tensors": (lambda x: torch.normal(x + 1, x + 2), -11, 13, 1, 2),
    "normal-mean": (lambda x: torch.normal(x + 1, 2.0), -11, 13, 1, 2),
    "normal-deviation": (lambda x: torch.normal(1.0, x + 2), -11, 13, 1, 2),
    "log-normal": (lambda x: torch.empty_like(x).log_normal_(0, 1).log(), -6, 6, 0, 1),
    "geometric": (lambda x: torch.empty_like(x).geometric_(0.5), 1, 40, 2, math.sqrt(2)),
    # Of a Cauchy distribution, which has no mean: the angles are uniform.
    "cauchy": (
        lambda x: torch.atan((torch.empty_like(x).cauchy_(3, 2) - 3) / 2),
        -math.pi / 2,
        math.pi / 2,
        0,
        math.pi / math.sqrt(12),
    ),
    "multinomial": (
        lambda x: torch.multinomial(x[:, :3] + WEIGHTS, SHAPE[1], replacement=True) + x,
        0,
        2,
        1.25,
        math.sqrt(0.6875),
    ),
    "multinomial-first": (
        lambda x: torch.multinomial(x.reshape(-1, 1) + WEIGHTS, 1).reshape(SHAPE) + x,
        0,
        2,
        1.25,
        math.sqrt(0.6875),
    ),
    "permutation": (
        lambda x: torch.randperm(COUNT).reshape(SHAPE) / COUNT + x, 0, 1, 0.5, math.sqrt(1 / 12)
    ),
    "slopes": (
        lambda x: F.rrelu(x - 1, 0.2, 0.6, training=True), -0.6, -0.2, -0.4, 0.4 / math.sqrt(12)
    ),
    "dropout1d": (
        lambda x: F.dropout1d(x.view(100, -1, 1) + 1, 0.3).view(SHAPE),
        0,
        1 / 0.7 + 1e-6,
        1,
        math.sqrt(3 / 7),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_have_torchs_distribution_and_repeat(
    backend: opserve.torch.Backend, name: str
) -> None:
    function, low, high, mean, deviation = CASES[name]
    x = torch.zeros(SHAPE)
    run = torch.compile(function, backend=backend)
    torch.manual_seed(5)
    seen, second = run(x), run(x)
    torch.manual_seed(5)

    assert torch.equal(run(x), seen)
    assert torch.equal(second, seen) == (deviation == 0)
    assert seen.dtype == function(x).dtype and tuple(seen.shape) == SHAPE
    numbers = seen.double()
    assert low <= numbers.min().item() and numbers.max().item() <= high
    # Five standard deviations of a mean, and twice that for the deviation.
    allowed = 5 * deviation / math.sqrt(COUNT)
    assert numbers.mean().item() == pytest.approx(mean, abs=allowed)
    assert numbers.std().item() == pytest.approx(deviation, abs=2 * allowed)
    # Neighbours are independent.
    if deviation:
        pairs = torch.corrcoef(torch.stack([numbers.flatten()[1:], numbers.flatten()[:-1]]))
        assert abs(pairs[0, 1].item()) < 5 / math.sqrt(COUNT)
    assert all(not plan.unsupported for plan in backend.plans)


@pytest.mark.parametrize("trains", [False, True])
def test_each_slope_is_its_gradient(backend: opserve.torch.Backend, trains: bool) -> None:
    x = torch.randn(SHAPE, requires_grad=True)

    y = torch.compile(lambda x: F.rrelu(x, 0.2, 0.6, trains), backend=backend)(x)
    y.sum().backward()

    slopes = torch.where(x > 0, 1.0, y / x)
    torch.testing.assert_close(x.grad.clone(), slopes)
    below = slopes[x <= 0]
    assert 0.2 - 1e-6 <= below.min() and below.max() <= 0.6 + 1e-6
    assert (below.std() > 0.05) == trains
    assert all(not plan.unsupported for plan in backend.plans)


def test_what_is_drawn_without_replacement_is_drawn_once(backend: opserve.torch.Backend) -> None:
    weights = torch.tensor([[0.0, 1.0, 1.0, 2.0], [1.0, 0.0, 3.0, 0.1]])

    drawn = torch.compile(lambda x: torch.multinomial(x, 3), backend=backend)(weights)
    order = torch.compile(lambda x: torch.randperm(1000) + x, backend=backend)(torch.zeros(1))

    assert drawn.sort(1)[0].tolist() == [[1, 2, 3], [0, 2, 3]]  # never one of weight 0
    assert order.sort()[0].tolist() == [*range(1000)]


def test_a_result_without_elements_needs_no_numbers(backend: opserve.torch.Backend) -> None:
    def empty(x: torch.Tensor) -> torch.Tensor:
        return torch.rand(3, 0) + torch.empty(3, 0).bernoulli_(0.5)

    assert torch.compile(empty, backend=backend)(torch.zeros(1)).shape == (3, 0)
