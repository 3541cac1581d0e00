"""Messages that keep tensor bytes out of protobuf.

The protocol puts tensor bytes into a bytes field of number 15 at the top level, written last
(`payloads`, or `data` of chunks). protobuf would copy them when they are set, when the
message is written and when it is read. Here the message is put together in one copy, and
taken apart in none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Union

Buffer = Union[bytes, memoryview]

_PAYLOAD_FIELD = 15
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_PAYLOAD_TAG = bytes([_PAYLOAD_FIELD << 3 | _LENGTH])


class FrameError(ValueError):
    """The bytes are not a message."""


class Message:
    """A message whose payloads stay where they are until it is sent.

    bytes() puts it together, which copies them; len() is how many bytes that are.

    Attributes:
        encoded: the message without payloads.
        is_plain: whether it is an ExecuteRequest that has neither an identity nor an idempotency
            key, and does not call a prepared program.
    """

    def __init__(
        self, encoded: bytes, payloads: Sequence[Buffer], owner: object, is_plain: bool
    ) -> None:
        """
        Args:
            owner: keeps the payloads' memory.
        """
        self.encoded = encoded
        self.payloads = payloads
        self.is_plain = is_plain
        self._owner = owner
        self._size = len(self.encoded) + sum(
            len(payload_prefix(len(payload))) + len(payload) for payload in payloads
        )

    def copied(self) -> Message:
        """As it is now, whatever becomes of its payloads."""
        return Message(self.encoded, copied(self.payloads), None, self.is_plain)

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return append(self.encoded, self.payloads)


# What bytes() makes a message of.
Sendable = Union[bytes, Message]


def join(header: Any, payloads: Iterable[Buffer]) -> bytes:
    """The message `header`, which has no payloads, with `payloads`."""
    return append(header.SerializeToString(), payloads)


def append(encoded: bytes, payloads: Iterable[Buffer]) -> bytes:
    """The encoded message, which has no payloads, with `payloads`."""
    parts: list[Buffer] = [encoded]
    for payload in payloads:
        parts.append(payload_prefix(len(payload)))
        parts.append(payload)
    return b"".join(parts)


def copied(payloads: Sequence[Buffer]) -> list[Buffer]:
    """Payloads as they are now, whatever becomes of their memory."""
    sizes = [len(payload) for payload in payloads]
    # In one piece: the C library takes and gives back memory by the largest it has seen.
    whole = memoryview(b"".join(payloads))
    copies: list[Buffer] = []
    start = 0
    for size in sizes:
        copies.append(whole[start : start + size])
        start += size
    return copies


def payload_prefix(size: int) -> bytes:
    """The bytes before a payload of `size` bytes."""
    return _PAYLOAD_TAG + varint(size)


def field(number: int, content: bytes) -> bytes:
    """A field of a message, of bytes, text or a message. Its number is at most 15."""
    return bytes([number << 3 | _LENGTH]) + varint(len(content)) + content


def split(message: Buffer, kind: Any) -> tuple[Any, Sequence[memoryview]]:
    """`message` without its payloads, as `kind`, and views of its payloads.

    FrameError: it is not such a message.
    """
    view = memoryview(message)
    header: list[memoryview] = []
    payloads: list[memoryview] = []
    start = 0
    while start < len(view):
        tag, position, end = _field_at(view, start)
        if end > len(view):
            raise FrameError("it ends in the middle of a field")
        if tag == _PAYLOAD_TAG[0]:
            payloads.append(view[position:end])
        else:
            header.append(view[start:end])
        start = end
    return parse(b"".join(header), kind), payloads


def size_with_payload(beginning: Buffer) -> int:
    """Bytes of a message until the end of its first payload, if its beginning says so; or 0."""
    start = 0
    try:
        while start < len(beginning):
            tag, _, start = _field_at(beginning, start)
            if tag == _PAYLOAD_TAG[0]:
                return start
    except FrameError:  # the reader of the whole message says so
        pass
    return 0


def _field_at(view: Buffer, start: int) -> tuple[int, int, int]:
    """Of a field: its tag, and where its content begins and ends. FrameError: it is none."""
    tag, position = read_varint(view, start)
    wire_type = tag & 7
    if wire_type == _LENGTH:
        size, position = read_varint(view, position)
        return tag, position, position + size
    if wire_type == _VARINT:
        _, end = read_varint(view, position)
        return tag, position, end
    if wire_type == _FIXED32:
        return tag, position, position + 4
    if wire_type == _FIXED64:
        return tag, position, position + 8
    raise FrameError(f"wire type {wire_type}")


def parse(message: Buffer, kind: Any) -> Any:
    """The message with its payloads, which are copied. FrameError: it is not such a message."""
    try:
        return kind.FromString(message)
    except Exception as error:  # DecodeError, of whichever implementation
        raise FrameError(str(error)) from error


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    if value <= 0x7F:
        return bytes((value,))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_varint(view: Buffer, position: int) -> tuple[int, int]:
    """A number at this position, and the position after it. FrameError: there is none."""
    value = shift = 0
    while True:
        if position >= len(view) or shift > 63:
            raise FrameError("it ends in the middle of a number")
        byte = view[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
