"""Graphs with complex numbers: each becomes a pair of real ones, since the pool has no others.

So rotary embeddings that are written as products of complex numbers run on the pool, and Fourier
transforms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

import torch

from opserve.torch import _fourier
from opserve.torch._pairs import Pairs, Unknown, is_complex, is_pair

Node = torch.fx.Node
aten = torch.ops.aten


def without_complex(graph: torch.fx.GraphModule) -> None:
    """Replaces complex tensors by pairs, as far as all nodes that make and use them are known.

    Those that are inputs or results of the graph stay, as do those of other nodes.
    """
    if not any(map(is_complex, graph.graph.nodes)):
        return
    pairs = Pairs(graph.graph)
    for node in list(graph.graph.nodes):
        if node.op == "call_function":
            with graph.graph.inserting_before(node):
                _replace(pairs, node)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _axis_of_pair(axis: int) -> int:
    """The axis of a pair that is this one of the complex tensor."""
    return axis if axis >= 0 else axis - 1


# Arguments that say nothing of values; that the dtype is the one meant is seen at the pair.
_ABOUT_MEMORY = {"device", "dtype", "layout", "memory_format", "non_blocking", "pin_memory"}


def _replace(pairs: Pairs, node: Node) -> None:
    pairs.node = node
    if node.target is aten.view_as_real.default:
        if is_pair(node.args[0]):
            node.replace_all_uses_with(node.args[0].args[0])
    elif node.target is aten._neg_view.default:  # as torch does to parts of conjugates
        node.replace_all_uses_with(pairs.call(aten.neg.default, node.args[0]))
    elif is_complex(node):
        pair = _result(RULES, pairs, node)
        if pair is not None:
            node.replace_all_uses_with(pairs.call(aten.view_as_complex.default, pair))
    elif node.target in RULES_OF_REAL_RESULTS and any(map(is_complex, node.args)):
        real = _result(RULES_OF_REAL_RESULTS, pairs, node)
        if real is not None:
            # It may be a result of the graph, of which the caller makes views.
            node.replace_all_uses_with(pairs.laid_out(real, node.meta["val"]))


def _result(
    rules: Mapping[Any, Callable[..., Node]], pairs: Pairs, node: Node
) -> Optional[Node]:
    """The node's result, of complex numbers the pair. None: no rule fits."""
    if node.target not in rules or not node.kwargs.keys() <= _ABOUT_MEMORY:
        return None
    try:
        result = rules[node.target](pairs, *node.args)
    except Unknown:
        return None
    dtype = node.meta["val"].dtype
    is_meant = result.meta["val"].dtype is (dtype.to_real() if dtype.is_complex else dtype)
    return result if is_meant else None


def _polar(pairs: Pairs, length: Node, angle: Node) -> Node:
    return pairs.joined(
        pairs.call(aten.mul.Tensor, length, pairs.call(aten.cos.default, angle)),
        pairs.call(aten.mul.Tensor, length, pairs.call(aten.sin.default, angle)),
    )


def _product(target: Any) -> Callable[..., Node]:
    """The rule of a product of complex numbers, or of their matrices."""

    def rule(pairs: Pairs, x: Any, y: Any) -> Node:
        (a, b), (c, d) = pairs.parts(x), pairs.parts(y)
        real = [pairs.call(target, *factors) for factors in ((a, c), (b, d))]
        imaginary = [pairs.call(target, *factors) for factors in ((a, d), (b, c))]
        return pairs.joined(
            pairs.call(aten.sub.Tensor, *real), pairs.call(aten.add.Tensor, *imaginary)
        )

    return rule


def _mul(pairs: Pairs, x: Any, y: Any) -> Node:
    x, y = _without_conj(x), _without_conj(y)
    if not is_complex(x):
        x, y = y, x
    if not is_complex(y) and not isinstance(y, complex):
        factor = pairs.call(aten.unsqueeze.default, y, -1) if isinstance(y, Node) else y
        return pairs.call(aten.mul.Tensor, _as_pair(pairs, x), factor)
    return _product(aten.mul.Tensor)(pairs, x, y)


def _without_conj(value: Any) -> Any:
    """The conjugate itself, where the node that makes it is given a number."""
    is_conj = isinstance(value, Node) and value.target is aten._conj.default
    is_constant = is_conj and isinstance(value.args[0], complex)
    return value.args[0].conjugate() if is_constant else value


def _conj(pairs: Pairs, x: Any) -> Node:
    if isinstance(x, complex):
        raise Unknown
    real, imaginary = pairs.parts(x)
    return pairs.joined(real, pairs.call(aten.neg.default, imaginary))


def _as_pair(pairs: Pairs, value: Any) -> Node:
    """The pair of a tensor or a number, complex or not."""
    if not isinstance(value, Node):
        return _number(pairs, value)
    if not is_complex(value):
        return pairs.joined(value, pairs.call(aten.zeros_like.default, value))
    pair: Node = pairs.of(value)
    return pair


