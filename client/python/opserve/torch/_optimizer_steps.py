"""The steps of optimizers as programs: one for all parameters."""

from __future__ import annotations

import abc
import array
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Optional, Union

import torch

from opserve.prepared import PreparedProgram
from opserve.program import InputOf, Keep, OutputOf, Program
from opserve.resident import ResidentTensor
from opserve.torch._fusion import Template
from opserve.torch._plan import beyond_one_message
from opserve.torch._pool_tensor import (
    Contents,
    inputs_of,
    name_of,
    signature_of,
    sum_of,
)
from opserve.torch._residency import Residents

Tensor = torch.Tensor


@dataclasses.dataclass
class Item:
    """A parameter with its gradient.

    Attributes:
        gradient: on the pool, or a tensor to send.
        group: the options of its parameter group.
        state: tensors on the pool, by name; empty in the first step.
        known: the state as torch's optimizer has it.
        steps: that were done before.
    """

    parameter: Tensor
    gradient: Union[Contents, Tensor]
    group: Mapping[str, Any]
    state: dict[str, Contents]
    known: dict[str, Any] = dataclasses.field(default_factory=dict)
    steps: float = 0.0


@dataclasses.dataclass
class Setting:
    """A number of a program that each run sets anew: an attribute of an invocation.

    Attributes:
        item: position of the parameter; its group has the option.
        option: its name; of a pair: which one of it.
    """

    invocation: int
    attribute: str
    item: int
    option: str
    of_pair: Optional[int] = None
    factor: float = 1.0


class Rule(abc.ABC):
    """How an optimizer changes a parameter."""

    # Dtypes of parameters that the pool's operators take.
    dtypes: ClassVar[Sequence[torch.dtype]]
    # Whether its operators change tensors in place, without a second memory for each.
    in_place: ClassVar[bool]
    # Whether its state has a "step".
    counts_steps: ClassVar[bool]

    @abc.abstractmethod
    def state_names(self, group: Mapping[str, Any]) -> Sequence[str]:
        """Names of the state's tensors, as torch's optimizer has them."""

    @abc.abstractmethod
    def structure(self, group: Mapping[str, Any]) -> tuple[Any, ...]:
        """Options that decide which invocations there are."""

    @abc.abstractmethod
    def build(self, step: ItemStep) -> tuple[OutputOf, dict[str, OutputOf]]:
        """Adds the invocations: gives the new parameter, and the new state by names."""


class ItemStep:
    """The tensors and options from which a rule builds the step of one parameter."""

    def __init__(
        self,
        program: Program,
        number: int,
        item: Item,
        parameter: InputOf,
        gradient: Any,
        state: Mapping[str, InputOf],
        steps: InputOf,
    ) -> None:
        self.program = program
        self.group = item.group
        self.parameter = parameter
        self.gradient = gradient
        self.state = state
        self.settings: list[Setting] = []
        self._number = number
        self._steps = steps

    def steps(self) -> Any:
        """The number of steps before this one, of one element."""
        return self.program.view(self._steps, "float32", (1,), (1,), self._number)

    def zeros(self) -> Any:
        """In the shape and dtype of the parameter, with memory of their own."""
        dtype = self.parameter.data_type.numpy
        zeros = self.program.full(self.parameter.shape, 0, dtype)
        return self.program.muls(zeros, other=1.0)

    def set(
        self,
        attribute: str,
        option: str,
        of_pair: Optional[int] = None,
        factor: float = 1.0,
    ) -> None:
        """An attribute of the last invocation is `factor` times an option."""
        last = len(self.program.invocations) - 1
        self.settings.append(
            Setting(last, attribute, self._number, option, of_pair, factor)
        )

    def add(self, one: Any, other: Any, option: str, factor: float = 1.0) -> Any:
        """one + factor * option * other."""
        total = self.program.add(one, other, alpha=1.0)
        self.set("alpha", option, factor=factor)
        return total


