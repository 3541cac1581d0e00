"""Client of an opserve daemon, for programs with threads or without."""

from __future__ import annotations

import contextlib
import datetime
import queue
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, TypeVar, Union

import grpc
from grpc.experimental import ChannelOptions

from opserve import _connection, _frame, _process, _reachability, _wire, errors
from opserve._call_minder import CallMinder
from opserve._connection import (
    DEFAULT_CHUNK_BYTES,
    DEFAULT_TIMEOUT,
    OnProgress,
    OnReceipt,
    TraceParent,
)
from opserve._one_batch import one_batch
from opserve._operator import Parameters
from opserve._operators import Operators
from opserve._request import Request
from opserve._retry import Repeat, Retry
from opserve._sent_call import SentCall, ToldCall, UnaryCall
from opserve._session import SessionCall
from opserve._session_state import WHOLE
from opserve._sessions import Sessions
from opserve._target import Keepalive, Tls, default_target
from opserve.prepared import PreparedProgram
from opserve.program import InputOf, Program, Response, Result
from opserve.resident import ResidentTensor
from opserve.shared_memory import SharedRegion
from opserve.stream import ExecuteStream

T = TypeVar("T")

_TRANSFER = Repeat(after_losses=False, after_refusals=False)


class Client(_connection.ClientBase, Operators[Any]):
    """A connection to one daemon, or to each of several between which calls go round.

    It is made when first needed and remade after it broke. Tensors are in the memory of one
    daemon: a program with resident tensors connects to that one, or says `balance=False`.

    The methods of Operators run one operator and give its result, of the kind of the first
    tensor. Calls wait in the calling thread, without the interpreter's lock. Thread-safe.

    Errors are OpserveError. A call waits within its timeout for a daemon that is away: one that
    cannot be reached, or drains. Operators are pure: calls are repeated after UnavailableError
    and ResourceExhaustedError, unless the daemon says that it is of no use: after the wait that
    the daemon asks for, else after up to 50 ms, 100 ms, 200 ms and so on up to 5 s, drawn at
    random. The timeout is that of all attempts. Uploads and downloads are not repeated.

    A closed client stays closed, and a client cannot be used in a child that was forked after
    any client had connected: both are ClosedError. The fork itself does no harm, as those of a
    DataLoader. It cannot be pickled.
    """

    def __init__(
        self,
        target: Optional[str] = None,
        *,
        tls: Optional[Tls] = None,
        token: Optional[str] = None,
        timeout: float = DEFAULT_TIMEOUT,
        retry: Retry = Retry(),
        keepalive: Keepalive = Keepalive(),
        on_receipt: Optional[OnReceipt] = None,
        traceparent: Optional[TraceParent] = None,
        balance: bool = True,
        session: bool = True,
    ) -> None:
        """Connects to nothing yet.

        Args:
            target: "unix:PATH", "HOST:PORT", "dns:///HOST:PORT" (a daemon at each address of
                HOST), or a list of unix:PATH, IPV4:PORT or [IPV6]:PORT with commas. None:
                OPSERVE_TARGET, else the Unix socket on which `opserved` serves this user.
            tls: None: not encrypted.
            token: identifies the caller; without TLS it goes only to Unix sockets and loopback
                addresses.
            timeout: of calls that are given none, in seconds.
            retry: how often calls are repeated.
            keepalive: when a silent daemon counts as gone.
            on_receipt: called with the receipt of each call, in the thread that made it; asks
                for one in each call.
            traceparent: gives the W3C traceparent of the calling thread's work, which is
                sent with each call, so that the daemon's log and receipts name its trace; None
                or "": none.
            balance: whether calls go round the daemons of the target. False: to the first one
                that can be reached, and to another when that one is lost, as resident tensors
                need it: they are in the memory of one daemon.
            session: whether requests travel together over a long stream to each daemon, a session,
                instead of in a call each, if the daemons know sessions.

        Raises:
            ValueError: one of these cannot be met.
        """
        options = _connection.Options.check(
            target or default_target(),
            tls,
            token,
            timeout,
            retry,
            keepalive,
            on_receipt,
            traceparent,
            balance,
        )
        super().__init__(options)
        self._lock = threading.Lock()  # guards _channel, _is_closed and _close_queues
        self._close_queues: weakref.WeakSet[queue.SimpleQueue[Any]] = weakref.WeakSet()
        # By method, with the channel that they belong to: to make one takes longer than to find it.
        self._methods: dict[str, tuple[Any, Any]] = {}
        self._minder = CallMinder()
        self._sessions: Optional[Sessions] = None
        if session:
            self._sessions = Sessions(self._connect, options)

    def execute(
        self,
        program: Program,
        results: Optional[Sequence[Result]] = None,
        *,
        donated: Sequence[ResidentTensor] = (),
        want_receipt: bool = False,
        priority: str = "normal",
        idempotency_key: str = "",
        timeout: Optional[float] = None,
        wait_for_daemon: bool = True,
    ) -> Response:
        """Runs a program on one device and waits for its results.

        A program that keeps, replaces or donates tensors has an identity, by which the daemon knows
        it: it runs once, however often it has to be sent.

        Args:
            results: wanted, in this order; None: the outputs of the last invocation. Those that
                stay on the device (Program.keep, Program.replace) come as ResidentTensor.
            donated: resident tensors that the program uses and gives up; an operator that
                changes one in place needs no second memory for it if its result replaces it.
            priority: "low", "normal" or "high", among the tenant's own requests.
            idempotency_key: while the daemon remembers it (10 minutes at most), the same request
                is run once, and each repetition gets the same answer; without room to remember
                it, receipt.not_remembered is true. Not with shared memory.
            timeout: in seconds; None: the client's.
            wait_for_daemon: False: a daemon that is away is an error at once.
        """
        self._check_usable()
        request = Request(
            program,
            self._shared_memory.fill_range,
            results=results,
            donated=donated,
            want_receipt=want_receipt or self._options.on_receipt is not None,
            priority=priority,
            idempotency_key=idempotency_key,
        )
        ticket = request.identify(self._numbers)
        repeat = Repeat(waits_for_daemon=wait_for_daemon)
        try:
            answer = self._call(_wire.EXECUTE, request.encode(), timeout, repeat)
        finally:
            if ticket is not None:
                ticket.release()
        response = request.decode(answer)
        if self._options.on_receipt is not None:
            self._options.on_receipt(response.receipt)
        return response

    def prepare(
        self,
        program: Program,
        results: Optional[Sequence[Result]] = None,
        *,
        donated: Sequence[Union[ResidentTensor, InputOf]] = (),
    ) -> PreparedProgram:
        """Lets the daemon check, bind and plan a program once, to be run often: see PreparedProgram.

        Args:
            results, donated: as in execute(); inputs of the program may be replaced and
                donated, too, and are resident tensors then.
        """
        request = Request(
            program, self._shared_memory.fill_range, results=results, donated=donated
        )
        self._release_programs()

        return PreparedProgram(
            program,
            request,
            self._shared_memory.fill_range,
            lambda method, message, seconds: self._call(method, message, seconds),
            lambda method, message, seconds: self._send(method, message, seconds),
            self._given_up_programs.extend,
            self._numbers,
        )

    def _release_programs(self) -> None:
        """Lets the daemon forget programs that were given up. It forgets them in time anyway."""
        message = self._take_given_up()
        if message is None:
            return
        with contextlib.suppress(errors.OpserveError):
            self._call(_wire.RELEASE_PROGRAMS, message, None, _TRANSFER)

    def _call_operator(
        self,
        operator: str,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        parameters: Parameters,
    ) -> Any:
        self._check_usable()
        message, outputs = self._begin_operator(operator, inputs, attributes, parameters)
        return outputs(self._call(_wire.EXECUTE, message, parameters.timeout))

    def open_stream(
        self, window: int = 64, timeout: Optional[float] = None
    ) -> ExecuteStream:
        """A pipeline: requests are sent as they come, and answered as they end.

        Args:
            window: requests in progress at once, at least 1.
            timeout: after so many seconds from now on, requests in progress end, and all that come
                later; None: requests have only their own timeouts.
        """
        self._check_usable()
        return ExecuteStream(self, window, timeout)

    def upload(
        self,
        tensor: object,
        *,
        lease: float = 0,
        device: Optional[int] = None,
        chunk_bytes: int = DEFAULT_CHUNK_BYTES,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
    ) -> ResidentTensor:
        """Puts a tensor into a device's memory, where it stays for its lease.

        Args:
            lease: in seconds; 0: the daemon's default (10 minutes).
            device: None: that of the caller's other tensors while it has room.
            chunk_bytes: at most the daemon's limit on messages, less 64 KiB.
            timeout: of the whole transfer.
            on_progress: called with bytes done and bytes in all, from gRPC's thread.
        """
        upload = _connection.Upload(
            tensor,
            lease=lease,
            device=device,
            chunk_bytes=chunk_bytes,
            on_progress=on_progress,
        )

        def attempt(time_left: float) -> bytes:
            answer: bytes = self._connect().stream_unary(_wire.UPLOAD)(
                upload.messages(), timeout=time_left, metadata=self._options.metadata
            )
            return answer

        return upload.read(self._run(attempt, timeout, _TRANSFER))

    def download(
        self,
        tensor: ResidentTensor,
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
    ) -> Any:
        """The elements of a resident tensor, as a numpy array.

        Raises NotFoundError (its lease has ended), TensorLostError (the device has lost it) and
        DataLossError (other bytes came than were sent).
        """
        return self.snapshot([tensor], timeout=timeout, on_progress=on_progress)[0]

    def snapshot(
        self,
        tensors: Sequence[ResidentTensor],
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
    ) -> list[Any]:
        """The elements of resident tensors, as numpy arrays, all as they are at one moment.

        Calls with the tensors, each named once, go on meanwhile; one that replaces a tensor takes
        memory on the device for both contents until the old one is here. Raises as download does.
        """
        if not tensors:
            return []
        request = _connection.Download.request(tensors)

        def attempt(time_left: float) -> _connection.Download:
            download = _connection.Download(tensors, on_progress)
            for message in self._connect().unary_stream(_wire.DOWNLOAD)(
                request, timeout=time_left, metadata=self._options.metadata
            ):
                download.add(message)
            return download

        return self._run(attempt, timeout, _TRANSFER).end()

    def renew(
        self,
        tensors: Sequence[ResidentTensor],
        lease: float = 0,
        *,
        timeout: Optional[float] = None,
    ) -> list[datetime.datetime]:
        """Lets leases end `lease` seconds from now, none earlier than it would have; their ends.

        At most 1024. On an error no lease is changed.
        """
        message = _connection.renew_message(tensors, lease)
        return _connection.read_renewal(self._call(_wire.RENEW, message, timeout))

    def release(
        self, tensors: Sequence[ResidentTensor], *, timeout: Optional[float] = None
    ) -> int:
        """Frees resident tensors, at most 1024, and gives their number; unknown ones are passed over."""
        message = _connection.release_message(tensors)
        return _connection.read_release(self._call(_wire.RELEASE, message, timeout))

    def create_region(self, size: int, *, read_only: bool = False) -> SharedRegion:
        """Memory of `size` bytes that the daemon on this machine has, too: see SharedRegion.

        Args:
            read_only: the daemon can read it, and write no result to it.

        Raises:
            ValueError: the target is not unix:PATH.
            UnavailableError: the daemon takes no shared memory.
            ResourceExhaustedError: a quota is full, or this machine's memory.
        """
        self._check_usable()
        return self._shared_memory.create_region(size, read_only)

    def list_operators(
        self, names: Sequence[str] = (), *, timeout: Optional[float] = None
    ) -> list[Any]:
        """OperatorDescriptor messages (operator.proto) of these names, or of all."""
        message = _wire.ListOperatorsRequest(names=names).SerializeToString()
        answer = self._call(_wire.LIST_OPERATORS, message, timeout)
        return list(_wire.ListOperatorsResponse.FromString(answer).operators)

    def server_status(self, *, timeout: Optional[float] = None) -> Any:
        """The daemon's version and devices: a GetServerStatusResponse message."""
        message = _wire.GetServerStatusRequest().SerializeToString()
        answer = self._call(_wire.GET_SERVER_STATUS, message, timeout)
        return _wire.GetServerStatusResponse.FromString(answer)

    def close(self) -> None:
        """Ends the connection, calls in progress, and regions of shared memory, for good.

        These calls raise CancelledError, or ClosedError if they were not sent yet.
        """
        if _process.is_forked():
            self._is_closed = True
            return  # the connection is the parent's, and another thread of it may have the lock
        self._shared_memory.close()
        if self._sessions is not None:
            self._sessions.stop()
        with self._lock:
            self._is_closed = True
            channel, self._channel = self._channel, None
            self._methods.clear()
            waiting = list(self._close_queues)
        for one in waiting:
            one.put(None)
        if channel is not None:
            channel.close()

    def _put_when_closed(self, waiting: queue.SimpleQueue[Any]) -> None:
        """None comes into the queue when the client is closed; at once if it is."""
        with self._lock:
            if not self._is_closed:
                self._close_queues.add(waiting)
                return
        waiting.put(None)

    def __enter__(self) -> Client:
        self._check_usable()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> Any:
        self._check_usable()
        _process.begin_connection()
        with self._lock:
            self._check_usable()  # close() may have come between
            if self._channel is None:
                uri, credentials, options = self._options.channel_arguments()
                # Else a thread of grpc's reads answers, and wakes the one that waits for them.
                options.append((ChannelOptions.SingleThreadedUnaryStream, 1))
                self._channel = (
                    grpc.insecure_channel(uri, options)
                    if credentials is None
                    else grpc.secure_channel(uri, credentials, options)
                )
            return self._channel

    def _method(self, method: str) -> Any:
        """What calls a method of the daemon's that has one message and one answer.

        A call does not wait for its answer; the thread that iterates over it does.
        """
        channel = self._connect()
        known = self._methods.get(method)
        if known is None or known[0] is not channel:
            known = self._methods[method] = channel, one_batch(channel.unary_stream(method))
        return known[1]

    def _call(
        self,
        method: str,
        message: _frame.Sendable,
        timeout: Optional[float],
        repeat: Repeat = Repeat(),
    ) -> _frame.Buffer:
        return self._run(self._attempt(method, message), timeout, repeat)

    def _send(
        self,
        method: str,
        message: _frame.Sendable,
        timeout: Optional[float],
        repeat: Repeat = Repeat(),
    ) -> SentCall:
        """As _call, but does not wait for the answer. A repetition has a timeout of its own."""
        seconds = self._options.timeout if timeout is None else timeout
        call = self._enter(method, message, seconds) or self._method(method)(
            bytes(message), timeout=seconds, metadata=self._options.metadata
        )

        def again(failure: Optional[errors.OpserveError]) -> _frame.Buffer:
            return self._run(self._attempt(method, message), timeout, repeat, failure)

        sent = SentCall(call, again, self._policy.record_success)
        self._minder.add(sent, len(message))
        return sent

    def _enter(
        self, method: str, message: _frame.Sendable, seconds: float
    ) -> Optional[SessionCall]:
        """Sends it in a session, if it is a request and there is one."""
        if method != _wire.EXECUTE or self._sessions is None:
            return None
        self._check_usable()
        return self._sessions.enter(message, seconds)

    def _start(self, message: _frame.Sendable, seconds: float, may_enter: bool) -> ToldCall:
        """Sends an ExecuteRequest whose caller is told of its end.

        Args:
            may_enter: whether it goes into a session, if there is one.
        """
        entered = self._enter(_wire.EXECUTE, message, seconds) if may_enter else None
        if entered is not None:
            return entered
        method = self._connect().unary_unary(_wire.EXECUTE)
        metadata = self._options.metadata
        return UnaryCall(method.future(bytes(message), timeout=seconds, metadata=metadata))

    def _attempt(self, method: str, message: _frame.Sendable) -> Callable[[float], _frame.Buffer]:
        def attempt(time_left: float) -> _frame.Buffer:
            # A large one may fit no call: if one session has not started it, the next one gets it.
            for _ in range(2 if len(message) > WHOLE else 1):
                entered = self._enter(method, message, time_left)
                if entered is None:
                    break
                started = time.monotonic()
                answer = entered.read()
                if answer is not None:
                    return answer
                time_left -= time.monotonic() - started
            call = self._method(method)(
                bytes(message), timeout=time_left, metadata=self._options.metadata
            )
            reply: Optional[_frame.Buffer] = next(iter(call), None)
            if reply is None:
                raise errors.without_answer()
            return reply

        return attempt

    def _run(
        self,
        attempt: Callable[[float], T],
        timeout: Optional[float],
        repeat: Repeat,
        failure: Optional[errors.OpserveError] = None,
    ) -> T:
        """Makes attempts, each of which is given the seconds left, until one succeeds.

        Args:
            failure: of an attempt that was made already.
        """
        attempts = self._begin(timeout, repeat)
        while True:
            try:
                if failure is not None:
                    raise failure
                result = _with_typed_errors(lambda: attempt(attempts.time_left()))
                attempts.succeed()
                return result
            except errors.OpserveError as error:
                failure = None  # which refers to this frame now
                wait = attempts.wait_after(error)
                if wait is None:
                    raise
                is_unreachable = _reachability.was_unreachable(error)
            if is_unreachable:
                self._wait_for_connection(wait)
            else:
                time.sleep(wait)

    def _wait_for_connection(self, seconds: float) -> None:
        """Returns once there is a connection, or after so many seconds."""
        is_ready = threading.Event()
        end = self._tell_connection(is_ready.set)
        is_ready.wait(seconds)
        end()

    def _tell_connection(self, tell: Callable[[], object]) -> Callable[[], None]:
        """Calls `tell` in another thread when there is a connection. Gives what ends that."""
        # The threads that make calls move a connection on while they wait for answers. These calls
        # fail at once, and without a waiting thread gRPC looks after a new connection every 5 s.
        channel = self._connect()

        def change(state: grpc.ChannelConnectivity) -> None:
            if state is grpc.ChannelConnectivity.READY:
                tell()

        channel.subscribe(change)
        return lambda: channel.unsubscribe(change)


def _with_typed_errors(call: Callable[[], T]) -> T:
    """Makes a call, and turns its errors into OpserveError.

    The error refers to nothing of gRPC, not even as its context: errors may be kept longer
    than the calls they came from.
    """
    try:
        return call()
    except grpc.RpcError as raised:
        error = errors.from_rpc_error(raised)
    raise error
