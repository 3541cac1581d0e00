"""Graphs of ATen nodes as programs: which parts run on the pool, and how."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Optional

import torch

from opserve.program import MAX_LITERAL_BYTES, InputOf, OutputOf
from opserve.torch._builder import Builder, Unsupported, Value, meta_like
from opserve.torch._layouts import Extents
from opserve.torch._nodes import is_backward, makes_tensor, where, written_inputs
from opserve.torch._plan import At, LocalStep, Plan, PoolStep, beyond_one_message

Tensor = torch.Tensor


def metas_of(arguments: Sequence[Any]) -> list[Any]:
    """Of a graph's arguments, for lower(): meta tensors for tensors, numbers as they are."""
    return [meta_like(one) if isinstance(one, Tensor) else one for one in arguments]


def lower(
    graph: torch.fx.GraphModule,
    inputs: Sequence[Any],
    is_sent: Sequence[bool],
    stays: Sequence[bool],
    changes: Sequence[bool] = (),
    zeros: Sequence[int] = (),
) -> Plan:
    """Makes the plan of a graph.

    Args:
        inputs: one for each placeholder: a meta tensor, or a number.
        is_sent: of each of these, whether its elements are sent with each run.
        stays: of each output of the graph, whether it may stay on the pool.
        changes: of each input that the graph changes, whether the pool may do so, in the tensor
            that it has; none: of no input.
        zeros: inputs, by their numbers, of which all elements are 0, so that programs need not
            be sent them.
    """
    return _Lowering(graph, inputs, is_sent, stays, changes, zeros).run()


