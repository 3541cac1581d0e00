"""Random numbers of other distributions, from uniform, normal and exponential ones of the pool."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Optional

import torch

Tensor = torch.Tensor
aten = torch.ops.aten

# Of draws with replacement, a number for each category. More take too much memory.
_MOST_NUMBERS = 1 << 24


def _multinomial(
    weights: Tensor,
    count: int,
    replacement: bool = False,
    *,
    generator: Optional[torch.Generator] = None,
) -> Any:
    """Of times that pass, exponential with these rates, the shortest is drawn."""
    if weights.dtype == torch.float64:
        return NotImplemented
    weights = weights.to(torch.float32)
    if not replacement:
        return torch.topk(weights / _times(weights), count, -1)[1]
    if weights.numel() * count > _MOST_NUMBERS:
        return NotImplemented
    weights = weights.unsqueeze(-2).expand(*weights.shape[:-1], count, weights.shape[-1])
    return torch.argmax(weights / _times(weights), -1)


def _times(like: Tensor) -> Tensor:
    times: Tensor = aten.exponential(torch.empty(like.shape, device=like.device))
    return times


def _permutation(count: int, *, dtype: torch.dtype = torch.int64, **options: Any) -> Tensor:
    return torch.sort(torch.rand(count, device=options.get("device")))[1].to(dtype)


def _normal(mean: Any, deviation: Any = 1.0, **options: Any) -> Any:
    """Either may be a tensor."""
    tensors = [one for one in (mean, deviation) if isinstance(one, Tensor)]
    if any(one.dtype == torch.float64 for one in tensors):
        return NotImplemented
    shape = torch.broadcast_shapes(*(one.shape for one in tensors))
    numbers = torch.randn(shape, dtype=tensors[0].dtype, device=tensors[0].device)
    return numbers * deviation + mean


def _between(x: Tensor) -> Tensor:
    """Numbers above 0 and below 1."""
    least = torch.finfo(torch.float32).eps
    return torch.rand(x.shape, dtype=torch.float32, device=x.device).clamp(least, 1 - least)


def _cauchy(x: Tensor, median: float = 0, sigma: float = 1, **options: Any) -> Any:
    if x.dtype == torch.float64:
        return NotImplemented
    return (median + sigma * torch.tan(math.pi * (_between(x) - 0.5))).to(x.dtype)


def _geometric(x: Tensor, p: float, **options: Any) -> Any:
    if x.dtype == torch.float64 or p == 1:
        return NotImplemented
    return torch.ceil(torch.log(_between(x)) / math.log1p(-p)).clamp(min=1).to(x.dtype)


def _log_normal(x: Tensor, mean: float = 1, deviation: float = 2, **options: Any) -> Any:
    if x.dtype == torch.float64:
        return NotImplemented
    numbers = torch.randn(x.shape, dtype=torch.float32, device=x.device)
    return torch.exp(numbers * deviation + mean).to(x.dtype)


def _leaky(
    x: Tensor,
    noise: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Optional[torch.Generator] = None,
) -> tuple[Tensor, Tensor]:
    """With a slope of its own for each element below 0: those of all, which the gradient needs."""
    if not training:
        return torch.nn.functional.leaky_relu(x, (lower + upper) / 2), noise
    slopes = torch.rand(x.shape, dtype=x.dtype, device=x.device) * (upper - lower) + lower
    slopes = torch.where(x <= 0, slopes, torch.ones_like(slopes))
    return x * slopes, slopes


def _leaky_backward(
    gradient: Tensor,
    x: Tensor,
    slopes: Tensor,
    lower: float,
    upper: float,
    training: bool,
    self_is_result: bool,
) -> Tensor:
    if training:
        return gradient * slopes
    slope = (lower + upper) / 2
    leaky: Tensor = aten.leaky_relu_backward.default(gradient, x, slope, self_is_result)
    return leaky


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.multinomial.default: _multinomial,
    aten.randperm.default: _permutation,
    aten.normal.Tensor_Tensor: _normal,
    aten.normal.Tensor_float: _normal,
    aten.normal.float_Tensor: _normal,
    aten.cauchy.default: _cauchy,
    aten.geometric.default: _geometric,
    aten.log_normal.default: _log_normal,
    aten.rrelu_with_noise_backward.default: _leaky_backward,
}
if hasattr(aten, "rrelu_with_noise_functional"):  # not in torch 2.4
    DECOMPOSITIONS[aten.rrelu_with_noise_functional.default] = _leaky
