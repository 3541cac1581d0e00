"""Which sessions of a client take requests, and when others are opened."""

from __future__ import annotations

import itertools
import time
from typing import Generic, TypeVar

from opserve._session_state import AnySession

_SHORTEST_WAIT = 0.1
_LONGEST_WAIT = 5.0

# A probe costs as much as a few calls, and a daemon that comes back waits for it.
_PROBE_INTERVAL = 5.0

# So long a daemon may take for its hello.
LONGEST_OPENING = 1.0

# Where the target has several addresses, connections to others are made while a first round of
# probes meets the first one.
_FIRST_ROUNDS = 2

# Of a client at once, whatever daemons call themselves.
_MOST_SESSIONS = 64


S = TypeVar("S", bound=AnySession)


class SessionChoice(Generic[S]):
    """The sessions of a client that take requests, in turn, and when there are any.

    One is opened for the client's second request, or a large one: a program that makes one request
    is served best by a call, but a large one may fit no call. After the end of the last session the
    next one is opened when some time has passed, and none if a daemon knows no sessions or breaks
    their protocol.

    A session leads all requests to one daemon, while calls may go to several: those of the target,
    or of a proxy. So now and then probes are sent, until as many in a row as there are sessions
    have met known daemons: one that meets another is kept. Where the target has several addresses,
    small requests are calls until the first rounds are over, so that they go to all from the
    beginning. If a daemon cannot serve, its session is left, unless it is the last one.

    Not thread-safe, but in_turn() may be called at any time.

    Attributes:
        current: the sessions that take requests.
        next_look: when there is something to do: to open a session if there is none, or to probe.
        is_given_up: there are calls only.
    """

    def __init__(self, is_balanced: bool) -> None:
        """
        Args:
            is_balanced: whether the target has several addresses, to which calls go in turn.
        """
        self.current: tuple[S, ...] = ()
        self.next_look = 0.0
        self.is_given_up = False
        self._is_balanced = is_balanced
        self._rounds_to_come = 0  # until small requests use the sessions
        self._first_probe_wait = _SHORTEST_WAIT if is_balanced else _PROBE_INTERVAL
        self._turns = itertools.count()
        self._has_request = False
        self._wait = _SHORTEST_WAIT  # after the next end
        self._probe_wait = self._first_probe_wait  # after the next probes
        self._known_in_a_row = 0
        self._avoided: dict[str, float] = {}  # daemons that could not serve, and until when

    def in_turn(self, is_large: bool) -> tuple[S, ...]:
        """The sessions to be tried for a request, in this order."""
        if self._rounds_to_come and not is_large:
            return ()
        sessions = self.current
        if len(sessions) < 2:
            return sessions
        first = next(self._turns) % len(sessions)
        return sessions[first:] + sessions[:first]

    def opens(self, now: float, is_large: bool) -> bool:
        """Whether this request, which has no session, opens one."""
        is_first, self._has_request = not self._has_request, True
        is_time = is_large or (not is_first and now >= self.next_look)
        return is_time and not self.is_given_up

    def add_first(self, session: S) -> None:
        """It is open, and the only one."""
        self.current = (session,)
        self.next_look = 0.0
        self._probe_wait = self._first_probe_wait
        self._known_in_a_row = 0
        self._rounds_to_come = _FIRST_ROUNDS if self._is_balanced else 0

    def fail_to_open(self, session: S) -> None:
        """It was to be the only one."""
        self.leave(session)
        self._wait = min(2 * self._wait, _LONGEST_WAIT)

    @property
    def needs_probe(self) -> bool:
        """Whether another probe is to follow."""
        return self._known_in_a_row < len(self.current) < _MOST_SESSIONS

    def end_probes(self, now: float) -> None:
        """None follows for some time."""
        self._known_in_a_row = 0
        self._rounds_to_come = max(self._rounds_to_come - 1, 0)
        self.next_look = now + self._probe_wait
        self._probe_wait = min(2 * self._probe_wait, _PROBE_INTERVAL)
        self._avoided = {name: end for name, end in self._avoided.items() if now < end}

    def add_probe(self, probe: S) -> bool:
        """Whether a probe, which is open, takes requests from now on."""
        known = {session.daemon for session in self.current}
        if probe.daemon in known or time.monotonic() < self._avoided.get(probe.daemon, 0.0):
            self._known_in_a_row += 1
            return False
        self.current += (probe,)
        self._known_in_a_row = 0
        self._probe_wait = self._first_probe_wait
        return True

    def fail_to_probe(self, probe: S) -> None:
        """Its daemon has said no hello."""
        self._known_in_a_row += 1
        self.leave(probe)

    def avoid(self, session: S) -> bool:
        """Leaves a session to a daemon that cannot serve, unless it is the last one."""
        if session not in self.current or len(self.current) == 1:
            return False
        self._avoided[session.daemon] = time.monotonic() + _PROBE_INTERVAL
        self.leave(session)
        return True

    def leave(self, session: S) -> None:
        """Uses a session for requests no more, and none at all if it is useless."""
        others = tuple(one for one in self.current if one is not session)
        if session.is_useless:
            self.is_given_up = True
            for other in others:
                other.retire()
            others = ()
        self.current = others
        if session.has_answered:
            self._wait = _SHORTEST_WAIT
        if not others:
            self.next_look = time.monotonic() + self._wait
