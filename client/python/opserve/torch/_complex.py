"""Graphs with complex numbers: each becomes a pair of real ones, since the pool has no others.

A complex tensor is the real one that view_as_real() makes of it, with an axis of two more. So
rotary embeddings that are written as products of complex numbers run on the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch
from torch.fx.passes.shape_prop import _extract_tensor_metadata

Node = torch.fx.Node
aten = torch.ops.aten


def without_complex(graph: torch.fx.GraphModule) -> None:
    """Replaces complex tensors by pairs, as far as all nodes that make and use them are known.

    Those that are inputs or results of the graph stay, as do those of other nodes.
    """
    if not any(map(_is_complex, graph.graph.nodes)):
        return
    pairs = _Pairs(graph.graph)
    for node in list(graph.graph.nodes):
        pairs.replace(node)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _is_complex(value: Any) -> bool:
    meta = value.meta.get("val") if isinstance(value, Node) else None
    return isinstance(meta, torch.Tensor) and meta.is_complex()


def _is_pair(value: Any) -> bool:
    return isinstance(value, Node) and value.target is aten.view_as_complex.default


def _axis_of_pair(axis: int) -> int:
    """The axis of a pair that is this one of the complex tensor."""
    return axis if axis >= 0 else axis - 1


class _Unknown(Exception):
    """A node has no rule for what it is given."""


# Arguments that say nothing of values; that the dtype is the one meant is seen at the pair.
_ABOUT_MEMORY = {"device", "dtype", "layout", "memory_format", "non_blocking", "pin_memory"}


class _Pairs:
    """The pairs of a graph's complex tensors. New nodes come before the one that they replace."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self._graph = graph
        self._node = next(iter(graph.nodes))  # the one to be replaced

    def replace(self, node: Node) -> None:
        if node.op != "call_function":
            return
        self._node = node
        with self._graph.inserting_before(node):
            if node.target is aten.view_as_real.default:
                if _is_pair(node.args[0]):
                    node.replace_all_uses_with(node.args[0].args[0])
            elif node.target is aten._neg_view.default:  # as torch does to parts of conjugates
                node.replace_all_uses_with(self.call(aten.neg.default, node.args[0]))
            elif _is_complex(node):
                pair = self._pair_of_result(node)
                if pair is not None:
                    node.replace_all_uses_with(self.call(aten.view_as_complex.default, pair))

    def _pair_of_result(self, node: Node) -> Optional[Node]:
        if node.target not in _RULES or not node.kwargs.keys() <= _ABOUT_MEMORY:
            return None
        try:
            pair = _RULES[node.target](self, *node.args)
        except _Unknown:
            return None
        is_meant = pair.meta["val"].dtype is node.meta["val"].dtype.to_real()
        return pair if is_meant else None

    def call(self, target: Any, *args: Any, **options: Any) -> Node:
        """A new node, with what the node that it replaces says of the model."""
        values = torch.fx.node.map_arg(args, lambda one: one.meta["val"])
        with self._node.meta["val"].fake_mode:
            value = target(*values, **options)
        node = self._graph.call_function(target, args, options)
        node.meta = {**self._node.meta, "val": value}
        node.meta["tensor_meta"] = _extract_tensor_metadata(value)
        return node

    def of(self, value: Any) -> Node:
        """The pair of a complex tensor."""
        if _is_pair(value):
            return value.args[0]
        if not _is_complex(value) or value.meta["val"].is_conj():
            raise _Unknown
        return self.call(aten.view_as_real.default, value)

    def parts(self, value: Any) -> tuple[Any, Any]:
        if isinstance(value, complex):
            return value.real, value.imag
        pair = self.of(value)
        return self.call(aten.select.int, pair, -1, 0), self.call(aten.select.int, pair, -1, 1)

    def joined(self, real: Node, imaginary: Node) -> Node:
        ends = [self.call(aten.unsqueeze.default, one, -1) for one in (real, imaginary)]
        return self.call(aten.cat.default, ends, -1)


def _polar(pairs: _Pairs, length: Node, angle: Node) -> Node:
    return pairs.joined(
        pairs.call(aten.mul.Tensor, length, pairs.call(aten.cos.default, angle)),
        pairs.call(aten.mul.Tensor, length, pairs.call(aten.sin.default, angle)),
    )


def _mul(pairs: _Pairs, x: Any, y: Any) -> Node:
    x, y = _without_conj(x), _without_conj(y)
    if not _is_complex(x):
        x, y = y, x
    if not _is_complex(y) and not isinstance(y, complex):
        factor = pairs.call(aten.unsqueeze.default, y, -1) if isinstance(y, Node) else y
        return pairs.call(aten.mul.Tensor, pairs.of(x), factor)
    (a, b), (c, d) = pairs.parts(x), pairs.parts(y)
    real = [pairs.call(aten.mul.Tensor, *factors) for factors in ((a, c), (b, d))]
    imaginary = [pairs.call(aten.mul.Tensor, *factors) for factors in ((a, d), (b, c))]
    return pairs.joined(
        pairs.call(aten.sub.Tensor, *real), pairs.call(aten.add.Tensor, *imaginary)
    )


