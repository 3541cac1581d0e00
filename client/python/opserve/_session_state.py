"""The state of a session: its requests, and the frames that are to be sent."""

from __future__ import annotations

import abc
import collections
import enum
import time
from collections.abc import Callable, Iterator
from typing import Any, Optional

import grpc

from opserve import _frame, _wire, errors
from opserve import _session_frames as frames
from opserve._announcement import Announcement
from opserve._answer_parts import AnswerParts

_VERSION = 1
_WAITS = -1  # the number of a request that waits for a place

# Requests with more bytes are announced, where the daemon takes that.
WHOLE = 1 << 20

# Of frames that travel in one message, unless a single one has more.
_BATCH_BYTES = 64 << 10

# That wait to be sent, beside requests and their cancellations.
_MOST_PONGS = 64


def owned(message: _frame.Sendable) -> _frame.Sendable:
    """As it is now: the caller may change its tensors meanwhile."""
    if isinstance(message, _frame.Message) and len(message) > WHOLE:
        return message.copied()
    return bytes(message)


class Stage(enum.Enum):
    CONNECTING = enum.auto()  # the daemon's hello has not come
    OPEN = enum.auto()
    LEAVING = enum.auto()  # takes no more requests
    ENDED = enum.auto()


class Entry:
    """A request in a session. Guarded by the session until it is over."""

    __slots__ = (
        "deadline", "number", "announcement", "parts", "answer", "failure", "is_over", "wake",
        "on_end",
    )  # fmt: skip

    def __init__(self, number: int, deadline: float) -> None:
        self.number = number
        self.deadline = deadline
        self.announcement: Optional[Announcement] = None  # while chunks are to be sent
        self.parts: Optional[AnswerParts] = None  # those that have come
        self.answer: Optional[_frame.Buffer] = None
        # Neither an answer nor a failure, once it is over: it has run nowhere.
        self.failure: Optional[errors.OpserveError] = None
        self.is_over = False
        self.wake: Optional[Callable[[], object]] = None  # its waiter; is called once
        self.on_end: Optional[Callable[[], object]] = None  # as well, if nobody waits for it

    def end(self) -> None:
        self.is_over = True
        self.announcement = self.parts = None
        self.call_waiter()
        if self.on_end is not None:
            on_end, self.on_end = self.on_end, None
            on_end()

    def call_waiter(self) -> None:
        """Wakes it, if it waits."""
        if self.wake is not None:
            wake, self.wake = self.wake, None
            wake()

    def take_answer(self) -> Optional[_frame.Buffer]:
        """Of one that is over. None: it has run nowhere; send it in another way.

        OpserveError: it failed.
        """
        answer, self.answer = self.answer, None
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        return answer


