"""How a graph runs: programs on the pool, and nodes that run here."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Optional, Union

import torch

from opserve.errors import OpserveError
from opserve.program import Keep, OutputOf, Program, Replace
from opserve.torch._nodes import where

Tensor = torch.Tensor

# Tensors of one message take at most half of a daemon's default limit.
MAX_INLINE_BYTES = 32 << 20


@dataclasses.dataclass
class PoolStep:
    """A program that runs on the pool.

    Attributes:
        arguments: of its inputs, the positions of their values in the plan.
        results: its results that are sent, by position of their values; `kept`: those that stay
            on the pool.
        replaced: results that become the new elements of inputs, by position of these.
        sizes, nodes: as Builder's.
        fetched: positions of results that are too large for one message with the others: they are
            kept, downloaded in chunks and released.
    """

    program: Program
    arguments: list[int]
    results: list[tuple[int, OutputOf]]
    kept: list[tuple[int, OutputOf]]
    replaced: list[tuple[int, OutputOf]]
    seeds: list[int]
    sizes: list[tuple[int, int]]
    nodes: dict[int, Optional[torch.fx.Node]]
    fetched: set[int]

    def wanted(self, lease: float) -> list[Any]:
        """For Client.prepare: results, then those that are kept, then those that replace inputs."""
        inputs = dict(zip(self.arguments, self.program.inputs))
        return [
            *(
                Keep(output, lease) if position in self.fetched else output
                for position, output in self.results
            ),
            *(Keep(output, lease) for _, output in self.kept),
            *(Replace(output, inputs[position]) for position, output in self.replaced),
        ]

    def name_line(self, error: OpserveError) -> None:
        """Says in an error of one of the program's invocations which line of the model it serves."""
        node = self.nodes.get(error.invocation) if error.operator else None
        line = where(node) if node is not None else ""
        if line:
            error.message = f"{error.message} (the model's line: {line})"


@dataclasses.dataclass
class LocalStep:
    """A node that runs here, with values by their positions."""

    node: torch.fx.Node
    arguments: Any
    keywords: Any
    position: int


@dataclasses.dataclass(frozen=True)
class At:
    """A value of the plan, by its position; of a node that gives several: one of them."""

    position: int


@dataclasses.dataclass(eq=False)
class Plan:
    """How a graph runs with inputs of certain shapes.

    Attributes:
        outputs: the graph's own: At, or a constant.
        written: inputs that are changed here, by position, and where their new elements are.
        metas: shape and dtype of values, by position.
        constants: of the graph, by position; programs take them from the pool.
        unsupported: nodes that run here, by operator, with the reason.
    """

    steps: list[Union[PoolStep, LocalStep]]
    outputs: list[Any]
    written: list[tuple[int, Any]]
    metas: dict[int, Tensor]
    constants: dict[int, Tensor]
    unsupported: dict[str, list[str]]
    pool_nodes: int


def beyond_one_message(tensors: Sequence[tuple[int, Tensor]]) -> list[tuple[int, Tensor]]:
    """Of numbered tensors, those that do not fit into one message with the smaller ones."""
    room = MAX_INLINE_BYTES
    beyond = []
    for number, tensor in sorted(tensors, key=lambda one: one[1].nbytes):
        room -= tensor.nbytes
        if room < 0:
            beyond.append((number, tensor))
    return beyond
