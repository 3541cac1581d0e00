"""Reductions along axes."""

import math

import torch

from oracles import INF, define, full


def axes_of(dims, rank):
    return list(dims) if dims else list(range(rank))


def over(function):
    """Of a call whose axes are named in any of these ways."""
    return lambda self, dims, keep: function(self, axes_of(dims, self.dim()), keep)


def total(x, axes, keep):
    return x.sum(axes, keepdim=keep) if axes else x


def reduce_calls(dims, keep, more=None, empty=True):
    shapes = [
        ([4, 5], [1], False),
        ([4, 5], [0], True),
        ([2, 3, 4], [0, 2], False),
        ([2, 3, 4], [-2], True),
        ([2, 3, 4], [], False),
        ([133], [0], False),
        ([7, 67], [1], False),
        ([67, 7], [0], False),
        ([1], [0], True),
        ([1, 2, 1, 3, 1, 2, 1, 2], [1, 3, 7], False),
        ([0, 3], [1], False),
        ([4, 5], [0, 1], False),
        ([3, 1, 5], [1], False),
        ([1000], [0], False),
    ]
    if empty:
        shapes += [([0, 3], [0], False), ([], [], False), ([2, 0, 3], [1, 2], True)]
    return [({"self": shape}, {dims: axes, keep: kept, **(more or {})}) for shape, axes, kept in shapes]


def one_axis_calls(dim, keep, empty=False):
    shapes = [
        ([4, 5], 1, False),
        ([4, 5], 0, True),
        ([2, 3, 4], 1, False),
        ([2, 3, 4], -2, True),
        ([133], 0, False),
        ([7, 67], 1, False),
        ([67, 7], 0, False),
        ([1], 0, True),
        ([1, 2, 1, 3, 1, 2, 1, 2], 3, False),
        ([0, 3], 1, False),
        ([3, 1, 5], 1, False),
    ]
    return [({"self": shape}, {dim: axis, keep: kept}) for shape, axis, kept in shapes]


def sum_dtypes(dtype):
    if dtype in ("FLOAT", "FLOAT16", "BF16", "DOUBLE"):
        return [dtype, "FLOAT"]
    return ["INT64", "INT32", "FLOAT"] if dtype != "DOUBLE" else ["DOUBLE"]


def mean_dtypes(dtype):
    return [dtype, "FLOAT"] if dtype in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else ["FLOAT"]


define(
    "ReduceSum",
    lambda self, dims, keep_dims: total(self, axes_of(dims, self.dim()), keep_dims),
    terms=lambda self, dims, keep_dims: total(self.abs(), axes_of(dims, self.dim()), keep_dims),
    calls=reduce_calls("dims", "keep_dims"),
    attributes={"dtype": sum_dtypes},
    specials=False,
)
define(
    "ReduceNansum",
    lambda self, dim, keep_dim: total(
        torch.where(self != self, torch.zeros_like(self), self), axes_of(dim, self.dim()), keep_dim
    ),
    terms=lambda self, dim, keep_dim: total(self.abs(), axes_of(dim, self.dim()), keep_dim),
    calls=reduce_calls("dim", "keep_dim"),
    attributes={"dtype": sum_dtypes},
    specials=False,
)


def mean(self, axes, keep):
    if not axes:
        return self
    count = math.prod(self.shape[a] for a in axes)
    total_ = self.sum(axes, keepdim=keep)
    if self.is_floating_point():
        return total_ / count
    return torch.div(total_, count, rounding_mode="trunc") if count else torch.zeros_like(total_)


