"""Calls of one operator that were made before, with tensors of other contents.

Most of a small call's time in the client is making its header and reading that of the answer. Both
are the same again if the operator, its attributes, and the dtypes and shapes of its inputs are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

import numpy as np

from opserve import _frame, _tensors, _wire
from opserve._data_type import DataType
from opserve._frame import Buffer
from opserve._operator import Parameters
from opserve._request import FillRange, Request
from opserve.program import Program, Response

# Of all inputs together: larger ones take longer to copy than to describe.
_MAX_BYTES = 1 << 16
# Then all are forgotten: a caller of so many has another one next time, too.
_MAX_REQUESTS = 256
_KINDS = "biuf"  # numpy's, of arrays that give their bytes as they are

Key = tuple[Any, ...]


class KnownRequest:
    """A call of an operator without the contents of its inputs, and what its answers are like.

    Thread-safe.
    """

    def __init__(self, request: Request, payloads: Sequence[int]) -> None:
        """
        Args:
            request: as it was sent; it forgets its payloads.
            payloads: the numbers of the inputs' payloads.
        """
        self._request = request
        self._places = [2 * number + 1 for number in payloads]
        self._parts: list[Buffer] = []
        start = request.header.SerializeToString()
        for buffer in request.payloads:
            self._parts += [start + _frame.payload_prefix(len(buffer)), b""]
            start = b""
        self._answer: Optional[_Answer] = None
        request.forget_payloads()

    def encode(self, contents: Sequence[Buffer]) -> bytes:
        """The message Execute with inputs of these contents."""
        parts = self._parts.copy()
        for place, buffer in zip(self._places, contents):
            parts[place] = buffer
        return b"".join(parts)

    def decode(self, message: Buffer) -> Response:
        """As Request.decode."""
        known = self._answer
        if known is not None and known.fits(message):
            return self._request.read(known.header, known.payloads_of(message))
        response = self._request.decode(message)
        self._answer = _Answer.of(message)
        return response


@dataclasses.dataclass(frozen=True)
class _Answer:
    """An answer without the contents of its results.

    Attributes:
        header: its message, without payloads.
        size: of the message in bytes.
        constant: its bytes between contents, and where they begin.
        contents: where those of each payload begin and end.
    """

    header: Any
    size: int
    constant: Sequence[tuple[int, bytes]]
    contents: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, message: Buffer) -> Optional[_Answer]:
        """None: it is not a header with payloads behind it."""
        header, payloads = _frame.split(message, _wire.ExecuteResponse)
        at = len(message) - sum(
            len(payload) + len(_frame.payload_prefix(len(payload))) for payload in payloads
        )
        start = bytes(message[:max(at, 0)])
        if header.HasField("receipt") or _frame.append(start, payloads) != message:
            return None
        constant, contents, begin = [], [], 0
        for payload in payloads:
            at += len(_frame.payload_prefix(len(payload)))
            constant.append((begin, bytes(message[begin:at])))
            begin = at + len(payload)
            contents.append((at, begin))
            at = begin
        return cls(header, len(message), constant, contents)

    def fits(self, message: Buffer) -> bool:
        """Whether the message has the same header, and payloads of the same sizes."""
        return len(message) == self.size and all(
            message[begin : begin + len(piece)] == piece for begin, piece in self.constant
        )

    def payloads_of(self, message: Buffer) -> Sequence[memoryview]:
        view = memoryview(message)
        return [view[begin:end] for begin, end in self.contents]


class KnownRequests:
    """Those of a client, by what they have in common with the next one. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[Key, KnownRequest] = {}

    def begin(
        self,
        operator: str,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        parameters: Parameters,
        fill_range: FillRange,
        want_receipt: bool,
    ) -> tuple[_frame.Sendable, Callable[[Buffer], Response]]:
        """The message Execute that calls an operator, and a function that reads the answer.

        The message may refer to the inputs.

        Raises as Program.invoke; the function as Request.decode.
        """
        described = None if want_receipt else _describe(operator, inputs, attributes, parameters)
        if described is not None:
            known = self._known.get(described.key)
            if known is not None:
                return known.encode(described.contents), known.decode
        program = Program()
        program.invoke(operator, inputs, attributes, parameters)
        request = Request(program, fill_range, want_receipt=want_receipt)
        message = request.encode()

        def decode(answer: Buffer) -> Response:
            response = request.decode(answer)
            if described is not None:
                self._add(described.key, request)
            return response

        return message, decode

    def _add(self, key: Key, request: Request) -> None:
        """Takes a request that was answered, if others can be made from it."""
        payloads = _payloads_of_inputs(request)
        if payloads is None:
            return
        if len(self._known) >= _MAX_REQUESTS:
            self._known.clear()
        self._known[key] = KnownRequest(request, payloads)


@dataclasses.dataclass(frozen=True)
class _Described:
    """A call of an operator: what equal ones have in common, and the contents of its inputs."""

    key: Key
    contents: Sequence[Buffer]


def _describe(
    operator: str,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, Any],
    parameters: Parameters,
) -> Optional[_Described]:
    """None: the call is large, or has other inputs than contiguous tensors of numpy or torch."""
    wishes = (parameters.out, parameters.dtype, parameters.outputs)
    if any(wish is not None for wish in wishes):
        return None
    key: list[Any] = [operator]
    contents: list[Any] = []
    size = 0
    for name, value in inputs.items():
        if value is None:
            continue
        array = value
        if type(value) is not np.ndarray:
            if not _tensors.is_plain_torch(value) or str(value.dtype) == "torch.bfloat16":
                return None  # numpy has no such dtype
            array = value.detach().numpy()
            key.append("torch")  # results are of the first tensor's library
        if not array.flags.c_contiguous:
            return None
        dtype = array.dtype
        if dtype.kind not in _KINDS or not dtype.isnative:
            return None
        size += array.nbytes
        if size > _MAX_BYTES:
            return None
        key += name, dtype, array.shape
        contents.append(array)
    for name, value in attributes.items():
        if value is None:
            continue
        elements = value if type(value) in (list, tuple) else (value,)
        if any(type(element) not in (int, bool, str, float) for element in elements):
            return None
        # Their text, since 1, 1.0 and True are equal, and 0.0 and -0.0.
        key += name, repr(value)
    return _Described(tuple(key), contents)


def _payloads_of_inputs(request: Request) -> Optional[Sequence[int]]:
    """The numbers of the inputs' payloads; None: not each input is a payload of its own."""
    numbers = []
    for named in request.header.invocations[0].inputs:
        tensor = named.tensor
        if tensor.WhichOneof("storage") != "payload":
            return None
        numbers.append(tensor.payload)
    is_each = sorted(numbers) == list(range(len(request.payloads))) and numbers
    return numbers if is_each else None
