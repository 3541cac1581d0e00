"""A pipeline of requests."""

from __future__ import annotations

import functools
import itertools
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NoReturn, Optional

import grpc

from opserve import _frame, _process, _reachability, errors
from opserve._operator import Parameters
from opserve._operators import Operators
from opserve._request import Request
from opserve._request_numbers import Ticket
from opserve._retry import Attempts, Repeat
from opserve._sent_call import ToldCall
from opserve._session_state import WHOLE, owned
from opserve.program import Program, Response, Result

if TYPE_CHECKING:
    from opserve.client import Client

# An idle thread ends after so many seconds.
_IDLE = 2.0


class ExecuteStream(Operators["Future[Any]"]):
    """Requests that are sent as they come and answered in any order; from Client.open_stream.

        with client.open_stream(window=16) as stream:
            futures = [stream.l1_loss_backward(g, x, t) for x in batches]
            gradients = [future.result() for future in futures]

    The methods of Operators give a future of the result. Requests are sent, wait for a daemon that
    is away, and are repeated like all of the client's; an error of one concerns it alone. A tensor
    is read before submit() returns.

    Thread-safe. While there are requests it has a thread of its own, in which the callbacks of
    futures run, and the client's on_receipt. Not to be used in a forked child. Cannot be pickled.
    """

    def __init__(self, client: Client, window: int, timeout: Optional[float]) -> None:
        """For Client.open_stream. ValueError: the window is less than 1."""
        if window < 1:
            raise ValueError(f"window is {window}; expected at least 1")
        self._client = client
        self._timeout = math.inf if timeout is None else timeout
        self._deadline = time.monotonic() + self._timeout
        self._room = threading.BoundedSemaphore(window)
        self._numbers = itertools.count(1)
        # What the thread is to do next.
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        # When requests that wait to be repeated are; of the thread alone, as the next one.
        self._waiting: dict[_Request, float] = {}
        self._has_place = False  # for a request of the callback that runs
        self._changed = threading.Condition()
        # All below is guarded by it. Requests by number, until their callbacks have returned.
        self._in_progress: dict[int, _Request] = {}
        self._thread: Optional[threading.Thread] = None
        self._is_finished = False
        self._is_cancelled = False
        self._late: Optional[errors.OpserveError] = None  # of a request at the stream's deadline
        _process.watch(self)

    def submit(
        self,
        program: Program,
        results: Optional[Sequence[Result]] = None,
        *,
        want_receipt: bool = False,
        priority: str = "normal",
        timeout: float = 0,
    ) -> Future[Response]:
        """Sends a program; waits only while the window is full, or a session is being opened.

        Args:
            timeout: in seconds, once there is room for it; 0: the client's. That of the stream may
                be over earlier.
            others: as for Client.execute.

        Raises:
            RuntimeError: after finish() or cancel(), or where the window is full and the caller is
                a callback, for which the stream cannot wait; a callback always finds room for one
                request.
            ClosedError: the client is closed, or in a forked child.
        """
        client = self._client
        client._check_usable()
        on_receipt = client._options.on_receipt
        request = Request(
            program,
            client._shared_memory.fill_range,
            results=results,
            want_receipt=want_receipt or on_receipt is not None,
            priority=priority,
        )
        ticket = request.identify(client._numbers)
        message = owned(request.encode())
        request.forget_payloads()

        def read(answer: _frame.Buffer) -> Response:
            response = request.decode(answer)
            if on_receipt is not None:
                on_receipt(response.receipt)
            return response

        return self._submit(message, read, timeout, ticket)

    def finish(self) -> None:
        """Takes no more requests, and waits for all answers and their callbacks.

        Errors of requests are those of their futures.

        Raises:
            DeadlineExceededError: the stream's timeout was over before all were answered.
            RuntimeError: the caller is a callback.
        """
        if _process.is_forked():
            return
        if self._is_in_callback():
            raise RuntimeError("a callback cannot wait for the end of its stream")
        with self._changed:
            self._is_finished = True
        self._wait_for_all()
        if self._late is not None:
            raise self._late

    def cancel(self) -> None:
        """Cancels requests in progress, which get CancelledError, and waits until all have ended.

        It does not wait where the caller is a callback.
        """
        if _process.is_forked():
            return
        with self._changed:
            self._is_finished = self._is_cancelled = True
            for request in self._in_progress.values():
                call = request.call
                if call is not None:
                    call.cancel()
                self._events.put(functools.partial(self._resume, request))
        if not self._is_in_callback():
            self._wait_for_all()

    def __enter__(self) -> ExecuteStream:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.cancel()

    def __repr__(self) -> str:
        state = "finished" if self._is_finished else f"{len(self._in_progress)} in progress"
        return f"<opserve.ExecuteStream {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an ExecuteStream cannot be pickled or copied: open one in each process"
        )

    def _after_fork_in_child(self) -> None:
        _process.keep_for_ever(list(self._in_progress.values()))

    def _call_operator(
        self,
        operator: str,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        parameters: Parameters,
    ) -> Future[Any]:
        self._client._check_usable()
        message, outputs = self._client._begin_operator(
            operator, inputs, attributes, parameters
        )
        return self._submit(owned(message), outputs, parameters.timeout, None)

    def _submit(
        self,
        message: _frame.Sendable,
        read: Callable[[_frame.Buffer], Any],
        timeout: Optional[float],
        ticket: Optional[Ticket],
    ) -> Future[Any]:
        own = timeout or self._client._options.timeout
        self._enter()
        with self._changed:
            if self._is_finished:
                self._room.release()
                raise RuntimeError("the stream is finished")
            left = self._deadline - time.monotonic()
            is_last = left < own
            request = _Request(
                next(self._numbers),
                message,
                read,
                ticket,
                self._attempts(min(own, left), self._timeout if is_last else own),
                is_last,
            )
            self._in_progress[request.number] = request
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="opserve-stream", daemon=True
                )
                self._thread.start()
        self._attempt(request)
        return request.future

    def _enter(self) -> None:
        """Waits for room in the window."""
        if not self._is_in_callback():
            self._room.acquire()
        elif self._has_place:
            self._has_place = False
        elif not self._room.acquire(blocking=False):
            raise RuntimeError("the stream's window is full, and a callback cannot wait")

    def _attempts(self, seconds: float, timeout: float) -> Attempts:
        """Those of a request that has so many seconds, since `timeout` was given."""

        def explain(error: errors.OpserveError) -> None:
            self._client._options.explain(error, timeout)

        return Attempts(self._client._policy, seconds, Repeat(), explain)

    def _attempt(self, request: _Request) -> None:
        # A large one may fit no call: if one session has not started it, the next one gets it.
        request.entries = 2 if len(request.message) > WHOLE else 1
        self._send(request)

    def _send(self, request: _Request) -> None:
        """Sends it once, in a session as long as it may enter one."""
        try:
            seconds = request.attempts.time_left()
            if self._is_cancelled:
                raise errors.make_error(grpc.StatusCode.CANCELLED, "the stream was cancelled")
            if seconds <= 0:
                raise errors.make_error(grpc.StatusCode.DEADLINE_EXCEEDED, "it was not sent")
            call = self._client._start(request.message, seconds, request.entries > 0)
        except errors.OpserveError as error:
            self._events.put(functools.partial(self._take_failure, request, error))
            return
        except BaseException as error:  # an interruption of submit(), or gRPC's when it is closed
            self._events.put(functools.partial(self._end, request, error))
            if isinstance(error, Exception):
                return
            raise
        request.entries -= 1
        with self._changed:
            request.call = call
            if self._is_cancelled:
                call.cancel()
        call.tell(lambda: self._events.put(functools.partial(self._take_end, request)))

    def _is_in_callback(self) -> bool:
        return threading.current_thread() is self._thread

    def _wait_for_all(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._in_progress)

    def _run(self) -> None:
        while True:
            seconds: Optional[float] = None
            if self._waiting:
                seconds = max(min(self._waiting.values()) - time.monotonic(), 0)
            elif not self._in_progress:
                seconds = _IDLE
            try:
                event = self._events.get(timeout=seconds)
            except queue.Empty:
                event = self._look_around
            event()
            del event  # it has a request
            if not self._is_in_callback():  # it has ended, as far as others know
                return

    def _look_around(self) -> None:
        """Repeats requests when it is time to. Without any the thread ends."""
        now = time.monotonic()
        for request in [one for one, when in self._waiting.items() if when <= now]:
            self._resume(request)
        with self._changed:
            if not self._in_progress:
                self._thread = None

    def _take_end(self, request: _Request) -> None:
        """Takes the outcome of a call that has ended."""
        call, request.call = request.call, None
        assert call is not None
        try:
            answer = call.read()
        except errors.OpserveError as error:
            self._take_failure(request, error)
            return
        if answer is None:
            self._send(request)
            return
        request.attempts.succeed()
        try:
            result = request.read(answer)
        except Exception as error:
            self._end(request, error)
            return
        self._end(request, None, result)

    def _take_failure(self, request: _Request, error: errors.OpserveError) -> None:
        wait = request.attempts.wait_after(error)
        if wait is None:
            self._end(request, error)
            return
        self._waiting[request] = time.monotonic() + wait
        resume = functools.partial(self._events.put, functools.partial(self._resume, request))
        if _reachability.was_unreachable(error):
            try:
                request.ignore_connections = self._client._tell_connection(resume)
            except errors.ClosedError:
                resume()
        if self._is_cancelled:
            resume()

    def _resume(self, request: _Request) -> None:
        """Repeats a request, if it waits for that."""
        if self._waiting.pop(request, None) is not None:
            request.ignore_connections()
            self._attempt(request)

    def _end(
        self,
        request: _Request,
        error: Optional[BaseException],
        result: Any = None,
    ) -> None:
        """Ends a request, and gives up its place, to a callback of its own first."""
        if request.ticket is not None:
            request.ticket.release()
        if request.is_last and isinstance(error, errors.DeadlineExceededError):
            self._late = error
        self._has_place = True
        if error is not None:
            request.future.set_exception(error)
        else:
            request.future.set_result(result)
        if self._has_place:
            self._has_place = False
            self._room.release()
        with self._changed:
            del self._in_progress[request.number]
            self._changed.notify_all()


class _Request:
    """A request of a stream, in progress.

    Attributes:
        read: gives the result that is in an answer.
        is_last: whether its deadline is the stream's.
        entries: how many sessions it may enter before it becomes a call.
        call: the present attempt, while it has one.
        ignore_connections: ends what Client._tell_connection has begun.
    """

    def __init__(
        self,
        number: int,
        message: _frame.Sendable,
        read: Callable[[_frame.Buffer], Any],
        ticket: Optional[Ticket],
        attempts: Attempts,
        is_last: bool,
    ) -> None:
        self.number = number
        self.message = message
        self.read = read
        self.ticket = ticket
        self.attempts = attempts
        self.is_last = is_last
        self.future: Future[Any] = Future()
        self.future.set_running_or_notify_cancel()
        self.entries = 0
        self.call: Optional[ToldCall] = None
        self.ignore_connections: Callable[[], None] = lambda: None
