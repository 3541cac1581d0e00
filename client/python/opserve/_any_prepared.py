"""Shared by the prepared programs of clients with threads and of event loops."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Optional, Union

from opserve import _frame, _tensors, _wire, errors
from opserve._data_type import DataType
from opserve._frame import Buffer
from opserve._request import FillRange, Request
from opserve._request_numbers import RequestNumbers, Ticket
from opserve._session_state import WHOLE
from opserve._views import TensorView, memory
from opserve.program import InputOf, Program
from opserve.resident import ResidentTensor

# Takes handles that nothing refers to any more. Called at any time, in any thread.
GiveUp = Callable[[Sequence[bytes]], None]

# How an input comes with a call: a kind of ProgramInput.
PAYLOAD, RESIDENT, SHARED_MEMORY = 1, 2, 3

# Of ExecuteRequest, and of PreparedCall.
_KEY_FIELD, _PREPARED_FIELD, _IDENTITY_FIELD = 4, 8, 9
_PROGRAM_FIELD, _RESIDENTS_FIELD, _VERSIONS_FIELD = 1, 2, 5
_RESIDENT_TAG, _VERSION_TAG = b"\x08", b"\x10"  # of ExpectedVersion
_WANT_BRIEF = _wire.PreparedCall(want_brief=True).SerializeToString()


class AnyPreparedProgram:
    """A program that the daemon has checked, bound and planned, whatever its calls wait in.

    Attributes:
        prepared_again: how often the daemon had lost it.
        changes_tensors: whether a run replaces or donates tensors.
    """

    def __init__(
        self,
        program: Program,
        request: Request,
        fill_range: FillRange,
        give_up: GiveUp,
        numbers: RequestNumbers,
    ) -> None:
        self.inputs: Sequence[InputOf] = tuple(program.inputs)
        self.prepared_again = 0
        self.changes_tensors: bool = request.changes_tensors
        self._request = request
        self._constants = _Constants(request)
        self._fill_range = fill_range
        self._give_up = give_up
        self._numbers = numbers
        self._lock = threading.Lock()  # guards _prepared and prepared_again
        self._prepared: dict[tuple[int, ...], Prepared] = {}  # by the inputs' kinds

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
        return f"<opserve.{type(self).__name__} of {count} invocations, inputs: {inputs or 'none'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__}: it belongs to a client and cannot be pickled or copied: "
            "prepare the program in each process"
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
    ) -> Callable[[Prepared], _frame.Sendable]:
        """Gives the message Execute for the program as the daemon has it."""
        keys = _frame.field(_KEY_FIELD, key.encode()) if key else b""
        if ticket is not None:
            keys = _frame.field(_IDENTITY_FIELD, ticket.identity)
        buffers = self._constants.buffers
        all_payloads = [*payloads, *buffers] if buffers else payloads
        is_large = sum([len(payload) for payload in all_payloads]) > WHOLE

        def message(program: Prepared) -> _frame.Sendable:
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

    def _known(self, kinds: tuple[int, ...], lost: Optional[Prepared]) -> Optional[Prepared]:
        """The program for inputs of these kinds, as the daemon has it; not `lost`."""
        found = self._prepared.get(kinds)
        return None if found is lost else found

    def _learn(
        self, kinds: tuple[int, ...], answer: Buffer, lost: Optional[Prepared]
    ) -> Prepared:
        """Takes the answer to Prepare. Requires _lock, or an event loop."""
        self.prepared_again += lost is not None
        response = _wire.PrepareResponse.FromString(answer)
        encoded = _frame.field(_PROGRAM_FIELD, response.handle)
        if self._request.learn_results(response.results):
            encoded += _WANT_BRIEF
        found = self._prepared[kinds] = Prepared(response.handle, encoded)
        return found

    def _message(self, kinds: Sequence[int]) -> Any:
        """The message Prepare. Requires _lock, or an event loop.

        It names inputs in the request's header.
        """
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
class Prepared:
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


def is_lost(error: errors.OpserveError) -> bool:
    """Whether the daemon does not know the program any more; another error may be a tensor's."""
    return error.reason == "program_unknown"


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
