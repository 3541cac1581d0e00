"""Which session of a client carries a request."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Optional

from opserve import _frame, _process
from opserve._session import WHOLE, Session, SessionCall

_SHORTEST_WAIT = 0.1
_LONGEST_WAIT = 5.0

# A probe costs as much as a few calls, and a daemon that comes back waits for it.
_PROBE_INTERVAL = 5.0

# So long a daemon may take for its hello; a call is served meanwhile, too.
_LONGEST_OPENING = 1.0

# After so many seconds without an event the daemon may have ended unnoticed, as no thread reads.
_IDLE = 0.5


class Sessions:
    """The session of a client, and when there is one. Thread-safe.

    One is opened for the client's second request, or a large one: a program that makes one request
    is served best by a call, but a large one may fit no call. After the end of a session the next
    one is opened when some time has passed, and none if the daemon knows no sessions or breaks
    their protocol.

    A proxy may lead each call to another daemon, while a session leads all requests to one of them.
    So now and then another session is opened for a moment: if another daemon says hello, the proxy
    is to balance the client's requests, as calls.
    """

    def __init__(
        self, connect: Callable[[], Any], metadata: Callable[[], Any], trace: Callable[[], str]
    ) -> None:
        """
        Args:
            connect: gives the channel.
            metadata: gives that of the streams.
            trace: gives that of the next request, a W3C traceparent or "".
        """
        self._connect = connect
        self._metadata = metadata
        self._trace = trace
        self._lock = threading.Lock()
        # Guarded by it, but read without it.
        self._current: Optional[Session] = None
        self._next_look = 0.0
        # Guarded by it.
        self._has_request = False
        self._is_given_up = False
        self._wait = _SHORTEST_WAIT  # after the next end
        self._all: weakref.WeakSet[Session] = weakref.WeakSet()

    def enter(self, message: _frame.Sendable, seconds: float) -> Optional[SessionCall]:
        """Sends an ExecuteRequest in a session. None: there is no place for it, make a call."""
        is_large = len(message) > WHOLE
        # If the session has just ended, a large one goes to the next.
        for _ in range(2 if is_large else 1):
            now = time.monotonic()
            session = self._session(now, seconds, is_large)
            if session is None:
                break
            seconds -= time.monotonic() - now
            call = session.enter(message, seconds, self._trace())
            if call is not None or session.is_open:
                return call
            with self._lock:
                self._leave(session)
        return None

    def stop(self) -> None:
        """Ends all sessions, and opens none any more."""
        with self._lock:
            self._is_given_up = True
            sessions = list(self._all)  # which keeps them until they have ended
            self._current = None
        for session in sessions:
            session.stop()

    def keep_after_fork(self) -> None:
        """In a forked child: lets nothing of the parent's be freed."""
        for session in list(self._all):
            _process.keep_for_ever(session)

    def _session(self, now: float, seconds: float, is_large: bool) -> Optional[Session]:
        session = self._current
        if session is not None and now < min(self._next_look, session.last_event + _IDLE):
            return session
        # While another thread looks after the session, this one makes a call, if one fits.
        if not self._lock.acquire(timeout=max(seconds, 0) if is_large else 0):
            return None
        try:
            return self._look(now, seconds, is_large)
        finally:
            self._lock.release()

    def _look(self, now: float, seconds: float, is_large: bool) -> Optional[Session]:
        """The session to use, after it was asked whether it is open, or opened."""
        session = self._current
        longest = min(seconds, _LONGEST_OPENING)
        if session is not None and now >= session.last_event + _IDLE:
            if not session.check(seconds):
                self._leave(session)
                self._next_look = now  # it was in order, as far as is known
        if self._current is None:
            if not self._opens(now, is_large):
                return None
            self._current = self._open(longest)
            if self._current is None:
                return None
            self._next_look = now
        if now >= self._next_look:
            self._next_look = now + _PROBE_INTERVAL
            self._probe(self._current, longest)
        return self._current

    def _opens(self, now: float, is_large: bool) -> bool:
        is_first, self._has_request = not self._has_request, True
        is_time = is_large or (not is_first and now >= self._next_look)
        return is_time and not self._is_given_up

    def _open(self, seconds: float) -> Optional[Session]:
        """Waits for the daemon's hello. None: it has not come."""
        try:
            session = Session(self._connect(), self._metadata())
        except (AttributeError, TypeError):  # another gRPC
            self._is_given_up = True
            return None
        except ValueError:  # the channel was closed meanwhile, which a call tells best
            return None
        self._all.add(session)
        if session.begin(seconds):
            return session
        self._leave(session)
        session.stop()
        self._wait = min(2 * self._wait, _LONGEST_WAIT)
        return None

    def _probe(self, session: Session, seconds: float) -> None:
        probe = self._open(seconds)
        if probe is None:
            return
        if probe.daemon != session.daemon:
            self._is_given_up = True
            self._current = None
            session.retire()
        probe.retire()

    def _leave(self, session: Session) -> None:
        """Uses the session for requests no more."""
        self._is_given_up |= session.is_useless
        if session.has_answered:
            self._wait = _SHORTEST_WAIT
        self._next_look = time.monotonic() + self._wait
        if self._current is session:
            self._current = None