@dataclasses.dataclass(frozen=True)
class AdamRule(Rule):
    """Of Adam and AdamW.

    Attributes:
        is_decoupled: whether the weight decay changes the parameter, not the gradient; newer
            versions of torch have an option for it.
    """

    is_decoupled: bool

    in_place = True
    counts_steps = True
    dtypes = (torch.float32, torch.float16, torch.bfloat16)

    def state_names(self, group: Mapping[str, Any]) -> Sequence[str]:
        names = ["exp_avg", "exp_avg_sq"]
        return [*names, "max_exp_avg_sq"] if group["amsgrad"] else names

    def structure(self, group: Mapping[str, Any]) -> tuple[Any, ...]:
        is_decoupled = bool(group.get("decoupled_weight_decay", self.is_decoupled))
        decays = group["weight_decay"] != 0
        return decays, is_decoupled, bool(group["amsgrad"]), bool(group["maximize"])

    def build(self, step: ItemStep) -> tuple[OutputOf, dict[str, OutputOf]]:
        decays, is_decoupled, amsgrad, maximize = self.structure(step.group)
        gradient = step.gradient
        if decays and not is_decoupled:
            sign = -1.0 if maximize else 1.0
            gradient = step.add(gradient, step.parameter, "weight_decay", sign)
        names = self.state_names(step.group)
        state = [step.state.get(name) or step.zeros() for name in names]
        changed = step.program.apply_adam_wv2(
            step.parameter,
            state[0],
            state[1],
            gradient,
            step.steps(),
            max_grad_norm=state[2] if amsgrad else None,
            lr=0.0,
            weight_decay=0.0,
            amsgrad=amsgrad,
            maximize=maximize,
        )
        step.set("lr", "lr")
        step.set("beta1", "betas", 0)
        step.set("beta2", "betas", 1)
        step.set("eps", "eps")
        step.set("weight_decay", "weight_decay", factor=1.0 if is_decoupled else 0.0)
        given = [changed.m, changed.v, changed.max_grad_norm]
        return changed.var, dict(zip(names, given))


@dataclasses.dataclass(frozen=True)
class SgdRule(Rule):
    in_place = False
    counts_steps = False
    dtypes = (torch.float32, torch.float16, torch.bfloat16, torch.float64)

    def state_names(self, group: Mapping[str, Any]) -> Sequence[str]:
        return ["momentum_buffer"] if group["momentum"] != 0 else []

    def structure(self, group: Mapping[str, Any]) -> tuple[Any, ...]:
        return (
            group["weight_decay"] != 0,
            group["momentum"] != 0,
            bool(group["nesterov"]),
            bool(group["maximize"]),
        )

    def build(self, step: ItemStep) -> tuple[OutputOf, dict[str, OutputOf]]:
        decays, has_momentum, nesterov, maximize = self.structure(step.group)
        program, gradient = step.program, step.gradient
        if maximize:
            gradient = program.neg(gradient)
        if decays:
            gradient = step.add(gradient, step.parameter, "weight_decay")
        state = {}
        if has_momentum:
            buffer = step.state.get("momentum_buffer")
            if buffer is None:
                velocity = program.muls(gradient, other=1.0)
            else:
                slowed = program.muls(buffer, other=1.0)
                step.set("other", "momentum")
                velocity = program.add(slowed, gradient, alpha=1.0)
                step.set("alpha", "undamped")
            state["momentum_buffer"] = velocity
            if nesterov:
                gradient = step.add(gradient, velocity, "momentum")
            else:
                gradient = velocity
        return step.add(step.parameter, gradient, "lr", -1.0), state


@dataclasses.dataclass
class StepProgram:
    """A step of an optimizer, prepared.

    Attributes:
        values: of the settings, as the program has them; `options`: of the groups then.
        kept: state that the first step makes: position of the result, item and name.
        template: of the program, if it may run later; a first step is waited for.
    """

    run: PreparedProgram
    settings: Sequence[Setting]
    values: Sequence[float]
    options: Sequence[Any]
    kept: Sequence[tuple[int, int, str]]
    template: Optional[Template]


def prepare(rule: Rule, items: Sequence[Item], residents: Residents) -> StepProgram:
    """The program of a step; found again for items of the same shapes and structure."""
    groups = {id(item.group): rule.structure(item.group) for item in items}
    key = ("step", rule, *[_signature(item, groups[id(item.group)]) for item in items])
    return residents.programs.get(key, lambda: _prepare(rule, items, residents))


def _signature(item: Item, structure: tuple[Any, ...]) -> tuple[Any, ...]:
    gradient = item.gradient
    terms = signature_of(gradient) if isinstance(gradient, Contents) else None
    parameter = item.parameter
    return parameter.shape, parameter.dtype, terms, tuple(item.state), structure


@dataclasses.dataclass
class BuiltStep:
    """A step of an optimizer as a program.

    Attributes:
        kept, settings: as StepProgram's.
    """

    program: Program
    results: Sequence[Any]
    donated: Sequence[InputOf]
    settings: Sequence[Setting]
    kept: Sequence[tuple[int, int, str]]


def _prepare(rule: Rule, items: Sequence[Item], residents: Residents) -> StepProgram:
    built = build(rule, items, [list(item.state) for item in items], residents.lease)
    program, results, donated = built.program, built.results, built.donated
    # Options stay for most steps as they are in the first: only others travel.
    values = [_value(one, items) for one in built.settings]
    for one, value in zip(built.settings, values):
        program.set_attribute(one.invocation, one.attribute, value)
    run = residents.programs.client.prepare(program, results, donated=donated)
    template = None if built.kept else Template(program, results, donated)
    return StepProgram(run, built.settings, values, _options(items), built.kept, template)


