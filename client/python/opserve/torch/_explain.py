"""Explains how a model would run on the pool, without running it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Optional

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._pytree import tree_leaves

from opserve.program import OutputOf, View
from opserve.torch._backend import Backend
from opserve.torch._graph import lower
from opserve.torch._nodes import is_backward, is_tangent
from opserve.torch._plan import At, Plan, PoolStep
from opserve.torch._spares import MOST_BYTES
from opserve.torch._static_inputs import gradients_of_parameters
from opserve.torch.optim import PoolOptimizer

Tensor = torch.Tensor


@dataclasses.dataclass(frozen=True)
class ProgramFacts:
    """One program, which is one request.

    Attributes:
        nodes: ATen nodes that it serves.
        operators: of the pool that it invokes.
        sent, resident: its inputs, by dtype and shape: tensors that travel with each run, and
            those that are on the pool.
        peak_bytes: device memory of its own tensors, at least.
    """

    nodes: int
    operators: int
    sent: tuple[str, ...]
    resident: tuple[str, ...]
    peak_bytes: int


@dataclasses.dataclass(frozen=True)
class GraphFacts:
    """One graph of a model.

    Attributes:
        name: "forward", "backward" or, without gradients, "inference"; "step" of an optimizer.
        pool_nodes, local_nodes: ATen nodes that run on the pool, and here.
        programs: that one run of the graph makes, in their order.
        bytes_up, bytes_down: of tensors that travel in each run: the batch, results, gradients of
            these, as if the loss depended on all of them; not parameters, which are sent when they
            have changed.
        bytes_kept: of the tensors that stay on the pool for the backward pass.
        bytes_of_gradients: of those that stay on the pool for an optimizer of opserve.torch.optim.
        peak_bytes: device memory of the largest program's own tensors, at least.
    """

    name: str
    pool_nodes: int
    local_nodes: int
    programs: tuple[ProgramFacts, ...]
    bytes_up: int
    bytes_down: int
    bytes_kept: int
    bytes_of_gradients: int
    peak_bytes: int


@dataclasses.dataclass(frozen=True, repr=False)
class Explanation:
    """The findings of `explain`; its text is a page with tables.

    Attributes:
        parameter_bytes: of parameters and buffers, and of large constants of the graphs.
        changed_bytes: of parameters that an optimizer of torch.optim changes here in each step,
            so that they are sent again.
        state_bytes: of the optimizer's state.
        unsupported: nodes that the pool lacks, by operator: how many, and why they run here.
    """

    graphs: tuple[GraphFacts, ...]
    parameter_bytes: int
    changed_bytes: int
    state_bytes: int
    unsupported: dict[str, tuple[int, str]]

    @property
    def peak_bytes(self) -> int:
        """Device memory of a step, at least.

        Parameters and state, and with the largest of them: a graph's largest program and what the
        graphs before have left for the backward pass or for the optimizer, or the optimizer's own
        results beside the gradients. With an optimizer of the pool, gradients of the step before
        are there, too: their memory is used again.
        """
        gradients = sum(graph.bytes_of_gradients for graph in self.graphs)
        left, most = min(gradients, MOST_BYTES), 0
        for graph in self.graphs:
            if graph.name == "step":
                left = gradients  # nothing else
            most = max(most, left + graph.peak_bytes)
            left += graph.bytes_kept + graph.bytes_of_gradients
        return self.parameter_bytes + self.state_bytes + most

    @property
    def bytes_up(self) -> int:
        """Of the tensors that are sent in each step."""
        return self.changed_bytes + sum(graph.bytes_up for graph in self.graphs)

    @property
    def bytes_down(self) -> int:
        """Of the tensors that come back in each step."""
        return sum(graph.bytes_down for graph in self.graphs)

    def __repr__(self) -> str:
        graphs = [("graph", "nodes", "here", "up", "down", "kept", "gradients", "memory")]
        programs = [("program", "nodes", "operators", "memory", "inputs")]
        for graph in self.graphs:
            graphs.append(
                (
                    graph.name,
                    str(graph.pool_nodes),
                    str(graph.local_nodes),
                    _bytes_text(graph.bytes_up),
                    _bytes_text(graph.bytes_down),
                    _bytes_text(graph.bytes_kept),
                    _bytes_text(graph.bytes_of_gradients),
                    _bytes_text(graph.peak_bytes),
                )
            )
            for number, program in enumerate(graph.programs, 1):
                programs.append(
                    (
                        f"{graph.name} {number}" if len(graph.programs) > 1 else graph.name,
                        str(program.nodes),
                        str(program.operators),
                        _bytes_text(program.peak_bytes),
                        f"{len(program.resident)} on the pool; sent: {_names(program.sent)}",
                    )
                )
        lines = [*_table(graphs), "", *_table(programs), ""]
        lines.append(
            f"parameters and buffers: {_bytes_text(self.parameter_bytes)}, of which "
            f"{_bytes_text(self.changed_bytes)} change here and are sent in each step"
            + (f"; optimizer: {_bytes_text(self.state_bytes)}" if self.state_bytes else "")
        )
        lines.append(
            f"a step sends {_bytes_text(self.bytes_up)}, receives {_bytes_text(self.bytes_down)} "
            f"and needs at least {_bytes_text(self.peak_bytes)} of device memory"
        )
        for name, (count, reason) in sorted(self.unsupported.items()):
            lines.append(f"runs here: {name} ({count}): {reason}")
        return "\n".join(lines)


def explain(
    model: Callable[..., Any],
    *inputs: Any,
    optimizer: Optional[torch.optim.Optimizer] = None,
    **keywords: Any,
) -> Explanation:
    """Says how `model` would run on the pool with these inputs. Needs no daemon.

    Prints it, but in an interactive session, which shows the result itself. Nothing of the model
    is computed: a model that decides by its results how it goes on is seen with zeros as results.

    Args:
        optimizer: that trains it. With one of opserve.torch.optim, gradients stay on the pool; with
            another one, its parameters are sent again in each step.
    """
    facts = optimizer.facts() if isinstance(optimizer, PoolOptimizer) else None
    explainer = _Explainer(facts is not None)
    torch._dynamo.reset()
    tensors: list[Tensor] = []
    if isinstance(model, torch.nn.Module):
        tensors += [*model.parameters(), *model.buffers()]
    trained: list[Tensor] = []
    if optimizer is not None:
        trained = [one for group in optimizer.param_groups for one in group["params"]]
        tensors += trained
    try:
        given = torch.compile(model, backend=explainer)(*inputs, **keywords)
        go_back(model, given, (inputs, keywords), torch.zeros_like)
    finally:
        torch._dynamo.reset()
    unsupported: dict[str, list[str]] = {}
    for plan in explainer.lowered:
        tensors += plan.constants.values()
        for name, reasons in plan.unsupported.items():
            unsupported.setdefault(name, []).extend(reasons)
    state_bytes = changed_bytes = 0
    if facts is not None:
        nodes, bytes_up, state_bytes, peak = facts
        step = ProgramFacts(nodes, nodes, (), _texts(trained), peak)
        explainer.graphs.append(GraphFacts("step", nodes, 0, (step,), bytes_up, 0, 0, 0, peak))
    else:
        used = {id(one) for one in trained if one.requires_grad} & explainer.used
        changed_bytes = sum({id(one): one.nbytes for one in trained if id(one) in used}.values())
    found = Explanation(
        tuple(explainer.graphs),
        sum(one.nbytes for one in {id(one): one for one in tensors}.values()),
        changed_bytes,
        state_bytes,
        {
            name: (len(reasons), "; ".join(dict.fromkeys(reasons)))
            for name, reasons in unsupported.items()
        },
    )
    if not hasattr(sys, "ps1"):
        print(found)
    return found


def go_back(
    model: Callable[..., Any],
    given: Any,
    inputs: Any,
    gradient_like: Callable[[Tensor], Tensor],
) -> None:
    """Runs the backward graphs of the compiled model's results; no gradient is kept."""
    parameters = model.parameters() if isinstance(model, torch.nn.Module) else ()
    results = [
        one for one in tree_leaves(given) if isinstance(one, Tensor) and one.requires_grad
    ]
    wanted = [
        one
        for one in [*parameters, *tree_leaves(inputs)]
        if isinstance(one, Tensor) and one.requires_grad
    ]
    if results and wanted:
        gradients = [gradient_like(one) for one in results]
        torch.autograd.grad(results, wanted, gradients, allow_unused=True)