def _of_both(target: Any) -> Callable[..., Node]:
    """The rule of a function of numbers that does the same to both parts."""

    def rule(pairs: Pairs, *args: Any) -> Node:
        return pairs.call(target, *(_as_pair(pairs, one) for one in args))

    return rule


def _copy(pairs: Pairs, x: Node) -> Node:
    # The pool copies nothing for clone(), so a view that is made here would be one of x.
    return pairs.call(aten.mul.Tensor, _as_pair(pairs, x), 1)


def _number(pairs: Pairs, value: Any) -> Node:
    dtype = pairs.node.meta["val"].dtype.to_real()
    return pairs.constant(lambda: torch.tensor([value.real, value.imag], dtype=dtype))


def _where(pairs: Pairs, condition: Node, x: Any, y: Any) -> Node:
    condition = pairs.call(aten.unsqueeze.default, condition, -1)
    return pairs.call(aten.where.self, condition, _as_pair(pairs, x), _as_pair(pairs, y))


def _of_axes(target: Any, has_shifts: bool) -> Callable[..., Node]:
    """The rule of a function that has axes as its last argument."""

    def rule(pairs: Pairs, x: Node, *args: Sequence[int]) -> Node:
        if len(args) != 1 + has_shifts:
            raise Unknown
        axes = [*map(_axis_of_pair, args[-1])]
        return pairs.call(target, pairs.of(x), *args[:-1], axes)

    return rule


def _of_axis(target: Any) -> Callable[..., Node]:
    """The rule of a view whose second argument is an axis."""

    def rule(pairs: Pairs, x: Node, axis: int = 0, *args: Any) -> Node:
        return pairs.call(target, pairs.of(x), _axis_of_pair(axis), *args)

    return rule


def _view(pairs: Pairs, x: Node, shape: Sequence[Any]) -> Node:
    # The pair may lie in memory in another order than torch's complex tensor would.
    return pairs.view(pairs.of(x), [*shape, 2])


def _expand(pairs: Pairs, x: Node, shape: Sequence[Any]) -> Node:
    return pairs.call(aten.expand.default, pairs.of(x), [*shape, 2])


def _new_zeros(pairs: Pairs, x: Node, shape: Sequence[Any]) -> Node:
    return pairs.call(aten.new_zeros.default, pairs.of(x), [*shape, 2])


def _scattered_in(target: Any) -> Callable[..., Node]:
    """The rule of a function that puts a tensor into another one, along an axis."""

    def rule(pairs: Pairs, x: Node, part: Node, axis: int = 0, *args: Any) -> Node:
        return pairs.call(target, pairs.of(x), pairs.of(part), _axis_of_pair(axis), *args)

    return rule


def _permute(pairs: Pairs, x: Node, axes: Sequence[int]) -> Node:
    kept = [axis % len(axes) for axis in axes]
    return pairs.call(aten.permute.default, pairs.of(x), [*kept, len(axes)])


def _transpose(pairs: Pairs, x: Node, one: int, other: int) -> Node:
    axes = map(_axis_of_pair, (one, other))
    return pairs.call(aten.transpose.int, pairs.of(x), *axes)


def _t(pairs: Pairs, x: Node) -> Node:
    return _transpose(pairs, x, 0, 1) if x.meta["val"].dim() == 2 else pairs.of(x)


def _reduced(target: Any) -> Callable[..., Node]:
    """The rule of a sum or mean along axes."""

    def rule(
        pairs: Pairs, x: Node, axes: Optional[Sequence[int]], keepdim: bool = False
    ) -> Node:
        axes = axes or range(x.meta["val"].dim())  # none: all of them
        return pairs.call(target, pairs.of(x), [*map(_axis_of_pair, axes)], keepdim)

    return rule


def _padded(pairs: Pairs, x: Node, padding: Sequence[int], value: Any = 0) -> Node:
    if value != 0:
        raise Unknown
    return pairs.call(aten.constant_pad_nd.default, pairs.of(x), [0, 0, *padding])


def _copied_to(pairs: Pairs, x: Node, source: Any, *_: Any) -> Node:
    if not is_complex(source) or source.meta["val"].shape != x.meta["val"].shape:
        raise Unknown
    return _copy(pairs, source)


def _div(pairs: Pairs, x: Any, y: Any) -> Node:
    x, y = _without_conj(x), _without_conj(y)
    if not is_complex(y) and not isinstance(y, complex):
        divisor = pairs.call(aten.unsqueeze.default, y, -1) if isinstance(y, Node) else y
        return pairs.call(aten.div.Tensor, _as_pair(pairs, x), divisor)
    if not isinstance(y, Node):
        return _mul(pairs, x, 1 / y)
    # By parts of y that are at most 1, so that no square is large.
    sizes = [pairs.call(aten.abs.default, part) for part in pairs.parts(y)]
    size = pairs.call(aten.unsqueeze.default, pairs.call(aten.maximum.default, *sizes), -1)
    unit = pairs.call(aten.div.Tensor, pairs.of(y), size)
    square = pairs.call(aten.sum.dim_IntList, pairs.call(aten.mul.Tensor, unit, unit), [-1], True)
    conjugate = _conj(pairs, pairs.call(aten.view_as_complex.default, unit))
    product = _mul(pairs, x, pairs.call(aten.view_as_complex.default, conjugate))
    return pairs.call(aten.div.Tensor, pairs.call(aten.div.Tensor, product, square), size)


