"""A large request of a session: it is announced, and its payloads follow in chunks."""

from __future__ import annotations

import collections
import struct
from typing import Optional

from opserve import _frame
from opserve import _session_frames as frames

# Half of the most bytes that daemons take as the body of a request.
_MOST_HEADER_BYTES = 512 << 10
# As many as a list may have tensors.
_MOST_PAYLOADS = 4096
_MOST_CHUNK_BYTES = 256 << 10


class Announcement:
    """The chunks to be sent of a request, and its credit. Guarded by its session."""

    def __init__(self, message: _frame.Message) -> None:
        self._message = message  # owns the payloads
        self._sizes = [len(payload) for payload in message.payloads]
        self._unsent = collections.deque(
            memoryview(payload) for payload in message.payloads if payload
        )
        self._credit = 0

    @staticmethod
    def of(message: _frame.Sendable) -> Optional[Announcement]:
        """Of an ExecuteRequest. None: such requests cannot be announced."""
        if not isinstance(message, _frame.Message):
            return None
        too_many = len(message.payloads) > _MOST_PAYLOADS
        if too_many or len(message.encoded) > _MOST_HEADER_BYTES:
            return None
        return Announcement(message)

    @property
    def is_sent(self) -> bool:
        return not self._unsent

    @property
    def may_send(self) -> bool:
        """Whether there is a chunk that the daemon takes."""
        return bool(self._unsent) and self._credit > 0

    def first_frame(self, number: int, seconds: float, trace: str) -> bytes:
        count = len(self._sizes)
        sizes = struct.pack(f"<I{count}Q", count, *self._sizes)
        body = sizes + self._message.encoded
        return frames.request(number, seconds, trace, body, frames.ANNOUNCEMENT)

    def add_credit(self, bytes_more: int) -> None:
        self._credit += bytes_more

    def next_chunk(self, number: int) -> list[_frame.Buffer]:
        """The frame of the next chunk, which may be sent, in pieces."""
        payload = self._unsent[0]
        size = min(self._credit, len(payload), _MOST_CHUNK_BYTES)
        self._credit -= size
        if size == len(payload):
            self._unsent.popleft()
        else:
            self._unsent[0] = payload[size:]
        return [frames.header(frames.CHUNK, number, size), payload[:size]]
