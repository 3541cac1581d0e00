"""What each operator gives, in PyTorch's float64 or int64.

A function takes arguments of the operator by name: tensors in float64 if anything about the call is
floating, else in int64 (BOOL as 0 and 1), scalars as numbers, optional ones that are left out as None. It
gives the outputs in their order, or a dict of them. generate.py rounds them to the outputs' dtypes.
"""

import dataclasses
import math
from typing import Callable, Optional

import torch

NAN, INF = float("nan"), float("inf")


class Unclear(Exception):
    """There is nothing to compare with."""


@dataclasses.dataclass
class Entry:
    function: Callable
    # The sum of the magnitudes that the result is a sum of, where the description's tolerance has `sums`.
    terms: Optional[Callable] = None
    domains: dict = dataclasses.field(default_factory=dict)  # by input: see Source.elements
    attributes: dict = dataclasses.field(default_factory=dict)  # by attribute: values, or a function of the dtype
    dtypes: dict = dataclasses.field(default_factory=dict)  # by input: its dtype, or a function of the case's
    # Instead of the usual ones: (shapes by input, attributes) and perhaps domains.
    calls: list = dataclasses.field(default_factory=list)
    specials: bool = True
    special_values: Optional[Callable] = None
    special_inputs: Optional[list] = None
    whole: bool = False  # computed in integers whatever the outputs are
    only_dtypes: Optional[list] = None
    mixed: Optional[bool] = None
    scalars_decide: bool = True
    extra: Optional[Callable] = None
    skip: Optional[Callable] = None


ENTRIES = {}


def define(names, function, **options):
    for name in names.split():
        ENTRIES[name] = Entry(function, **options)


def find(name):
    if name in ENTRIES:
        return ENTRIES[name]
    if name.startswith("Inplace"):
        return ENTRIES.get(name[len("Inplace") :])
    return None


def spread(function):
    """With its tensors broadcast first."""

    def spreading(*arguments):
        tensors = torch.broadcast_tensors(*[a for a in arguments if isinstance(a, torch.Tensor)])
        tensors = iter(tensors)
        return function(*[next(tensors).contiguous() if isinstance(a, torch.Tensor) else a for a in arguments])

    return spreading


def finite(values):
    return [v for v in values if not isinstance(v, float) or math.isfinite(v)]


def moderate(values):
    """Without infinities and numbers whose products overflow."""
    return [v for v in values if v != v or abs(v) < 1e4]


def full(tensor):
    return tensor if tensor.is_floating_point() else tensor.to(torch.float64)
