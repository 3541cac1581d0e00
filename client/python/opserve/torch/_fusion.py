"""Joins programs that run one after another into one request.

Results that one program leaves for the next are values of the joined program. So they need no
handles, and the whole has run or has not.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import torch

from opserve import _tensors
from opserve._any_prepared import PAYLOAD, RESIDENT, encode_residents
from opserve._data_type import DataType
from opserve._views import contiguous_strides
from opserve.client import Client
from opserve.errors import OpserveError
from opserve.prepared import PreparedProgram
from opserve.program import InputOf, Invocation, Keep, OutputOf, Program, Replace, View
from opserve.resident import ResidentTensor

# How the program of a part gets an input: a payload; a resident tensor, by its number from 0 on;
# result n of the parts before, as EARLIER - n.
SENT = -1
EARLIER = -2

# Fates of a kept result: nothing outside needs it; it becomes a new resident tensor; it replaces
# the content of a spare one.
DROPPED, KEPT, REPLACING = 0, 1, 2

Code = int
Shape = tuple[DataType, tuple[int, ...]]


@dataclasses.dataclass(eq=False)
class Template:
    """A program with its results, to be joined with others.

    Attributes:
        results: those that are sent or kept come before those that replace inputs.
        donated: inputs that are.
        name_line: adds to an error of an invocation the line of the model.
        shapes: dtypes and shapes of kept results as the daemon has them, by position; known after
            the first run.
        may_go_ahead: whether the programs that follow are worth a request of their own.
        was_read: whether something waited for a result of the last run.
        goes_ahead: whether the last run was sent without the programs that follow.
    """

    program: Program
    results: Sequence[Any]
    donated: Sequence[InputOf] = ()
    name_line: Callable[[OpserveError], None] = lambda error: None
    shapes: dict[int, Shape] = dataclasses.field(default_factory=dict)
    may_go_ahead: bool = False
    was_read: bool = False
    goes_ahead: bool = False

    def begin(self) -> None:
        """Another run: one whose results are read soon does not wait for the rest of the step.

        So a caller that reads each loss waits for the forward pass alone, and the rest of the step
        runs while the caller prepares the next one.
        """
        self.goes_ahead = self.was_read and self.may_go_ahead
        self.was_read = False

    def __post_init__(self) -> None:
        self.made = [one for one in self.results if not isinstance(one, Replace)]
        # Their tensors are inputs of the program.
        self.replaced: list[Any] = [one for one in self.results if isinstance(one, Replace)]


@dataclasses.dataclass
class Joined:
    """A joined program.

    Attributes:
        kinds: of its inputs, as for PreparedProgram.send.
        residents: sources of its inputs that are resident, in their order: numbers of resident
            tensors, or EARLIER - n for the spare tensor of result n.
        sent: numbers of the payloads that are used, in the order in which the parts have them.
        positions: of the answer's results that replace nothing, by the number of the parts' result.
        offsets: numbers of the parts' first invocations.
        replaced: positions in `residents` of tensors that get other elements, in the order of the
            results that they get.
        handles, encoded: of the resident tensors of the last run.
        changed: of these, the handles of those that are replaced.
        place_of: the position of each handle.
    """

    run: PreparedProgram
    kinds: tuple[int, ...]
    residents: Sequence[int]
    sent: Sequence[int]
    positions: Mapping[int, int]
    offsets: Sequence[int]
    replaced: Sequence[int]
    handles: Sequence[bytes] = ()
    encoded: bytes = b""
    changed: Sequence[bytes] = ()
    place_of: Mapping[bytes, int] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.wanted = frozenset(self.positions.values())

    def take(self, handles: Sequence[bytes]) -> None:
        """The next run has these resident tensors."""
        if self.handles == handles:
            return
        self.handles, self.encoded = handles, encode_residents(handles)
        self.changed = [handles[one] for one in self.replaced]
        self.place_of = {one: place for place, one in enumerate(handles)}


def join(
    client: Client,
    parts: Sequence[tuple[Template, Sequence[Code]]],
    fates: Sequence[int],
) -> Joined:
    """Joins programs.

    Args:
        parts: with the codes of each one's inputs.
        fates: of the parts' results that replace no input; those that are sent have any.
    """
    return _Join(client, parts, fates).joined()


class _Join:
    """The state of join()."""

    def __init__(
        self,
        client: Client,
        parts: Sequence[tuple[Template, Sequence[Code]]],
        fates: Sequence[int],
    ) -> None:
        self._client = client
        self._parts = parts
        self._fates = fates
        self._program = Program()
        self._program.make_result = _tensors.maker_like(torch.empty(0))
        self._sources: list[tuple[int, int]] = []  # kind and number, of each input
        self._payloads = 0
        self._shapes = self._shapes_of_residents()
        self._inputs: dict[int, InputOf] = {}  # by numbers of resident tensors
        # Newest elements of resident tensors that a part has replaced, by their numbers.
        self._newest: dict[int, OutputOf] = {}
        self._made: list[OutputOf] = []  # results of the parts so far
        self._donated: dict[int, None] = {}

    def joined(self) -> Joined:
        offsets = []
        results: list[Any] = []
        positions: dict[int, int] = {}
        for template, codes in self._parts:
            offsets.append(len(self._program.invocations))
            self._add(template, codes, results, positions)
        for number, output in self._newest.items():
            results.append(Replace(output, self._resident(number)))
        run = self._client.prepare(
            self._program, results, donated=[self._resident(one) for one in self._donated]
        )
        kinds: list[int] = []
        residents: list[int] = []
        sent: list[int] = []
        for number, (kind, source) in enumerate(self._sources):
            is_used = run.uses(number)
            kinds.append(kind if is_used else 0)
            if is_used:
                (sent if kind == PAYLOAD else residents).append(source)
        place_of = {source: place for place, source in enumerate(residents)}
        changed: list[Any] = [one.tensor for one in results if isinstance(one, Replace)]
        replaced = [place_of[self._sources[tensor.number][1]] for tensor in changed]
        return Joined(run, tuple(kinds), residents, sent, positions, offsets, replaced)

    def _shapes_of_residents(self) -> dict[int, Shape]:
        """A tensor that is replaced has the shape that the result has; another, any."""
        shapes: dict[int, Shape] = {}
        for template, codes in self._parts:
            for wanted, code in zip(template.program.inputs, codes):
                if code >= 0:
                    shapes.setdefault(code, (wanted.data_type, wanted.shape))
        for template, codes in self._parts:
            for one in template.replaced:
                tensor = one.tensor
                shapes[codes[tensor.number]] = (tensor.data_type, tensor.shape)
        return shapes

    def _resident(self, number: int) -> InputOf:
        if number not in self._inputs:
            self._inputs[number] = self._input(RESIDENT, number, self._shapes[number])
        return self._inputs[number]

    def _input(self, kind: int, source: int, shape: Shape) -> InputOf:
        self._sources.append((kind, source))
        return self._program.input(*shape)

    def _add(
        self,
        template: Template,
        codes: Sequence[Code],
        results: list[Any],
        positions: dict[int, int],
    ) -> None:
        offset = len(self._program.invocations)
        values = [
            self._value(wanted, code) for wanted, code in zip(template.program.inputs, codes)
        ]

        def moved(output: OutputOf) -> OutputOf:
            return OutputOf(self._program, output.invocation + offset, output.output)

        def renamed(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(renamed, value))
            if isinstance(value, InputOf):
                return values[value.number]
            if isinstance(value, OutputOf):
                return moved(value)
            if isinstance(value, View):
                base = renamed(value.base)
                # A view of an input as a whole, in another shape: contiguous, from its start.
                base = base.base if isinstance(base, View) else base
                return dataclasses.replace(value, base=base)
            return value

        for one in template.program.invocations:
            inputs = {name: renamed(value) for name, value in one.inputs.items()}
            self._program.invocations.append(
                Invocation(one.operator, inputs, one.attributes, one.wishes, one.info)
            )
        for position, result in enumerate(template.made):
            number = len(self._made)
            output = moved(result.output if isinstance(result, Keep) else result)
            self._made.append(output)
            wanted = self._result(template, position, number, output)
            if wanted is not None:
                if not isinstance(wanted, Replace):
                    positions[number] = len(results)
                results.append(wanted)
        for replace in template.replaced:
            self._newest[codes[replace.tensor.number]] = moved(replace.output)
        for given in template.donated:
            self._donated[codes[given.number]] = None

    def _result(
        self, template: Template, position: int, number: int, output: OutputOf
    ) -> Union[OutputOf, Keep, Replace, None]:
        result = template.made[position]
        if not isinstance(result, Keep):
            return output
        if self._fates[number] == DROPPED:
            return None
        if self._fates[number] == KEPT:
            return Keep(output, result.lease)
        spare = self._input(RESIDENT, EARLIER - number, template.shapes[position])
        return Replace(output, spare)

    def _value(self, wanted: InputOf, code: Code) -> Union[InputOf, OutputOf, View]:
        shape = wanted.data_type, wanted.shape
        if code == SENT:
            self._payloads += 1
            return self._input(PAYLOAD, self._payloads - 1, shape)
        if code <= EARLIER:
            return self._viewed(self._made[EARLIER - code], wanted)
        newest = self._newest.get(code)
        given = self._resident(code) if newest is None else newest
        return given if self._shapes[code] == shape else self._viewed(given, wanted)

    def _viewed(self, value: Union[InputOf, OutputOf], wanted: InputOf) -> View:
        strides = contiguous_strides(wanted.shape)
        return View(value, wanted.data_type, wanted.shape, strides)


def shape_of(resident: ResidentTensor) -> Shape:
    return resident.data_type, resident.shape


@functools.lru_cache(maxsize=4096)
def bytes_of(shape: Shape) -> int:
    data_type, extents = shape
    return math.prod(extents) * data_type.itemsize
