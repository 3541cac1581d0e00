"""Reductions, cumulative sums and orders."""

from __future__ import annotations

from typing import Any, Optional

import torch

from opserve.torch._builder import Builder, Unsupported, Value
from opserve.torch._lowerings._registry import Lowering, lowers

aten = torch.ops.aten


def _axes(x: Value, dims: Any) -> list[int]:
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(len(x.shape)))
    return [dims] if isinstance(dims, int) else list(dims)


@lowers(aten.sum.default, aten.sum.dim_IntList)
def _reduce_sum(
    b: Builder, x: Value, dims: Any = None, keepdim: bool = False, dtype: Any = None
) -> Value:
    return _reduce(b, "ReduceSum", "dims", "keep_dims", x, dims, keepdim)


@lowers(aten.mean.default, aten.mean.dim)
def _mean(
    b: Builder, x: Value, dims: Any = None, keepdim: bool = False, dtype: Any = None
) -> Value:
    return _reduce(b, "Mean", "dim", "keep_dim", x, dims, keepdim)


def _reduce(
    b: Builder, name: str, dims_key: str, keep_key: str, x: Value, dims: Any, keepdim: bool
) -> Value:
    dtype = str(b.result.dtype).rpartition(".")[2]
    return b.op(
        name, **{"self": x, dims_key: _axes(x, dims), keep_key: keepdim, "dtype": dtype}
    )


def _extreme(name: str) -> Lowering:
    def lowering(b: Builder, x: Value, dims: Any = None, keepdim: bool = False) -> Value:
        return b.op(name, self=x, dim=_axes(x, dims), keep_dim=keepdim)

    return lowering


lowers(aten.amax.default)(_extreme("Amax"))
lowers(aten.amin.default)(_extreme("Amin"))
lowers(aten.max.default)(_extreme("Amax"))
lowers(aten.min.default)(_extreme("Amin"))


def _extreme_with_index(name: str) -> Lowering:
    def lowering(b: Builder, x: Value, dim: int, keepdim: bool = False) -> Any:
        return b.op(name, self=x, dim=dim, keepdim=keepdim)

    return lowering


lowers(aten.max.dim)(_extreme_with_index("MaxDim"))
lowers(aten.min.dim)(_extreme_with_index("MinDim"))


def _any_of(name: str) -> Lowering:
    def lowering(b: Builder, x: Value, dims: Any = None, keepdim: bool = False) -> Value:
        return b.op(
            name, self=b.cast(x, torch.bool), dim=_axes(x, dims), keepdim=keepdim
        )

    return lowering


for _packet, _name in ((aten.any, "Any"), (aten.all, "All")):
    for _overload in ("default", "dim", "dims"):
        if hasattr(_packet, _overload):
            lowers(getattr(_packet, _overload))(_any_of(_name))


def _arg(name: str) -> Lowering:
    def lowering(b: Builder, x: Value, dim: Optional[int] = None, keepdim: bool = False) -> Value:
        if dim is None:
            x = b.view(torch.reshape, x, (-1,))
            dim, keepdim = 0, False
            if b.result.dim() != 0:
                raise Unsupported("keepdim of all axes")
        return b.op(name, self=x, dim=dim, keepdim=keepdim)

    return lowering


lowers(aten.argmax.default)(_arg("ArgMax"))
lowers(aten.argmin.default)(_arg("ArgMin"))


@lowers(aten.var.correction)
def _var(
    b: Builder, x: Value, dims: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Value:
    correction = 1 if correction is None else int(correction)
    return b.op(
        "VarCorrection", self=x, dim=_axes(x, dims), correction=correction, keepdim=keepdim
    )


@lowers(aten.var_mean.correction)
def _var_mean(
    b: Builder, x: Value, dims: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    correction = 1 if correction is None else int(correction)
    return b.op(
        "VarMean", self=x, dim=_axes(x, dims), correction=correction, keepdim=keepdim
    )


@lowers(aten.cumsum.default)
def _cumsum(b: Builder, x: Value, dim: int, dtype: Any = None) -> Value:
    name = str(b.result.dtype).rpartition(".")[2]
    return b.op("Cumsum", self=b.cast(x, b.result.dtype), dim=dim, dtype=name)


@lowers(aten.cumprod.default)
def _cumprod(b: Builder, x: Value, dim: int, dtype: Any = None) -> Value:
    name = str(b.result.dtype).rpartition(".")[2]
    return b.op("Cumprod", input=b.cast(x, b.result.dtype), dim=dim, dtype=name)


@lowers(aten.prod.dim_int)
def _prod_dim(
    b: Builder, x: Value, dim: int, keepdim: bool = False, dtype: Any = None
) -> Value:
    name = str(b.result.dtype).rpartition(".")[2]
    return b.op("ProdDim", self=x, dim=dim, keep_dim=keepdim, dtype=name)


@lowers(aten.prod.default)
def _prod(b: Builder, x: Value, dtype: Any = None) -> Value:
    return _prod_dim(b, b.view(torch.Tensor.view, x, (-1,)), 0)


@lowers(aten.topk.default)
def _topk(
    b: Builder, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    # The function only sorts, and without it any order will do.
    return b.op("Topk", self=x, k=k, dim=dim, largest=largest, sorted=True)


@lowers(aten.sort.default)
def _sort(b: Builder, x: Value, dim: int = -1, descending: bool = False) -> Any:
    return b.op("Sort", self=x, stable=True, dim=dim, descending=descending)


@lowers(aten.logsumexp.default)
def _logsumexp(b: Builder, x: Value, dims: Any, keepdim: bool = False) -> Value:
    return b.op("LogSumExp", self=x, dim=_axes(x, dims), keep_dim=keepdim)


@lowers(aten.linalg_vector_norm.default)
def _vector_norm(
    b: Builder, x: Value, ord: Any = 2, dims: Any = None, keepdim: bool = False, dtype: Any = None
) -> Value:
    if b.result.dtype == torch.float64:
        raise Unsupported("a norm in float64")
    name = str(b.result.dtype).rpartition(".")[2]
    return b.op(
        "LinalgVectorNorm", self=x, ord=ord, dims=_axes(x, dims), keep_dims=keepdim, dtype=name
    )
