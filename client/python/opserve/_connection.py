"""Shared by the clients: options, requests as messages, answers as values."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Optional

import google_crc32c
import grpc
import numpy as np

from opserve import _frame, _process, _reachability, _tensors, _wire, errors
from opserve._data_type import DataType
from opserve._known_requests import KnownRequests
from opserve._operator import Parameters
from opserve._request_numbers import RequestNumbers
from opserve._retry import Attempts, Repeat, Retry, RetryPolicy
from opserve._shared_results import SharedResults
from opserve._target import Keepalive, Target, Tls, channel_arguments, parse_target
from opserve._views import TensorView, memory
from opserve.resident import ResidentTensor
from opserve.shared_memory import SharedMemoryConnection, SharedRegion

if TYPE_CHECKING:
    from opserve._any_sessions import AnySessions

DEFAULT_TIMEOUT = 30.0
# Below, the cost of each message shows; above, chunks fall out of the caches.
DEFAULT_CHUNK_BYTES = 1 << 20

OnReceipt = Callable[[Any], None]
TraceParent = Callable[[], Optional[str]]
# Called with bytes done and bytes in all, after each chunk of a transfer.
OnProgress = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True)
class Options:
    """How a client reaches its daemon, checked. See Client."""

    target: Target
    tls: Optional[Tls]
    token: Optional[str] = dataclasses.field(repr=False)
    timeout: float
    retry: Retry
    keepalive: Keepalive
    on_receipt: Optional[OnReceipt]
    traceparent: Optional[TraceParent]

    @classmethod
    def check(
        cls,
        target: str,
        tls: Optional[Tls],
        token: Optional[str],
        timeout: float,
        retry: Retry,
        keepalive: Keepalive,
        on_receipt: Optional[OnReceipt],
        traceparent: Optional[TraceParent],
        balance: bool,
    ) -> Options:
        """ValueError: something cannot be met."""
        if not timeout > 0:
            raise ValueError(f"timeout is {timeout}; expected seconds above 0")
        options = cls(
            parse_target(target, balance),
            tls,
            token or None,
            timeout,
            retry,
            keepalive,
            on_receipt,
            traceparent,
        )
        options.channel_arguments()
        return options

    def channel_arguments(self) -> tuple[str, Any, list[tuple[str, Any]]]:
        return channel_arguments(self.target, self.tls, self.token, self.keepalive)

    @property
    def credentials(self) -> tuple[tuple[str, str], ...]:
        """Metadata that authenticates a call or a session."""
        return () if self.token is None else (("authorization", f"Bearer {self.token}"),)

    @property
    def trace(self) -> str:
        """W3C traceparent of the next call, "": it has none."""
        return (self.traceparent() or "") if self.traceparent is not None else ""

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Sent with the next call."""
        trace = self.trace
        return (*self.credentials, ("traceparent", trace)) if trace else self.credentials

    def explain(self, error: errors.OpserveError, timeout: Optional[float]) -> None:
        """Adds to an error of a call the daemon it concerns, and the remedy."""
        _reachability.explain(error, self.target, self.tls is not None, timeout)


