"""Special functions that are made of others, beside torch in float64: current torch from PyPI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opserve
import opserve.torch
import pytest
import torch
from optim_helpers import fresh  # noqa: F401
from torch import distributions

Tensor = torch.Tensor
Function = Callable[[Tensor], Tensor]


def spread(low: float, high: float) -> Tensor:
    return torch.cat([torch.rand(3000) * (high - low) + low, torch.logspace(-20, 10, 500)])


def between(low: float, high: float) -> Tensor:
    return torch.rand(3000) * (high - low) + low


def log_prob(make: Callable[[Tensor], Any], at: float) -> Function:
    return lambda x: make(x).log_prob(torch.full_like(x, at))


D: dict[str, bool] = {"validate_args": False}
CASES: dict[str, tuple[Function, Callable[[], Tensor]]] = {
    "lgamma": (torch.lgamma, lambda: spread(0, 12)),
    "lgamma of negative numbers": (torch.lgamma, lambda: between(-20, 0)),
    "digamma": (torch.digamma, lambda: spread(0.01, 12)),
    "digamma of negative numbers": (torch.digamma, lambda: between(-20, 0)),
    "digamma as a polygamma": (lambda x: torch.polygamma(0, x), lambda: between(0.01, 12)),
    "several lgammas": (lambda x: torch.mvlgamma(x, 3), lambda: between(1.1, 12)),
    "erfinv": (torch.erfinv, lambda: between(-1, 1)),
    "erfinv close to one": (torch.erfinv, lambda: 1 - torch.logspace(-7, -1, 500)),
    "erfinv close to zero": (torch.erfinv, lambda: torch.logspace(-30, -1, 500)),
    "quantiles": (
        lambda x: distributions.Normal(0.0, 1.0, **D).icdf(torch.sigmoid(x)), lambda: between(-6, 6)
    ),
    "Student's t": (
        log_prob(lambda x: distributions.StudentT(x + 2, x, x + 1, **D), 1.5), lambda: between(0, 9)
    ),
    "negative binomial": (
        log_prob(lambda x: distributions.NegativeBinomial(x, logits=x / 5, **D), 3.0),
        lambda: between(0.1, 9),
    ),
    "Gamma": (log_prob(lambda x: distributions.Gamma(x, x + 1, **D), 0.7), lambda: between(0.1, 9)),
    "Beta": (log_prob(lambda x: distributions.Beta(x, x + 1, **D), 0.3), lambda: between(0.1, 9)),
    "entropies": (
        lambda x: distributions.Dirichlet(x.view(-1, 3), **D).entropy(), lambda: between(0.3, 9)
    ),
    "divergences": (
        lambda x: distributions.kl_divergence(
            distributions.Gamma(x, x + 1, **D), distributions.Gamma(x * 0 + 2, x * 0 + 1, **D)
        ),
        lambda: between(0.3, 9),
    ),
}  # fmt: skip


def compiled(f: Function, client: opserve.Client) -> Function:
    return torch.compile(f, backend=opserve.torch.backend(client, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_a_function_and_its_gradient_are_right(
    client: opserve.Client,
    fresh: Any,  # noqa: F811
    name: str,
) -> None:
    f, make = CASES[name]
    x = make().requires_grad_()
    exact = x.detach().double().requires_grad_()

    seen, expected = compiled(f, client)(x), f(exact)

    (gradient,) = torch.autograd.grad(seen.sum(), x)
    (other,) = torch.autograd.grad(expected.sum(), exact)
    # Close to a zero of the function, as beside 1 and 2, the terms are larger than their sum.
    torch.testing.assert_close(seen, expected.float(), rtol=3e-6, atol=1e-5)
    torch.testing.assert_close(gradient, other.float(), rtol=1e-5, atol=1e-5)


EXTREMES = [0.0, -0.0, 1.0, 2.0, -1.0, -2.0, float("inf"), -float("inf"), float("nan"), 3e38]


@pytest.mark.parametrize("f", [torch.lgamma, torch.digamma, torch.erfinv])
def test_extreme_arguments_give_what_torch_gives(
    client: opserve.Client,
    fresh: Any,  # noqa: F811
    f: Function,
) -> None:
    x = torch.tensor(EXTREMES)
    torch.testing.assert_close(compiled(f, client)(x), f(x), equal_nan=True)


def test_half_precision_is_rounded_once(client: opserve.Client, fresh: Any) -> None:  # noqa: F811
    x = between(0.1, 9).half()
    seen = compiled(torch.lgamma, client)(x)
    torch.testing.assert_close(seen, torch.lgamma(x.double()).half(), rtol=1e-3, atol=1e-5)
