"""The frames of sessions, as proto/SESSION.md lays them out."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from opserve import _frame

HELLO, REQUEST, ANSWER, ERROR, CANCEL, PING, PONG, GOING_AWAY = range(1, 9)
ANNOUNCEMENT, CHUNK, CREDIT, PART = range(9, 13)

# Bits of SessionHello.features.
ANNOUNCEMENTS, PARTS = 1, 2

# At most: bytes of a message before its frames.
MOST_FIELD_BYTES = 11
HEADER_BYTES = 16

_HEADER = struct.Struct("<IBBHQ")  # bytes of the body, kind, flags, 0, number
_CREDIT = struct.Struct("<Q")
_START = struct.Struct("<QI")  # microseconds, bytes of the traceparent
_FRAMES_TAG = b"\x0a"  # SessionMessage.frames
_MOST_TRACE_BYTES = 256


def frame(kind: int, number: int, body: _frame.Buffer = b"") -> bytes:
    return b"".join((_HEADER.pack(len(body), kind, 0, 0, number), body))


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
            _HEADER.pack(size, kind, 0, 0, number),
            # 0 would be the daemon's default.
            _START.pack(max(int(seconds * 1e6), 1), len(traceparent)),
            traceparent,
            message,
        )
    )


def read_credit(body: bytes) -> int:
    """How many more bytes chunks may have. FrameError: it is none."""
    if len(body) != _CREDIT.size:
        raise _frame.FrameError(f"a credit of {len(body)} bytes")
    credit: int = _CREDIT.unpack(body)[0]
    return credit


def join(frames: list[bytes]) -> bytes:
    """The message that consists of the frames."""
    size = sum(map(len, frames))
    return b"".join((_FRAMES_TAG, _frame.varint(size), *frames))


def split(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Kind, number and body of each frame of a message. FrameError: it has others."""
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
        yield kind, number, message[start : start + size]
        start += size