class ClientBase:
    """Of each client: its options, and whether it can be used. Refuses to be pickled."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._policy = RetryPolicy(options.retry)
        self._numbers = RequestNumbers()
        self._shared_memory = SharedMemory(options)
        self._known_requests = KnownRequests()
        # Handles of prepared programs for the daemon to forget; bounded, as it forgets them anyway.
        self._given_up_programs: collections.deque[bytes] = collections.deque(maxlen=1024)
        self._is_closed = False
        self._channel: Optional[Any] = None
        self._sessions: Optional[AnySessions[Any]] = None
        _process.watch(self)

    @property
    def target(self) -> str:
        """Where it connects to, as gRPC names it."""
        return self._options.target.uri

    def __repr__(self) -> str:
        state = ", closed" if self._is_closed else ""
        return f"<opserve.{type(self).__name__} {self.target}{state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__}: a connection cannot be pickled or copied: make a client in "
            "each process (resident tensors may be pickled)"
        )

    def _take_given_up(self) -> Optional[bytes]:
        """The message that lets the daemon forget programs; None: there are none."""
        handles = []
        with contextlib.suppress(IndexError):  # when there are no more
            while True:
                handles.append(self._given_up_programs.popleft())
        if not handles:
            return None
        message: bytes = _wire.ReleaseProgramsRequest(handles=handles).SerializeToString()
        return message

    def _check_usable(self) -> None:
        """ClosedError: the client is closed, or the connection is that of a parent process."""
        if self._is_closed:
            raise errors.ClosedError("the client is closed: make another")
        if _process.is_forked():
            raise errors.ClosedError(_process.REFUSAL)

    def _after_fork_in_child(self) -> None:
        if self._channel is not None:
            _process.keep_for_ever(self._channel)
        if self._sessions is not None:
            self._sessions.keep_after_fork()

    def _begin_operator(
        self,
        operator: str,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        parameters: Parameters,
    ) -> tuple[_frame.Sendable, Callable[[_frame.Buffer], Any]]:
        """The message that calls an operator, and a function that gives its outputs.

        The message may refer to the inputs.
        """
        on_receipt = self._options.on_receipt
        message, decode = self._known_requests.begin(
            operator,
            inputs,
            attributes,
            parameters,
            self._shared_memory.fill_range,
            on_receipt is not None,
        )

        def outputs(answer: _frame.Buffer) -> Any:
            response = decode(answer)
            if on_receipt is not None:
                on_receipt(response.receipt)
            return response.outputs

        return message, outputs

    def _begin(self, timeout: Optional[float], repeat: Repeat) -> Attempts:
        seconds = timeout or self._options.timeout

        def explain(error: errors.OpserveError) -> None:
            self._options.explain(error, seconds)

        return Attempts(self._policy, seconds, repeat, explain)


class SharedMemory:
    """The shared memory of a client: connected when first needed. Thread-safe."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._connection: Optional[SharedMemoryConnection] = None  # guarded by _lock
        self.results = SharedResults(lambda size: self.create_region(size, False))

    def create_region(self, size: int, read_only: bool) -> SharedRegion:
        path = self._options.target.socket_path
        if path is None:
            raise ValueError(
                f"target {self._options.target.uri} is not unix:PATH, which shared memory needs"
            )
        _process.begin_connection()
        with self._lock:
            if self._connection is None or self._connection.is_over():
                self._connection = SharedMemoryConnection(
                    path, self._options.token, self._options.timeout
                )
            connection = self._connection
        return SharedRegion(connection, size, read_only)

    def fill_range(self, view: TensorView, message: Any) -> bool:
        """As Regions.fill_range. Regions of a daemon that has ended are ordinary memory."""
        connection = self._connection
        if connection is None or connection.is_over():
            return False
        return connection.regions.fill_range(view, message)

    def holds(self, address: int) -> bool:
        """Whether memory at `address` lies in a region that the daemon has."""
        connection = self._connection
        if connection is None or connection.is_over():
            return False
        return connection.regions.hold(address)

    def close(self) -> None:
        if _process.is_forked():
            return  # the connection is the parent's, and another thread of it may have the lock
        with self._lock:
            if self._connection is not None:
                self._connection.close()


class Upload:
    """A tensor on its way to the daemon. Elements that are not contiguous are copied first."""

    def __init__(
        self,
        tensor: object,
        *,
        lease: float,
        device: Optional[int],
        chunk_bytes: int,
        on_progress: Optional[OnProgress],
    ) -> None:
        """TypeError, ValueError: it is nothing that can be sent."""
        if chunk_bytes < 1:
            raise ValueError(f"chunk_bytes is {chunk_bytes}; expected at least 1")
        view = _tensors.view_of(tensor)
        self._view = view if view.is_contiguous else _tensors.contiguous(view)
        self._chunk_bytes = chunk_bytes
        self._on_progress = on_progress
        self._told = threading.Lock()
        self._done = -1  # bytes that on_progress was told; guarded by _told
        self._header = _wire.UploadRequest()
        self._header.header.dtype = view.dtype
        self._header.header.shape.extend(view.shape)
        self._header.header.chunk_bytes = chunk_bytes
        set_duration(self._header.header.lease, lease)
        if device is not None:
            self._header.header.device = device

    def messages(self) -> Iterator[bytes]:
        """One for each chunk; the first has the header, too."""
        data = memory(self._view.address, self._view.span_bytes)
        message = self._header
        for start in range(0, max(len(data), 1), self._chunk_bytes):
            chunk = data[start : start + self._chunk_bytes]
            message.crc32c = _crc32c(chunk)
            yield _frame.join(message, [chunk])
            self._tell(start + len(chunk))
            message = _wire.UploadRequest()

    def read(self, answer: _frame.Buffer) -> ResidentTensor:
        """The tensor that the daemon made of it."""
        response = _wire.UploadResponse.FromString(answer)
        self._tell(self._view.span_bytes)  # gRPC's thread may not have come to it
        return ResidentTensor(
            response.handle,
            self._view.dtype,
            self._view.shape,
            read_time(response.lease_end),
            response.device,
        )

    def _tell(self, done: int) -> None:
        if self._on_progress is None:
            return
        with self._told:
            if done > self._done:
                self._done = done
                self._on_progress(done, self._view.span_bytes)


