"""One session: a stream that carries the requests of a client (proto/SESSION.md)."""

from __future__ import annotations

import collections
import enum
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Optional

import grpc

from opserve import _session_frames as frames
from opserve import _frame, _process, _wire, errors
from opserve._announcement import Announcement
from opserve._one_batch import Metadata
from opserve._raw_stream import Event, RawStream

_VERSION = 1

# Requests with more bytes are announced, where the daemon takes that.
WHOLE = 1 << 20

# Of frames that travel in one message, unless a single one has more.
_BATCH_BYTES = 64 << 10

# That wait to be sent, beside requests and their cancellations.
_MOST_PONGS = 64

# So long the daemon of an idle session may take to say that it is there.
_LONGEST_PONG = 1.0

# After its deadline a request is cancelled. A daemon that does not read even that within so many
# seconds loses the session.
_GRACE = 1.0


class _Stage(enum.Enum):
    CONNECTING = enum.auto()  # the daemon's hello has not come
    OPEN = enum.auto()
    LEAVING = enum.auto()  # takes no more requests
    ENDED = enum.auto()


class _Entry:
    """A request in a session. Guarded by the session's lock until it is over."""

    __slots__ = (
        "deadline", "number", "announcement", "parts", "answer", "failure", "is_over", "waiter"
    )

    def __init__(self, number: int, deadline: float) -> None:
        self.number = number
        self.deadline = deadline
        self.announcement: Optional[Announcement] = None  # while chunks are to be sent
        self.parts: list[_frame.Buffer] = []  # of the answer
        self.answer: Optional[bytes] = None
        # Neither an answer nor a failure, once it is over: it has run nowhere.
        self.failure: Optional[errors.OpserveError] = None
        self.is_over = False
        self.waiter: Optional[threading.Lock] = None  # releases its thread, if it waits


class SessionCall:
    """A request that was sent. One thread at a time may wait for its answer.

    It goes on as long as this object lives.
    """

    def __init__(self, session: Session, entry: _Entry) -> None:
        self._session = session
        self._entry = entry

    def read(self) -> Optional[bytes]:
        """Waits for the answer. None: the request has run nowhere; send it in another way.

        OpserveError: it failed.
        """
        entry = self._entry
        self._session.wait_for(entry)
        answer, entry.answer = entry.answer, None
        failure, entry.failure = entry.failure, None
        if failure is not None:
            raise failure
        return answer

    def __del__(self) -> None:
        if not self._entry.is_over:
            self._session.leave(self._entry)


