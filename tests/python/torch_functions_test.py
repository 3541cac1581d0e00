"""Further functions and modules of opserve.torch against torch's, and shared memory."""

import gc
import inspect
import pickle

import grpc
import numpy as np
import pytest

import opserve

import torch

import torch.nn.functional as local  # noqa: E402
from torch_helpers import assert_same_gradients, counting, tensor  # noqa: E402
from torch_helpers import either  # noqa: E402,F401; a fixture

import opserve.torch  # noqa: E402

REDUCTIONS = ["none", "mean", "sum"]
SHAPES = [((4, 5), (4, 5)), ((5,), (4, 5)), ((1, 5), (4, 1)), ((), ())]
NAMES = "cross_entropy kl_div l1_loss log_softmax mse_loss smooth_l1_loss softmax"
# As in torch_test.py, of finite differences in float32.
FLOAT32 = {"eps": 1e-2, "atol": 1e-3, "rtol": 1e-3}


@pytest.fixture
def pool(daemon):
    """The functions, and what they asked the daemon for."""
    with counting(daemon.target) as functions:
        yield functions


pytestmark = [
    pytest.mark.filterwarnings("ignore::opserve.torch.FallbackWarning"),
    pytest.mark.filterwarnings("ignore:Using a target size"),
]


def assert_same_values_and_gradients(compute, functions, *inputs, **tolerances):
    torch.testing.assert_close(compute(functions, *inputs), compute(local, *inputs))
    assert_same_gradients(
        lambda *inputs: compute(functions, *inputs),
        lambda *inputs: compute(local, *inputs),
        *inputs,
        **tolerances,
    )


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    "name, options",
    [
        ("mse_loss", {}),
        ("smooth_l1_loss", {}),
        ("smooth_l1_loss", {"beta": 0.3}),
        ("smooth_l1_loss", {"beta": 0.0}),
    ],
    ids=str,
)
def test_losses_of_differences(either, shapes, reduction, name, options):
    assert_same_values_and_gradients(
        lambda f, x, t: getattr(f, name)(x, t, reduction=reduction, **options),
        either,
        *(tensor(*shapes[0]), tensor(*shapes[1], seed=1)),
    )


@pytest.mark.parametrize("name", ["l1_loss", "mse_loss", "smooth_l1_loss"])
def test_dtypes_are_promoted(pool, name):
    x, t = tensor(4, 5), tensor(4, 5, seed=1, dtype=torch.float16)
    got = getattr(pool, name)(x.requires_grad_(), t)
    expected = getattr(local, name)(x, t.float())
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(
        torch.autograd.grad(got, [x]), torch.autograd.grad(expected, [x])
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ["l1_loss", "mse_loss"])
def test_weights_of_elements(either, name, reduction):
    """Of newer versions of torch; compared with what they document."""
    x, t, weight = tensor(3, 4), tensor(3, 4, seed=1), tensor(3, 4, seed=2).abs()
    single = {"l1_loss": torch.abs, "mse_loss": torch.square}[name]

    def documented(x, t, weight):
        loss = single(x - t) * weight
        if reduction == "mean":
            return loss.sum() / weight.sum()
        return loss.sum() if reduction == "sum" else loss

    def computed(x, t, weight):
        return getattr(either, name)(x, t, reduction=reduction, weight=weight)

    assert_same_gradients(computed, documented, x, t, weight)
    with pytest.raises(ValueError, match=r"weight has the shape \[4\]"):
        getattr(either, name)(x, t, weight=weight[0])


@pytest.mark.parametrize(
    "shape, dim", [((4, 5), -1), ((4, 5), 0), ((2, 3, 4), 1), ((), 0)]
)
def test_softmax(either, shape, dim):
    assert_same_values_and_gradients(
        lambda f, x: f.softmax(x, dim), either, tensor(*shape)
    )


CLASSES = [
    ((5,), ()),
    ((4, 5), (4,)),
    ((3, 5, 2), (3, 2)),
    ((2, 5, 3, 2), (2, 3, 2)),
]


