"""Prepared programs: sent once, run any number of times with other inputs."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Optional, Union

from opserve import _frame, _tensors, _wire, errors
from opserve._data_type import DataType
from opserve._frame import Buffer
from opserve._request import FillRange, Request
from opserve._request_numbers import RequestNumbers, Ticket
from opserve._sent_call import SentCall
from opserve._session_state import WHOLE
from opserve._views import TensorView, memory
from opserve.program import InputOf, Program, Response
from opserve.resident import ResidentTensor

# Sends the message of a method; the first one waits for the answer.
Call = Callable[[str, _frame.Sendable, Optional[float]], Buffer]
Send = Callable[[str, _frame.Sendable, Optional[float]], SentCall]

# Takes handles that nothing refers to any more. Called at any time, in any thread.
GiveUp = Callable[[Sequence[bytes]], None]

# How an input comes with a call: a kind of ProgramInput.
PAYLOAD, RESIDENT, SHARED_MEMORY = 1, 2, 3

# Of ExecuteRequest, and of PreparedCall.
_KEY_FIELD, _PREPARED_FIELD, _IDENTITY_FIELD = 4, 8, 9
_PROGRAM_FIELD, _RESIDENTS_FIELD, _VERSIONS_FIELD = 1, 2, 5
_RESIDENT_TAG, _VERSION_TAG = b"\x08", b"\x10"  # of ExpectedVersion
_WANT_BRIEF = _wire.PreparedCall(want_brief=True).SerializeToString()


class SentRun:
    """A run of a prepared program that was sent. One thread at a time may ask for its result."""

    def __init__(
        self,
        sent: SentCall,
        again: Callable[[], Buffer],
        ticket: Optional[Ticket],
    ) -> None:
        """
        Args:
            again: has the program prepared again, if the daemon has lost it, and runs it.
            ticket: of the request, if it has an identity.
        """
        self._sent = sent
        self._again = again
        self._ticket = ticket

    def wait(self) -> None:
        """Waits until result() would not wait for the first attempt."""
        self._sent.wait()

    def result(self) -> Buffer:
        """Waits for the answer, for PreparedProgram.decode(). It is to be called once."""
        try:
            return self._sent.result()
        except errors.NotFoundError as error:
            if error.reason != "program_unknown":
                raise
            return self._again()
        finally:
            if self._ticket is not None:
                self._ticket.release()


class PendingRun:
    """A run of a prepared program whose answer was not waited for. Thread-safe.

    The call goes on as long as this object lives: keep it until its result is there.
    """

    def __init__(self, sent: SentRun, decode: Callable[[Buffer], Response]) -> None:
        self._sent = sent
        self._decode = decode
        self._lock = threading.Lock()
        # Guarded by _lock.
        self._response: Optional[Response] = None
        self._error: Optional[Exception] = None

    def result(self) -> Response:
        """Waits for the answer, and repeats the run as a call would. Any number of times.

        Raises:
            OpserveError: the run has failed.
        """
        with self._lock:
            if self._response is None and self._error is None:
                try:
                    self._response = self._decode(self._sent.result())
                except Exception as error:
                    self._error = error  # the answer is read once
            if self._error is not None:
                raise self._error
            assert self._response is not None
            return self._response


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
        changes_tensors: whether a run replaces or donates tensors.
    """

    def __init__(
        self,
        program: Program,
        request: Request,
        fill_range: FillRange,
        call: Call,
        send: Send,
        give_up: GiveUp,
        numbers: RequestNumbers,
    ) -> None:
        self.inputs: Sequence[InputOf] = tuple(program.inputs)
        self.prepared_again = 0
        self.changes_tensors: bool = request.changes_tensors
        self._request = request
        self._constants = _Constants(request)
        self._fill_range = fill_range
        self._call = call
        self._send = send
        self._give_up = give_up
        self._numbers = numbers
        self._lock = threading.Lock()  # guards _prepared and prepared_again
        self._prepared: dict[tuple[int, ...], _Prepared] = {}  # by the inputs' kinds

    def __call__(
        self,
        *inputs: Any,
        attributes: Optional[Mapping[int, Mapping[str, Union[int, float]]]] = None,
        versions: Optional[Mapping[int, int]] = None,
        idempotency_key: str = "",
        timeout: Optional[float] = None,
    ) -> Response:
        """Runs it once.

        Args:
            inputs: in the order of Program.input, each of its dtype and shape.
            attributes: numbers that are others in this run, by invocation and name: seeds,
                learning rates. An int sets an integer attribute, a float any other.
            versions: that resident tensors must have when the run's turn with them comes, by the
                numbers of the inputs; FailedPreconditionError (tensor_version) if one has another.
            idempotency_key: as in Client.execute().
            timeout: in seconds; None: the client's.

        Raises:
            TypeError, ValueError: an input is missing or not of its dtype and shape, or a version
                is of no resident tensor.
        """
        views, kinds, encoded, payloads = self._encode(inputs, attributes, versions)
        ticket = self._ticket(idempotency_key)
        message = self._encoder(encoded, payloads, idempotency_key, ticket)
        prepared = self._find(kinds, timeout)
        try:
            answer = self._call(_wire.EXECUTE, message(prepared), timeout)
        except errors.NotFoundError as error:
            if error.reason != "program_unknown":
                raise
            prepared = self._find(kinds, timeout, lost=prepared)
            answer = self._call(_wire.EXECUTE, message(prepared), timeout)
        finally:
            if ticket is not None:
                ticket.release()
        return self._request.decode(answer, inputs=views)

    def submit(
        self,
        *inputs: Any,
        attributes: Optional[Mapping[int, Mapping[str, Union[int, float]]]] = None,
        versions: Optional[Mapping[int, int]] = None,
        idempotency_key: str = "",
        timeout: Optional[float] = None,
    ) -> PendingRun:
        """Runs it once, and does not wait for the answer; arguments and errors as of a call.

        Runs that use the same resident tensors go in the order in which they were submitted, so
        step n+1 can be sent before step n is answered; with `versions` it runs only if step n has
        succeeded. Tensors are not to be changed until the result is there.
        """
        views, kinds, encoded, payloads = self._encode(inputs, attributes, versions)
        sent = self.send(kinds, encoded, payloads, idempotency_key, timeout)
        return PendingRun(sent, lambda answer: self._request.decode(answer, inputs=views))

    def send(
        self,
        kinds: tuple[int, ...],
        call: bytes,
        payloads: Sequence[Buffer],
        idempotency_key: str = "",
        timeout: Optional[float] = None,
    ) -> SentRun:
        """Runs it once, with inputs that are encoded already. Does not wait for the answer.

        Args:
            kinds: how each input comes (PAYLOAD, RESIDENT, SHARED_MEMORY); 0: it is not used.
            call: a PreparedCall without the program.
            payloads: of the inputs that are payloads; not to be changed until the answer is there.
            idempotency_key, timeout: as for a call.
        """
        ticket = self._ticket(idempotency_key)
        message = self._encoder(call, payloads, idempotency_key, ticket)
        prepared = self._find(kinds, timeout)

        def again() -> Buffer:
            new = message(self._find(kinds, timeout, lost=prepared))
            return self._call(_wire.EXECUTE, new, timeout)

        sent = self._send(_wire.EXECUTE, message(prepared), timeout)
        return SentRun(sent, again, ticket)

    def decode(self, answer: Buffer, wanted: Collection[int]) -> Response:
        """Reads an answer.

        Args:
            wanted: positions of results to read, the others are None; none that replaces an input.
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
            prepared = list(self._prepared.values())
            self._prepared.clear()
        if prepared:
            self._give_up([one.handle for one in prepared])

    def __del__(self) -> None:
        # If __init__ failed, there is nothing to give up.
        if getattr(self, "_prepared", None):
            self._give_up([one.handle for one in self._prepared.values()])

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

    def _encode(
        self,
        inputs: Sequence[Any],
        attributes: Optional[Mapping[int, Mapping[str, Union[int, float]]]],
        versions: Optional[Mapping[int, int]],
    ) -> tuple[list[Union[TensorView, ResidentTensor]], tuple[int, ...], bytes, list[Buffer]]:
        """The inputs as tensors, how each comes, the PreparedCall without program, and payloads."""
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
        encoded: bytes = call.SerializeToString() + encode_attributes(attributes or {})
        if versions:
            encoded += encode_versions(_by_resident(kinds, versions))
        return views, kinds, encoded, payloads

    def _ticket(self, key: str) -> Optional[Ticket]:
        return self._numbers.take() if self._request.has_effects and not key else None

    def _encoder(
        self, call: bytes, payloads: Sequence[Buffer], key: str, ticket: Optional[Ticket]
    ) -> Callable[[_Prepared], _frame.Sendable]:
        """Gives the message Execute for the program as the daemon has it."""
        keys = _frame.field(_KEY_FIELD, key.encode()) if key else b""
        if ticket is not None:
            keys = _frame.field(_IDENTITY_FIELD, ticket.identity)
        buffers = self._constants.buffers
        all_payloads = [*payloads, *buffers] if buffers else payloads
        is_large = sum([len(payload) for payload in all_payloads]) > WHOLE

        def message(program: _Prepared) -> _frame.Sendable:
            encoded = keys + _frame.field(_PREPARED_FIELD, program.encoded + call)
            if is_large:
                return _frame.Message(encoded, all_payloads, None, is_plain=False)
            return _frame.append(encoded, all_payloads)

        return message

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

    def _find(
        self,
        kinds: tuple[int, ...],
        timeout: Optional[float],
        lost: Optional[_Prepared] = None,
    ) -> _Prepared:
        """The program for inputs of these kinds, as the daemon has it; not `lost`."""
        with self._lock:
            found = self._prepared.get(kinds)
            if found is not None and found is not lost:
                return found
            message = self._message(kinds).SerializeToString()
            answer = self._call(_wire.PREPARE, message, timeout)
            self.prepared_again += lost is not None
            response = _wire.PrepareResponse.FromString(answer)
            encoded = _frame.field(_PROGRAM_FIELD, response.handle)
            if self._request.learn_results(response.results):
                encoded += _WANT_BRIEF
            found = self._prepared[kinds] = _Prepared(response.handle, encoded)
            return found

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


@dataclasses.dataclass(frozen=True, eq=False)
class _Prepared:
    """A program that the daemon has.

    Attributes:
        encoded: a PreparedCall of it, to which others may be appended.
    """

    handle: bytes
    encoded: bytes


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


def read_versions(answer: Buffer, replaced: Sequence[bytes]) -> dict[bytes, int]:
    """The versions of tensors that a run has kept or replaced, by handle.

    Args:
        replaced: handles of the tensors that results replaced, in the order of the results.
    """
    response = _wire.ExecuteResponse.FromString(answer)
    if response.HasField("brief"):
        kept = {one.handle: 1 for one in response.brief.kept}
        return {**kept, **dict(zip(replaced, response.brief.versions))}
    return {
        one.tensor.resident_tensor: one.kept.version
        for one in response.results
        if one.HasField("kept")
    }


def encode_versions(versions: Iterable[tuple[int, int]]) -> bytes:
    """A PreparedCall with versions that resident tensors, by their positions, must have.

    Others may be appended.
    """
    return b"".join(
        [
            _frame.field(
                _VERSIONS_FIELD,
                _RESIDENT_TAG + _frame.varint(resident) + _VERSION_TAG + _frame.varint(version),
            )
            for resident, version in versions
        ]
    )


def _by_resident(
    kinds: Sequence[int], versions: Mapping[int, int]
) -> Iterable[tuple[int, int]]:
    """Versions by the positions of resident tensors, of those by the numbers of inputs."""
    for number, version in versions.items():
        if not 0 <= number < len(kinds) or kinds[number] != RESIDENT:
            raise ValueError(f"a version of input {number}, which is no resident tensor")
        yield kinds[:number].count(RESIDENT), version


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
