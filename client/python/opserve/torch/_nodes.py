"""Graphs of torch: where their nodes come from, and of which kind they are."""

from __future__ import annotations

import torch


def where(node: torch.fx.Node) -> str:
    """The line of the model that a node comes from; empty if torch does not know it."""
    trace = node.meta.get("stack_trace") or ""
    lines = [line.strip() for line in trace.strip().splitlines()]
    places = [line for line in lines if line.startswith("File ")]
    if not places:
        return ""
    code = lines[lines.index(places[-1]) + 1 :][:1]
    return ": ".join([places[-1].removeprefix("File ").replace('"', ""), *code])


def is_backward(graph: torch.fx.GraphModule) -> bool:
    """Whether AOTAutograd made it for a backward pass."""
    return any(node.name.startswith("tangents") for node in graph.graph.nodes)


def makes_tensor(node: torch.fx.Node) -> bool:
    """Whether the node is a function of numbers that makes a tensor on a device."""
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and any(
        argument.name == "device" for argument in target._schema.arguments
    )
