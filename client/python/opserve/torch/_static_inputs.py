"""Parameters and buffers among the inputs of graphs, and what else AOTAutograd knows of graphs.

For all versions of torch. Functions with effects have tokens, which are the first inputs and outputs
of a forward graph, and None when it runs.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Optional

import torch

from opserve.torch._nodes import is_backward

Context = torch._guards.TracingContext

# Inputs that Dynamo's graph has by itself: those of AOTAutograd's graphs that come last.
_counts_of_own: weakref.WeakKeyDictionary[Context, int] = weakref.WeakKeyDictionary()


def with_attributes(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> list[Any]:
    """The inputs of AOTAutograd's graphs: those of Dynamo's graph, and before them its attributes.

    torch 2.4 leaves parameters and buffers as attributes.
    """
    context = Context.try_get()
    if context is not None:
        _counts_of_own[context] = len(inputs)
    return [
        *(one for _, one in graph.named_parameters(remove_duplicate=False)),
        *(one for _, one in graph.named_buffers(remove_duplicate=False)),
        *inputs,
    ]


def current_metadata() -> Any:
    """AOTAutograd's, of the graph that is being compiled; None: there is none."""
    context = Context.try_get()
    return context.fw_metadata if context is not None else None


def static_inputs() -> set[int]:
    """The inputs of a forward graph that are parameters and buffers."""
    context, metadata = Context.try_get(), current_metadata()
    if context is None or metadata is None:
        return set()
    if hasattr(metadata, "static_input_indices"):
        return set(metadata.static_input_indices or ())
    # In torch 2.4 they come first. AOTAutograd makes one of several that are the same tensor, but
    # only in some graphs.
    inputs = len(metadata.input_info)
    return set(range(inputs - _counts_of_own.get(context, inputs)))


def gradients_of_parameters(graph: torch.fx.GraphModule, outputs: int) -> set[int]:
    """Outputs of a backward graph that are gradients of parameters; else none."""
    metadata = current_metadata()
    if metadata is None or not is_backward(graph) or len(metadata.input_info) != outputs:
        return set()
    return static_inputs()


def counted_changes() -> set[int]:
    """Inputs for whose change AOTAutograd counts a version, before the graph runs."""
    metadata = current_metadata()
    if metadata is None or not hasattr(metadata, "static_input_indices"):
        return set()  # torch 2.4 leaves the versions as they are
    return set(metadata.mutated_graph_handled_indices_seen_by_autograd)


def count_of_returned() -> Optional[int]:
    """A forward graph's outputs that are not for the backward pass alone; None: all."""
    metadata = current_metadata()
    if metadata is None:
        return None
    returned: int = len(metadata.tokens) + metadata.num_forward_returns
    return returned


def have_static_shapes(placeholders: Sequence[torch.fx.Node]) -> bool:
    """Whether all inputs of a graph are tensors whose extents are no symbols."""
    metadata = current_metadata()
    if metadata is not None and metadata.tokens:
        return False
    metas = [placeholder.meta.get("val") for placeholder in placeholders]
    return all(
        isinstance(meta, torch.Tensor) and all(type(one) is int for one in meta.shape)
        for meta in metas
    )
