"""A program as the message Execute, and the answer as results."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Optional, Union

from opserve import _frame, _outputs, _tensors, _wire, errors
from opserve._data_type import DataType
from opserve._frame import Buffer
from opserve._payloads import Payloads
from opserve._request_numbers import RequestNumbers, Ticket
from opserve._views import TensorView, contiguous_strides
from opserve.program import (
    Input,
    InputOf,
    Keep,
    Literal,
    OutputOf,
    Program,
    Replace,
    Response,
    Result,
    View,
)
from opserve.resident import ResidentTensor

# Fills in the wire's SharedMemoryRange if a view lies in shared memory; False: it does not.
FillRange = Callable[[TensorView, Any], bool]

# Bytes of an answer that take less time to copy than to take apart here.
_SMALL = 16384

PRIORITIES = {"low": 1, "normal": 2, "high": 3}


@dataclasses.dataclass(frozen=True)
class _Known:
    """A result of a prepared program, as it is in every answer.

    Attributes:
        place: of its payload, of its tensor in BriefResults.kept, or of its version there.
    """

    output: str
    dtype: DataType
    shape: tuple[int, ...]
    place: int


class Request:
    """A program with the results wanted, ready to be sent; reads answers to it."""

    def __init__(
        self,
        program: Program,
        fill_range: FillRange,
        *,
        results: Optional[Sequence[Result]] = None,
        donated: Sequence[Union[ResidentTensor, InputOf]] = (),
        want_receipt: bool = False,
        priority: str = "normal",
        idempotency_key: str = "",
    ) -> None:
        if priority not in PRIORITIES:
            raise ValueError(
                f'priority "{priority}"; expected one of {", ".join(PRIORITIES)}'
            )
        if results is not None and any(
            _output_of(result).program is not program for result in results
        ):
            raise ValueError("results has an output of another program")
        self.header = _wire.ExecuteRequest(
            want_receipt=want_receipt,
            priority=PRIORITIES[priority],
            idempotency_key=idempotency_key,
        )
        self.payloads: Sequence[Buffer] = ()
        self._keep: object = None  # owns the payloads' memory
        # Messages that name an input given when the program runs, by its number.
        self.inputs: list[list[Any]] = [[] for _ in program.inputs]
        self.replaced: list[list[Any]] = [[] for _ in program.inputs]
        self.changes_tensors = bool(donated)  # replaced or donated ones
        # Whether it changes or keeps tensors: running it twice is not the same as running it once.
        self.has_effects = self.changes_tensors
        self._make = program.make_result
        self._fill_range = fill_range
        # By position, as below: results that stay, as the caller wants them.
        self._staying: dict[int, Union[Keep, Replace]] = {}
        # Of a prepared program, once the daemon has described them; and how many of them are
        # sent, kept, and replace a tensor.
        self._known: Sequence[_Known] = ()
        self._known_counts: tuple[int, int, int] = (0, 0, 0)
        # Positions of results that the device writes to their destinations.
        self._in_place: set[int] = set()
        # Of results, by position, with the operator.
        self._destinations: dict[int, tuple[str, _outputs.Destination]] = {}
        # Whether the results are the outputs of the last invocation, and its operator.
        self._gathers = results is None and bool(program.invocations)
        self._info = program.invocations[-1].info if program.invocations else None
        self._add_invocations(program)
        self._add_results(program, results)
        self.header.donated.extend(
            tensor.handle for tensor in donated if isinstance(tensor, ResidentTensor)
        )
        self.donated = [one.number for one in donated if isinstance(one, InputOf)]

    def encode(self) -> _frame.Message:
        """The message Execute, which refers to the caller's inputs."""
        header = self.header
        is_plain = not header.HasField("identity") and not header.idempotency_key
        return _frame.Message(header.SerializeToString(), self.payloads, self._keep, is_plain)

    def identify(self, numbers: RequestNumbers) -> Optional[Ticket]:
        """Gives it an identity, if it needs one: to be released when it is repeated no more."""
        if not self.has_effects or self.header.idempotency_key:
            return None
        ticket = numbers.take()
        self.header.identity.MergeFromString(ticket.identity)
        return ticket

    def forget_payloads(self) -> None:
        """Lets go of the caller's inputs once the message is encoded."""
        self.payloads = ()
        self._keep = None

    def learn_results(self, described: Sequence[Any]) -> bool:
        """Takes PrepareResponse.results; whether there are any, so that answers may be brief.

        InternalError: they are not those of the program.
        """
        wanted = self.header.results
        if described and wanted and len(described) != len(wanted):
            raise errors.bad_answer(f"{len(described)} results; the program has {len(wanted)}")
        counts = {type(None): 0, Keep: 0, Replace: 0}
        known = []
        for position, one in enumerate(described):
            kind = type(self._staying.get(position))
            try:
                dtype = DataType(one.tensor.dtype)
            except ValueError as error:
                raise errors.bad_answer(error) from error
            known.append(_Known(one.source.output, dtype, tuple(one.tensor.shape), counts[kind]))
            counts[kind] += 1
        if known:
            self._known = known
            self._known_counts = counts[type(None)], counts[Keep], counts[Replace]
        return bool(known)

    def decode(
        self,
        message: _frame.Buffer,
        wanted: Optional[Collection[int]] = None,
        inputs: Sequence[Any] = (),
    ) -> Response:
        """Reads an answer.

        Args:
            wanted: positions of results; the others are None. None: all are wanted.
            inputs: of a prepared program: those of its run that results replace, by their numbers.

        Raises:
            InternalError: it is no answer.
            ValueError: a result does not fit its `out`.
        """
        try:
            if len(message) <= _SMALL:
                response = _frame.parse(message, _wire.ExecuteResponse)
                payloads: Sequence[memoryview] = list(map(memoryview, response.payloads))
            else:
                response, payloads = _frame.split(message, _wire.ExecuteResponse)
        except _frame.FrameError as error:
            raise errors.bad_answer(error) from error
        if response.HasField("brief"):
            return self._read_brief(response, payloads, wanted, inputs)
        return self.read(response, payloads, wanted)

    def read(
        self,
        response: Any,
        payloads: Sequence[memoryview],
        wanted: Optional[Collection[int]] = None,
    ) -> Response:
        """As decode(), of a whole answer already taken apart."""
        given = response.results
        if wanted is None:
            results = [self._result(i, result, payloads) for i, result in enumerate(given)]
        else:
            results = [None] * len(given)
            if any(position >= len(given) for position in wanted):
                raise errors.bad_answer(f"it has {len(given)} results")
            for position in wanted:
                results[position] = self._result(position, given[position], payloads)
        names = (result.source.output for result in given)
        return self._response(results, response, names)

    def _response(self, results: list[Any], response: Any, names: Iterable[str]) -> Response:
        """Args: names: of the results' outputs."""
        receipt = response.receipt if response.HasField("receipt") else None
        if not self._gathers:
            return Response(results, receipt)
        if not results and (self._info is None or self._info.gives_one_tensor):
            raise errors.bad_answer("it has no results")
        return Response(results, receipt, _outputs.gather(self._info, list(names), results))

    def _read_brief(
        self,
        response: Any,
        payloads: Sequence[memoryview],
        wanted: Optional[Collection[int]],
        inputs: Sequence[Any],
    ) -> Response:
        brief = response.brief
        known = self._known
        if (len(payloads), len(brief.kept), len(brief.versions)) != self._known_counts:
            raise errors.bad_answer(f"it does not fit a program with {len(known)} results")
        results: list[Any] = [None] * len(known)
        for position in range(len(known)) if wanted is None else wanted:
            one = known[position]
            staying = self._staying.get(position)
            if staying is None:
                data = payloads[one.place]
                results[position] = self._sent(position, one.dtype, one.shape, data)
                continue
            if isinstance(staying, Keep):
                made = brief.kept[one.place]
                handle, lease_end, version = made.handle, made.lease_end, 1
            else:
                tensor = staying.tensor
                replaced = inputs[tensor.number] if isinstance(tensor, InputOf) else tensor
                handle, lease_end, version = replaced.handle, None, brief.versions[one.place]
            results[position] = _stayed(
                handle, one.dtype, one.shape, lease_end, brief.device, version
            )
        return self._response(results, response, (one.output for one in known))

    def _add_invocations(self, program: Program) -> None:
        views: list[TensorView] = []
        unplaced: list[Any] = []

        def fill_view(tensor: Any, value: Union[View, Literal, InputOf]) -> None:
            tensor.dtype = value.data_type
            tensor.shape.extend(value.shape)
            # Of an input that is sent: a view without strides would have to be all of it.
            is_part = isinstance(value, View) and isinstance(value.base, InputOf)
            strides = getattr(value, "strides", ())
            if is_part or strides != contiguous_strides(value.shape):
                tensor.strides.extend(strides)
            tensor.offset = getattr(value, "offset", 0)

        def fill(tensor: Any, value: Input) -> None:
            base: Any = value
            if isinstance(value, (View, Literal, InputOf)):
                fill_view(tensor, value)
            if isinstance(value, View):
                base = value.base
            if isinstance(base, OutputOf):
                tensor.invocation_output.invocation = base.invocation
                tensor.invocation_output.output = base.output
            elif isinstance(base, ResidentTensor):
                tensor.resident_tensor = base.handle
            elif isinstance(base, Literal):
                tensor.literal = base.data
            elif isinstance(base, InputOf):
                self.inputs[base.number].append(tensor)
            else:
                tensor.dtype = base.dtype
                tensor.shape.extend(base.shape)
                if self._fill_range(base, tensor):
                    if not base.is_contiguous:
                        tensor.strides.extend(base.strides)
                else:
                    views.append(base)
                    unplaced.append(tensor)

        for invocation in program.invocations:
            message = self.header.invocations.add(operator=invocation.operator)
            for name, value in invocation.inputs.items():
                named = message.inputs.add(name=name)
                if isinstance(value, tuple):
                    named.list.SetInParent()
                    for element in value:
                        fill(named.list.tensors.add(), element)
                else:
                    named.tensor.SetInParent()
                    fill(named.tensor, value)
            for name, attribute in invocation.attributes.items():
                message.attributes.add(name=name).value.CopyFrom(attribute)
            for name, dtype in invocation.wishes.requests.items():
                message.outputs.add(name=name, dtype=dtype or 0)
        payloads = Payloads(views)
        self._keep = (views, payloads)
        self.payloads = payloads.buffers
        for tensor, place in zip(unplaced, payloads.places):
            tensor.payload = place.payload
            tensor.offset = place.offset
            if place.strides is not None:
                tensor.strides.extend(place.strides)

    def _add_results(
        self, program: Program, results: Optional[Sequence[Result]]
    ) -> None:
        wanted = (
            [
                (output.invocation, output.output)
                for output in map(_output_of, results)
            ]
            if results is not None
            else _outputs_of_last(program)
        )
        for position, (number, output) in enumerate(wanted):
            message = self.header.results.add(invocation=max(number, 0), output=output)
            if results is not None and self._stays(position, results[position], message):
                continue
            if not program.invocations:
                continue  # the daemon names the mistake
            invocation = program.invocations[number]
            if not output and invocation.info is not None:
                output = invocation.info.output
            destination = invocation.wishes.destinations.get(output)
            if destination is None:
                continue
            self._destinations[position] = invocation.operator, destination
            if self._fill_range(destination.view, message):
                self._in_place.add(position)

    def _stays(self, position: int, result: Result, message: Any) -> bool:
        """Says in `message` that the result stays on the device, if it does."""
        if isinstance(result, (Keep, Replace)):
            self._staying[position] = result
        if isinstance(result, Keep):
            self.has_effects = True
            message.keep.lease.FromNanoseconds(int(result.lease * 1e9))
        elif isinstance(result, Replace):
            self.changes_tensors = self.has_effects = True
            message.replace.SetInParent()
            if result.version is not None:
                message.replace.version = result.version
            if isinstance(result.tensor, InputOf):
                self.replaced[result.tensor.number].append(message.replace)
            else:
                message.replace.handle = result.tensor.handle
        return isinstance(result, (Keep, Replace))

    def _result(
        self, position: int, result: Any, payloads: Sequence[memoryview]
    ) -> Any:
        tensor = result.tensor
        try:
            dtype = DataType(tensor.dtype)
            shape = tuple(tensor.shape)
            if result.HasField("kept"):
                kept = result.kept
                lease_end = kept.lease_end if kept.HasField("lease_end") else None
                return _stayed(
                    tensor.resident_tensor, dtype, shape, lease_end, kept.device, kept.version
                )
            is_in_place = position in self._in_place
            data = None if is_in_place else payloads[tensor.payload]
        except (ValueError, IndexError) as error:
            raise errors.bad_answer(error) from error
        return self._sent(position, dtype, shape, data)

    def _sent(
        self,
        position: int,
        dtype: DataType,
        shape: tuple[int, ...],
        data: Optional[memoryview],
    ) -> Any:
        """A result that came in the answer; `data`: None if it is at its destination already."""
        view = TensorView(0, dtype, shape, ())
        if data is not None and len(data) != view.element_bytes:
            raise errors.bad_answer(
                f"a result of {len(data)} bytes for {shape} {dtype.name}"
            )
        if data is not None and position not in self._destinations:
            return self._make(dtype, shape, data)
        operator, destination = self._destinations[position]
        if destination.view.shape != shape or destination.view.dtype != dtype:
            raise ValueError(
                f"{operator}: out is {destination.view.dtype.name} "
                f"{list(destination.view.shape)}; the result is {dtype.name} {list(shape)}"
            )
        if data is not None:
            _tensors.copy_bytes(destination.view.address, data)
        return destination.out


