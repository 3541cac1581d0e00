"""A pipeline of requests over one call."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Callable, NoReturn, Optional

import grpc

from opserve import _connection, _frame, _process, _wire, errors
from opserve._operator import Parameters
from opserve._operators import Operators
from opserve._request import FillRange, Request
from opserve.program import OutputOf, Program, Response

# Says in an error of the stream, with this timeout, which daemon it concerns.
Explain = Callable[[errors.OpserveError, Optional[float]], None]


class ExecuteStream(Operators["Future[Any]"]):
    """Requests that are sent as they come and answered in any order; from Client.open_stream.

        with client.open_stream(window=16) as stream:
            futures = [stream.l1_loss_backward(g, x, t) for x in batches]
            gradients = [future.result() for future in futures]

    The methods of Operators give a future of the result. An error of one request concerns it
    alone; when the stream itself breaks, all that are in progress, and all that come later, get
    its error. Nothing is repeated. A tensor is read before submit() returns.

    Thread-safe; has two threads of its own, in one of which the callbacks of futures run. Not to
    be used in a forked child. Cannot be pickled.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        fill_range: FillRange,
        metadata: Sequence[tuple[str, str]],
        window: int,
        timeout: Optional[float],
        on_receipt: Optional[_connection.OnReceipt],
        explain: Explain,
    ) -> None:
        """For Client.open_stream. ValueError: the window is less than 1."""
        if window < 1:
            raise ValueError(f"window is {window}; expected at least 1")
        self._fill_range = fill_range
        self._on_receipt = on_receipt
        self._explain = explain
        self._timeout = timeout
        self._room = threading.BoundedSemaphore(window)
        self._ids = itertools.count(1)
        self._outgoing: queue.SimpleQueue[Optional[bytes]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        # Guarded by _lock, as below. The future is that of the request with this number.
        self._pending: dict[int, tuple[Request, Future[Response]]] = {}
        self._is_finished = False
        self._error: Optional[errors.OpserveError] = None
        self._call = call(self._messages(), timeout=timeout, metadata=metadata)
        self._reader = threading.Thread(
            target=self._read, name="opserve-stream", daemon=True
        )
        self._reader.start()
        _process.watch(self)

    def submit(
        self,
        program: Program,
        results: Optional[Sequence[OutputOf]] = None,
        *,
        want_receipt: bool = False,
        priority: str = "normal",
        timeout: float = 0,
    ) -> Future[Response]:
        """Sends a program; waits only while the window is full.

        Args:
            timeout: from the request's arrival at the daemon, in seconds; 0: the stream's.
            others: as for Client.execute.

        Raises:
            OpserveError: of the stream, which has ended.
            RuntimeError: after finish(), or where the window is full and the caller is a
                callback, for which the stream cannot wait; a callback always finds room for one
                request.
            ClosedError: in a forked child.
        """
        if _process.is_forked():
            raise errors.ClosedError(_process.REFUSAL)
        request = Request(
            program,
            self._fill_range,
            results=results,
            want_receipt=want_receipt or self._on_receipt is not None,
            priority=priority,
        )
        message = _wire.ExecuteStreamRequest(id=next(self._ids))
        message.request.CopyFrom(request.header)
        _connection.set_duration(message.timeout, timeout)
        encoded = _frame.join(message, request.payloads)
        request.forget_payloads()
        future: Future[Response] = Future()
        future.set_running_or_notify_cancel()
        in_callback = threading.current_thread() is self._reader
        if not self._room.acquire(blocking=not in_callback):
            raise RuntimeError(
                "the stream's window is full, and a callback cannot wait"
            )
        with self._lock:
            if self._error is not None or self._is_finished:
                self._room.release()
                if self._error is not None:
                    raise self._error
                raise RuntimeError("the stream is finished")
            self._pending[message.id] = (request, future)
            self._outgoing.put(encoded)
        return future

    def finish(self) -> None:
        """Takes no more requests and waits for all answers.

        Raises the stream's error, unless each request had its answer.
        """
        if _process.is_forked():
            return
        with self._lock:
            if not self._is_finished:
                self._is_finished = True
                self._outgoing.put(None)
        self._reader.join()
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        """Ends it at once; requests in progress get CancelledError."""
        if _process.is_forked():
            return
        self._call.cancel()
        with self._lock:
            self._is_finished = True
            self._outgoing.put(None)
        self._reader.join()

    def __enter__(self) -> ExecuteStream:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.cancel()

    def __repr__(self) -> str:
        state = "finished" if self._is_finished else f"{len(self._pending)} in progress"
        return f"<opserve.ExecuteStream {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an ExecuteStream cannot be pickled or copied: open one in each process"
        )

    def _after_fork_in_child(self) -> None:
        _process.keep_for_ever(self._call)

    def _call_operator(
        self,
        operator: str,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        parameters: Parameters,
    ) -> Future[Any]:
        program = Program()
        program.invoke(operator, inputs, attributes, parameters)
        response = self.submit(program, timeout=parameters.timeout or 0)
        result: Future[Any] = Future()
        result.set_running_or_notify_cancel()

        def pass_on(done: Future[Response]) -> None:
            error = done.exception()
            if error is not None:
                result.set_exception(error)
            else:
                result.set_result(done.result().outputs)

        response.add_done_callback(pass_on)
        return result

    def _messages(self) -> Iterator[bytes]:
        while True:
            message = self._outgoing.get()
            if message is None:
                return
            yield message

    def _read(self) -> None:
        error: Optional[errors.OpserveError] = None
        try:
            for message in self._call:
                self._take_answer(message)
        except grpc.RpcError as raised:
            error = errors.from_rpc_error(raised)
            self._explain(error, self._timeout)
        except Exception as raised:  # an answer that breaks the protocol
            error = errors.bad_answer(raised)
            self._call.cancel()
        with self._lock:
            pending, self._pending = list(self._pending.values()), {}
            if error is None and pending:
                error = errors.bad_answer(
                    "the stream ended before each request had one"
                )
            self._error = error
            self._is_finished = True
            self._outgoing.put(None)
        for _, future in pending:
            self._room.release()
            assert error is not None
            future.set_exception(error)

    def _take_answer(self, message: bytes) -> None:
        answer, payloads = _frame.split(message, _wire.ExecuteStreamResponse)
        with self._lock:
            request, future = self._pending.pop(answer.id)
        self._room.release()
        if answer.HasField("error"):
            future.set_exception(errors.from_status(answer.error))
            return
        try:
            response = request.read(answer.response, payloads)
            if self._on_receipt is not None:
                self._on_receipt(response.receipt)
        except Exception as error:
            future.set_exception(error)
            return
        future.set_result(response)
