"""A program as the message Execute, and the answer as results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

from opserve import _frame, _tensors, _wire, errors
from opserve._data_type import DataType
from opserve._frame import Buffer
from opserve._payloads import Payloads
from opserve._views import TensorView
from opserve.program import Attribute, Invocation, OutputOf, Program, Response
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
        self._destinations: dict[int, Invocation] = {}  # those that are copied here
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
        return Response(results, receipt)

    def _add_invocations(self, program: Program) -> None:
        views: list[TensorView] = []
        unplaced: list[Any] = []
        for invocation in program.invocations:
            message = self.header.invocations.add(operator=invocation.operator)
            for name, value in invocation.inputs.items():
                tensor = message.inputs.add(name=name).tensor
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
            for name, attribute in invocation.attributes.items():
                _set_attribute(message.attributes.add(name=name).value, attribute)
            if invocation.dtype is not None:
                message.outputs.add(name=invocation.output, dtype=invocation.dtype)
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
            else [(len(program.invocations) - 1, "")]
        )
        for position, (number, output) in enumerate(wanted):
            message = self.header.results.add(invocation=max(number, 0), output=output)
            if not program.invocations:
                continue  # the daemon says what is wrong
            invocation = program.invocations[number]
            if invocation.destination is None:
                continue
            if self._fill_range(invocation.destination, message):
                self._in_place[position] = invocation.out
            else:
                self._destinations[position] = invocation

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
        invocation = self._destinations.get(position)
        if invocation is None:
            return self._make(dtype, shape, data)
        destination = invocation.destination
        assert destination is not None
        if destination.shape != shape or destination.dtype != dtype:
            raise ValueError(
                f"{invocation.operator}: out is {destination.dtype.name} "
                f"{list(destination.shape)}; the result is {dtype.name} {list(shape)}"
            )
        _tensors.copy_bytes(destination.address, data)
        return invocation.out


def _set_attribute(message: Any, value: Attribute) -> None:
    if isinstance(value, str):
        message.name = value
    elif isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, float):
        message.double_value = value
    else:
        message.int64_value = value.__index__()