def classes(*shape):
    chosen = torch.arange(int(np.prod(shape))).reshape(shape) * 3 % 5
    if shape:
        chosen.view(-1)[1] = -100
    return chosen


@pytest.mark.parametrize("shapes", CLASSES, ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("has_weight", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy_of_classes(either, shapes, reduction, has_weight, smoothing):
    weight = tensor(5, seed=3, positive=True) if has_weight else None
    target = classes(*shapes[1])
    assert_same_values_and_gradients(
        lambda f, x: f.cross_entropy(
            x, target, weight, reduction=reduction, label_smoothing=smoothing
        ),
        either,
        tensor(*shapes[0]),
    )


@pytest.mark.parametrize("shape", [shapes[0] for shapes in CLASSES], ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("has_weight", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy_of_probabilities(
    either, shape, reduction, has_weight, smoothing
):
    weight = tensor(5, seed=3, positive=True) if has_weight else None
    target = tensor(*shape, seed=1).softmax(min(1, len(shape) - 1))
    assert_same_values_and_gradients(
        lambda f, x, target: f.cross_entropy(
            x, target, weight, reduction=reduction, label_smoothing=smoothing
        ),
        either,
        *(tensor(*shape), target),
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_ignored_classes(either, smoothing):
    for target, ignored in (
        ([2, 7, 7, 0], 7),
        ([2, 0, 1, 0], 0),
        ([-1, 4, -1, 4], -1),
    ):
        assert_same_values_and_gradients(
            lambda f, x: f.cross_entropy(
                x,
                torch.tensor(target),
                tensor(5, seed=3, positive=True),
                ignore_index=ignored,
                label_smoothing=smoothing,
            ),
            either,
            tensor(4, 5),
        )


def test_cross_entropy_is_one_program(pool):
    x = tensor(4, 5).requires_grad_()
    pool.cross_entropy(x, torch.tensor([1, 2, 3, 0])).backward()
    assert pool.programs == [["LogSoftmax", "NllLossBackward", "LogSoftmaxBackward"]]


def test_mse_of_softmax_is_one_program(pool):
    x, t = tensor(4, 5).requires_grad_(), tensor(4, 5, seed=1)
    pool.mse_loss(pool.softmax(x * 2, 1), t).backward()
    assert pool.programs == [["MseLossBackward", "SoftmaxBackward"]]


def test_errors_are_torchs(pool):
    x = tensor(4, 5).requires_grad_()
    for arguments, options in (
        ([torch.tensor([1, 2, 3, 5])], {}),
        ([torch.tensor([1, 2, 3])], {}),
        ([torch.tensor([1, 2, 3, 0]), tensor(4)], {}),
        ([torch.tensor([1, 2, 3, 0])], {"reduction": "batchmean"}),
        ([torch.tensor([1, 2, 3, 0])], {"label_smoothing": 1.5}),
        ([tensor(4, 5)], {"ignore_index": 2}),
        ([tensor(4, 3)], {}),
    ):
        with pytest.raises(Exception) as expected:
            local.cross_entropy(x, *arguments, **options)
        with pytest.raises(expected.type) as got:
            pool.cross_entropy(x, *arguments, **options)
        assert str(got.value) == str(expected.value)
    assert pool.programs == []


@pytest.mark.parametrize(
    "name, dtype",
    [
        ("smooth_l1_loss", torch.float16),
        ("smooth_l1_loss", torch.bfloat16),
        ("softmax", torch.bfloat16),  # older versions of torch have none of float16
    ],
)
def test_halves(pool, name, dtype):
    """Against torch in float32, beside which the function is rounded, and its gradient."""
    x, t = tensor(4, 5, dtype=dtype), tensor(4, 5, seed=1, dtype=dtype)

    def gradient(functions, x, t):
        x = x.clone().requires_grad_()
        options = (
            {"dim": 1} if name == "softmax" else {"target": t, "reduction": "none"}
        )
        weights = torch.linspace(1, 2, 20).reshape(4, 5).to(x.dtype)
        output = getattr(functions, name)(x, **options)
        return torch.autograd.grad(output, [x], weights)[0]

    got, expected = gradient(pool, x, t), gradient(local, x.float(), t.float())
    assert got.dtype == dtype
    tolerance = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(got.float(), expected, rtol=tolerance, atol=tolerance)


DERIVED = [
    lambda f, x, t: f.mse_loss(x, t),
    lambda f, x, t: f.mse_loss(f.softmax(x, 0), t, reduction="sum"),
    # Far from where the derivative jumps.
    lambda f, x, t: f.smooth_l1_loss(x, t, beta=20.0),
    lambda f, x, t: f.smooth_l1_loss(f.log_softmax(x, 0), t + 10, reduction="none"),
    lambda f, x, t: f.softmax(x * t, -1),
    lambda f, x, t: f.cross_entropy(x + t, torch.tensor([1, -100, 3])),
    lambda f, x, t: f.cross_entropy(
        x, torch.tensor([1, 0, 3]), torch.arange(4) + 1.0, label_smoothing=0.3
    ),
    lambda f, x, t: f.cross_entropy(x, t, label_smoothing=0.3, reduction="sum"),
]


@pytest.mark.parametrize("number", range(len(DERIVED)))
def test_first_and_second_derivatives(either, number):
    # One takes no t, of which then all derivatives are 0.
    inputs = tensor(3, 4).requires_grad_(), tensor(3, 4, seed=1).requires_grad_()
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(lambda x, t: DERIVED[number](either, x, t), inputs, **FLOAT32)


@pytest.mark.parametrize("number", range(len(DERIVED)))
def test_hessians(either, number):
    inputs = tensor(3, 4), tensor(3, 4, seed=1)
    got, expected = (
        torch.autograd.functional.hessian(
            lambda x, t: DERIVED[number](functions, x, t).square().sum(), inputs
        )
        for functions in (either, local)
    )
    for row, expected_row in zip(got, expected):
        for one, other in zip(row, expected_row):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def shared(region, *values):
    """The values as tensors in a region."""
    tensors = []
    for value in values:
        array = region.empty(tuple(value.shape), value.numpy().dtype)
        tensors.append(torch.from_numpy(array).copy_(value))
    return tensors


def lies_shared(functions, tensor):
    return functions._client._shared_memory.holds(tensor.data_ptr())


@pytest.mark.parametrize("number", range(len(DERIVED)))
def test_derivatives_through_shared_memory(pool, number):
    """Twice, the second time where results of the first have been."""
    with pool._client.create_region(1 << 16) as region:
        x, t = shared(region, tensor(3, 4), tensor(3, 4, seed=1))
        for _ in range(2):
            leaves = x.requires_grad_(), t.requires_grad_()
            if number == 6:  # which has no t
                leaves = (x,)
            got, expected = (
                torch.autograd.grad(
                    DERIVED[number](f, x, t).sum(), leaves, create_graph=True
                )
                for f in (pool, local)
            )
            for one, other in zip(got, expected):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
            got, expected = (
                torch.autograd.grad(
                    sum(one.square().sum() for one in found), leaves, allow_unused=True
                )
                for found in (got, expected)
            )
            for one, other in zip(got, expected):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_gradients_lie_where_inputs_do(pool):
    with pool._client.create_region(1 << 20) as region:
        x, t = shared(region, tensor(40, 50), tensor(40, 50, seed=1, positive=True))
        x.requires_grad_()
        for compute in (
            lambda f: f.l1_loss(x, t),
            lambda f: f.kl_div(f.log_softmax(x, 1), t, reduction="sum"),
            lambda f: f.cross_entropy(x, torch.arange(40)),
        ):
            for _ in range(3):
                [got] = torch.autograd.grad(compute(pool), [x])
                [expected] = torch.autograd.grad(compute(local), [x])
                torch.testing.assert_close(got, expected)
                assert lies_shared(pool, got)
        output = pool.softmax(x, 1)
        torch.testing.assert_close(output, local.softmax(x, 1))
        assert lies_shared(pool, output)
    [got] = torch.autograd.grad(pool.l1_loss(x, t), [x])
    torch.testing.assert_close(got, torch.autograd.grad(local.l1_loss(x, t), [x])[0])


def test_a_result_keeps_its_memory_and_gives_it_back(pool):
    connection = pool._client._shared_memory
    with pool._client.create_region(1 << 16) as region:
        [x] = shared(region, tensor(40, 50))
        x.requires_grad_()
        expected = torch.sign(x.detach()) / x.numel()
        kept = [
            torch.autograd.grad(pool.l1_loss(x, torch.zeros(40, 50)), [x])[0]
            for _ in range(5)
        ]
        for gradient in kept:
            torch.testing.assert_close(gradient, expected)
        assert len({gradient.data_ptr() for gradient in kept}) == 5
        count = len(connection._connection.list_regions())
        del kept, gradient
        gc.collect()
        for _ in range(20):
            torch.autograd.grad(pool.l1_loss(x, torch.zeros(40, 50)), [x])
        assert len(connection._connection.list_regions()) == count


def test_memory_of_a_failed_call_is_not_used_again(pool):
    with pool._client.create_region(1 << 16) as region:
        [x] = shared(region, tensor(4, 5))
        x.requires_grad_()
        torch.autograd.grad(pool.l1_loss(x, torch.zeros(4, 5)), [x])
        before = len(pool._client._shared_memory._connection.list_regions())

        def fail(*arguments, **options):
            raise opserve.UnavailableError("lost", code=grpc.StatusCode.UNAVAILABLE)

        pool._client.execute, execute = fail, pool._client.execute
        with pytest.raises(opserve.UnavailableError):
            torch.autograd.grad(pool.l1_loss(x, torch.zeros(4, 5)), [x])
        pool._client.execute = execute
        after = len(pool._client._shared_memory._connection.list_regions())
        assert after == before - 1


MODULES = [
    ("KLDivLoss", {"reduction": "batchmean", "log_target": True}),
    ("L1Loss", {"reduction": "sum"}),
    ("MSELoss", {}),
    ("SmoothL1Loss", {"beta": 0.4, "reduction": "none"}),
    ("CrossEntropyLoss", {"weight": torch.rand(5), "label_smoothing": 0.1}),
    ("Softmax", {"dim": 0}),
    ("LogSoftmax", {"dim": 1}),
]


@pytest.mark.parametrize("name, options", MODULES, ids=[one[0] for one in MODULES])
def test_modules(pool, name, options):
    ours = getattr(opserve.torch, name)(**options, functions=pool)
    theirs = getattr(torch.nn, name)(**options)
    assert isinstance(ours, getattr(torch.nn, name))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    others = [] if name.endswith("max") else [tensor(4, 5, seed=1, positive=True)]
    if name == "CrossEntropyLoss":
        others = [torch.tensor([1, 4, 0, 2])]
    assert_same_gradients(
        lambda x: ours(x, *others), lambda x: theirs(x, *others), tensor(4, 5)
    )
    assert len(pool.programs) == 1
    unbound = pickle.loads(pickle.dumps(getattr(opserve.torch, name)(**options)))
    assert unbound.functions is opserve.torch.default


@pytest.mark.parametrize("name", NAMES.split())
def test_signatures_are_torchs(name):
    ours = inspect.signature(getattr(opserve.torch, name)).parameters
    theirs = inspect.signature(getattr(local, name)).parameters
    # Newer versions of torch have a further one, `weight`, in some.
    for (our, parameter), (their, other) in zip(ours.items(), theirs.items()):
        assert our == their
        assert parameter.default == other.default
    assert set(ours) ^ set(theirs) <= {"weight"}