class Session:
    """A stream with requests of any number of threads. Thread-safe.

    It has no thread of its own but for one that looks after deadlines: of the threads that wait for
    answers, one takes the stream's events, until its own answer is there and another one goes on.

    Invariants, whenever _lock is free:
      (1) one message at most is being sent: _is_sending
      (2) while a thread waits for its answer, one is the reader: _reader
      (3) _stage only advances; requests enter in OPEN only, and none is left in ENDED
    """

    def __init__(self, channel: Any, metadata: Metadata) -> None:
        """Begins; AttributeError, TypeError: with this gRPC there are no sessions."""
        hello = _wire.SessionHello(
            version=_VERSION, features=frames.PARTS, build="opserve Python client"
        )
        self._lock = threading.Lock()
        # All below is guarded by it.
        self._stage = _Stage.CONNECTING
        self._sent: dict[int, _Entry] = {}  # by number, until the daemon has answered
        self._outgoing: collections.deque[tuple[_Entry, bytes]] = collections.deque()
        self._uploads: collections.deque[_Entry] = collections.deque()  # which may send chunks
        self._is_sending = True  # hello
        self._is_closed = False  # the stream's own side
        self._reader: Optional[_Entry] = None  # its thread takes events
        self._last_number = 0
        self._max_requests = self._max_bytes = 0
        self._takes_announcements = False
        self._broken = ""  # how the daemon breaks the protocol
        self._is_unknown = False  # to the daemon, as all sessions
        self._pong = 0
        # Of deadlines: whether there is a thread, and when it looks after the reader's next.
        self._watches = threading.Condition(self._lock)
        self._has_watcher = False
        self._watched_until = 0.0
        # Not guarded: requests that their callers have dropped.
        self._left: collections.deque[_Entry] = collections.deque()
        self.daemon = ""  # its run, as its hello says
        self.has_answered = False
        self.last_event = time.monotonic()
        self._stream = RawStream(
            channel,
            _wire.SESSION,
            metadata,
            frames.join([frames.frame(frames.HELLO, 0, hello.SerializeToString())]),
        )

    @property
    def is_open(self) -> bool:
        """Whether it takes requests."""
        return self._stage is _Stage.OPEN

    @property
    def is_useless(self) -> bool:
        """Whether the daemon knows no sessions, or breaks their protocol."""
        return bool(self._broken) or self._is_unknown

    def begin(self, seconds: float) -> bool:
        """Waits for the daemon's hello, so long at most. Whether it has come."""
        opening = _Entry(0, time.monotonic() + seconds)
        self._take_events(opening, lambda: self._stage is not _Stage.CONNECTING)
        return self.is_open

    def check(self, seconds: float) -> bool:
        """Asks the daemon whether a session is open that is idle, or has no place for a request.

        Waits so long at most, but for an idle one no longer than a moment. Without an answer the
        session ends.
        """
        with self._lock:
            is_in_use = 0 < len(self._sent) < self._max_requests
            if self._reader is not None or self._stage is not _Stage.OPEN or is_in_use:
                return self.is_open
            longest = seconds if self._sent else min(seconds, _LONGEST_PONG)
            asking = _Entry(0, time.monotonic() + longest)
            ping = self._pong + 1
            self._outgoing.append((asking, frames.frame(frames.PING, ping)))
            self._write()
        self._take_events(asking, lambda: self._pong >= ping or not self.is_open)
        return self.is_open

    def enter(
        self, message: _frame.Sendable, seconds: float, trace: str
    ) -> Optional[SessionCall]:
        """Sends an ExecuteRequest, which may take so long. None: there is no place for it."""
        announcement = None
        if len(message) > WHOLE:
            announcement = Announcement.of(message) if self._takes_announcements else None
            if announcement is None:
                return None
        with self._lock:
            if self._left:
                self._cancel_left()
            entry = self._admit(message, announcement, seconds, trace)
            self._write()
        call = SessionCall(self, entry) if entry is not None else None
        if self._outgoing:  # else it would wait until a thread asks for an answer
            flushing = entry or _Entry(0, time.monotonic() + seconds)
            self._take_events(flushing, lambda: not self._outgoing)
        return call

    def _admit(
        self,
        message: _frame.Sendable,
        announcement: Optional[Announcement],
        seconds: float,
        trace: str,
    ) -> Optional[_Entry]:
        """Lets a request in that is to be sent. None: there is no place for it."""
        if self._stage is not _Stage.OPEN or len(self._sent) >= self._max_requests:
            return None
        number = self._last_number + 1
        if announcement is None:
            frame = frames.request(number, seconds, trace, bytes(message))
        else:
            frame = announcement.first_frame(number, seconds, trace)
        if len(frame) - frames.HEADER_BYTES > self._max_bytes:
            return None
        self._last_number = number
        entry = self._sent[number] = _Entry(number, time.monotonic() + seconds)
        entry.announcement = announcement
        self._outgoing.append((entry, frame))
        return entry

    def wait_for(self, entry: _Entry) -> None:
        """Waits until the request is over."""
        while not entry.is_over:
            if self._take_events(entry, lambda: entry.is_over):
                continue
            with self._lock:
                if entry.is_over or self._reader is None:
                    continue
                waiter = entry.waiter = threading.Lock()
                waiter.acquire()
            left = entry.deadline - time.monotonic()
            if not waiter.acquire(timeout=min(max(left, 0), threading.TIMEOUT_MAX)):
                with self._lock:
                    self._expire(entry, time.monotonic())

    def leave(self, entry: _Entry) -> None:
        """The answer is not needed. To be called at any moment, with the lock held, too."""
        self._left.append(entry)

    def retire(self) -> None:
        """Takes no more requests, and ends when those that it has are answered."""
        with self._lock:
            if self._stage is _Stage.ENDED:
                return
            self._stage = _Stage.LEAVING
            self._return_unsent()
            self._write()
            if self._sent:  # the threads that wait for them take the last events
                return
        self._take_last_events()

    def stop(self) -> None:
        """Ends it, and the requests in it."""
        with self._lock:
            if self._sent:
                self._stream.cancel()
        self.retire()
        self._take_last_events()

    def __del__(self) -> None:
        stream = getattr(self, "_stream", None)
        if stream is not None and not _process.is_forked():
            stream.end()

    def _take_events(self, entry: _Entry, is_done: Callable[[], bool]) -> bool:
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
            return True
        finally:
            # After an interruption, too, as by a signal.
            with self._lock:
                if self._reader is entry:
                    self._reader = None
                    self._call_next_reader()

    def _take_last_events(self) -> None:
        self._take_events(_Entry(0, time.monotonic() + _GRACE), lambda: False)

    def _needs_reader(self) -> bool:
        """Whether the next events have to be taken, and no other thread waits to do so."""
        if self._stage is _Stage.OPEN or self._stage is _Stage.CONNECTING:
            return bool(self._outgoing) and not any(
                one.waiter is not None for one in self._sent.values()
            )
        # The last events then come at once.
        return self._stage is _Stage.ENDED or not self._sent

    def _call_next_reader(self) -> None:
        for entry in self._sent.values():
            if entry.waiter is not None:
                waiter, entry.waiter = entry.waiter, None
                waiter.release()
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
            try:
                for kind, number, body in frames.split(value):
                    self._handle_frame(kind, number, body)
            except ValueError as error:
                self._break(error)
            self._stream.receive()
            self._write()
        elif event is Event.ENDED:
            self._handle_end(value)

    def _handle_frame(self, kind: int, number: int, body: _frame.Buffer) -> None:
        """ValueError: the daemon breaks the protocol."""
        is_first = self._stage is _Stage.CONNECTING
        if is_first != (kind == frames.HELLO):
            raise ValueError("its first frame is not hello" if is_first else "a second hello")
        if kind == frames.ANSWER or kind == frames.ERROR:
            if number not in self._sent:
                raise ValueError(f"an answer to request {number}, which is not in progress")
            failure = None
            if kind == frames.ERROR:
                failure = errors.from_status(_frame.parse(body, _wire.StatusDetails))
            self.has_answered = True
            entry = self._sent.pop(number)
            # The daemon drops chunks that had credit until this confirms the end.
            if entry.announcement is not None and not entry.announcement.is_sent:
                self._say_cancel(entry)
            if not entry.is_over:
                entry.failure = failure
                if failure is None:
                    entry.answer = b"".join((*entry.parts, body))
                _end_entry(entry)
        elif kind == frames.PART or kind == frames.CREDIT:
            if number not in self._sent:
                raise ValueError(f"a frame of kind {kind} for {number}, which is not in progress")
            entry = self._sent[number]
            if kind == frames.PART:
                if not entry.is_over:
                    entry.parts.append(body)
            elif entry.announcement is not None:
                entry.announcement.add_credit(frames.read_credit(body))
                if entry not in self._uploads:
                    self._uploads.append(entry)
        elif kind == frames.HELLO:
            self._handle_hello(_frame.parse(body, _wire.SessionHello))
        elif kind == frames.PING:
            if len(self._outgoing) > 2 * self._max_requests + _MOST_PONGS:
                raise ValueError("it sends pings and does not read the pongs")
            self._outgoing.append((_Entry(0, 0), frames.frame(frames.PONG, number)))
        elif kind == frames.PONG:
            self._pong = number
        elif kind == frames.GOING_AWAY:
            self._handle_going_away(_frame.parse(body, _wire.SessionGoingAway).last_request)
        else:
            raise ValueError(f"a frame of kind {kind}, which no daemon sends, or not unasked")

    def _handle_hello(self, hello: Any) -> None:
        limits = hello.limits
        if hello.version < 1 or limits.max_requests < 1:
            raise ValueError(
                f"a hello of version {hello.version} for {limits.max_requests} requests"
            )
        self._max_requests = limits.max_requests
        most = limits.max_message_bytes - frames.MOST_FIELD_BYTES - frames.HEADER_BYTES
        self._max_bytes = min(limits.max_request_bytes, most)
        self._takes_announcements = bool(hello.features & frames.ANNOUNCEMENTS)
        self.daemon = hello.daemon
        self._stage = _Stage.OPEN

    def _handle_going_away(self, last_request: int) -> None:
        self._stage = _Stage.LEAVING
        self._return_unsent()
        for number in [one for one in self._sent if one > last_request]:
            _end_entry(self._sent.pop(number))

    def _return_unsent(self) -> None:
        """Ends requests that were not sent, as such that have run nowhere."""
        for entry, _ in self._outgoing:
            if self._sent.pop(entry.number, None) is not None:
                _end_entry(entry)
        self._outgoing.clear()

    def _handle_end(self, status: Any) -> None:
        self._stage = _Stage.ENDED
        self._is_unknown = status.code() is grpc.StatusCode.UNIMPLEMENTED
        self._return_unsent()
        for entry in self._sent.values():
            if not entry.is_over:
                entry.failure = self._loss(status)
                _end_entry(entry)
        self._sent.clear()

    def _loss(self, status: Any) -> errors.OpserveError:
        """The end of the stream as that of a request, which may have run, whatever the status."""
        if self._broken:
            return errors.bad_answer(self._broken)
        if status.code() is grpc.StatusCode.OK:
            return errors.bad_answer("the session ended before all requests were answered")
        error = errors.from_rpc_error(status)
        if error.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED):
            text = f"the session broke: {status.details()}"
            return errors.make_error(grpc.StatusCode.UNAVAILABLE, text)
        return error

    def _break(self, why: ValueError) -> None:
        self._broken = self._broken or str(why)
        if self._stage is not _Stage.ENDED:
            self._stage = _Stage.LEAVING
        self._stream.cancel()

    def _write(self) -> None:
        """Sends the frames that are ready, if nothing is being sent."""
        if self._is_sending or self._stage is _Stage.ENDED:
            return
        batch = self._next_frames()
        if not batch:
            if self._stage is _Stage.LEAVING and not self._sent and not self._is_closed:
                self._is_closed = self._is_sending = True
                self._stream.close()
            return
        self._is_sending = True
        try:
            self._stream.send(frames.join(batch))
        except BaseException:  # a signal's: perhaps nothing was sent
            self._stream.cancel()
            raise

    def _next_frames(self) -> list[_frame.Buffer]:
        """The next to be sent: small frames that are ready, or one chunk, in turn."""
        batch: list[_frame.Buffer] = []
        size = 0
        while self._outgoing and (not batch or size + len(self._outgoing[0][1]) <= _BATCH_BYTES):
            batch.append(self._outgoing.popleft()[1])
            size += len(batch[-1])
        while self._uploads and not batch:
            entry = self._uploads.popleft()
            upload = entry.announcement
            if upload is not None and upload.may_send:
                batch += upload.next_chunk(entry.number)
                if upload.may_send:
                    self._uploads.append(entry)
        return batch

    def _say_cancel(self, entry: _Entry) -> None:
        """Asks the daemon to end it; no chunk follows."""
        entry.announcement = None
        self._outgoing.append((_Entry(0, 0), frames.frame(frames.CANCEL, entry.number)))

    def _cancel_left(self) -> None:
        while self._left:
            entry = self._left.popleft()
            entry.is_over = True
            if entry.number in self._sent:
                self._say_cancel(entry)

    def _expire(self, entry: _Entry, now: float) -> None:
        """Ends a request after its deadline, which the daemon should have done."""
        if entry.is_over or now < entry.deadline:
            return
        entry.failure = errors.make_error(
            grpc.StatusCode.DEADLINE_EXCEEDED, "the daemon did not answer before the deadline"
        )
        _end_entry(entry)
        if entry.number in self._sent:
            self._say_cancel(entry)
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

        For the thread that watches deadlines, which has the lock.
        """
        reader, now = self._reader, time.monotonic()
        if reader is None:
            self._has_watcher = False
            return None
        if now < reader.deadline:
            self._watched_until = reader.deadline
        elif reader.number and not reader.is_over:
            self._expire(reader, now)  # sending that wakes it
            self._watched_until = now + _GRACE
        elif now < reader.deadline + _GRACE and reader.number:
            self._watched_until = reader.deadline + _GRACE
        else:
            self._stream.cancel()
            self._watched_until = now + _GRACE
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


def _end_entry(entry: _Entry) -> None:
    entry.is_over = True
    entry.announcement = None
    if entry.waiter is not None:
        waiter, entry.waiter = entry.waiter, None
        waiter.release()
