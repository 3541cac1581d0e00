"""One session: a stream that carries the requests of a client (proto/SESSION.md)."""

from __future__ import annotations

import collections
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Optional

from opserve import _frame, _process, _wire
from opserve import _session_frames as frames
from opserve._one_batch import Metadata
from opserve._raw_stream import Event, RawStream
from opserve._session_state import AnySession, Entry, SessionState, Stage

# So long the daemon of an idle session may take to say that it is there.
_LONGEST_PONG = 1.0

# An idle attendant ends after so many seconds.
_IDLE = 2.0

# After its deadline a request is cancelled. A daemon that does not read even that within so many
# seconds loses the session.
_GRACE = 1.0


class SessionCall:
    """A request that was sent. One thread at a time may wait for its answer, or be told of it.

    It goes on as long as this object lives.
    """

    def __init__(self, session: Session, entry: Entry) -> None:
        self._session = session
        self._entry = entry

    def read(self) -> Optional[_frame.Buffer]:
        """Waits for the answer, as Entry.take_answer gives it."""
        self._session.wait_for(self._entry)
        return self._entry.take_answer()

    def tell(self, on_end: Callable[[], object]) -> None:
        """Calls `on_end` once read() would not wait: perhaps at once, perhaps in another thread.

        It is to wait for nothing.
        """
        self._session.tell(self._entry, on_end)

    def cancel(self) -> None:
        """Ends it with a CancelledError, if it is not over."""
        self._session.cancel(self._entry)

    def __del__(self) -> None:
        if not self._entry.is_over:
            self._session.leave(self._entry)


