"""Node by node: does the pool agree with eager torch?"""

from __future__ import annotations

import copy
import dataclasses
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

import torch

from opserve.client import Client
from opserve.torch._backend import Backend
from opserve.torch._explain import graph_name, go_back
from opserve.torch._graph import lower, metas_of
from opserve.torch._nodes import where, written_inputs
from opserve.torch._prepared_plan import PreparedPlan
from opserve.torch._residency import bring_home

Tensor = torch.Tensor

# Nodes that one program gives back.
_AT_ONCE = 256

# Their elements are undefined.
_EMPTY = ("aten.empty", "aten.new_empty")


@dataclasses.dataclass(frozen=True)
class Difference:
    """A node for which the pool gives something else than torch does here.

    Attributes:
        graph: "forward", "backward" or "inference".
        node, operator: as in torch's graph, such as "addmm_1" and "aten.addmm.default".
        error: the largest difference, as a part of torch's largest magnitude, or of a hundredth of
            its inputs' where that is more: a sum whose terms cancel out is not off.
        line: of the model, where torch knows it.
    """

    graph: str
    node: str
    operator: str
    error: float
    line: str

    def __str__(self) -> str:
        place = f" ({self.line})" if self.line else ""
        return f"{self.graph}: {self.node} = {self.operator}: {self.error:.1e} off{place}"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The findings of `compare`.

    Attributes:
        nodes: how many were compared.
        differences: nodes that are further off than the tolerance, in the order of the graphs: the
            first is where the cause is.
        worst: the largest error of all nodes.
    """

    nodes: int
    differences: tuple[Difference, ...]
    worst: float

    def __str__(self) -> str:
        text = f"{self.nodes} nodes compared; the largest error is {self.worst:.1e}"
        if not self.differences:
            return text
        return f"{text}\nfirst difference: {self.differences[0]}"


def compare(
    model: Callable[..., Any],
    *inputs: Any,
    client: Optional[Client] = None,
    tolerance: Optional[float] = None,
    **keywords: Any,
) -> Comparison:
    """Runs every node of the model's graphs on the pool and here, from equal inputs.

    Each run of the pool starts from the graph's inputs, so errors add up as they do in training.
    Random nodes (dropout) differ by nature: compare `model.eval()`, or a model without them.

    Args:
        client: None: one connected to the default target.
        tolerance: error above which a node counts as different; None: 1e-4, for halves 2e-2.
    """
    backend = _Comparer(client, tolerance)
    torch._dynamo.reset()
    try:
        given = torch.compile(model, backend=backend)(*inputs, **keywords)
        go_back(model, given, (inputs, keywords), torch.ones_like)
    finally:
        torch._dynamo.reset()
    return Comparison(backend.nodes, tuple(backend.differences), backend.worst)


class _Comparer(Backend):
    """A backend with graphs that give torch's own results, and note the pool's differences."""

    def __init__(self, client: Optional[Client], tolerance: Optional[float]) -> None:
        super().__init__(client)
        self._tolerance = tolerance
        self.nodes = 0
        self.differences: list[Difference] = []
        self.worst = 0.0

    def _runner(
        self, graph: torch.fx.GraphModule, static: set[int], returned: Optional[int]
    ) -> Callable[..., Any]:
        name = graph_name(graph, returned)

        def run(arguments: list[Any]) -> Any:
            for one in arguments:
                if isinstance(one, Tensor):
                    bring_home(one)
            given = [
                one.detach() if isinstance(one, Tensor) else one for one in arguments
            ]
            arguments.clear()
            recorder = _Recorder(graph)
            outputs = recorder.run(*given)
            nodes = list(recorder.values)
            for start in range(0, len(nodes), _AT_ONCE):
                self._compare(name, graph, given, recorder, nodes[start : start + _AT_ONCE])
            return list(outputs)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    def _compare(
        self,
        name: str,
        graph: torch.fx.GraphModule,
        given: Sequence[Any],
        recorder: _Recorder,
        nodes: Sequence[torch.fx.Node],
    ) -> None:
        seen = self._run_on_pool(graph, given, [node.name for node in nodes])
        for node, value in zip(nodes, seen):
            expected = recorder.values[node]
            error = _error(value, expected, recorder.input_magnitude(node))
            self.nodes += 1
            self.worst = max(self.worst, error)
            half = expected.dtype in (torch.float16, torch.bfloat16)
            limit = self._tolerance or (2e-2 if half else 1e-4)
            if error > limit:
                self.differences.append(
                    Difference(name, node.name, str(node.target), error, where(node))
                )

    def _run_on_pool(
        self, graph: torch.fx.GraphModule, given: Sequence[Any], names: Sequence[str]
    ) -> Iterator[Tensor]:
        """The values of the nodes with these names."""
        changed = copy.deepcopy(graph)
        by_name = {node.name: node for node in changed.graph.nodes}
        [output] = [node for node in changed.graph.nodes if node.op == "output"]
        for node in written_inputs(changed).values():
            changed.graph.erase_node(node)
        output.args = (tuple(by_name[name] for name in names),)
        plan = lower(changed, metas_of(given), [True] * len(given), [False] * len(names))
        tensors = [one for one in given if isinstance(one, Tensor)]
        results = PreparedPlan(plan, self.client, self._lease).run(self.residents(), tensors, tensors)
        return (self._download(one) for one in results)

    def _download(self, value: Any) -> Tensor:
        return value if isinstance(value, Tensor) else torch.as_tensor(value)


class _Recorder(torch.fx.Interpreter):
    """Runs a graph here and remembers the result of each node."""

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        super().__init__(graph)
        self._writing = set(written_inputs(graph).values())
        self.values: dict[torch.fx.Node, Tensor] = {}
        self._magnitudes: dict[torch.fx.Node, float] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        if n in self._writing:
            return None  # the model stays as it is
        result = super().run_node(n)
        if isinstance(result, Tensor):
            self._magnitudes[n] = _magnitude(result)
            if n.op == "call_function" and not str(n.target).startswith(_EMPTY):
                # A later node may change the elements of a view.
                self.values[n] = result.detach().clone()
        return result

    def input_magnitude(self, node: torch.fx.Node) -> float:
        """The largest magnitude of the node's inputs."""
        if node.target is operator.getitem:
            node = node.all_input_nodes[0]
        return max(
            (self._magnitudes.get(one, 0.0) for one in node.all_input_nodes), default=0.0
        )


def _magnitude(tensor: Tensor) -> float:
    """Of the finite elements."""
    if not tensor.numel():
        return 0.0
    values = tensor.double().abs()
    return torch.where(values.isfinite(), values, 0.0).max().item()


def _error(seen: Tensor, expected: Tensor, input_magnitude: float) -> float:
    if seen.shape != expected.shape or seen.dtype != expected.dtype:
        return float("inf")
    if not expected.numel():
        return 0.0
    one, other = seen.double(), expected.double()
    same = (one == other) | (one.isnan() & other.isnan())
    difference = torch.where(same, 0.0, (one - other).abs()).max().item()
    return difference / max(_magnitude(expected), input_magnitude / 100, 1e-30)
