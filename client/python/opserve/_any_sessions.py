"""Shared by the sessions of clients with threads and of event loops."""

from __future__ import annotations

import time
from collections.abc import Callable, MutableSet
from contextlib import AbstractContextManager
from typing import Any, Generic, Optional, TypeVar

from opserve import _frame, _process
from opserve._connection import Options
from opserve._session_choice import SessionChoice
from opserve._session_state import WHOLE, AnySession

S = TypeVar("S", bound=AnySession)


class AnySessions(Generic[S]):
    """The sessions of a client, whatever takes their events."""

    def __init__(
        self,
        connect: Callable[[], Any],
        options: Options,
        guard: AbstractContextManager[Any],
        sessions: MutableSet[S],
    ) -> None:
        """
        Args:
            connect: gives the channel.
            guard: is held while the choice changes.
            sessions: is to have all that have not ended.
        """
        self._connect = connect
        self._options = options
        self._guard = guard
        self._choice: SessionChoice[S] = SessionChoice(options.target.is_balanced)
        self._all = sessions

    def keep_after_fork(self) -> None:
        """In a forked child: lets nothing of the parent's be freed."""
        for session in list(self._all):
            _process.keep_for_ever(session)

    def _try_each(
        self, sessions: tuple[S, ...], message: _frame.Sendable, deadline: float
    ) -> tuple[Optional[Any], bool]:
        """Sends an ExecuteRequest in the first session that has a place for it.

        Returns:
            Its call, None: no session has; and whether one had ended.
        """
        has_ended = False
        trace = self._options.trace if sessions else ""
        # A large one, which may fit no call, waits where all are full.
        for may_wait in (False, True) if len(message) > WHOLE else (False,):
            for session in sessions:
                if session.is_unavailable and self._avoid(session):
                    continue
                call = session.enter(message, deadline - time.monotonic(), trace, may_wait)
                if call is not None:
                    return call, has_ended
                if not session.is_open:
                    has_ended = True
                    with self._guard:
                        self._choice.leave(session)
            if has_ended:
                break  # for those that come after them
        return None, has_ended

    def _avoid(self, session: S) -> bool:
        """Leaves a session to a daemon that cannot serve, unless it is the last one."""
        with self._guard:
            is_left = self._choice.avoid(session)
        if is_left:
            session.retire()
        return is_left
