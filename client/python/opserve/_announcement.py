"""A large request of a session: it is announced, and its payloads follow in chunks."""

from __future__ import annotations

import collections
import struct
from typing import Any, Optional

from opserve import _frame, _wire
from opserve import _session_frames as frames

# Half of the most bytes that daemons take as the body of a request.
_MOST_HEADER_BYTES = 512 << 10
# As many as a list may have tensors.
_MOST_PAYLOADS = 4096
_MOST_CHUNK_BYTES = 256 << 10


class Announcement:
    """The chunks to be sent of a request, and its credit. Guarded by its session."""

    def __init__(self, message: bytes, header: bytes, payloads: list[memoryview]) -> None:
        self._message = message  # owns the payloads
        self._header = header
        self._sizes = [len(payload) for payload in payloads]
        self._unsent = collections.deque(payload for payload in payloads if payload)
        self._credit = 0

    @staticmethod
    def of(message: bytes) -> Optional[Announcement]:
        """Of an ExecuteRequest. None: such requests cannot be announced."""
        header: Any
        header, payloads = _frame.split(message, _wire.ExecuteRequest)
        if header.HasField("prepared") or header.HasField("identity") or header.idempotency_key:
            return None
        encoded = header.SerializeToString()
        if len(encoded) > _MOST_HEADER_BYTES or len(payloads) > _MOST_PAYLOADS:
            return None
        return Announcement(message, encoded, list(payloads))

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
        return frames.request(number, seconds, trace, sizes + self._header, frames.ANNOUNCEMENT)

    def add_credit(self, bytes_more: int) -> None:
        self._credit += bytes_more

    def next_chunk(self, number: int) -> bytes:
        """The frame of the next chunk, which may be sent."""
        payload = self._unsent[0]
        size = min(self._credit, len(payload), _MOST_CHUNK_BYTES)
        self._credit -= size
        if size == len(payload):
            self._unsent.popleft()
        else:
            self._unsent[0] = payload[size:]
        return frames.frame(frames.CHUNK, number, payload[:size])