class SessionState:
    """The client's side of a session, without input and output. Not thread-safe.

    The stage only advances; requests enter in OPEN only, and none is left in ENDED.
    """

    def __init__(self) -> None:
        self.stage = Stage.CONNECTING
        self.sent: dict[int, Entry] = {}  # by number, until the daemon has answered
        self.outgoing: collections.deque[tuple[Entry, bytes]] = collections.deque()
        # Large requests, which may fit no call, until there is a place; and their traces.
        self._waiting: collections.deque[tuple[Entry, Announcement, str]] = collections.deque()
        self._uploads: collections.deque[Entry] = collections.deque()  # which may send chunks
        self._last_number = 0
        self.max_requests = self._max_bytes = 0
        self._takes_announcements = self._takes_any_announcements = False
        self._broken = ""  # how the daemon breaks the protocol
        self._is_unknown = False  # to the daemon, as all sessions
        self.pong = 0
        self.daemon = ""  # its run, as its hello says
        self.has_answered = False
        self.is_unavailable = False  # the daemon, as it has said itself

    @property
    def is_useless(self) -> bool:
        """Whether the daemon knows no sessions, or breaks their protocol."""
        return bool(self._broken) or self._is_unknown

    @property
    def is_finished(self) -> bool:
        """Whether nothing more is to be sent once next_frames() has nothing, nor to be awaited."""
        return self.stage is Stage.LEAVING and not self.sent

    @staticmethod
    def first_message() -> bytes:
        hello = _wire.SessionHello(
            version=_VERSION, features=frames.PARTS, build="opserve Python client"
        )
        return frames.join([frames.frame(frames.HELLO, 0, hello.SerializeToString())])

    def admit(
        self, message: _frame.Sendable, seconds: float, trace: str, may_wait: bool
    ) -> Optional[Entry]:
        """Lets an ExecuteRequest in that is to be sent. None: there is no place for it.

        Args:
            may_wait: whether a large one is sent later, if there is none now.
        """
        announcement = None
        if len(message) > WHOLE:
            announcement = self._announce(message)
            if announcement is None:
                return None
        is_full = len(self.sent) >= self.max_requests
        waits = is_full and may_wait and announcement is not None
        if self.stage is not Stage.OPEN or (is_full and not waits):
            return None
        number = self._last_number + 1
        if announcement is None:
            frame = frames.request(number, seconds, trace, bytes(message))
        else:
            frame = announcement.first_frame(number, seconds, trace)
        if len(frame) - frames.HEADER_BYTES > self._max_bytes:
            return None
        entry = Entry(_WAITS, time.monotonic() + seconds)
        entry.announcement = announcement
        if waits and announcement is not None:
            self._waiting.append((entry, announcement, trace))
        else:
            self._number(entry, frame)
        return entry

    def entries(self) -> Iterator[Entry]:
        """Those that were sent, and those that wait for a place, the oldest first."""
        yield from self.sent.values()
        for entry, _, _ in self._waiting:
            yield entry

    def _number(self, entry: Entry, frame: bytes) -> None:
        """Gives a request its number, which `frame` has, and has it sent."""
        self._last_number += 1
        entry.number = self._last_number
        self.sent[entry.number] = entry
        self.outgoing.append((entry, frame))

    def _let_in(self) -> None:
        """Gives places that are free to requests that wait for one."""
        while self._waiting and self.stage is Stage.OPEN and len(self.sent) < self.max_requests:
            entry, announcement, trace = self._waiting.popleft()
            seconds = entry.deadline - time.monotonic()
            if seconds <= 0:
                self.expire(entry)
            else:
                frame = announcement.first_frame(self._last_number + 1, seconds, trace)
                self._number(entry, frame)

    def _announce(self, message: _frame.Sendable) -> Optional[Announcement]:
        is_plain = isinstance(message, _frame.Message) and message.is_plain
        is_taken = self._takes_announcements if is_plain else self._takes_any_announcements
        return Announcement.of(message) if is_taken else None

    def ping(self, entry: Entry) -> int:
        """Asks for a pong, in the name of an entry: its number."""
        number = self.pong + 1
        self.outgoing.append((entry, frames.frame(frames.PING, number)))
        return number

    def drop(self, entry: Entry) -> None:
        """Ends a request that needs no answer."""
        entry.is_over = True
        entry.on_end = None
        self._forget(entry)

    def expire(self, entry: Entry) -> None:
        """Ends a request after its deadline, which the daemon should have done."""
        text = "the daemon did not answer before the deadline"
        self._give_up(entry, errors.make_error(grpc.StatusCode.DEADLINE_EXCEEDED, text))

    def cancel(self, entry: Entry) -> None:
        """Ends a request that its caller has cancelled."""
        text = "the caller cancelled the request"
        self._give_up(entry, errors.make_error(grpc.StatusCode.CANCELLED, text))

    def leave(self) -> None:
        """Takes no more requests."""
        if self.stage is not Stage.ENDED:
            self.stage = Stage.LEAVING
            self._return_unsent()

    def take_message(self, message: bytes) -> bool:
        """Takes the frames of a message. False: the stream has to be cancelled."""
        try:
            for kind, number, body in frames.split(message):
                self._take_frame(kind, number, body)
        except ValueError as error:  # the daemon breaks the protocol
            self._broken = self._broken or str(error)
            if self.stage is not Stage.ENDED:
                self.stage = Stage.LEAVING
            return False
        return True

    def end(self, status: Any) -> None:
        """The stream has ended, with a status that is read as a grpc.RpcError."""
        self.stage = Stage.ENDED
        self._is_unknown = status.code() is grpc.StatusCode.UNIMPLEMENTED
        self._return_unsent()
        for entry in self.sent.values():
            if not entry.is_over:
                entry.failure = self._loss(status)
                entry.end()
        self.sent.clear()

    def next_frames(self) -> list[_frame.Buffer]:
        """The next to be sent: small frames that are ready, or one chunk, in turn."""
        batch: list[_frame.Buffer] = []
        size = 0
        while self.outgoing and (not batch or size + len(self.outgoing[0][1]) <= _BATCH_BYTES):
            batch.append(self.outgoing.popleft()[1])
            size += len(batch[-1])
        while self._uploads and not batch:
            entry = self._uploads.popleft()
            upload = entry.announcement
            if upload is not None and upload.may_send:
                batch += upload.next_chunk(entry.number)
                if upload.may_send:
                    self._uploads.append(entry)
        return batch

    def _take_frame(self, kind: int, number: int, body: _frame.Buffer) -> None:
        """ValueError: the daemon breaks the protocol."""
        is_first = self.stage is Stage.CONNECTING
        if is_first != (kind == frames.HELLO):
            raise ValueError("its first frame is not hello" if is_first else "a second hello")
        if kind == frames.ANSWER or kind == frames.ERROR:
            self._take_answer(kind, number, body)
        elif kind == frames.PART or kind == frames.CREDIT:
            if number not in self.sent:
                raise ValueError(f"a frame of kind {kind} for {number}, which is not in progress")
            entry = self.sent[number]
            if kind == frames.PART:
                if not entry.is_over:
                    if entry.parts is None:
                        entry.parts = AnswerParts(body)
                    entry.parts.add(body)
            elif entry.announcement is not None:
                entry.announcement.add_credit(frames.read_credit(body))
                if entry not in self._uploads:
                    self._uploads.append(entry)
        elif kind == frames.HELLO:
            self._take_hello(_frame.parse(body, _wire.SessionHello))
        elif kind == frames.PING:
            if len(self.outgoing) > 2 * self.max_requests + _MOST_PONGS:
                raise ValueError("it sends pings and does not read the pongs")
            self.outgoing.append((Entry(0, 0), frames.frame(frames.PONG, number)))
        elif kind == frames.PONG:
            self.pong = number
        elif kind == frames.GOING_AWAY:
            self._take_going_away(_frame.parse(body, _wire.SessionGoingAway).last_request)
        else:
            raise ValueError(f"a frame of kind {kind}, which no daemon sends, or not unasked")

    def _take_answer(self, kind: int, number: int, body: _frame.Buffer) -> None:
        if number not in self.sent:
            raise ValueError(f"an answer to request {number}, which is not in progress")
        failure = None
        if kind == frames.ERROR:
            failure = errors.from_status(_frame.parse(body, _wire.StatusDetails))
            self.is_unavailable |= failure.code is grpc.StatusCode.UNAVAILABLE
        self.has_answered = True
        entry = self.sent.pop(number)
        # The daemon drops chunks that had credit until this confirms the end.
        if entry.announcement is not None and not entry.announcement.is_sent:
            self._say_cancel(entry)
        if not entry.is_over:
            entry.failure = failure
            if failure is None:
                entry.answer = entry.parts.end(body) if entry.parts is not None else body
            entry.end()
        self._let_in()

    def _take_hello(self, hello: Any) -> None:
        limits = hello.limits
        if hello.version < 1 or limits.max_requests < 1:
            raise ValueError(
                f"a hello of version {hello.version} for {limits.max_requests} requests"
            )
        self.max_requests = limits.max_requests
        most = limits.max_message_bytes - frames.MOST_FIELD_BYTES - frames.HEADER_BYTES
        self._max_bytes = min(limits.max_request_bytes, most)
        self._takes_announcements = bool(hello.features & frames.ANNOUNCEMENTS)
        self._takes_any_announcements = bool(hello.features & frames.ANY_ANNOUNCEMENTS)
        self.daemon = hello.daemon
        self.stage = Stage.OPEN

    def _take_going_away(self, last_request: int) -> None:
        self.stage = Stage.LEAVING
        self._return_unsent()
        for number in [one for one in self.sent if one > last_request]:
            self.sent.pop(number).end()

    def _return_unsent(self) -> None:
        """Ends requests that were not sent, as such that have run nowhere."""
        for entry, _ in self.outgoing:
            if self.sent.pop(entry.number, None) is not None:
                entry.end()
        self.outgoing.clear()
        for entry, _, _ in self._waiting:
            entry.end()
        self._waiting.clear()

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

    def _give_up(self, entry: Entry, failure: errors.OpserveError) -> None:
        if entry.is_over:
            return
        entry.failure = failure
        entry.end()
        self._forget(entry)
        if entry.number == _WAITS:
            self.ping(Entry(0, 0))  # as a cancel, it wakes the thread that takes events

    def _forget(self, entry: Entry) -> None:
        """It is over: the daemon is told of one that was sent."""
        if entry.number in self.sent:
            self._say_cancel(entry)
        else:
            self._waiting = collections.deque(one for one in self._waiting if one[0] is not entry)

    def _say_cancel(self, entry: Entry) -> None:
        """Asks the daemon to end it; no chunk follows."""
        entry.announcement = None
        self.outgoing.append((Entry(0, 0), frames.frame(frames.CANCEL, entry.number)))


class AnySession(abc.ABC):
    """A session, whatever takes its events."""

    def __init__(self) -> None:
        self._state = SessionState()

    @property
    def is_open(self) -> bool:
        """Whether it takes requests."""
        return self._state.stage is Stage.OPEN

    @property
    def is_useless(self) -> bool:
        """As SessionState.is_useless."""
        return self._state.is_useless

    @property
    def daemon(self) -> str:
        """The daemon's run, as its hello says."""
        return self._state.daemon

    @property
    def has_answered(self) -> bool:
        """Whether the daemon has answered any request."""
        return self._state.has_answered

    @property
    def is_unavailable(self) -> bool:
        """Whether the daemon has said that it cannot serve a request."""
        return self._state.is_unavailable

    @abc.abstractmethod
    def enter(
        self, message: _frame.Sendable, seconds: float, trace: str, may_wait: bool
    ) -> Optional[Any]:
        """Sends an ExecuteRequest, which may take so long: its call. None: there is no place.

        Args:
            may_wait: as of SessionState.admit.
        """

    @abc.abstractmethod
    def retire(self) -> None:
        """Takes no more requests, and ends when those that it has are answered."""