class Session(AnySession):
    """A stream with requests of any number of threads. Thread-safe.

    Of the threads that wait for answers, one takes the stream's events, until its own answer is
    there and another one goes on. It has two threads of its own, which end when they have nothing
    to do: one looks after deadlines, and the attendant waits for requests whose callers do not.

    Invariants, whenever _lock is free:
      (1) one message at most is being sent: _is_sending
      (2) while a thread waits for its answer, one is the reader: _reader
    """

    def __init__(self, channel: Any, metadata: Metadata) -> None:
        """Begins; AttributeError, TypeError: with this gRPC there are no sessions."""
        super().__init__()
        self._lock = threading.Lock()
        # All below, and the state, is guarded by it.
        self._is_sending = True  # hello
        self._is_receiving = True  # or nothing more comes
        self._is_closed = False  # the stream's own side
        self._reader: Optional[Entry] = None  # its thread takes events
        # The attendant: whether there is one, and that it has a request to wait for.
        self._attends = threading.Condition(self._lock)
        self._has_attendant = False
        # Of deadlines: whether there is a thread, and when it looks after the reader's next.
        self._watches = threading.Condition(self._lock)
        self._has_watcher = False
        self._watched_until = 0.0
        # Not guarded: requests that their callers have dropped.
        self._left: collections.deque[Entry] = collections.deque()
        self.last_event = time.monotonic()
        self._stream = RawStream(channel, _wire.SESSION, metadata, SessionState.first_message())

    def begin(self, seconds: float) -> bool:
        """Waits for the daemon's hello, so long at most. Whether it has come."""
        opening = Entry(0, time.monotonic() + seconds)
        self._take_events(opening, lambda: self._state.stage is not Stage.CONNECTING)
        return self.is_open

    def check(self, seconds: float) -> bool:
        """Asks the daemon whether a session is open that is idle, or has no place for a request.

        Waits so long at most, but for an idle one no longer than a moment. Without an answer the
        session ends.
        """
        state = self._state
        with self._lock:
            is_in_use = 0 < len(state.sent) < state.max_requests
            if self._reader is not None or state.stage is not Stage.OPEN or is_in_use:
                return self.is_open
            longest = seconds if state.sent else min(seconds, _LONGEST_PONG)
            asking = Entry(0, time.monotonic() + longest)
            ping = state.ping(asking)
            self._write()
        self._take_events(asking, lambda: state.pong >= ping or not self.is_open)
        return self.is_open

    def enter(
        self, message: _frame.Sendable, seconds: float, trace: str, may_wait: bool
    ) -> Optional[SessionCall]:
        with self._lock:
            while self._left:
                self._state.drop(self._left.popleft())
            entry = self._state.admit(message, seconds, trace, may_wait)
            self._write()
        call = SessionCall(self, entry) if entry is not None else None
        if self._state.outgoing:  # else it would wait until a thread asks for an answer
            flushing = entry or Entry(0, time.monotonic() + seconds)
            self._take_events(flushing, lambda: not self._state.outgoing)
        return call

    def wait_for(self, entry: Entry) -> None:
        """Waits until the request is over."""
        while not entry.is_over:
            if self._take_events(entry, lambda: entry.is_over):
                continue
            with self._lock:
                if entry.is_over or self._reader is None:
                    continue
                waiter = threading.Lock()
                waiter.acquire()
                entry.wake = waiter.release
            left = entry.deadline - time.monotonic()
            if not waiter.acquire(timeout=min(max(left, 0), threading.TIMEOUT_MAX)):
                with self._lock:
                    self._expire(entry)

    def tell(self, entry: Entry, on_end: Callable[[], object]) -> None:
        """As SessionCall.tell."""
        with self._lock:
            if entry.is_over:
                on_end()
                return
            entry.on_end = on_end
            if entry.deadline < self._watched_until:
                self._watches.notify()
            if self._has_attendant:
                self._attends.notify()
                return
            self._has_attendant = True
        threading.Thread(target=self._attend, name="opserve-session", daemon=True).start()

    def cancel(self, entry: Entry) -> None:
        """As SessionCall.cancel."""
        with self._lock:
            self._state.cancel(entry)
            self._write()

    def leave(self, entry: Entry) -> None:
        """The answer is not needed. To be called at any moment, with the lock held, too."""
        self._left.append(entry)

    def retire(self) -> None:
        with self._lock:
            if self._state.stage is Stage.ENDED:
                return
            self._state.leave()
            self._write()
            if self._state.sent:  # the threads that wait for them take the last events
                return
        self._take_last_events()

    def stop(self) -> None:
        """Ends it, and the requests in it."""
        with self._lock:
            if self._state.sent:
                self._stream.cancel()
        self.retire()
        self._take_last_events()

    def __del__(self) -> None:
        stream = getattr(self, "_stream", None)
        if stream is not None and not _process.is_forked():
            stream.end()

    def _take_events(self, entry: Entry, is_done: Callable[[], bool]) -> bool:
        """Takes events until is_done() and nothing waits to be sent, or the session has ended.

        False: another thread is the reader.

        Args:
            entry: that of the thread, with its deadline.
        """
        try:
            with self._lock:
                if self._reader is not None:
                    return False
                self._reader = entry
                if is_done() and not self._needs_reader():
                    return True
                self._receive()
            self._watch(entry.deadline)
            while not self._stream.is_over:
                event, value = self._stream.next_event()
                with self._lock:
                    self._handle(event, value)
                    if is_done():
                        if not self._needs_reader():
                            break
                        # The last events come at once: they are not awaited until the deadline.
                        entry.deadline = min(entry.deadline, time.monotonic() + _GRACE)
                        self._watches.notify()
                    self._receive()
            return True
        finally:
            # After an interruption, too, as by a signal.
            with self._lock:
                if self._reader is entry:
                    self._reader = None
                    self._call_next_reader()

    def _attend(self) -> None:
        """Waits for requests whose callers do not, so that there is a reader."""
        while True:
            with self._lock:
                entry = self._attends.wait_for(lambda: next(self._told(), None), _IDLE)
                if entry is None:
                    self._has_attendant = False
                    return
            self.wait_for(entry)

    def _told(self) -> Iterator[Entry]:
        """Requests whose callers do not wait, the oldest first."""
        return (entry for entry in self._state.entries() if entry.on_end is not None)

    def _take_last_events(self) -> None:
        self._take_events(Entry(0, time.monotonic() + _GRACE), lambda: False)

    def _needs_reader(self) -> bool:
        """Whether the next events have to be taken, and no other thread waits to do so."""
        state = self._state
        if state.stage is Stage.OPEN or state.stage is Stage.CONNECTING:
            return bool(state.outgoing) and not any(
                one.wake is not None for one in state.entries()
            )
        # The last events then come at once.
        return state.stage is Stage.ENDED or not state.sent

    def _call_next_reader(self) -> None:
        for entry in self._state.entries():
            if entry.wake is not None:
                entry.call_waiter()
                return

    def _handle(self, event: Event, value: Any) -> None:
        try:
            self._handle_event(event, value)
        except BaseException:  # a signal's, in the midst of it
            self._stream.cancel()
            raise

    def _handle_event(self, event: Event, value: Any) -> None:
        self.last_event = time.monotonic()
        if event is Event.SENT:
            self._is_sending = False
            self._write()
        elif event is Event.RECEIVED and value is not None:
            self._is_receiving = False
            if not self._state.take_message(value):
                self._stream.cancel()
            self._write()
        elif event is Event.ENDED:
            self._state.end(value)

    def _receive(self) -> None:
        """Waits for the next message.

        That costs as much as a small answer, so it is done when there is one to wait for: a caller
        has its answer before, and the daemon the next request.
        """
        if self._is_receiving or self._stream.is_over:
            return
        self._is_receiving = True
        try:
            self._stream.receive()
        except BaseException:  # a signal's: perhaps nothing was begun
            self._stream.cancel()
            raise

    def _write(self) -> None:
        """Sends the frames that are ready, if nothing is being sent."""
        if self._is_sending or self._state.stage is Stage.ENDED:
            return
        batch = self._state.next_frames()
        if not batch:
            if self._state.is_finished and not self._is_closed:
                self._is_closed = self._is_sending = True
                self._stream.close()
            return
        self._is_sending = True
        try:
            self._stream.send(frames.join(batch))
        except BaseException:  # a signal's: perhaps nothing was sent
            self._stream.cancel()
            raise

    def _expire(self, entry: Entry) -> None:
        """Ends a request if its deadline has passed."""
        if time.monotonic() >= entry.deadline:
            self._state.expire(entry)
            self._write()

    def _watch(self, deadline: float) -> None:
        """Lets the reader be interrupted at its deadline."""
        with self._lock:
            if self._has_watcher:
                if deadline < self._watched_until:
                    self._watches.notify()
                return
            self._has_watcher = True
        threading.Thread(
            target=_watch_deadlines,
            args=(weakref.ref(self), self._watches),
            name="opserve-deadlines",
            daemon=True,
        ).start()

    def interrupt_reader(self) -> Optional[float]:
        """Interrupts the reader if it is time to; seconds until it is the next time, None: never.

        Requests for which nobody waits are ended then, too.

        For the thread that watches deadlines, which has the lock.
        """
        reader, now = self._reader, time.monotonic()
        if reader is None:
            self._has_watcher = False
            return None
        if now < reader.deadline:
            self._watched_until = reader.deadline
        elif reader.number and not reader.is_over:
            self._expire(reader)  # sending that wakes it
            self._watched_until = now + _GRACE
        elif now < reader.deadline + _GRACE and reader.number:
            self._watched_until = reader.deadline + _GRACE
        else:
            self._stream.cancel()
            self._watched_until = now + _GRACE
        for entry in list(self._told()):
            self._expire(entry)
            if not entry.is_over:
                self._watched_until = min(self._watched_until, entry.deadline)
        return min(self._watched_until - now, threading.TIMEOUT_MAX)


def _watch_deadlines(
    reference: weakref.ref[Session], watches: threading.Condition
) -> None:
    """Ends when no thread reads, or the session is gone."""
    with watches:
        while True:
            session = reference()
            seconds = session.interrupt_reader() if session is not None else None
            del session
            if seconds is None:
                return
            watches.wait(seconds)
