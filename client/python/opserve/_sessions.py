"""The sessions of a client."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Optional

from opserve import _frame
from opserve._any_sessions import AnySessions
from opserve._connection import Options
from opserve._session import Session, SessionCall
from opserve._session_choice import LONGEST_OPENING
from opserve._session_state import WHOLE

# After so many seconds without an event the daemon may have ended unnoticed, as no thread reads.
_IDLE = 0.5


class Sessions(AnySessions[Session]):
    """Sends requests in the sessions of a client. Thread-safe.

    The thread of a request opens sessions and sends probes first, when SessionChoice says so.
    Meanwhile requests of other threads are calls.
    """

    def __init__(self, connect: Callable[[], Any], options: Options) -> None:
        """As AnySessions."""
        self._lock = threading.Lock()
        # It guards the choice, but for SessionChoice.in_turn, and the set.
        super().__init__(connect, options, self._lock, weakref.WeakSet())

    def enter(self, message: _frame.Sendable, seconds: float) -> Optional[SessionCall]:
        """Sends an ExecuteRequest in a session. None: there is no place for it, make a call."""
        is_large = len(message) > WHOLE
        deadline = time.monotonic() + seconds
        # A large one may fit no call: if sessions have just ended, it goes to the next.
        for _ in range(2 if is_large else 1):
            sessions = self._in_turn(deadline, is_large)
            call, has_ended = self._try_each(sessions, message, deadline)
            if call is not None or not has_ended:
                return call
        return None

    def stop(self) -> None:
        """Ends all sessions, and opens none any more."""
        with self._lock:
            sessions = list(self._all)  # which keeps them until they have ended
            self._choice.is_given_up = True
            self._choice.current = ()
        for session in sessions:
            session.stop()

    def _in_turn(self, deadline: float, is_large: bool) -> tuple[Session, ...]:
        """The sessions to be tried, after others were opened and probes sent if it is time to."""
        now = time.monotonic()
        current = self._choice.current
        sessions = self._choice.in_turn(is_large)
        if sessions and now < min(self._choice.next_look, sessions[0].last_event + _IDLE):
            return sessions
        # While another thread looks after the sessions, this one makes a call, if one fits.
        if not self._lock.acquire(timeout=max(deadline - now, 0) if is_large else 0):
            return ()
        try:
            self._look(now, deadline, is_large)
            if sessions and self._choice.current is current:
                return sessions  # it has had its turn
            return self._choice.in_turn(is_large)
        finally:
            self._lock.release()

    def _look(self, now: float, deadline: float, is_large: bool) -> None:
        """Asks idle sessions whether they are open, opens the first, and sends probes."""
        choice = self._choice
        for session in choice.current:
            if now >= session.last_event + _IDLE and not session.check(deadline - now):
                choice.leave(session)
                if not choice.current:
                    choice.next_look = now  # it was in order, as far as is known
        if not choice.current:
            if not choice.opens(now, is_large):
                return
            first = self._begin()
            if first is None:
                return
            if not _open(first, deadline):
                choice.fail_to_open(first)
                first.stop()
                return
            choice.add_first(first)
        if now >= choice.next_look:
            self._probe(deadline)

    def _begin(self) -> Optional[Session]:
        try:
            session = Session(self._connect(), self._options.credentials)
        except (AttributeError, TypeError):  # another gRPC
            self._choice.is_given_up = True
            return None
        except ValueError:  # the channel was closed meanwhile, which a call tells best
            return None
        self._all.add(session)
        return session

    def _probe(self, deadline: float) -> None:
        choice = self._choice
        while choice.needs_probe and time.monotonic() < deadline:
            probe = self._begin()
            if probe is None:
                break
            if not _open(probe, deadline):
                choice.fail_to_probe(probe)
                probe.stop()
            elif not choice.add_probe(probe):
                probe.retire()
        if choice.current:
            choice.end_probes(time.monotonic())


def _open(session: Session, deadline: float) -> bool:
    """Waits for the daemon's hello."""
    return session.begin(min(deadline - time.monotonic(), LONGEST_OPENING))