define(
    "Mean",
    lambda self, dim, keep_dim: mean(self, axes_of(dim, self.dim()), keep_dim),
    terms=lambda self, dim, keep_dim: mean(self.abs(), axes_of(dim, self.dim()), keep_dim),
    calls=reduce_calls("dim", "keep_dim"),
    attributes={"dtype": mean_dtypes},
    specials=False,
)
define(
    "MeanV2",
    lambda self, dim, keep_dim, noop_with_empty_axes: (
        self if noop_with_empty_axes and not dim else mean(self, axes_of(dim, self.dim()), keep_dim)
    ),
    specials=False,
    terms=lambda self, dim, keep_dim, noop_with_empty_axes: (
        self.abs() if noop_with_empty_axes and not dim else mean(self.abs(), axes_of(dim, self.dim()), keep_dim)
    ),
    calls=reduce_calls("dim", "keep_dim")
    + [
        ({"self": [4, 5]}, {"dim": [], "noop_with_empty_axes": True}),
        ({"self": [4, 5]}, {"dim": [1], "noop_with_empty_axes": True}),
    ],
)
define(
    "Amax",
    lambda self, dim, keep_dim: torch.amax(self, axes_of(dim, self.dim()), keepdim=keep_dim),
    calls=reduce_calls("dim", "keep_dim", empty=False),
    specials=False,
)
define(
    "Amin",
    lambda self, dim, keep_dim: torch.amin(self, axes_of(dim, self.dim()), keepdim=keep_dim),
    calls=reduce_calls("dim", "keep_dim", empty=False),
    specials=False,
)
ANY_SHAPE = [({"self": s}, {}) for s in ([4, 5], [133], [], [1], [2, 3, 4], [1, 2, 1, 3, 1, 2, 1, 2], [1000])]
define("Max", lambda self: self.max(), calls=ANY_SHAPE)
define("Min", lambda self: self.min(), calls=ANY_SHAPE)
define(
    "MaxDim",
    lambda self, dim, keepdim: tuple(torch.max(self, dim, keepdim=keepdim)),
    calls=one_axis_calls("dim", "keepdim"),
    domains={"self": "distinct"},
    specials=False,
)
define(
    "MinDim",
    lambda self, dim, keepdim: tuple(torch.min(self, dim, keepdim=keepdim)),
    calls=one_axis_calls("dim", "keepdim"),
    domains={"self": "distinct"},
    specials=False,
)
define(
    "ArgMax",
    lambda self, dim, keepdim: torch.max(self, dim, keepdim=keepdim)[1],
    calls=one_axis_calls("dim", "keepdim"),
    domains={"self": "distinct"},
    specials=False,
)
define(
    "ArgMin",
    lambda self, dim, keepdim: torch.min(self, dim, keepdim=keepdim)[1],
    calls=one_axis_calls("dim", "keepdim"),
    domains={"self": "distinct"},
    specials=False,
)


def product(x, axes, keep=False):
    for axis in sorted([a % max(x.dim(), 1) for a in axes], reverse=True):
        x = x.prod(axis, keepdim=keep)
    return x


define(
    "Prod",
    lambda self: self.prod(),
    calls=ANY_SHAPE[:-1] + [({"self": [0, 3]}, {})],
    terms=lambda self: self.abs().prod(),
    attributes={"dtype": sum_dtypes},
    domains={"self": (-1.5, 1.5)},
    specials=False,
)
define(
    "ProdDim",
    lambda self, dim, keep_dim: self.prod(dim, keepdim=keep_dim),
    terms=lambda self, dim, keep_dim: self.abs().prod(dim, keepdim=keep_dim),
    attributes={"dtype": sum_dtypes},
    calls=one_axis_calls("dim", "keep_dim"),
    domains={"self": (-1.5, 1.5)},
    specials=False,
)
define(
    "Any",
    lambda self, dim, keepdim: torch.amax((self != 0).to(torch.int64), axes_of(dim, self.dim()), keepdim=keepdim),
    calls=reduce_calls("dim", "keepdim", empty=False),
    domains={"self": (-1, 1)},
    specials=False,
)
define(
    "All",
    lambda self, dim, keepdim: torch.amin((self != 0).to(torch.int64), axes_of(dim, self.dim()), keepdim=keepdim),
    calls=reduce_calls("dim", "keepdim", empty=False),
    domains={"self": (-1, 1)},
    specials=False,
)


