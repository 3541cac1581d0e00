"""Running sums, sorting and classes."""

import math

import numpy as np
import torch

from families.indexing import below
from oracles import INF, define


def cumulative(x, dim, exclusive, reverse):
    if reverse:
        return cumulative(x.flip(dim), dim, exclusive, False).flip(dim)
    total = torch.cumsum(x, dim)
    return total - x if exclusive else total


def axis_calls(name, more=({},)):
    return [
        ({name: s}, {"dim": d, **m})
        for s, d in (
            ([4, 5], 1),
            ([4, 5], 0),
            ([2, 3, 4], -2),
            ([133], 0),
            ([3, 67], 1),
            ([67, 3], 0),
            ([1], 0),
            ([0, 3], 1),
            ([1, 2, 1, 3, 1, 2, 1, 2], 3),
            ([4, 1], 1),
        )
        for m in more
    ]


def kept_or_wide(dtype):
    return [dtype, "FLOAT"] if dtype in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else ["INT64", dtype]


define(
    "Cumsum",
    lambda self, dim: torch.cumsum(self, dim),
    specials=False,
    calls=axis_calls("self"),
    terms=lambda self, dim: torch.cumsum(self.abs(), dim),
    attributes={"dtype": kept_or_wide},
)
define(
    "CumsumV2",
    lambda self, dim, exclusive, reverse: cumulative(self, dim, exclusive, reverse),
    specials=False,
    calls=axis_calls("self", ({}, {"exclusive": True}, {"reverse": True}, {"exclusive": True, "reverse": True})),
    terms=lambda self, dim, exclusive, reverse: cumulative(self.abs(), dim, exclusive, reverse),
)
define(
    "Cumprod",
    lambda input, dim: torch.cumprod(input, int(dim)),
    specials=False,
    calls=[(s, {"dim": ("INT64", a["dim"])}) for s, a in axis_calls("input")],
    domains={"input": (-1.5, 1.5)},
    terms=lambda input, dim: torch.cumprod(input.abs(), int(dim)),
    attributes={"dtype": kept_or_wide, "dim": []},
)


def ordered(self, dim, descending):
    if not self.dim():
        return self, torch.zeros([], dtype=torch.int64)
    return tuple(torch.sort(self, dim=dim, descending=descending, stable=True))


define(
    "Sort",
    lambda self, dim, descending: ordered(self, dim, descending),
    specials=False,
    attributes={"stable": [True]},
    calls=axis_calls("self", ({"stable": True}, {"stable": True, "descending": True}))
    + [
        (
            {"self": [20]},
            {"dim": 0, "descending": d},
            {"self": lambda s, r: np.array([math.nan, 1, INF, -INF, 0, math.nan, 3, 1, 1, 2] * 2)},
        )
        for d in (False, True)
    ],
    only_dtypes=["FLOAT", "FLOAT16", "BF16", "INT32", "INT64"],
)


def top(self, k, dim, largest):
    values, places = ordered(self, dim, largest)
    return values.narrow(dim, 0, k), places.narrow(dim, 0, k)


define(
    "Topk",
    top,
    specials=False,
    domains={"self": "distinct"},
    attributes={"sorted": [True]},
    calls=[
        ({"self": s}, {"dim": d, "k": k, "largest": g})
        for s, d, k in (
            ([4, 5], 1, 2),
            ([4, 5], 0, 4),
            ([2, 3, 4], -2, 1),
            ([133], 0, 67),
            ([3, 67], 1, 5),
            ([67, 3], 0, 7),
            ([1], 0, 1),
            ([4, 5], 1, 0),
            ([1, 2, 1, 3, 1, 2, 1, 2], 3, 2),
        )
        for g in (True, False)
    ],
)


def one_hot(self, num_classes, on_value, off_value, axis):
    classes = torch.arange(num_classes)
    mark = self.unsqueeze(-1) == classes
    mark = mark.movedim(-1, axis) if axis != -1 else mark
    return torch.where(mark, on_value.reshape(()), off_value.reshape(()))


define(
    "OneHot",
    one_hot,
    specials=False,
    mixed=False,
    dtypes={"on_value": "FLOAT", "off_value": "FLOAT"},
    calls=[
        ({"self": s, "on_value": [1], "off_value": [1]}, {"num_classes": n, "axis": a}, {"self": below(n + 1)})
        for s, n, a in (
            ([5], 4, -1),
            ([5], 4, 0),
            ([2, 3], 3, 1),
            ([133], 7, -1),
            ([0], 3, -1),
            ([4, 5], 1, -1),
            ([2, 3, 4], 5, 2),
        )
    ],
    extra=lambda operator: [
        operator.add(
            f"values of {d}",
            operator.make_inputs(
                {"self": [2, 3], "on_value": [1], "off_value": [1]}, {"self": "INT64", "on_value": d, "off_value": d}
            ),
            {"num_classes": {"int64_value": 4}},
        )
        for d in ("FLOAT16", "INT8", "UINT8", "INT32", "INT64")
    ],
)