def build(
    rule: Rule, items: Sequence[Item], states: Sequence[Sequence[str]], lease: float
) -> BuiltStep:
    """The program of a step.

    Args:
        states: names of the tensors of each item's state that are there.
    """
    program = Program()
    steps = program.input("float32", (len(items),))
    results: list[Any] = []
    donated: list[Any] = []
    settings: list[Setting] = []
    kept: list[tuple[int, int, str]] = []
    for number, item in enumerate(items):
        dtype, shape = name_of(item.parameter.dtype), tuple(item.parameter.shape)
        parameter = program.input(dtype, shape)
        state = {name: program.input(dtype, shape) for name in states[number]}
        if isinstance(item.gradient, Contents):
            gradient = sum_of(program, inputs_of(program, item.gradient))
        else:
            gradient = program.input(dtype, shape)
        step = ItemStep(program, number, item, parameter, gradient, state, steps)
        new_parameter, new_state = rule.build(step)
        settings += step.settings
        results.append(program.replace(parameter, new_parameter))
        for name, output in new_state.items():
            if name in state:
                results.append(program.replace(state[name], output))
            else:
                kept.append((len(results), number, name))
                results.append(Keep(output, lease))
        if rule.in_place:
            donated += [parameter, *state.values()]
    return BuiltStep(program, results, donated, settings, kept)


def run(
    program: StepProgram,
    items: Sequence[Item],
    residents: Residents,
    undo: Callable[[], None],
) -> None:
    """Runs a step, now or later: parameters and state change on the pool.

    Args:
        undo: called if a step that runs later fails, or does not run.
    """
    inputs: list[Any] = [array.array("f", [item.steps for item in items]).tobytes()]
    for item in items:
        inputs.append(residents.upload(item.parameter))
        for one in item.state.values():
            inputs += one.on_pool()
        if isinstance(item.gradient, Contents):
            inputs += item.gradient.on_pool()
        else:
            inputs.append(item.gradient.detach())
    numbers = _numbers(program, items)
    if not _defer(program, inputs, numbers, residents, undo):
        _run_now(program, items, inputs, numbers, residents)
    for item in items:
        residents.changed(item.parameter)
        for contents in item.state.values():
            contents.was_changed()


def _defer(
    program: StepProgram,
    inputs: Sequence[Any],
    numbers: Mapping[int, Mapping[str, float]],
    residents: Residents,
    undo: Callable[[], None],
) -> bool:
    """Lets the step run later; False: it is not for that."""
    if program.template is None or not residents.defers:
        return False
    if any(isinstance(one, Tensor) for one in inputs):
        return False
    residents.defer(program.template, inputs, (), numbers, undo)
    return True


def _run_now(
    program: StepProgram,
    items: Sequence[Item],
    inputs: list[Any],
    numbers: Mapping[int, Mapping[str, float]],
    residents: Residents,
) -> None:
    inputs[0] = torch.frombuffer(bytearray(inputs[0]), dtype=torch.float32)
    passing: list[ResidentTensor] = []  # only for this run
    tensors = [(i, one) for i, one in enumerate(inputs) if isinstance(one, Tensor)]
    for number, tensor in beyond_one_message(tensors):
        inputs[number] = residents.send(tensor)
        passing.append(inputs[number])
    try:
        results = residents.run(program.run, inputs, numbers)
    finally:
        residents.drop(passing)
    for position, number, name in program.kept:
        parameter = items[number].parameter
        term = residents.hold(results[position], state=name)
        items[number].state[name] = Contents(
            residents, [term], parameter.shape, parameter.dtype
        )


def _numbers(program: StepProgram, items: Sequence[Item]) -> dict[int, dict[str, float]]:
    """Settings that the program has otherwise."""
    if program.options == _options(items):
        return {}
    numbers: dict[int, dict[str, float]] = {}
    for one, before in zip(program.settings, program.values):
        value = _value(one, items)
        if value != before:
            numbers.setdefault(one.invocation, {})[one.attribute] = value
    return numbers


def _options(items: Sequence[Item]) -> list[Any]:
    """The groups' numbers, and the group of each item: the settings depend on nothing else."""
    groups: dict[int, Mapping[str, Any]] = {}
    places = []  # of the items' groups
    last: Any = None
    for item in items:
        if item.group is not last:
            last = item.group
            groups.setdefault(id(last), last)
            place = list(groups).index(id(last))
        places.append(place)
    numbers = [
        float(value) if isinstance(value, Tensor) else value
        for group in groups.values()
        for name, value in group.items()
        if name != "params"
    ]
    return [*numbers, *places]


def _value(setting: Setting, items: Sequence[Item]) -> float:
    value = option(items[setting.item].group, setting.option)
    if setting.of_pair is not None:
        value = value[setting.of_pair]
    return setting.factor * float(value)


def option(group: Mapping[str, Any], name: str) -> Any:
    return 1 - float(group["dampening"]) if name == "undamped" else group[name]