class _Lowering:
    """Nodes in their order; a node that the pool lacks ends the program under construction."""

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        inputs: Sequence[Any],
        is_sent: Sequence[bool],
        stays: Sequence[bool],
        changes: Sequence[bool],
        zeros: Sequence[int],
    ) -> None:
        from opserve.torch._lowerings import LOWERINGS, VIEWS

        self._lowerings, self._views = LOWERINGS, VIEWS
        self._graph = graph
        self._inputs = list(zip(inputs, is_sent))
        self._stays = stays
        self._extents = Extents(graph, inputs)
        # Nodes that write inputs, by input, until they are done.
        self._writes = written_inputs(graph)
        self._writing = set(self._writes.values())
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._changed_there = {
            node for node, is_changed in zip(placeholders, changes) if is_changed
        }
        self._sent: set[int] = set()  # positions
        self._numbers_of_zeros = set(zeros)
        self._zeros: set[int] = set()  # their positions
        self._builder = Builder()
        self._taken: dict[int, InputOf] = {}  # inputs of the builder's program, by position
        self._values: dict[torch.fx.Node, Any] = {}  # Value, tuple of them, At, constant
        self._positions: dict[int, int] = {}  # of id(Value) that have one
        self._keep_alive: list[Any] = []
        self._plan = Plan([], [], [], {}, {}, {}, 0)
        self._pending: list[tuple[int, Value]] = []  # results of the builder's program
        self._kept: list[tuple[int, Value]] = []
        self._replaced: list[tuple[int, Value]] = []

    def run(self) -> Plan:
        given = iter(enumerate(self._inputs))
        for node in self._graph.graph.nodes:
            if node.op == "placeholder":
                number, (value, is_sent) = next(given)
                if isinstance(value, Tensor):
                    value = self._new_position(value)
                    if is_sent:
                        self._sent.add(value.position)
                    if number in self._numbers_of_zeros:
                        self._zeros.add(value.position)
                self._values[node] = value
            elif node.op == "get_attr":
                self._values[node] = self._constant(node)
            elif node.op == "call_function" and node not in self._writing:
                self._values[node] = self._call(node)
            elif node.op == "output":
                self._end(node)
        return self._plan

    def _new_position(self, meta: Tensor) -> At:
        position = len(self._plan.metas)
        self._plan.metas[position] = meta_like(meta)
        return At(position)

    def _constant(self, node: torch.fx.Node) -> Any:
        tensor = self._graph
        for name in str(node.target).split("."):
            tensor = getattr(tensor, name)
        if not isinstance(tensor, Tensor):
            return tensor  # a graph of a branch
        # Larger ones stay on the pool.
        if tensor.numel() * tensor.itemsize <= MAX_LITERAL_BYTES and tensor.dtype in _DTYPES:
            return self._builder.literal(tensor)
        if tensor.is_inference():
            with torch.inference_mode(False):
                tensor = tensor.clone()  # one with a version, which uploads are known by
        at = self._new_position(tensor)
        self._plan.constants[at.position] = tensor
        return at

    def _call(self, node: torch.fx.Node) -> Any:
        if node.target is operator.getitem:
            whole = self._values[node.args[0]]
            if not isinstance(whole, (At, Value)):
                return whole[node.args[1]]
        checkpoint = len(self._builder.program.invocations)
        try:
            if isinstance(node.target, torch._ops.HigherOrderOperator):
                raise Unsupported("it runs graphs of its own")
            arguments, keywords = self._arguments(node)
            is_number = not any(
                isinstance(one, Value) for one in _leaves((arguments, keywords))
            )
            if is_number and not isinstance(node.target, torch._ops.OpOverload):
                return node.target(*arguments, **keywords)
            metas = self._run_on_meta(node, arguments, keywords)
            if not isinstance(metas, (Tensor, tuple, list)):
                return metas  # a size, or another number
            result = self._lower(node, arguments, keywords, metas)
            self._plan.pool_nodes += 1
            return result
        except Unsupported as error:
            # The results of a half-built lowering are never asked for, but the daemon computes all
            # invocations that it is given, so they go.
            self._builder.drop_from(checkpoint)
            line = where(node)
            reason = f"{error} ({line})" if line else str(error)
            self._plan.unsupported.setdefault(_name(node), []).append(reason)
            return self._run_here(node)

    def _arguments(self, node: torch.fx.Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The node's arguments as values of the program under construction."""

        def take(one: torch.fx.Node) -> Any:
            return _map(self._values[one], self._take)

        return (
            torch.fx.map_arg(node.args, take),
            dict(torch.fx.map_arg(node.kwargs, take)),
        )

    def _take(self, value: Any) -> Any:
        """A value that another program gave, or the caller, as an input of this one."""
        if not isinstance(value, At):
            return value
        meta = self._plan.metas[value.position]
        _check_dtypes(meta)
        if value.position in self._zeros:
            return self._builder.full(0, meta)
        if value.position not in self._taken:
            name = str(meta.dtype).rpartition(".")[2]
            self._taken[value.position] = self._builder.program.input(name, meta.shape)
        taken = Value(self._taken[value.position], meta, tuple(meta.shape))
        self._remember(taken, value.position)
        return taken

    def _remember(self, value: Value, position: int) -> None:
        self._positions[id(value)] = position
        self._keep_alive.append(value)

    def _run_on_meta(
        self, node: torch.fx.Node, arguments: Any, keywords: dict[str, Any]
    ) -> Any:
        keywords = {
            key: (torch.device("meta") if key == "device" else value)
            for key, value in keywords.items()
        }
        if "device" not in keywords and makes_tensor(node):
            keywords["device"] = torch.device("meta")
        to_meta = lambda value: value.meta if isinstance(value, Value) else value
        try:
            return node.target(*_map(arguments, to_meta), **_map(keywords, to_meta))
        except (RuntimeError, NotImplementedError, TypeError, ValueError) as error:
            if node.target in self._views:
                value = node.meta.get("val")
                if value is not None:
                    return self._meta_of(value)
            raise Unsupported(str(error).splitlines()[0]) from None

    def _meta_of(self, value: Any) -> Any:
        """Of a node's value as torch compiled it, whose extents may be symbols."""
        if not isinstance(value, Tensor):
            return tuple(self._meta_of(one) for one in value)
        shape = [self._extents.of(one) for one in value.shape]
        return torch.empty(shape, dtype=value.dtype, device="meta")

    def _lower(self, node: torch.fx.Node, arguments: Any, keywords: Any, metas: Any) -> Any:
        self._builder.node, self._builder.result = node, metas
        try:
            if node.target in self._views:
                [value, *others] = arguments
                return self._builder.view(node.target, value, *others, **keywords)
            lowering = self._lowerings.get(node.target)
            if lowering is None:
                raise Unsupported("no operator of the pool serves it")
            _check_dtypes(metas)
            return lowering(self._builder, *arguments, **keywords)
        finally:
            self._builder.node = None

    def _run_here(self, node: torch.fx.Node) -> Any:
        """Ends the program and lets torch run the node."""

        def place(one: torch.fx.Node) -> Any:
            return _map(self._values[one], self._place)

        arguments = torch.fx.map_arg(node.args, place)
        keywords = dict(torch.fx.map_arg(node.kwargs, place))
        self._end_program()
        value = node.meta["val"]
        if isinstance(value, Tensor):
            result: Any = self._new_position(self._meta_of(value))
            first = result.position
        else:
            result = tuple(
                None if one is None else self._new_position(self._meta_of(one))
                for one in value
            )
            first = next(at.position for at in result if at is not None)
        self._plan.steps.append(LocalStep(node, arguments, keywords, first))
        return result

    def _place(self, value: Any, keep: bool = False) -> Any:
        """Where the plan has a value, which the program under construction gives if need be."""
        if not isinstance(value, Value):
            return value
        position = self._positions.get(id(value))
        if position is not None:
            return At(position)
        at = self._new_position(value.meta)
        if not (isinstance(value.source, OutputOf) and value.is_whole):
            value = self._builder.copy(value)
        elif self._is_result(value):
            value = self._builder.copy(value)
        self._remember(value, at.position)
        (self._kept if keep else self._pending).append((at.position, value))
        return at

    def _is_result(self, value: Value) -> bool:
        results = self._kept + self._pending + self._replaced
        return any(one.source is value.source for _, one in results)

    def _write(self, is_last: bool) -> None:
        """Writes inputs that have their new elements and whose old ones nothing needs later."""
        for target, node in list(self._writes.items()):
            source = node.args[1]
            assert isinstance(source, torch.fx.Node)
            at, value = self._values[target], self._values.get(source)
            meta = self._plan.metas[at.position]
            if target in self._changed_there and meta.dtype in _DTYPES:
                if not is_last and (not isinstance(value, Value) or self._is_old(target, node)):
                    continue
                self._replace(at, self._take(value))
            elif is_last:
                self._plan.written.append((at.position, self._place(value)))
            else:
                continue
            del self._writes[target]
            self._values[node] = None

    def _replace(self, at: At, value: Value) -> None:
        is_output = isinstance(value.source, OutputOf) and value.is_whole
        if not is_output or value.shape != value.source_shape or self._is_result(value):
            value = self._builder.copy(value)
        self._take(at)
        self._replaced.append((at.position, value))

    def _is_old(self, target: torch.fx.Node, node: torch.fx.Node) -> bool:
        """Whether a later program needs the elements of an input that `node` writes."""
        position = self._values[target].position
        names = [
            one
            for one, value in self._values.items()
            if one is target
            or isinstance(value, Value)
            and self._positions.get(id(value)) == position
        ]
        users = {user for one in names for user in one.users}
        return any(user not in self._values and user is not node for user in users)

    def _end_program(self) -> None:
        """The values of the program that later steps need become its results."""
        self._write(is_last=False)
        later: dict[torch.fx.Node, Any] = {}
        for node, value in self._values.items():
            later[node] = _map(value, self._place) if self._is_needed(node) else value
        self._values = later
        self._finish_program()

    def _is_needed(self, node: torch.fx.Node) -> bool:
        return any(user not in self._values for user in node.users)

    def _finish_program(self) -> None:
        if self._pending or self._kept or self._replaced:
            results = [(at, self._plan.metas[at]) for at, _ in self._pending]
            self._plan.steps.append(
                PoolStep(
                    self._builder.program,
                    list(self._taken),
                    [(at, _output(value)) for at, value in self._pending],
                    [(at, _output(value)) for at, value in self._kept],
                    [(at, _output(value)) for at, value in self._replaced],
                    self._builder.seeds,
                    self._builder.sizes,
                    self._builder.nodes,
                    {at for at, _ in beyond_one_message(results)},
                )
            )
        self._builder = Builder()
        self._taken, self._pending, self._kept, self._replaced = {}, [], [], []

    def _end(self, node: torch.fx.Node) -> None:
        outputs = node.args[0]
        outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
        written = {self._values[one].position for one in self._writes}
        for one, stays in zip(outputs, self._stays):
            value = self._values[one] if isinstance(one, torch.fx.Node) else one
            is_sent = isinstance(value, At) and value.position in self._sent
            if isinstance(value, At) and self._plan.metas[value.position].dtype not in _DTYPES:
                pass  # no program takes it: it stays here
            elif isinstance(value, At) and stays and (is_sent or is_backward(self._graph)):
                # An input of this step that the backward pass needs is not sent again, and a
                # gradient is no other tensor.
                value = self._builder.copy(self._take(value))
            elif self._position(value) in written:
                value = self._builder.copy(self._take(value))  # before it changes
            self._plan.outputs.append(self._place(value, keep=stays))
        self._write(is_last=True)
        self._finish_program()

    def _position(self, value: Any) -> Optional[int]:
        return value.position if isinstance(value, At) else self._positions.get(id(value))


def _output(value: Value) -> OutputOf:
    assert isinstance(value.source, OutputOf)
    return value.source


def _name(node: torch.fx.Node) -> str:
    return str(node.target)


def _check_dtypes(metas: Any) -> None:
    for meta in metas if isinstance(metas, (tuple, list)) else [metas]:
        if isinstance(meta, Tensor) and meta.dtype not in _DTYPES:
            raise Unsupported(f"the pool has no {meta.dtype}")


_DTYPES = {
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
}


def _map(value: Any, function: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_map(one, function) for one in value)
    if isinstance(value, dict):
        return {key: _map(one, function) for key, one in value.items()}
    return function(value)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in _leaves(one)]
    if isinstance(value, dict):
        return _leaves(list(value.values()))
    return [value]