def graph_name(graph: torch.fx.GraphModule, returned: Optional[int]) -> str:
    """`returned`: how many outputs are the user's, of a forward graph."""
    if is_backward(graph):
        return "backward"
    return "inference" if returned is None else "forward"


class _Explainer(Backend):
    """A backend with graphs that give zeros."""

    def __init__(self, keeps_gradients: bool) -> None:
        super().__init__()
        self._keeps_gradients = keeps_gradients
        self.graphs: list[GraphFacts] = []
        self.used: set[int] = set()  # ids of the graphs' inputs
        self.lowered: list[Plan] = []

    def _runner(
        self, graph: torch.fx.GraphModule, static: set[int], returned: Optional[int]
    ) -> Callable[..., Any]:
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        [output] = [node for node in graph.graph.nodes if node.op == "output"]
        given = output.args[0] if isinstance(output.args[0], (tuple, list)) else output.args
        count = len(given) if returned is None else min(returned, len(given))
        backward = is_backward(graph)
        is_sent = [
            is_tangent(node) if backward else index not in static
            for index, node in enumerate(placeholders)
        ]
        examples = [_example(node) for node in placeholders]
        self.used |= set(map(id, getattr(self._compiling, "inputs", ())))
        with unset_fake_temporarily():  # constants are real
            staying = (
                gradients_of_parameters(graph, count) if self._keeps_gradients else set()
            )
            stays = [i >= count or i in staying for i in range(len(given))]
            changes = [not sent for sent in is_sent]
            plan = lower(graph, examples, is_sent, stays, changes)
        self.lowered.append(plan)
        results = [one for i, one in enumerate(plan.outputs[:count]) if i not in staying]
        results += [source for _, source in plan.written]
        tensors = [sent for one, sent in zip(examples, is_sent) if isinstance(one, Tensor)]
        is_resident = {position for position, sent in enumerate(tensors) if not sent}
        programs = tuple(
            _program(plan, step, is_resident) for step in plan.steps if isinstance(step, PoolStep)
        )
        self.graphs.append(
            GraphFacts(
                graph_name(graph, returned),
                plan.pool_nodes,
                sum(len(reasons) for reasons in plan.unsupported.values()),
                programs,
                _bytes(one for one, sent in zip(examples, is_sent) if sent),
                _bytes(_metas(plan, results)),
                _bytes(_metas(plan, plan.outputs[count:])),
                _bytes(_metas(plan, [plan.outputs[i] for i in sorted(staying)])),
                max((one.peak_bytes for one in programs), default=0),
            )
        )

        def zeros(arguments: list[Any]) -> list[Any]:
            arguments.clear()
            return [_zeros(node) for node in given]

        zeros._boxed_call = True  # type: ignore[attr-defined]
        return zeros


