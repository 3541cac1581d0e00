"""Plans of graphs with their programs prepared: run at once, or later with others."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Optional

import torch

from opserve import _tensors, errors
from opserve.client import Client
from opserve.prepared import PreparedProgram
from opserve.resident import ResidentTensor
from opserve.torch._fusion import Template
from opserve.torch._batch import Pending
from opserve.torch._plan import At, LocalStep, Plan, PoolStep, beyond_one_message
from opserve.torch._pool_parameter import is_adopted
from opserve.torch._pool_tensor import Contents
from opserve.torch._residency import Residents, bring_home, is_shared

Tensor = torch.Tensor

# Of the tensors that a program sends which is not waited for: they are copied.
_MOST_BYTES_AHEAD = 1 << 20

# Of what a program leaves on the pool that is sent before those that follow it: their memory stays
# for the next step, beside that of gradients (see Residents).
_MOST_BYTES_KEPT_AHEAD = 16 << 20


class PreparedPlan:
    """A plan with its programs prepared."""

    def __init__(
        self, plan: Plan, client: Client, lease: float, is_detached: bool = False
    ) -> None:
        """
        Args:
            lease: of results that stay on the pool, in seconds.
            is_detached: whether the caller has a tensor beside each that a program changes, which
                nothing reads afterwards.
        """
        self._aliases = 1 if is_detached else 0
        self._plan = plan
        self._programs: list[Optional[PreparedProgram]] = [
            client.prepare(step.program, step.wanted(lease))
            if isinstance(step, PoolStep)
            else None
            for step in plan.steps
        ]
        self._template = _template(plan, lease)
        # Of a program that may run later: results that do not replace tensors, with their metas.
        self._made: list[tuple[int, Tensor]] = []
        if self._template is not None:
            [step] = plan.steps
            assert isinstance(step, PoolStep)
            self._made = [(one, plan.metas[one]) for one, _ in step.results + step.kept]
        self._shapes = [meta.shape for _, meta in self._made]

    def release(self) -> None:
        """Gives the programs up, see PreparedProgram.release(); a run prepares them again."""
        for one in self._programs:
            if one is not None:
                one.release()

    @property
    def goes_ahead(self) -> bool:
        """Whether the run that was deferred last is to be sent now."""
        return self._template is not None and self._template.goes_ahead

    @property
    def is_deferrable(self) -> bool:
        """Whether it may run later."""
        return self._template is not None

    def run(
        self,
        residents: Residents,
        inputs: Sequence[Any],
        originals: Sequence[Any],
        defers: bool = False,
    ) -> list[Any]:
        """Gives the outputs: tensors, numbers, and for kept tensors (ResidentTensor, dtype).

        Args:
            originals: of inputs that the pool has or that are changed here: the graph's own.
            defers: whether it may run later: then kept tensors are (Pending, dtype), and results
                that come here are Contents.
        """
        if defers and self._template is not None:
            given = self._defer(residents, self._template, inputs, originals)
            if given is not None:
                return given
        values: dict[int, Any] = dict(enumerate(residents.known(inputs)))
        values.update(self._plan.constants)
        for step, program in zip(self._plan.steps, self._programs):
            if isinstance(step, LocalStep):
                self._run_here(residents, step, values)
            else:
                assert program is not None
                self._run_program(residents, step, program, values)
                for position, _ in step.replaced:
                    residents.changed(originals[position], self._aliases)
                    if not is_adopted(originals[position]):
                        bring_home(originals[position])
        for position, source in self._plan.written:
            bring_home(originals[position])
            with torch.no_grad():
                originals[position].copy_(self._read(residents, source, values))
        return [self._output(one, values) for one in self._plan.outputs]

    def _defer(
        self,
        residents: Residents,
        template: Template,
        inputs: Sequence[Any],
        originals: Sequence[Any],
    ) -> Optional[list[Any]]:
        """Lets the plan's program run later; None: these inputs are not for that."""
        [step] = self._plan.steps
        assert isinstance(step, PoolStep)
        for position, _ in step.replaced:
            if not is_adopted(originals[position]) or is_shared(originals[position], self._aliases):
                return None  # it would come home before the caller has what stands for results
        given: list[Any] = []
        most = _MOST_BYTES_AHEAD
        for position in step.arguments:
            constant = self._plan.constants.get(position)
            one = inputs[position] if constant is None else residents.upload(constant)
            if isinstance(one, Tensor):
                most -= one.nbytes
                if most < 0:
                    return None
                one = _tensors.bytes_of(one)
            given.append(one)
        pending = residents.defer(template, given, self._shapes, _seeds(step))
        for position, _ in step.replaced:
            residents.changed(originals[position], self._aliases)
        values: dict[int, Any] = dict(enumerate(inputs))
        values.update(self._plan.constants)
        for (position, meta), result in zip(self._made, pending):
            values[position] = (
                Contents(residents, [], result.shape, meta.dtype, result)
                if result.is_sent
                else result
            )
        return [self._output(one, values) for one in self._plan.outputs]

    def _run_program(
        self,
        residents: Residents,
        step: PoolStep,
        program: PreparedProgram,
        values: dict[int, Any],
    ) -> None:
        constants = self._plan.constants
        arguments = [
            residents.upload(constants[position]) if position in constants else values[position]
            for position in step.arguments
        ]
        tensors = [(i, one) for i, one in enumerate(arguments) if isinstance(one, Tensor)]
        passing = []  # only for this run
        for number, tensor in beyond_one_message(tensors):
            arguments[number] = residents.send(tensor)
            passing.append(arguments[number])
        seeds = _seeds(step)
        try:
            results = residents.run(program, arguments, seeds)
        except errors.OpserveError as error:
            step.name_line(error)
            raise
        finally:
            residents.drop(passing)
        for (position, _), result in zip(step.results + step.kept, results):
            # The elements are the value's; their shape may be that before a view of them.
            shape = tuple(self._plan.metas[position].shape)
            if position in step.fetched:
                residents.drop([result])
                result = self._download(residents, result)
            if isinstance(result, ResidentTensor):
                values[position] = dataclasses.replace(result, shape=shape)
                continue
            values[position] = result.reshape(shape)

    def _run_here(
        self, residents: Residents, step: LocalStep, values: dict[int, Any]
    ) -> None:
        def take(one: Any) -> Any:
            return self._read(residents, one, values) if isinstance(one, At) else one

        map_all = torch.utils._pytree.tree_map
        result = step.node.target(  # type: ignore[operator]
            *map_all(take, step.arguments), **map_all(take, step.keywords)
        )
        given = result if isinstance(result, (tuple, list)) else [result]
        position = step.position
        for one in given:
            if one is None:
                continue
            values[position] = one.contiguous()
            position += 1

    def _read(self, residents: Residents, at: At, values: dict[int, Any]) -> Tensor:
        value: Any = values[at.position]
        if isinstance(value, ResidentTensor):
            value = values[at.position] = self._download(residents, value)
        tensor: Tensor = value
        return tensor

    def _download(self, residents: Residents, resident: ResidentTensor) -> Tensor:
        array = residents.fetch(resident)
        make = _tensors.maker_like(torch.empty(0))
        tensor: Tensor = make(
            resident.data_type, resident.shape, memoryview(array.reshape(-1).view("u1"))
        )
        return tensor

    def _output(self, one: Any, values: dict[int, Any]) -> Any:
        if type(one) is not At:
            return one
        value = values[one.position]
        if not isinstance(value, (ResidentTensor, Pending)):
            return value
        dtype = self._plan.metas[one.position].dtype
        return (value, dtype)


def _seeds(step: PoolStep) -> dict[int, dict[str, int]]:
    return {
        number: {"seed": int(torch.randint(0, 2**62, ()).item())} for number in step.seeds
    }


def _template(plan: Plan, lease: float) -> Optional[Template]:
    """The plan's program, if it may run later: it sends back at most numbers, as losses are."""
    if len(plan.steps) != 1 or plan.written:
        return None
    [step] = plan.steps
    if not isinstance(step, PoolStep) or step.fetched:
        return None
    if any(plan.metas[position].dim() for position, _ in step.results):
        return None
    kept = sum(_bytes_of(plan.metas[position]) for position, _ in step.kept)
    return Template(
        step.program,
        step.wanted(lease),
        name_line=step.name_line,
        may_go_ahead=kept <= _MOST_BYTES_KEPT_AHEAD,
    )


def _bytes_of(meta: Any) -> int:
    size: int = meta.numel() * meta.element_size()
    return size