def _exp(pairs: Pairs, x: Node) -> Node:
    real, imaginary = pairs.parts(x)
    return _polar(pairs, pairs.call(aten.exp.default, real), imaginary)


def _rsub(pairs: Pairs, x: Any, y: Any) -> Node:
    return pairs.call(aten.sub.Tensor, _as_pair(pairs, y), _as_pair(pairs, x))


def _full(pairs: Pairs, shape: Sequence[Any], value: Any = 0) -> Node:
    return pairs.call(aten.expand.default, _number(pairs, value), [*shape, 2])


def _cat(pairs: Pairs, tensors: Sequence[Node], axis: int = 0) -> Node:
    return pairs.call(aten.cat.default, [*map(pairs.of, tensors)], _axis_of_pair(axis))


def _eq(pairs: Pairs, x: Node, value: Any) -> Node:
    real, imaginary = pairs.parts(x)
    return pairs.call(
        aten.logical_and.default,
        pairs.call(aten.eq.Scalar, real, value.real),
        pairs.call(aten.eq.Scalar, imaginary, value.imag),
    )


def _angle(pairs: Pairs, x: Node) -> Node:
    real, imaginary = pairs.parts(x)
    return pairs.call(aten.atan2.default, imaginary, real)


def _abs(pairs: Pairs, x: Node) -> Node:
    parts = [pairs.call(aten.abs.default, part) for part in pairs.parts(x)]
    greater = pairs.call(aten.maximum.default, *parts)
    less = pairs.call(aten.minimum.default, *parts)
    # No square of a number that is large.
    ratio = pairs.call(aten.div.Tensor, less, greater)
    sum_of_squares = pairs.call(aten.add.Scalar, pairs.call(aten.mul.Tensor, ratio, ratio), 1)
    longer = pairs.call(aten.mul.Tensor, greater, pairs.call(aten.sqrt.default, sum_of_squares))
    is_zero = pairs.call(aten.eq.Scalar, greater, 0)
    is_infinite = pairs.call(aten.eq.Scalar, greater, math.inf)
    is_whole = pairs.call(aten.logical_or.default, is_zero, is_infinite)
    return pairs.call(aten.where.self, is_whole, greater, longer)


def _sgn(pairs: Pairs, x: Node) -> Node:
    size = pairs.call(aten.unsqueeze.default, _abs(pairs, x), -1)
    ratio = pairs.call(aten.div.Tensor, pairs.of(x), size)
    is_zero = pairs.call(aten.eq.Scalar, size, 0)
    return pairs.call(aten.masked_fill.Scalar, ratio, is_zero, 0)


RULES: dict[Any, Callable[..., Node]] = {
    aten.complex.default: Pairs.joined,
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
    aten._unsafe_view.default: _view,
    aten.scalar_tensor.default: _number,
    aten.where.self: _where,
    aten.roll.default: _of_axes(aten.roll.default, has_shifts=True),
    aten.flip.default: _of_axes(aten.flip.default, has_shifts=False),
    aten.expand.default: _expand,
    aten.new_zeros.default: _new_zeros,
    aten.select_scatter.default: _scattered_in(aten.select_scatter.default),
    aten.slice_scatter.default: _scattered_in(aten.slice_scatter.default),
    aten.permute.default: _permute,
    aten.transpose.int: _transpose,
    aten.t.default: _t,
    aten.sum.dim_IntList: _reduced(aten.sum.dim_IntList),
    aten.mean.dim: _reduced(aten.mean.dim),
    aten.rsub.Scalar: _rsub,
    aten.exp.default: _exp,
    aten.cat.default: _cat,
    aten.zeros.default: _full,
    aten.full.default: _full,
    aten.constant_pad_nd.default: _padded,
    aten.copy.default: _copied_to,
    aten.div.Tensor: _div,
    aten.div.Scalar: _div,
    aten.zeros_like.default: _of_both(aten.zeros_like.default),
    aten.mm.default: _product(aten.mm.default),
    aten.bmm.default: _product(aten.bmm.default),
    aten.sgn.default: _sgn,
    aten._fft_c2c.default: _fourier.c2c,
    aten._fft_r2c.default: _fourier.r2c,
}

RULES_OF_REAL_RESULTS: dict[Any, Callable[..., Node]] = {
    aten.abs.default: _abs,
    aten.angle.default: _angle,
    aten.eq.Scalar: _eq,
    aten._fft_c2r.default: _fourier.c2r,
}
