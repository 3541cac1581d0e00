"""A session of an event loop; see _session.py."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Optional

import grpc
import grpc.aio

from opserve import _frame, _wire
from opserve import _session_frames as frames
from opserve._one_batch import Metadata
from opserve._session_state import AnySession, Entry, SessionState, Stage

# So long a session that is closed may take to end.
_LONGEST_END = 1.0


class AioSessionCall:
    """A request that was sent."""

    def __init__(self, session: AioSession, entry: Entry) -> None:
        self._session = session
        self._entry = entry

    async def read(self) -> Optional[_frame.Buffer]:
        """Waits for the answer, as Entry.take_answer gives it. To be called once.

        If its task is cancelled, so is the request.
        """
        await self._session.wait_for(self._entry)
        return self._entry.take_answer()


class AioSession(AnySession):
    """A stream with requests of any number of tasks of one event loop.

    One task reads, as long as the stream lives; another one sends while there are frames.
    """

    def __init__(
        self, channel: Any, metadata: Metadata, on_end: Callable[[AioSession], None]
    ) -> None:
        """Begins.

        Args:
            channel: of grpc.aio's.
            on_end: is told that it has ended.
        """
        super().__init__()
        self._on_end = on_end
        self._call = channel.stream_stream(_wire.SESSION)(metadata=metadata)
        self._is_decided = asyncio.Event()  # the daemon's hello has come, or never will
        self._sending = asyncio.create_task(self._send(SessionState.first_message()))
        self._reading = asyncio.create_task(self._read())

    async def begin(self, seconds: float) -> bool:
        """Waits for the daemon's hello, so long at most. Whether it has come."""
        try:
            await asyncio.wait_for(self._is_decided.wait(), seconds)
        except asyncio.TimeoutError:
            pass
        return self.is_open

    def enter(
        self, message: _frame.Sendable, seconds: float, trace: str, may_wait: bool
    ) -> Optional[AioSessionCall]:
        entry = self._state.admit(message, seconds, trace, may_wait)
        self._write()
        return AioSessionCall(self, entry) if entry is not None else None

    async def wait_for(self, entry: Entry) -> None:
        """Waits until the request is over. Cancelled, it cancels the request."""
        if entry.is_over:
            return
        loop = asyncio.get_running_loop()
        is_over = loop.create_future()
        entry.wake = lambda: None if is_over.done() else is_over.set_result(None)
        seconds = max(entry.deadline - time.monotonic(), 0)
        deadline = loop.call_later(seconds, self._expire, entry)
        try:
            await is_over
        finally:
            deadline.cancel()
            if not entry.is_over:
                self._state.drop(entry)
                self._write()

    def retire(self) -> None:
        self._state.leave()
        self._write()

    async def stop(self) -> None:
        """Ends it, and the requests in it."""
        if self._state.sent:
            self._call.cancel()
        self.retire()
        await asyncio.wait((self._reading,), timeout=_LONGEST_END)
        self._call.cancel()
        await asyncio.wait((self._reading, self._sending))

    def cancel(self) -> None:
        """Lets it end, and the requests in it."""
        self._call.cancel()

    def _expire(self, entry: Entry) -> None:
        self._state.expire(entry)
        self._write()

    def _write(self) -> None:
        """Lets frames that are ready be sent, those of this turn of the loop together."""
        if self._sending.done() and self._state.stage is not Stage.ENDED:
            self._sending = asyncio.create_task(self._send())

    async def _send(self, first: Optional[bytes] = None) -> None:
        try:
            if first is not None:
                await self._call.write(first)
            while batch := self._state.next_frames():
                await self._call.write(frames.join(batch))
            if self._state.is_finished:
                await self._call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError, asyncio.CancelledError):
            self._call.cancel()  # if it has not ended

    async def _read(self) -> None:
        status = _status(grpc.StatusCode.OK)
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                if not self._state.take_message(message):
                    self._call.cancel()
                self._is_decided.set()
                self._write()
        except grpc.aio.AioRpcError as error:
            status = error
        except asyncio.CancelledError:  # of the stream, or as the loop ends
            self._call.cancel()
            status = _status(grpc.StatusCode.CANCELLED)
        self._state.end(status)
        self._is_decided.set()
        self._on_end(self)


def _status(code: grpc.StatusCode) -> grpc.aio.AioRpcError:
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(code, nothing, nothing, "the client ends the session")
