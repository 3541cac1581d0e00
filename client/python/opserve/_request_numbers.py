"""Numbers by which a daemon knows the repetitions of a client's requests."""

from __future__ import annotations

import os
import threading
from typing import Any

from opserve import _wire

_CLIENT_BYTES = 16


class Ticket:
    """A number in use. When it is released, its request is repeated no more.

    Attributes:
        identity: the request's, a RequestIdentity.
    """

    def __init__(self, numbers: RequestNumbers, identity: Any) -> None:
        self._numbers = numbers
        self.identity = identity

    def release(self) -> None:
        """Has no effect the second time."""
        self._numbers.forget(self.identity.number)

    def __del__(self) -> None:
        self.release()


class RequestNumbers:
    """Numbers requests that must not run twice, and knows which of them may still be repeated.

    Thread-safe.
    """

    def __init__(self) -> None:
        self._client = os.urandom(_CLIENT_BYTES)
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
        return Ticket(
            self,
            _wire.RequestIdentity(
                client=self._client, number=number, answered_below=answered_below
            ),
        )

    def forget(self, number: int) -> None:
        """The request with the number is repeated no more."""
        self._in_use.pop(number, None)