def variance(self, dim, correction, keep):
    axes = axes_of(dim, self.dim())
    count = math.prod(self.shape[a] for a in axes)
    average = self.mean(axes, keepdim=True) if axes else self
    squares = ((self - average) ** 2).sum(axes, keepdim=keep) if axes else (self - average) ** 2
    spread_ = squares / max(0, count - correction)
    return spread_, mean(self, axes, keep)


def var_calls(more):
    calls = reduce_calls("dim", "keepdim")
    return (
        calls
        + [({"self": [4, 5]}, {}), ({"self": [4, 5]}, {"keepdim": True})]
        + [({"self": [4, 5]}, {"dim": [1], **one}) for one in more]
    )


_corrections = [{"correction": c} for c in (0, 1, 2, 5, 7)]
_moments = lambda **outputs: lambda self, dim, keepdim: {
    name: (self.abs().max() if self.numel() else torch.zeros([])) ** power_ for name, power_ in outputs.items()
}
define(
    "Var",
    lambda self, dim, unbiased, keepdim: variance(self, dim, int(unbiased), keepdim)[0],
    terms=lambda self, dim, keepdim: variance(self, dim, 1, keepdim)[0].nan_to_num(0, 0) * 2,
    calls=var_calls([{"unbiased": False}]),
    specials=False,
)
define(
    "VarCorrection",
    lambda self, dim, correction, keepdim: variance(self, dim, correction, keepdim)[0],
    calls=var_calls(_corrections),
    specials=False,
)
define(
    "VarMean",
    lambda self, dim, correction, keepdim: dict(zip(("var_out", "mean_out"), variance(self, dim, correction, keepdim))),
    terms=_moments(mean_out=1),
    calls=var_calls(_corrections),
    specials=False,
)
define(
    "Std",
    lambda self, dim, correction, keepdim: torch.sqrt(variance(self, dim, correction, keepdim)[0]),
    calls=var_calls(_corrections),
    specials=False,
)


def std_mean(self, dim, correction, keepdim):
    spread_, average = variance(self, dim, correction, keepdim)
    return {"std_out": torch.sqrt(spread_), "mean_out": average}


define(
    "StdMeanCorrection",
    std_mean,
    terms=_moments(mean_out=1),
    calls=var_calls(_corrections),
    specials=False,
)


def norm(self, order, dims, keep):
    axes = axes_of(dims, self.dim())
    order = 2.0 if order is None else order
    x = self.abs()
    if not axes:
        return (x != 0).to(torch.float64) if order == 0 else x
    if order == 0:
        return (x != 0).to(torch.float64).sum(axes, keepdim=keep)
    if math.isinf(order):
        return torch.amax(x, axes, keepdim=keep) if order > 0 else torch.amin(x, axes, keepdim=keep)
    return (x**order).sum(axes, keepdim=keep) ** (1 / order)


_orders = [("FLOAT", v) for v in (2.0, 1.0, 0.0, 3.0, 0.5, INF, -INF)]
define(
    "Norm",
    lambda self, p_scalar, dim, keepdim: norm(self, p_scalar, dim, keepdim),
    attributes={"p_scalar": _orders},
    calls=reduce_calls("dim", "keepdim"),
    specials=False,
)
define(
    "LinalgVectorNorm",
    lambda self, ord, dims, keep_dims: norm(self, ord, dims, keep_dims),
    attributes={"ord": _orders, "dtype": lambda d: [d, "FLOAT"]},
    calls=reduce_calls("dims", "keep_dims"),
    specials=False,
)


def log_sum_exp(self, dim, keep_dim):
    axes = axes_of(dim, self.dim())
    return torch.logsumexp(full(self), axes, keepdim=keep_dim) if axes else full(self)


define(
    "LogSumExp",
    log_sum_exp,
    terms=lambda self: torch.ones([]) + self.abs().max() if self.numel() else torch.ones([]),
    calls=reduce_calls("dim", "keep_dim"),
    specials=False,
)