def _example(node: torch.fx.Node) -> Any:
    value = node.meta["val"]
    if not isinstance(value, Tensor):
        return value if isinstance(value, (int, float, bool)) else int(value)
    shape = [int(one) for one in value.shape]
    return torch.empty(shape, dtype=value.dtype, device="meta")


def _zeros(node: Any) -> Any:
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else node
    if not isinstance(value, Tensor):
        return value
    shape = [int(one) for one in value.shape]
    strides = [int(one) for one in value.stride()]
    return torch.empty_strided(shape, strides, dtype=value.dtype).zero_()


def _metas(plan: Plan, outputs: Iterable[Any]) -> Iterator[Tensor]:
    return (plan.metas[one.position] for one in outputs if isinstance(one, At))


def _bytes(values: Iterable[Any]) -> int:
    return sum(
        one.numel() * one.itemsize for one in values if isinstance(one, Tensor)
    )


def _program(plan: Plan, step: PoolStep, resident: set[int]) -> ProgramFacts:
    """`resident`: positions of the graph's inputs that are on the pool."""
    sends, there = [], []
    before = plan.steps[: plan.steps.index(step)]
    kept = {
        position for one in before if isinstance(one, PoolStep) for position, _ in one.kept
    }
    for position in step.arguments:
        # Results of nodes that run here are sent, and those of programs before it are there.
        is_there = position in resident or position in plan.constants or position in kept
        (there if is_there else sends).append(plan.metas[position])
    nodes = {node for node in step.nodes.values() if node is not None}
    return ProgramFacts(
        len(nodes), len(step.program.invocations), _texts(sends), _texts(there), _peak(step)
    )


def _texts(tensors: Iterable[Tensor]) -> tuple[str, ...]:
    return tuple(
        f"{str(one.dtype).rpartition('.')[2]}{list(one.shape)}".replace(" ", "")
        for one in tensors
    )


def _names(texts: Sequence[str], most: int = 4) -> str:
    more = [f"{len(texts) - most} more"] if len(texts) > most else []
    return ", ".join([*texts[:most], *more]) or "nothing"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: its first column and a last one of text to the left, others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if column == 0 or column == last and rows[0][last] == "inputs"
            else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]


def _peak(step: PoolStep) -> int:
    """The largest sum of bytes of tensors that the program needs at one time."""
    program = step.program
    results = {
        (output.invocation, output.output) for _, output in step.results + step.kept + step.replaced
    }
    last = {place: place for place, _ in step.sizes}
    for number, invocation in enumerate(program.invocations):
        for value in invocation.inputs.values():
            for one in value if isinstance(value, tuple) else (value,):
                source = one.base if isinstance(one, View) else one
                if isinstance(source, OutputOf):
                    last[source.invocation] = number
    for place, _ in results:
        last[place] = len(program.invocations)
    changes: dict[int, int] = {}
    for place, size in step.sizes:
        changes[place] = changes.get(place, 0) + size
        end = last[place] + 1
        changes[end] = changes.get(end, 0) - size
    now = most = 0
    for moment in sorted(changes):
        now += changes[moment]
        most = max(most, now)
    return most


def _bytes_text(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
