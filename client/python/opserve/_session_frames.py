"""The frames of sessions, as proto/SESSION.md lays them out."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from opserve import _frame

HELLO, REQUEST, ANSWER, ERROR, CANCEL, PING, PONG, GOING_AWAY = range(1, 9)
ANNOUNCEMENT, CHUNK, CREDIT, PART = range(9, 13)

# Bits of SessionHello.features.
ANNOUNCEMENTS, PARTS, ANY_ANNOUNCEMENTS = 1, 2, 4

# At most: bytes of a message before its frames.
MOST_FIELD_BYTES = 11
HEADER_BYTES = 16

_HEADER = struct.Struct("<IBBHQ")  # bytes of the body, kind, flags, 0, number
_CREDIT = struct.Struct("<Q")
_START = struct.Struct("<QI")  # microseconds, bytes of the traceparent
_FRAMES_TAG = b"\x0a"  # SessionMessage.frames
_MOST_TRACE_BYTES = 256


def header(kind: int, number: int, size: int) -> bytes:
    """That of a frame whose body has so many bytes."""
    return _HEADER.pack(size, kind, 0, 0, number)


def frame(kind: int, number: int, body: bytes = b"") -> bytes:
    return header(kind, number, len(body)) + body


def request(
    number: int, seconds: float, trace: str, message: bytes, kind: int = REQUEST
) -> bytes:
    """The frame of an ExecuteRequest, which may take so long.

    Args:
        trace: W3C traceparent; not sent if it has other characters or more than 256.
    """
    is_sent = trace.isascii() and len(trace) <= _MOST_TRACE_BYTES
    traceparent = trace.encode() if is_sent else b""
    size = _START.size + len(traceparent) + len(message)
    return b"".join(
        (
            header(kind, number, size),
            # 0 would be the daemon's default.
            _START.pack(max(int(seconds * 1e6), 1), len(traceparent)),
            traceparent,
            message,
        )
    )


def read_credit(body: _frame.Buffer) -> int:
    """How many more bytes chunks may have. FrameError: it is none."""
    if len(body) != _CREDIT.size:
        raise _frame.FrameError(f"a credit of {len(body)} bytes")
    credit: int = _CREDIT.unpack(body)[0]
    return credit


def join(frames: Sequence[_frame.Buffer]) -> bytes:
    """The message that consists of the frames, or of pieces of frames."""
    size = sum(map(len, frames))
    return b"".join((_FRAMES_TAG, _frame.varint(size), *frames))


def split(message: bytes) -> Iterator[tuple[int, int, _frame.Buffer]]:
    """Kind, number and body of each frame of a message. FrameError: it has others.

    The bodies of parts are views of the message.
    """
    if not message:
        return
    size, start = _frame.read_varint(message, 1)
    if message[:1] != _FRAMES_TAG or start + size != len(message):
        raise _frame.FrameError("it is no SessionMessage")
    while start < len(message):
        if start + _HEADER.size > len(message):
            raise _frame.FrameError("it ends in the middle of a frame")
        size, kind, flags, zero, number = _HEADER.unpack_from(message, start)
        start += _HEADER.size
        if flags or zero:
            raise _frame.FrameError(f"a frame has the flags {flags} and {zero}")
        if start + size > len(message):
            raise _frame.FrameError("it ends in the middle of a frame")
        whole = memoryview(message) if kind == PART else message
        yield kind, number, whole[start : start + size]
        start += size
