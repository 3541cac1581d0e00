"""A program as the message Execute, and the answer as results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

from opserve import _frame, _outputs, _tensors, _wire, errors
from opserve._data_type import DataType
from opserve._frame import Buffer
from opserve._payloads import Payloads
from opserve._views import TensorView
from opserve.program import Input, OutputOf, Program, Response
from opserve.resident import ResidentTensor

# Fills in the wire's SharedMemoryRange if a view lies in shared memory; False: it does not.
FillRange = Callable[[TensorView, Any], bool]

PRIORITIES = {"low": 1, "normal": 2, "high": 3}


class Request:
    """A program with what is wanted of it, ready to be sent; reads answers to it."""

    def __init__(
        self,
        program: Program,
        fill_range: FillRange,
        *,
        results: Optional[Sequence[OutputOf]] = None,
        want_receipt: bool = False,
        priority: str = "normal",
        idempotency_key: str = "",
    ) -> None:
        if priority not in PRIORITIES:
            raise ValueError(
                f'priority "{priority}"; expected one of {", ".join(PRIORITIES)}'
            )
        if results is not None and any(
            output.program is not program for output in results
        ):
            raise ValueError("results has an output of another program")
        self.header = _wire.ExecuteRequest(
            want_receipt=want_receipt,
            priority=PRIORITIES[priority],
            idempotency_key=idempotency_key,
        )
        self.payloads: Sequence[Buffer] = ()
        self._keep: object = None  # whose memory the payloads are
        self._make = program.make_result
        self._fill_range = fill_range
        self._in_place: dict[
            int, Any
        ] = {}  # results that the device writes, by position
        # Those that are copied here, with the operator.
        self._destinations: dict[int, tuple[str, _outputs.Destination]] = {}
        # Whether the results are the outputs of the last invocation, and its operator.
        self._gathers = results is None and bool(program.invocations)
        self._info = program.invocations[-1].info if program.invocations else None
        self._add_invocations(program)
        self._add_results(program, results)

    def encode(self) -> bytes:
        """The message Execute."""
        return _frame.join(self.header, self.payloads)

    def forget_payloads(self) -> None:
        """Lets go of the caller's inputs once the message is encoded."""
        self.payloads = ()
        self._keep = None

    def decode(self, message: bytes) -> Response:
        """InternalError: it is no answer. ValueError: a result does not fit its `out`."""
        try:
            response, payloads = _frame.split(message, _wire.ExecuteResponse)
        except _frame.FrameError as error:
            raise errors.bad_answer(error) from error
        return self.read(response, payloads)

    def read(self, response: Any, payloads: Sequence[memoryview]) -> Response:
        """As decode(), of an answer already taken apart."""
        results = [
            self._result(position, result.tensor, payloads)
            for position, result in enumerate(response.results)
        ]
        receipt = response.receipt if response.HasField("receipt") else None
        if not self._gathers:
            return Response(results, receipt)
        if not results and (self._info is None or self._info.gives_one_tensor):
            raise errors.bad_answer("it has no results")
        names = [result.source.output for result in response.results]
        return Response(results, receipt, _outputs.gather(self._info, names, results))

    def _add_invocations(self, program: Program) -> None:
        views: list[TensorView] = []
        unplaced: list[Any] = []

        def fill(tensor: Any, value: Input) -> None:
            if isinstance(value, OutputOf):
                tensor.invocation_output.invocation = value.invocation
                tensor.invocation_output.output = value.output
            elif isinstance(value, ResidentTensor):
                tensor.resident_tensor = value.handle
            else:
                tensor.dtype = value.dtype
                tensor.shape.extend(value.shape)
                if self._fill_range(value, tensor):
                    if not value.is_contiguous:
                        tensor.strides.extend(value.strides)
                else:
                    views.append(value)
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
        self, program: Program, results: Optional[Sequence[OutputOf]]
    ) -> None:
        wanted = (
            [(output.invocation, output.output) for output in results]
            if results is not None
            else _outputs_of_last(program)
        )
        for position, (number, output) in enumerate(wanted):
            message = self.header.results.add(invocation=max(number, 0), output=output)
            if not program.invocations:
                continue  # the daemon says what is wrong
            invocation = program.invocations[number]
            if not output and invocation.info is not None:
                output = invocation.info.output
            destination = invocation.wishes.destinations.get(output)
            if destination is None:
                continue
            if self._fill_range(destination.view, message):
                self._in_place[position] = destination.out
            else:
                self._destinations[position] = invocation.operator, destination

    def _result(
        self, position: int, tensor: Any, payloads: Sequence[memoryview]
    ) -> Any:
        if position in self._in_place:
            return self._in_place[position]
        try:
            dtype = DataType(tensor.dtype)
            data = payloads[tensor.payload]
        except (ValueError, IndexError) as error:
            raise errors.bad_answer(error) from error
        shape = tuple(tensor.shape)
        view = TensorView(0, dtype, shape, ())
        if len(data) != view.element_bytes:
            raise errors.bad_answer(
                f"a result of {len(data)} bytes for {shape} {dtype.name}"
            )
        if position not in self._destinations:
            return self._make(dtype, shape, data)
        operator, destination = self._destinations[position]
        if destination.view.shape != shape or destination.view.dtype != dtype:
            raise ValueError(
                f"{operator}: out is {destination.view.dtype.name} "
                f"{list(destination.view.shape)}; the result is {dtype.name} {list(shape)}"
            )
        _tensors.copy_bytes(destination.view.address, data)
        return destination.out


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
