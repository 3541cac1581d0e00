"""Where torch expects the elements of a graph's outputs in their memory.

AOTAutograd gives the caller a view of an input where the graph's output is one, and so for views of
other outputs. If it cannot repeat the functions that made the view, as where extents are symbols,
it takes the view's extents, strides and offset from the tensor that the backend returns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Optional

import torch

from opserve.torch._nodes import where

Tensor = torch.Tensor


@dataclasses.dataclass(frozen=True)
class Layout:
    """Strides and offset of a tensor, in elements."""

    strides: tuple[int, ...]
    offset: int


class Extents:
    """Numbers in a graph's shapes, which may be symbols, for certain inputs."""

    def __init__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
        self._graph = graph
        self._inputs = inputs
        self._symbols: Optional[dict[Any, int]] = None

    def of(self, extent: Any) -> int:
        """TypeError: it depends on more than the shapes of the inputs."""
        if not isinstance(extent, torch.SymInt):
            return int(extent)
        if self._symbols is None:
            self._symbols = self._values_of_symbols()
        return int(extent.node.expr.subs(self._symbols))

    def _values_of_symbols(self) -> dict[Any, int]:
        symbols = {}
        placeholders = [one for one in self._graph.graph.nodes if one.op == "placeholder"]
        for node, given in zip(placeholders, self._inputs):
            value = node.meta.get("val")
            pairs = [(value, given)]
            if isinstance(given, Tensor):
                pairs = [*zip(value.shape, given.shape)]
                if not given.is_meta:  # which stand for tensors with other strides
                    pairs += zip(value.stride(), given.stride())
            for symbol, number in pairs:
                if isinstance(symbol, torch.SymInt):
                    symbols.setdefault(symbol.node.expr, number)
        return symbols


def layouts_of(
    outputs: Sequence[Any], extents: Extents, must: bool
) -> list[Optional[Layout]]:
    """Those of a graph's outputs; None: it is no tensor, or the inputs do not say it.

    RuntimeError: they do not say it, but `must`.
    """
    return [_layout(one, extents, must) for one in outputs]


def _layout(output: Any, extents: Extents, must: bool) -> Optional[Layout]:
    fake = output.meta.get("val") if isinstance(output, torch.fx.Node) else None
    if not isinstance(fake, Tensor):
        return None
    try:
        strides = tuple(map(extents.of, fake.stride()))
        return Layout(strides, extents.of(fake.storage_offset()))
    except TypeError:
        if not must:
            return None
    line = where(output)
    raise RuntimeError(
        f"an output of the graph, {output}{f' ({line})' if line else ''}, is a view whose extents "
        "depend on elements: return a copy of it (.clone())"
    )


def views_by_layout(metadata: Any, is_static: bool) -> Optional[dict[int, int]]:
    """Outputs of a forward graph whose layouts decide which elements of an input the caller sees.

    Args:
        metadata: AOTAutograd's, of the graph.
        is_static: whether its shapes have no symbols.

    Returns:
        The input's position, by the output's; {}: layouts decide about views of outputs alone.
        None: they decide nothing.
    """
    if metadata is None:
        return None
    tokens = len(metadata.tokens)  # of functions with effects; they come first
    # Before the outputs are inputs with new elements.
    first = tokens + metadata.num_mutated_inp_runtime_indices
    views = [
        (first + number, one)
        for number, one in enumerate(metadata.output_info)
        if one.output_type.name.startswith("alias_of")
        and not (is_static and _can_be_repeated(one))
    ]
    if not views:
        return None
    return {
        number: tokens + one.base_idx
        for number, one in views
        if one.output_type.name == "alias_of_input"
    }


def _can_be_repeated(output: Any) -> bool:
    names = ("view_meta_sequence", "functional_tensor")  # by version of torch
    return any(getattr(output, name, None) is not None for name in names)


def seen_in(base: Any, value: Tensor, layout: Layout) -> Tensor:
    """What the layout shows of an input, whose elements are those of `value`.

    It is in the input's memory: versions of torch differ in how they count the offset in other.
    """
    if type(base) not in (Tensor, torch.nn.Parameter) or base.is_meta or base.dtype != value.dtype:
        return laid_out(value, layout)
    return _like(value, base.untyped_storage(), layout)


def without_base(value: Tensor) -> Tensor:
    """The same tensor, but no view: autograd lets nobody change views that graphs have made."""
    if not value._is_view():
        return value
    return _like(value, value.untyped_storage(), Layout(value.stride(), value.storage_offset()))


def laid_out(value: Tensor, layout: Layout) -> Tensor:
    """The elements of `value` in this layout, in memory of its own: no view of another tensor."""
    reach = 1 + sum((size - 1) * step for size, step in zip(value.shape, layout.strides))
    memory = torch.empty(layout.offset + max(reach, 0), dtype=value.dtype)
    given = _like(value, memory.untyped_storage(), layout)
    # Elements along an axis of stride 0 are one and the same.
    apart = tuple([slice(0, 1) if step == 0 else slice(None) for step in layout.strides])
    if torch._debug_has_internal_overlap(given[apart]) == 0:
        given[apart].copy_(value[apart])
        return given
    places = torch.tensor(layout.offset)
    for size, step in zip(value.shape, layout.strides):
        places = places.unsqueeze(-1) + torch.arange(size) * step
    memory[places.reshape(-1)] = value.reshape(-1)
    return given


def _like(value: Tensor, storage: torch.UntypedStorage, layout: Layout) -> Tensor:
    """A tensor of the extents and dtype of `value`, in a storage, that is no view."""
    given = torch.empty(0, dtype=value.dtype)
    return given.set_(storage, layout.offset, value.shape, layout.strides)
