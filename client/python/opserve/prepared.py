"""Prepared programs: encoded once, run any number of times with other inputs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Optional, Union

from opserve import _frame, _tensors
from opserve._frame import Buffer
from opserve._request import Request
from opserve._views import TensorView, memory
from opserve.program import InputOf, Program, Response
from opserve.resident import ResidentTensor

# Sends the message of a request, which may be repeated or not, and gives the answer.
Send = Callable[[bytes, bool, Optional[float]], bytes]


class PreparedProgram:
    """A program with its message already made: a call gives it inputs and runs it.

        program = opserve.Program()
        x = program.input("float32", (64, 10))
        step = client.prepare(program, [program.keep(program.tanh(x))])
        [activations] = step(batch).results

    Tensors that the program has beside its inputs are sent with their contents at the time
    of prepare(). Thread-safe.
    """

    def __init__(self, program: Program, request: Request, send: Send) -> None:
        self.inputs: Sequence[InputOf] = tuple(program.inputs)
        self._request = request
        self._constants = [bytes(buffer) for buffer in request.payloads]
        request.forget_payloads()
        self._send = send
        self._lock = threading.Lock()  # guards the request's header

    def __call__(
        self,
        *inputs: Any,
        attributes: Optional[Mapping[int, Mapping[str, int]]] = None,
        timeout: Optional[float] = None,
    ) -> Response:
        """Runs it once.

        Args:
            inputs: in the order of Program.input, each of its dtype and shape.
            attributes: integers to set anew, by invocation and name: those of random operators.
            timeout: in seconds; None: the client's.

        Raises:
            TypeError, ValueError: an input is missing or not of its dtype and shape.
        """
        if len(inputs) != len(self.inputs):
            raise TypeError(
                f"{len(inputs)} inputs given; the program has {len(self.inputs)}"
            )
        views = [_check(wanted, value) for wanted, value in zip(self.inputs, inputs)]
        with self._lock:
            payloads = self._place(views)
            for number, values in (attributes or {}).items():
                for attribute in self._request.header.invocations[number].attributes:
                    if attribute.name in values:
                        attribute.value.int64_value = values[attribute.name]
            message = _frame.join(self._request.header, payloads)
        answer = self._send(message, not self._request.changes_tensors, timeout)
        return self._request.decode(answer)

    def __repr__(self) -> str:
        inputs = ", ".join(
            f"{one.data_type.numpy.name} {list(one.shape)}" for one in self.inputs
        )
        count = len(self._request.header.invocations)
        return f"<opserve.PreparedProgram of {count} invocations, inputs: {inputs or 'none'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a PreparedProgram belongs to a client and cannot be pickled or copied: prepare the "
            "program in each process"
        )

    def _place(
        self, views: Sequence[Union[TensorView, ResidentTensor]]
    ) -> list[Buffer]:
        """Names the inputs in the header; the payloads to send."""
        request = self._request
        payloads: list[Buffer] = list(self._constants)
        for number, view in enumerate(views):
            for tensor in request.inputs[number]:
                if isinstance(view, ResidentTensor):
                    tensor.resident_tensor = view.handle
                else:
                    tensor.payload = len(payloads)
            if isinstance(view, ResidentTensor):
                for replaced in request.replaced[number]:
                    replaced.handle = view.handle
            elif request.inputs[number]:
                payloads.append(memory(view.address, view.span_bytes))
        if request.donated:
            del request.header.donated[:]
            for number in request.donated:
                donated = views[number]
                if isinstance(donated, ResidentTensor):
                    request.header.donated.append(donated.handle)
        return payloads


def _check(wanted: InputOf, value: Any) -> Union[TensorView, ResidentTensor]:
    view: Union[TensorView, ResidentTensor] = (
        value
        if isinstance(value, ResidentTensor)
        else _tensors.view_of(value, wanted.data_type)
    )
    dtype = view.data_type if isinstance(view, ResidentTensor) else view.dtype
    if dtype != wanted.data_type or tuple(view.shape) != wanted.shape:
        raise ValueError(
            f"input {wanted.number} is {dtype.name} {list(view.shape)}; expected "
            f"{wanted.data_type.name} {list(wanted.shape)}"
        )
    if isinstance(view, TensorView) and not view.is_contiguous:
        return _tensors.contiguous(view)
    return view