class Download:
    """The elements of tensors that have arrived: of each a header, then its chunks."""

    def __init__(
        self, tensors: Sequence[ResidentTensor], on_progress: Optional[OnProgress]
    ) -> None:
        self._count = len(tensors)
        self._on_progress = on_progress
        self._views: list[TensorView] = []
        self._data: list[bytearray] = []  # of each header that has come
        self._arrived = 0  # bytes of the last tensor
        self._arrived_in_all = 0
        self._total = 0  # bytes in all, as far as the daemon has told
        self._begun = 0  # bytes of the tensors whose header has come

    @staticmethod
    def request(tensors: Sequence[ResidentTensor]) -> bytes:
        """What asks for them."""
        message = _wire.DownloadRequest()
        if len(tensors) == 1:
            message.handle = tensors[0].handle
        else:
            message.handles.extend(tensor.handle for tensor in tensors)
        encoded: bytes = message.SerializeToString()
        return encoded

    def add(self, message: bytes) -> None:
        """Takes the next message. DataLossError: a chunk differs from the one sent."""
        try:
            response, chunks = _frame.split(message, _wire.DownloadResponse)
        except _frame.FrameError as error:
            raise errors.bad_answer(error) from error
        if response.HasField("header"):
            self._begin(response.header)
            return
        if not self._views:
            raise errors.bad_answer("a download without header")
        chunk = chunks[0] if chunks else memoryview(b"")
        data = self._data[-1]
        end = self._arrived + len(chunk)
        if end > len(data) or _crc32c(chunk) != response.crc32c:
            raise _data_loss(f"the chunk at byte {self._arrived} differs from the one sent")
        data[self._arrived : end] = chunk
        self._arrived = end
        self._arrived_in_all += len(chunk)
        if self._on_progress is not None:
            self._on_progress(self._arrived_in_all, self._total)

    def end(self) -> list[Any]:
        """The tensors, numpy arrays. DataLossError: there are elements missing."""
        self._check_complete()
        if len(self._views) != self._count:
            raise self._wrong_count(len(self._views))
        return [
            np.frombuffer(data, view.dtype.numpy).reshape(view.shape)
            for data, view in zip(self._data, self._views)
        ]

    def _begin(self, header: Any) -> None:
        self._check_complete()
        if len(self._views) == self._count:
            raise self._wrong_count(self._count + 1)
        try:
            dtype = DataType(header.dtype)
        except ValueError as error:
            raise errors.bad_answer(error) from error
        view = TensorView(0, dtype, tuple(header.shape), ())
        self._views.append(view)
        self._data.append(bytearray(view.element_bytes))
        self._begun += view.element_bytes
        # A daemon that does not know snapshots does not tell.
        self._total = max(self._total, header.total_bytes, self._begun)
        self._arrived = 0

    def _check_complete(self) -> None:
        if self._data and self._arrived != len(self._data[-1]):
            raise _data_loss(
                f"it ended after {self._arrived} of {len(self._data[-1])} bytes"
            )

    def _wrong_count(self, count: int) -> errors.OpserveError:
        return errors.bad_answer(f"a download of {count} tensors, not {self._count}")


def renew_message(tensors: Sequence[ResidentTensor], lease: float) -> bytes:
    message = _wire.RenewRequest(handles=[tensor.handle for tensor in tensors])
    set_duration(message.lease, lease)
    encoded: bytes = message.SerializeToString()
    return encoded


def read_renewal(answer: _frame.Buffer) -> list[datetime.datetime]:
    return [read_time(end) for end in _wire.RenewResponse.FromString(answer).lease_ends]


def release_message(tensors: Sequence[ResidentTensor]) -> bytes:
    message = _wire.ReleaseRequest(handles=[tensor.handle for tensor in tensors])
    encoded: bytes = message.SerializeToString()
    return encoded


def read_release(answer: _frame.Buffer) -> int:
    released: int = _wire.ReleaseResponse.FromString(answer).released
    return released


def set_duration(message: Any, seconds: float) -> None:
    """Fills a google.protobuf.Duration; 0 leaves it unset."""
    if seconds:
        message.seconds = int(seconds)
        message.nanos = int((seconds - int(seconds)) * 1e9)


def read_time(message: Any) -> datetime.datetime:
    """Of a google.protobuf.Timestamp."""
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return start + datetime.timedelta(
        seconds=message.seconds, microseconds=message.nanos // 1000
    )


def _crc32c(data: memoryview) -> int:
    # The package takes no memoryview; an array of the same bytes it takes without a copy.
    checksum: int = google_crc32c.value(np.frombuffer(data, np.uint8))
    return checksum


def _data_loss(what: str) -> errors.OpserveError:
    return errors.make_error(grpc.StatusCode.DATA_LOSS, f"download: {what}")