def _without_conj(value: Any) -> Any:
    """The conjugate itself, where the node that makes it is given a number."""
    is_conj = isinstance(value, Node) and value.target is aten._conj.default
    is_constant = is_conj and isinstance(value.args[0], complex)
    return value.args[0].conjugate() if is_constant else value


def _conj(pairs: _Pairs, x: Any) -> Node:
    if isinstance(x, complex):
        raise _Unknown
    real, imaginary = pairs.parts(x)
    return pairs.joined(real, pairs.call(aten.neg.default, imaginary))


def _of_both(target: Any) -> Callable[..., Node]:
    """The rule of a function of complex tensors that does the same to both parts."""

    def rule(pairs: _Pairs, *args: Any) -> Node:
        return pairs.call(target, *map(pairs.of, args))

    return rule


def _copy(pairs: _Pairs, x: Node) -> Node:
    # The pool copies nothing for clone(), so a view that is made here would be one of x.
    return pairs.call(aten.mul.Tensor, pairs.of(x), 1)


def _of_axis(target: Any) -> Callable[..., Node]:
    """The rule of a view whose second argument is an axis."""

    def rule(pairs: _Pairs, x: Node, axis: int = 0, *args: Any) -> Node:
        return pairs.call(target, pairs.of(x), _axis_of_pair(axis), *args)

    return rule


def _view(pairs: _Pairs, x: Node, shape: Sequence[Any]) -> Node:
    pair = pairs.of(x)
    try:
        return pairs.call(aten.view.default, pair, [*shape, 2])
    except (RuntimeError, ValueError):
        # The pair lies in memory in another order than torch's complex tensor would.
        pair = pairs.call(aten.clone.default, pair, memory_format=torch.contiguous_format)
        return pairs.call(aten.view.default, pair, [*shape, 2])


def _expand(pairs: _Pairs, x: Node, shape: Sequence[Any]) -> Node:
    return pairs.call(aten.expand.default, pairs.of(x), [*shape, 2])


def _new_zeros(pairs: _Pairs, x: Node, shape: Sequence[Any]) -> Node:
    return pairs.call(aten.new_zeros.default, pairs.of(x), [*shape, 2])


def _scattered_in(target: Any) -> Callable[..., Node]:
    """The rule of a function that puts a tensor into another one, along an axis."""

    def rule(pairs: _Pairs, x: Node, part: Node, axis: int = 0, *args: Any) -> Node:
        return pairs.call(target, pairs.of(x), pairs.of(part), _axis_of_pair(axis), *args)

    return rule


def _permute(pairs: _Pairs, x: Node, axes: Sequence[int]) -> Node:
    kept = [axis % len(axes) for axis in axes]
    return pairs.call(aten.permute.default, pairs.of(x), [*kept, len(axes)])


def _transpose(pairs: _Pairs, x: Node, one: int, other: int) -> Node:
    axes = map(_axis_of_pair, (one, other))
    return pairs.call(aten.transpose.int, pairs.of(x), *axes)


def _t(pairs: _Pairs, x: Node) -> Node:
    return _transpose(pairs, x, 0, 1) if x.meta["val"].dim() == 2 else pairs.of(x)


def _sum(
    pairs: _Pairs, x: Node, axes: Optional[Sequence[int]], keepdim: bool = False
) -> Node:
    axes = axes or range(x.meta["val"].dim())  # none: all of them
    return pairs.call(aten.sum.dim_IntList, pairs.of(x), [*map(_axis_of_pair, axes)], keepdim)


_RULES: dict[Any, Callable[..., Node]] = {
    aten.complex.default: _Pairs.joined,
    aten.polar.default: _polar,
    aten.mul.Tensor: _mul,
    aten.mul.Scalar: _mul,
    aten.add.Tensor: _of_both(aten.add.Tensor),
    aten.sub.Tensor: _of_both(aten.sub.Tensor),
    aten.neg.default: _of_both(aten.neg.default),
    aten._conj.default: _conj,
    aten.clone.default: _copy,
    aten.detach.default: _of_both(aten.detach.default),
    aten._to_copy.default: _copy,
    aten.unsqueeze.default: _of_axis(aten.unsqueeze.default),
    aten.squeeze.dim: _of_axis(aten.squeeze.dim),
    aten.select.int: _of_axis(aten.select.int),
    aten.slice.Tensor: _of_axis(aten.slice.Tensor),
    aten.view.default: _view,
    aten.expand.default: _expand,
    aten.new_zeros.default: _new_zeros,
    aten.select_scatter.default: _scattered_in(aten.select_scatter.default),
    aten.slice_scatter.default: _scattered_in(aten.slice_scatter.default),
    aten.permute.default: _permute,
    aten.transpose.int: _transpose,
    aten.t.default: _t,
    aten.sum.dim_IntList: _sum,
}
