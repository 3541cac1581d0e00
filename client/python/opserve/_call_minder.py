"""Reads the answers of calls that nobody waits for yet."""

from __future__ import annotations

import collections
import threading
import time
import weakref

from opserve._sent_call import SentCall

# A call that is sent without waiting gets no further than the connection's buffers, and its answer
# no further than them, until a thread waits for it. A message of so few bytes fits in.
_FEW_BYTES = 24 << 10

# Whoever sends a call asks for its answer within so many seconds as a rule, and reads it itself.
_PATIENCE = 0.25

# An idle thread ends after so many seconds.
_IDLE = 2.0


class CallMinder:
    """A thread that reads answers in time: before a deadline passes or a daemon gives up. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # Guarded by it: calls, and when to read them; the next one comes first.
        self._calls: collections.deque[tuple[float, weakref.ref[SentCall]]] = (
            collections.deque()
        )
        self._has_thread = False

    def add(self, call: SentCall, sent_bytes: int) -> None:
        """Reads the call's answer later, unless that is read by then or the call is gone."""
        is_small = sent_bytes <= _FEW_BYTES
        now = time.monotonic()
        with self._changed:
            if is_small:
                self._calls.append((now + _PATIENCE, weakref.ref(call)))
            else:
                self._calls.appendleft((now, weakref.ref(call)))
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(
                    target=self._run, name="opserve-answers", daemon=True
                ).start()
            elif len(self._calls) == 1 or not is_small:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._calls and not self._changed.wait(_IDLE) and not self._calls:
                    self._has_thread = False
                    return
                self._forget_answered()
                if not self._calls:
                    continue
                wait = self._calls[0][0] - time.monotonic()
                if wait > 0:
                    self._changed.wait(wait)
                    continue
                call = self._calls.popleft()[1]()
            if call is not None:
                call.wait()
            del call

    def _forget_answered(self) -> None:
        """Lets go of calls that need no reading, so as not to wake up for each; _changed is held."""
        while self._calls:
            call = self._calls[0][1]()
            if call is not None and not call.is_over:
                return
            self._calls.popleft()
