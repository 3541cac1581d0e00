"""Prepared programs: sent once, run any number of times with other inputs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Optional, Union

from opserve import _frame, _tensors, _wire, errors
from opserve._data_type import DataType
from opserve._frame import Buffer
from opserve._request import FillRange, Request
from opserve._views import TensorView, memory
from opserve.program import InputOf, Program, Response
from opserve.resident import ResidentTensor

# Sends the message of a method, which may be repeated or not, and gives the answer.
Send = Callable[[str, bytes, bool, Optional[float]], bytes]

# Takes handles that nothing refers to any more. Called at any time, in any thread.
GiveUp = Callable[[Sequence[bytes]], None]

# How an input comes with a call: a kind of ProgramInput.
PAYLOAD, RESIDENT, SHARED_MEMORY = 1, 2, 3

# Of ExecuteRequest, and of PreparedCall.
_KEY_FIELD, _PREPARED_FIELD = 4, 8
_PROGRAM_FIELD, _RESIDENTS_FIELD = 1, 2


class PreparedProgram:
    """A program that the daemon has checked, bound and planned; a call gives it inputs and runs it.

        program = opserve.Program()
        x = program.input("float32", (64, 10))
        step = client.prepare(program, [program.keep(program.tanh(x))])
        [activations] = step(batch).results

    Only the inputs travel with a call, and those tensors of the program that are no literals,
    with their elements as of the preparation. The daemon prepares it at the first call; inputs that
    come in another way (as a tensor, a resident tensor, in shared memory) make it prepare the
    program for that way, too. A daemon that has lost the program, since it was restarted or
    the lease ended, is made to prepare it again, once for each call. Thread-safe.

    Attributes:
        prepared_again: how often that was necessary.
        changes_tensors: whether a run replaces or donates tensors, so that two are not as one.
    """

    def __init__(
        self,
        program: Program,
        request: Request,
        fill_range: FillRange,
        send: Send,
        give_up: GiveUp,
    ) -> None:
        self.inputs: Sequence[InputOf] = tuple(program.inputs)
        self.prepared_again = 0
        self.changes_tensors: bool = request.changes_tensors
        self._request = request
        self._constants = _Constants(request)
        self._fill_range = fill_range
        self._call = send
        self._give_up = give_up
        self._lock = threading.Lock()  # guards _handles and prepared_again
        self._handles: dict[tuple[int, ...], bytes] = {}  # by the inputs' kinds

    def __call__(
        self,
        *inputs: Any,
        attributes: Optional[Mapping[int, Mapping[str, Union[int, float]]]] = None,
        idempotency_key: str = "",
        timeout: Optional[float] = None,
    ) -> Response:
        """Runs it once.

        Args:
            inputs: in the order of Program.input, each of its dtype and shape.
            attributes: numbers that are others in this run, by invocation and name: seeds,
                learning rates. An int sets an integer attribute, a float any other.
            idempotency_key: as in Client.execute().
            timeout: in seconds; None: the client's.

        Raises:
            TypeError, ValueError: an input is missing or not of its dtype and shape.
        """
        if len(inputs) != len(self.inputs):
            raise TypeError(
                f"{len(inputs)} inputs given; the program has {len(self.inputs)}"
            )
        views = [_check(wanted, value) for wanted, value in zip(self.inputs, inputs)]
        call = _wire.PreparedCall()
        payloads: list[Buffer] = []
        kinds = tuple(
            self._place(number, view, call, payloads) for number, view in enumerate(views)
        )
        encoded = call.SerializeToString() + encode_attributes(attributes or {})
        return self.decode(self.send(kinds, encoded, payloads, idempotency_key, timeout))

    def send(
        self,
        kinds: tuple[int, ...],
        call: bytes,
        payloads: Sequence[Buffer],
        idempotency_key: str = "",
        timeout: Optional[float] = None,
    ) -> bytes:
        """Runs it once, with inputs that are encoded already, and gives the answer for decode().

        Args:
            kinds: how each input comes (PAYLOAD, RESIDENT, SHARED_MEMORY); 0: it is not used.
            call: a PreparedCall without the program.
            payloads: of the inputs that are payloads.
            idempotency_key, timeout: as for a call.
        """
        may_repeat = not self.changes_tensors or idempotency_key != ""
        key = _frame.field(_KEY_FIELD, idempotency_key.encode()) if idempotency_key else b""
        all_payloads = [*payloads, *self._constants.buffers]

        def run(program: bytes) -> bytes:
            named = _frame.field(_PROGRAM_FIELD, program) + call
            encoded = key + _frame.field(_PREPARED_FIELD, named)
            message = _frame.append(encoded, all_payloads)
            return self._call(_wire.EXECUTE, message, may_repeat, timeout)

        handle = self._handle(kinds, timeout)
        try:
            return run(handle)
        except errors.NotFoundError as error:
            if error.reason != "program_unknown":
                raise
            return run(self._handle(kinds, timeout, lost=handle))

    def decode(self, answer: bytes, wanted: Optional[Collection[int]] = None) -> Response:
        """Reads an answer.

        Args:
            wanted: positions of results to read, the others are None; None: all.
        """
        return self._request.decode(answer, wanted)

    def uses(self, number: int) -> bool:
        """Whether the program uses an input."""
        request = self._request
        return bool(
            request.inputs[number] or request.replaced[number] or number in request.donated
        )

    def release(self) -> None:
        """Lets the daemon forget the program when the client prepares another one, or ends."""
        with self._lock:
            handles = list(self._handles.values())
            self._handles.clear()
        if handles:
            self._give_up(handles)

    def __del__(self) -> None:
        # If __init__ failed, there is nothing to give up.
        if getattr(self, "_handles", None):
            self._give_up(list(self._handles.values()))

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
        self,
        number: int,
        view: Union[TensorView, ResidentTensor],
        call: Any,
        payloads: list[Buffer],
    ) -> int:
        """Puts an input into the message of a call; how it comes with it. 0: nothing uses it."""
        if not self.uses(number):
            return 0
        if isinstance(view, ResidentTensor):
            call.residents.append(view.handle)
            return RESIDENT
        shared = _wire.Tensor()
        if self._fill_range(view, shared):
            call.ranges.append(shared.shared_memory)
            return SHARED_MEMORY
        payloads.append(memory(view.address, view.span_bytes))
        return PAYLOAD

    def _handle(
        self,
        kinds: tuple[int, ...],
        timeout: Optional[float],
        lost: Optional[bytes] = None,
    ) -> bytes:
        """The daemon's handle of the program for inputs of these kinds; not `lost`."""
        with self._lock:
            handle = self._handles.get(kinds)
            if handle is not None and handle != lost:
                return handle
            answer = self._call(
                _wire.PREPARE, self._message(kinds).SerializeToString(), True, timeout
            )
            self.prepared_again += lost is not None
            handle = bytes(_wire.PrepareResponse.FromString(answer).handle)
            self._handles[kinds] = handle
            return handle

    def _message(self, kinds: Sequence[int]) -> Any:
        """The message Prepare. Requires _lock: it names inputs in the request's header."""
        request = self._request
        message = _wire.PrepareRequest()
        places: dict[int, int] = {}
        for number, kind in enumerate(kinds):
            if kind == 0:
                continue
            wanted = self.inputs[number]
            places[number] = len(message.inputs)
            message.inputs.add(
                dtype=wanted.data_type, shape=wanted.shape, kind=kind
            )
            for tensor in request.inputs[number]:
                tensor.program_input = places[number]
            for replaced in request.replaced[number]:
                replaced.program_input = places[number]
        self._constants.add_inputs(message.inputs)
        header = request.header
        message.program.invocations.extend(header.invocations)
        message.program.results.extend(header.results)
        message.program.donated.extend(header.donated)
        message.program.donated_inputs.extend(places[one] for one in request.donated)
        return message


