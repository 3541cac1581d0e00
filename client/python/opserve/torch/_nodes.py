"""Graphs of torch: where their nodes come from, and of which kind they are."""

from __future__ import annotations

import os

import torch


# Functions of parameters pass through it.
_PACKAGE = os.path.dirname(__file__) + os.sep


def where(node: torch.fx.Node) -> str:
    """The line of the model that a node comes from; empty if torch does not know it."""
    trace = node.meta.get("stack_trace") or ""
    lines = [line.strip() for line in trace.strip().splitlines()]
    places = [
        line for line in lines if line.startswith("File ") and _PACKAGE not in line
    ]
    if not places:
        return ""
    code = lines[lines.index(places[-1]) + 1 :][:1]
    return ": ".join([places[-1].removeprefix("File ").replace('"', ""), *code])


def is_backward(graph: torch.fx.GraphModule) -> bool:
    """Whether AOTAutograd made it for a backward pass."""
    return any(map(is_tangent, graph.graph.nodes))


def is_tangent(node: torch.fx.Node) -> bool:
    """Whether it is an input of a backward graph: the gradient of a result."""
    return node.name.startswith("tangents")


def written_inputs(graph: torch.fx.GraphModule) -> dict[torch.fx.Node, torch.fx.Node]:
    """Inputs whose elements the graph changes, each with the node that writes them.

    AOTAutograd writes at the end of a graph, and once: copy_(input, value).
    """
    return {
        node.args[0]: node
        for node in graph.graph.nodes
        if node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder"
    }


def running_statistics(graph: torch.fx.GraphModule) -> set[torch.fx.Node]:
    """Inputs that are running statistics of a batch norm."""
    return {
        statistic
        for node in graph.graph.nodes
        if node.op == "call_function" and "batch_norm_legit" in str(node.target)
        for statistic in node.args[3:5]
        if isinstance(statistic, torch.fx.Node) and statistic.op == "placeholder"
    }


def makes_tensor(node: torch.fx.Node) -> bool:
    """Whether the node is a function of numbers that makes a tensor on a device."""
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and any(
        argument.name == "device" for argument in target._schema.arguments
    )
