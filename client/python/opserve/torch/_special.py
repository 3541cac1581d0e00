"""Special functions of which the pool has no operator, from elementary ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from opserve.torch._whole_functions import DTYPES

Tensor = torch.Tensor
aten = torch.ops.aten

# From here on the series below are exact in float32; smaller arguments are moved up.
_FROM = 6


def _in_float32(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Any]:
    """The decomposition of a function that is computed in float32, and rounded once."""

    @functools.wraps(f)
    def computed(x: Tensor) -> Any:
        return f(x.float()).to(x.dtype) if x.dtype in DTYPES else NotImplemented

    return computed


def _moved(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Whether it is small, it or 1 if it is not, and it or as many more that it is large."""
    is_small = x < _FROM
    return is_small, torch.where(is_small, x, 1), torch.where(is_small, x + _FROM, x)


def _sin_of_turns(x: Tensor) -> tuple[Tensor, Tensor]:
    """sin and cos of pi x, up to one sign, without loss where x is large or close to an integer."""
    part = (x - x.round()) * math.pi
    return part.sin(), part.cos()


@_in_float32
def _lgamma(values: Tensor) -> Tensor:
    is_negative = values <= 0
    positive = torch.where(is_negative, 1 - values, values)
    is_small, small, large = _moved(positive)
    product = small
    for i in range(1, _FROM):
        product = product * (small + i)
    inverse = large.reciprocal()
    square = inverse * inverse
    # Stirling's series.
    result = (large - 0.5) * (large.log() - 1) + (0.5 * math.log(2 * math.pi) - 0.5)
    result = result + inverse * (1 / 12 - square * (1 / 360 - square / 1260))
    result = result - torch.where(is_small, product, 1).log()
    reflected = math.log(math.pi) - _sin_of_turns(values)[0].abs().log() - result
    result = torch.where(is_negative, reflected, result)
    return torch.where(values.isinf(), math.inf, result)


@_in_float32
def _digamma(values: Tensor) -> Tensor:
    is_negative = values < 0
    positive = torch.where(is_negative, 1 - values, values)
    is_small, small, large = _moved(positive)
    below = small.reciprocal()
    for i in range(1, _FROM):
        below = below + (small + i).reciprocal()
    inverse = large.reciprocal()
    square = inverse * inverse
    result = large.log() - 0.5 * inverse
    result = result - square * (1 / 12 - square * (1 / 120 - square / 252))
    result = torch.where(is_small, result - below, result)
    sin, cos = _sin_of_turns(values)
    reflected = torch.where(sin == 0, math.nan, result - math.pi * cos / sin)
    return torch.where(is_negative, reflected, result)


@_in_float32
def _trigamma(values: Tensor) -> Tensor:
    is_negative = values <= 0
    positive = torch.where(is_negative, 1 - values, values)
    is_small, small, large = _moved(positive)
    below = small.reciprocal().square()
    for i in range(1, _FROM):
        below = below + (small + i).reciprocal().square()
    inverse = large.reciprocal()
    square = inverse * inverse
    result = inverse + 0.5 * square
    result = result + inverse * square * (1 / 6 - square * (1 / 30 - square / 42))
    result = torch.where(is_small, result + below, result)
    reflected = (math.pi / _sin_of_turns(values)[0]).square() - result
    return torch.where(is_negative, reflected, result)


@_in_float32
def _erfinv(values: Tensor) -> Tensor:
    size = values.abs()
    rest = 1 - size
    # Winitzki's approximation, to a few thousandths.
    logarithm = (rest * (1 + size)).log()
    middle = logarithm * 0.5 + 2 / (math.pi * 0.147)
    y = ((middle * middle - logarithm / 0.147).sqrt() - middle).sqrt()
    # One step of Halley's method, by whichever function has the small values.
    excess = torch.where(size < 0.5, y.erf() - size, rest - y.erfc())
    step = excess * (0.5 * math.sqrt(math.pi)) * (y * y).exp()
    y = y - step / (1 + y * step)
    y = torch.where(size == 1, math.inf, torch.where(size == 0, 0, y))
    return torch.where(values < 0, -y, y)


def _polygamma(n: int, x: Tensor) -> Any:
    known = {0: _digamma, 1: _trigamma}
    return known[n](x) if n in known else NotImplemented


DECOMPOSITIONS = {
    aten.lgamma.default: _lgamma,
    aten.digamma.default: _digamma,
    aten.polygamma.default: _polygamma,
    aten.erfinv.default: _erfinv,
}
