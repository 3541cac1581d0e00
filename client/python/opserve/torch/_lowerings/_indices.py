"""Elements by their indices: lookups, scattering, and slices that are replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch

from opserve.torch._builder import Builder, Unsupported, Value
from opserve.torch._lowerings._registry import lowers

aten = torch.ops.aten


@lowers(aten.embedding.default)
def _embedding(
    b: Builder,
    weight: Value,
    indices: Value,
    padding: int = -1,
    scale: bool = False,
    sparse: bool = False,
) -> Value:
    return b.op("Embedding", weight=weight, indices=indices)


@lowers(aten.embedding_dense_backward.default)
def _embedding_backward(
    b: Builder, grad: Value, indices: Value, count: int, padding: int, scale: bool
) -> Value:
    return b.op(
        "EmbeddingDenseBackward",
        grad=grad,
        indices=indices,
        num_weights=count,
        padding_idx=padding,
        scale_grad_by_freq=scale,
    )


@lowers(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def _embedding_bag(
    b: Builder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale: bool = False,
    mode: int = 0,
    sparse: bool = False,
    factors: Optional[Value] = None,
    include_last: bool = False,
    padding: int = -1,
) -> Any:
    if weight.dtype == torch.float64:
        raise Unsupported("bags of float64")
    dtype = torch.promote_types(indices.dtype, offsets.dtype)

    def integers(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device="meta")

    bags, columns = b.result[0].shape
    sizes = integers(bags)
    max_indices = integers(bags, columns) if mode not in (0, 1) else sizes
    metas = (b.result[0], integers(*indices.shape), sizes, max_indices)
    if 0 in (*weight.shape, *indices.shape, bags):
        return tuple(b.full(0, meta) for meta in metas)
    results = b.op(
        "EmbeddingBag",
        weight=weight,
        indices=indices,
        offsets=offsets,
        mode=mode,
        per_sample_weights=factors,
        include_last_offset=include_last,
        padding_idx=padding,
        meta=metas,
    )
    if mode != 0:
        return results
    # Torch's sums count nothing, and most do not tell the bags.
    output, bag_of_each, *_ = results
    known = b.node.meta.get("val")
    if known is not None and isinstance(known[1].shape[0], int) and known[1].shape[0] == 0:
        bag_of_each = b.full(0, integers(0))
    return output, bag_of_each, b.full(0, sizes), b.full(0, sizes)


@lowers(aten.gather.default)
def _gather(b: Builder, x: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    return b.op("Gather", self=x, dim=dim, index=index)


@lowers(aten.index_select.default)
def _index_select(b: Builder, x: Value, dim: int, index: Value) -> Value:
    return b.op("IndexSelect", self=x, dim=dim, index=index)


class _Places:
    """Indices of some axes of a tensor, of which the others are taken whole.

    The pool's operators index the first axes. So these are brought to the front, and in results the
    axes of the indices go where torch has them.
    """

    def __init__(self, x: Value, indices: Sequence[Optional[Value]]) -> None:
        if any(one is not None and one.dtype == torch.bool for one in indices):
            raise Unsupported("indices that are masks")
        self.axes = [axis for axis, one in enumerate(indices) if one is not None]
        self.indices = [one for one in indices if one is not None]
        others = [axis for axis in range(len(x.shape)) if axis not in self.axes]
        self.to_front = [*self.axes, *others]
        self.count = len(torch.broadcast_shapes(*(one.shape for one in self.indices)))
        is_together = self.axes[-1] - self.axes[0] + 1 == len(self.axes)
        rank = self.count + len(others)
        # Axes of a result before and after those of the indices.
        before = self.axes[0] if is_together else 0
        self.to_place = [
            *range(self.count, self.count + before),
            *range(self.count),
            *range(self.count + before, rank),
        ]

    def front(self, b: Builder, x: Value) -> Value:
        return b.view(aten.permute.default, x, self.to_front)

    def back(self, b: Builder, x: Value) -> Value:
        return b.view(aten.permute.default, x, _inverse(self.to_front))

    def result_front(self, b: Builder, values: Value) -> Value:
        return b.view(aten.permute.default, values, _inverse(self.to_place))


def _inverse(axes: Sequence[int]) -> list[int]:
    return sorted(range(len(axes)), key=lambda axis: axes[axis])


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def _index(b: Builder, x: Value, indices: Sequence[Optional[Value]]) -> Value:
    places = _Places(x, indices)
    x = places.front(b, x)
    shape = [b.result.shape[axis] for axis in _inverse(places.to_place)]
    meta = torch.empty(shape, dtype=x.dtype, device="meta")
    found = b.op("Index", self=x, indices=places.indices, meta=meta)
    return b.view(aten.permute.default, found, places.to_place)


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def _index_put(
    b: Builder,
    x: Value,
    indices: Sequence[Optional[Value]],
    values: Value,
    accumulate: bool = False,
) -> Value:
    places = _Places(x, indices)
    rest = [extent for axis, extent in enumerate(x.shape) if axis not in places.axes]
    shape = [*torch.broadcast_shapes(*(one.shape for one in places.indices)), *rest]
    placed = [shape[axis] for axis in places.to_place]
    values = places.result_front(b, b.view(aten.expand.default, values, placed))
    x = b.contiguous(places.front(b, x))
    put = b.op(
        "IndexPutImpl",
        self=x,
        indices=places.indices,
        values=values,
        accumulate=accumulate,
        meta=torch.empty(x.shape, dtype=x.dtype, device="meta"),
    )
    return places.back(b, put)


@lowers(aten.index_add.default)
def _index_add(
    b: Builder, x: Value, dim: int, index: Value, source: Value, alpha: Any = 1
) -> Value:
    return b.op("IndexAdd", self=x, dim=dim, index=index, source=source, alpha=alpha)


@lowers(aten.scatter.src)
def _scatter(b: Builder, x: Value, dim: int, index: Value, src: Value) -> Value:
    return b.op("Scatter", self=x, dim=dim, index=index, src=src)


@lowers(aten.scatter.value)
def _scatter_value(b: Builder, x: Value, dim: int, index: Value, value: Any) -> Value:
    return b.op("ScatterValue", self=x, dim=dim, index=index, value=value)


@lowers(aten.scatter_add.default)
def _scatter_add(b: Builder, x: Value, dim: int, index: Value, src: Value) -> Value:
    return b.op("ScatterAdd", self=x, dim=dim, index=index, src=src)


@lowers(aten.slice_scatter.default)
def _slice_scatter(
    b: Builder,
    x: Value,
    source: Value,
    dim: int = 0,
    start: Optional[int] = None,
    end: Optional[int] = None,
    step: int = 1,
) -> Value:
    size = x.shape[dim]
    first = 0 if start is None else min(start + size if start < 0 else start, size)
    last = size if end is None else min(end + size if end < 0 else end, size)
    dim %= len(x.shape)
    if step != 1:
        places = range(first, last, step)
        if len(places) > 512:
            raise Unsupported("a slice with steps of more than 512 places")
        index = b.literal(torch.tensor(places))
        return _index_put(b, x, [None] * dim + [index], source)
    parts = [
        b.view(aten.slice.Tensor, x, dim, 0, first),
        source,
        b.view(aten.slice.Tensor, x, dim, max(last, first), size),
    ]
    parts = [part for part in parts if part.shape[dim] > 0]
    if len(parts) == 1:
        return b.contiguous(parts[0])
    return b.op("Cat", tensors=parts, dim=dim)


@lowers(aten.select_scatter.default)
def _select_scatter(b: Builder, x: Value, source: Value, dim: int, index: int) -> Value:
    source = b.view(aten.unsqueeze.default, source, dim)
    index %= x.shape[dim]
    return _slice_scatter(b, x, source, dim, index, index + 1)
