"""The parts of a model that run here, not on the pool, as known when torch compiles it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from opserve.torch._builder import meta_like
from opserve.torch._graph import lower
from opserve.torch._nodes import where

Tensor = torch.Tensor


def listing(unsupported: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """For each operator that the pool lacks: its name, how many nodes, and all reasons."""
    return {
        name: f"{name} ({len(reasons)}: {'; '.join(dict.fromkeys(reasons))})"
        for name, reasons in sorted(unsupported.items())
    }


def unsupported_nodes(graph: torch.fx.GraphModule) -> Mapping[str, Sequence[str]]:
    """Nodes that the pool lacks, by operator, with their reasons.

    For the shapes that torch compiles the graph with; no nodes, if it does not know them.
    """
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    inputs = [_example(node.meta.get("val")) for node in placeholders]
    if any(one is None for one in inputs):
        return {}
    [output] = [node for node in graph.graph.nodes if node.op == "output"]
    given = output.args[0]
    count = len(given) if isinstance(given, (tuple, list)) else 1
    with unset_fake_temporarily():  # constants are real
        return lower(graph, inputs, [True] * len(inputs), [False] * count).unsupported


def _example(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return _number(value)
    shape = [_number(one) for one in value.shape]
    if any(one is None for one in shape):
        return None
    with unset_fake_temporarily():
        return meta_like(torch.empty(shape, dtype=value.dtype, device="meta"))


def _number(value: Any) -> Optional[Any]:
    """A number's value; of a symbol that of this compilation, without a guard that fixes it."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value.node.hint
    return value


def left_out(graph: torch.fx.GraphModule) -> list[str]:
    """Parts of a graph's function that run here because torch leaves them out of graphs.

    torch tells a backend of a break behind a graph, not of functions without any graph.
    """
    found = []
    reason = getattr(graph, "compile_subgraph_reason", None)
    if reason is not None and reason.graph_break:
        [text, *_] = reason.reason.splitlines() or [""]
        places = [
            f"{one.filename}, line {one.lineno}, in {one.name}: {one.line}"
            for one in list(reason.user_stack)[-1:]
        ]
        found.append(f"what comes next in a graph break ({'; '.join([text, *places])})")
    compilation = torch._guards.CompileContext.current_compile_id()
    config = torch._dynamo.config
    name = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
    limit = getattr(config, name)
    if compilation is not None and (compilation.frame_compile_id or 0) + 1 >= limit:
        places = [place for place in map(where, graph.graph.nodes) if place][:1]
        found.append(
            f"calls that need one more graph of a function, of which torch has made {limit} "
            f"({'; '.join([f'torch._dynamo.config.{name}', *places])})"
        )
    return found