class _Constants:
    """Tensors that the program has beside its inputs, as further inputs of the same content."""

    def __init__(self, request: Request) -> None:
        self.buffers: list[bytes] = []
        self._dtypes: list[int] = []
        self._tensors: list[list[Any]] = []  # that are views of the buffer
        numbers: dict[tuple[int, int], int] = {}
        for tensor in _payload_tensors(request.header):
            key = tensor.payload, tensor.dtype
            if key not in numbers:
                numbers[key] = len(self.buffers)
                self.buffers.append(bytes(request.payloads[tensor.payload]))
                self._dtypes.append(tensor.dtype)
                self._tensors.append([])
            self._tensors[numbers[key]].append(tensor)
        request.forget_payloads()

    def add_inputs(self, inputs: Any) -> None:
        """Declares the buffers in PrepareRequest.inputs, and names them in their tensors."""
        for buffer, dtype, tensors in zip(self.buffers, self._dtypes, self._tensors):
            count = len(buffer) // DataType(dtype).itemsize
            for tensor in tensors:
                tensor.program_input = len(inputs)
            inputs.add(dtype=dtype, shape=[count], kind=PAYLOAD)


def _payload_tensors(header: Any) -> list[Any]:
    tensors = []
    for invocation in header.invocations:
        for named in invocation.inputs:
            for tensor in named.list.tensors if named.HasField("list") else [named.tensor]:
                if tensor.HasField("payload"):
                    tensors.append(tensor)
    return tensors


def encode_residents(handles: Iterable[bytes]) -> bytes:
    """A PreparedCall with resident tensors, to which others may be appended."""
    return b"".join([_frame.field(_RESIDENTS_FIELD, handle) for handle in handles])


def encode_attributes(
    attributes: Mapping[int, Mapping[str, Union[int, float]]],
) -> bytes:
    """A PreparedCall with attributes, to which others may be appended."""
    if not attributes:
        return b""
    call = _wire.PreparedCall()
    for invocation, values in attributes.items():
        for name, value in values.items():
            change = call.attributes.add(invocation=invocation)
            change.attribute.name = name
            if isinstance(value, float):
                change.attribute.value.double_value = value
            else:
                change.attribute.value.int64_value = value
    encoded: bytes = call.SerializeToString()
    return encoded


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