def _output_of(result: Result) -> OutputOf:
    return result.output if isinstance(result, (Keep, Replace)) else result


def _stayed(
    handle: bytes,
    dtype: DataType,
    shape: tuple[int, ...],
    lease_end: Any,
    device: int,
    version: int,
) -> ResidentTensor:
    """A tensor that a result became, or replaced: then its lease is not told."""
    end = datetime.datetime.max.replace(tzinfo=datetime.timezone.utc)
    if lease_end is not None:
        end = lease_end.ToDatetime(datetime.timezone.utc)
    return ResidentTensor(handle, dtype, shape, end, device, version)


def _outputs_of_last(program: Program) -> list[tuple[int, str]]:
    """The results to ask for; none: all outputs of the last invocation, whatever they are."""
    last = len(program.invocations) - 1
    if not program.invocations:
        return [(last, "")]
    invocation = program.invocations[last]
    info, wishes = invocation.info, invocation.wishes
    if info is None:
        return [(last, "")] if wishes.destinations else []
    if info.gives_one_tensor:
        return [(last, "")]
    if not wishes.destinations:
        return []
    if any(output.is_list for output in info.outputs):
        raise ValueError(
            f"{invocation.operator}: out cannot be given beside an output that is a list"
        )
    return [(last, name) for name in _outputs.computed(info, wishes.requests)]
