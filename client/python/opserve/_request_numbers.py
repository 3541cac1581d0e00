"""Numbers by which a daemon knows the repetitions of a client's requests."""

from __future__ import annotations

import os
import threading

from opserve import _frame

_CLIENT_BYTES = 16

# Of RequestIdentity.
_CLIENT_FIELD = 1
_NUMBER_TAG, _ANSWERED_BELOW_TAG = b"\x10", b"\x18"


class Ticket:
    """A number in use. When it is released, its request is repeated no more.

    Attributes:
        identity: the request's, an encoded RequestIdentity.
    """

    def __init__(self, numbers: RequestNumbers, number: int, identity: bytes) -> None:
        self._numbers = numbers
        self._number = number
        self.identity = identity

    def release(self) -> None:
        """Has no effect the second time."""
        self._numbers.forget(self._number)

    def __del__(self) -> None:
        self.release()


class RequestNumbers:
    """Numbers requests that must not run twice, and knows which of them may still be repeated.

    Thread-safe.
    """

    def __init__(self) -> None:
        self._client = _frame.field(_CLIENT_FIELD, os.urandom(_CLIENT_BYTES))
        self._lock = threading.Lock()
        self._last = 0  # guarded by _lock
        # As well, but taken out of at any time, by the collector of garbage, too. Numbers rise.
        self._in_use: dict[int, None] = {}

    def take(self) -> Ticket:
        """A new number, with what the daemon may forget: answers to all that are not in use."""
        with self._lock:
            self._last += 1
            number = self._last
            self._in_use[number] = None
            answered_below = min(list(self._in_use))
        # By hand: a message of protobuf's takes three times as long.
        identity = b"".join((
            self._client,
            _NUMBER_TAG,
            _frame.varint(number),
            _ANSWERED_BELOW_TAG,
            _frame.varint(answered_below),
        ))  # fmt: skip
        return Ticket(self, number, identity)

    def forget(self, number: int) -> None:
        """The request with the number is repeated no more."""
        self._in_use.pop(number, None)
