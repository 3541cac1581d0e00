"""Pairs of real numbers in place of complex ones, which the pool has not.

A complex tensor is the real one that view_as_real() makes of it, with an axis of two more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.passes.shape_prop import _extract_tensor_metadata
from torch.utils._python_dispatch import _disable_current_modes

Node = torch.fx.Node
aten = torch.ops.aten


class Unknown(Exception):
    """A node has no rule for its arguments."""


def is_complex(value: Any) -> bool:
    meta = value.meta.get("val") if isinstance(value, Node) else None
    return isinstance(meta, torch.Tensor) and meta.is_complex()


def is_pair(value: Any) -> bool:
    return isinstance(value, Node) and value.target is aten.view_as_complex.default


class Pairs:
    """The pairs of a graph's complex tensors. New nodes come before the one that they replace."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self._graph = graph
        self.node = next(iter(graph.nodes))  # the one to be replaced
        self._constants = 0

    def call(self, target: Any, *args: Any, **options: Any) -> Node:
        """A new node, with the notes on the model of the node that it replaces."""
        values = torch.fx.node.map_arg(args, lambda one: one.meta["val"])
        with self.node.meta["val"].fake_mode:
            value = target(*values, **options)
        return self._with_meta(self._graph.call_function(target, args, options), value)

    def constant(self, make: Callable[[], torch.Tensor]) -> Node:
        """A tensor that is always the same, which stays on the pool."""
        with _disable_current_modes():  # in which graphs are traced
            tensor = make()
        self._constants += 1
        name = f"_pairs_constant{self._constants}"
        module = self._graph.owning_module
        assert module is not None
        module.register_buffer(name, tensor, persistent=False)
        value = self.node.meta["val"].fake_mode.from_tensor(tensor, static_shapes=True)
        return self._with_meta(self._graph.get_attr(name), value)

    def _with_meta(self, node: Node, value: torch.Tensor) -> Node:
        node.meta = {**self.node.meta, "val": value}
        node.meta["tensor_meta"] = _extract_tensor_metadata(value)
        return node

    def of(self, value: Any) -> Any:
        """The pair of a complex tensor."""
        if is_pair(value):
            return value.args[0]
        if not is_complex(value) or value.meta["val"].is_conj():
            raise Unknown
        return self.call(aten.view_as_real.default, value)

    def parts(self, value: Any) -> tuple[Any, Any]:
        if isinstance(value, complex):
            return value.real, value.imag
        pair = self.of(value)
        return self.call(aten.select.int, pair, -1, 0), self.call(aten.select.int, pair, -1, 1)

    def joined(self, real: Node, imaginary: Node) -> Node:
        ends = [self.call(aten.unsqueeze.default, one, -1) for one in (real, imaginary)]
        return self.call(aten.cat.default, ends, -1)

    def contiguous(self, value: Node) -> Node:
        if value.meta["val"].is_contiguous():
            return value
        return self.call(aten.clone.default, value, memory_format=torch.contiguous_format)

    def laid_out(self, value: Node, like: torch.Tensor) -> Node:
        """In the order in memory of another tensor."""
        if value.meta["val"].stride() == like.stride():
            return value
        order = sorted(range(like.dim()), key=like.stride, reverse=True)
        copy = self.contiguous(self.call(aten.permute.default, value, order))
        return self.call(aten.permute.default, copy, [*map(order.index, range(like.dim()))])

    def view(self, value: Node, shape: Sequence[Any]) -> Node:
        """A view, of a copy if it has to be."""
        try:
            return self.call(aten.view.default, value, shape)
        except (RuntimeError, ValueError):
            return self.call(aten.view.default, self.contiguous(value), shape)
