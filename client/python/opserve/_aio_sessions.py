"""The sessions of a client of an event loop; see _sessions.py."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Optional

from opserve import _frame, _process
from opserve._aio_session import AioSession, AioSessionCall
from opserve._any_sessions import AnySessions
from opserve._connection import Options
from opserve._session_choice import LONGEST_OPENING
from opserve._session_state import WHOLE


class AioSessions(AnySessions[AioSession]):
    """Sends requests in the sessions of a client of one event loop.

    A task of its own opens sessions and sends probes, when SessionChoice says so. Meanwhile
    requests are calls, but for large ones, which may fit no call.
    """

    def __init__(self, connect: Callable[[], Any], options: Options) -> None:
        """As AnySessions."""
        super().__init__(connect, options, contextlib.nullcontext(), set())
        self._looking: Optional[asyncio.Task[None]] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None  # once there are sessions

    async def enter(self, message: _frame.Sendable, seconds: float) -> Optional[AioSessionCall]:
        """Sends an ExecuteRequest in a session. None: there is no place for it, make a call."""
        is_large = len(message) > WHOLE
        deadline = time.monotonic() + seconds
        # If sessions have just ended, a large one goes to the next.
        for _ in range(2 if is_large else 1):
            self._look(is_large)
            if is_large and self._looking is not None and not self._choice.current:
                await asyncio.wait((self._looking,), timeout=max(deadline - time.monotonic(), 0))
            sessions = self._choice.in_turn(is_large)
            call, has_ended = self._try_each(sessions, message, deadline)
            if call is not None or not has_ended:
                return call
        return None

    async def stop(self) -> None:
        """Ends all sessions, and opens none any more."""
        self._choice.is_given_up = True
        self._choice.current = ()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait((self._looking,))
        for session in list(self._all):
            await session.stop()

    def __del__(self) -> None:
        if self._loop is None or _process.is_forked():
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed
            for session in list(self._all):
                self._loop.call_soon_threadsafe(session.cancel)

    def _look(self, is_large: bool) -> None:
        """Begins to open a session, or to send probes, if it is time to."""
        if self._looking is not None and not self._looking.done():
            return
        now = time.monotonic()
        if self._choice.current:
            if now >= self._choice.next_look:
                self._looking = asyncio.create_task(self._probe())
        elif self._choice.opens(now, is_large):
            self._looking = asyncio.create_task(self._open())

    def _begin(self) -> AioSession:
        self._loop = asyncio.get_running_loop()
        session = AioSession(self._connect(), self._options.credentials, self._all.discard)
        self._all.add(session)
        return session

    async def _open(self) -> None:
        session = self._begin()
        if await session.begin(LONGEST_OPENING):
            self._choice.add_first(session)
        else:
            self._choice.fail_to_open(session)
            await session.stop()

    async def _probe(self) -> None:
        choice = self._choice
        while choice.needs_probe:
            probe = self._begin()
            if not await probe.begin(LONGEST_OPENING):
                choice.fail_to_probe(probe)
                await probe.stop()
            elif not choice.add_probe(probe):
                probe.retire()
        if choice.current:
            choice.end_probes(time.monotonic())
