"""The errors that calls raise.

Every error of a call is an OpserveError. Its class follows the gRPC status code; its
attributes carry the daemon's details for programs (ErrorDetail in
`grpc-status-details-bin`). Mistakes that are found before anything is sent (a dtype that no
operator has, a tensor that is not in the CPU's memory) are TypeError or ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Optional

import grpc

from opserve import _wire

_DETAIL_URL = "type.googleapis.com/opserve.v1.ErrorDetail"
_DETAILS_TRAILER = "grpc-status-details-bin"
_PUSHBACK_TRAILER = "grpc-retry-pushback-ms"
# The daemon's text where it refuses a message for its size, and that of gRPC, of proxies.
_TOO_LARGE = re.compile(
    r"message has (\d+) bytes, at most (\d+) allowed|larger than max \((\d+) vs\. (\d+)\)"
)
# What gRPC says, as UNKNOWN, of a call that was cut off between the beginning of the answer and its
# status, as a proxy does when the daemon behind it dies; earlier breaks are UNAVAILABLE.
_LOST_STREAMS = ("Stream removed", "No status received")


class OpserveError(Exception):
    """A call failed.

    Attributes:
        code: the gRPC status code.
        message: for people: names operator, argument, expected and actual value.
        reason: one of a closed set ("invalid", "queue_full", "tensor_lost", ...: error.proto);
            empty if the daemon gave none.
        operator, argument: at fault; empty where none is.
        invocation: position in the program.
        aclnn_status: 161001 (null) or 161002 (invalid) where a stage of the operator refused, or
            would have refused; 0 otherwise.
        acl_error: the ACL runtime's error behind a device fault; 0: none.
        runtime_message: the ACL library's own text for it.
        retry_after: seconds after which to try again; math.inf: never, the same call cannot
            succeed; None: the daemon has no opinion.
        from_daemon: False if the daemon said nothing: it was not reached, or the deadline
            passed on the way.
        target: of the client that made the call; empty if none was made.

    It may be pickled, as multiprocessing does with the errors of its workers.
    """

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode,
        detail: Optional[Any] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.from_daemon = detail is not None
        detail = detail if detail is not None else _wire.ErrorDetail()
        self.reason: str = detail.reason
        self.operator: str = detail.operator
        self.argument: str = detail.argument
        self.invocation: int = detail.invocation
        self.aclnn_status: int = detail.aclnn_status
        self.acl_error: int = detail.acl_error
        self.runtime_message: str = detail.runtime_message
        if retry_after is None and detail.retry_pushback_ms != 0:
            retry_after = _seconds(detail.retry_pushback_ms)
        self.retry_after = retry_after
        self.target = ""

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.message, self.code), self.__dict__

    def add_note_of_attempts(self, note: str) -> None:
        """Says behind the message how often the call was tried."""
        self.message = f"{self.message} ({note})"


class InvalidArgumentError(OpserveError, ValueError):
    """A mistake in the call, or a size above a limit of the daemon."""


class NotFoundError(OpserveError, LookupError):
    """No such operator, region or resident tensor (reason "tensor_unknown")."""


class AlreadyExistsError(OpserveError):
    """The id of a shared region is in use."""


class PermissionDeniedError(OpserveError, PermissionError):
    """The caller may not do this."""


class UnauthenticatedError(OpserveError, PermissionError):
    """The daemon does not know the caller."""


class ResourceExhaustedError(OpserveError):
    """A queue, a quota or memory is full; `retry_after` says when to come back."""


class FailedPreconditionError(OpserveError):
    """It can never succeed as things are."""


class ClosedError(FailedPreconditionError, RuntimeError):
    """The client was closed, or connected before this process was forked: make another."""

    def __init__(self, message: str, **_: Any) -> None:
        super().__init__(message, code=grpc.StatusCode.FAILED_PRECONDITION)


class TensorLostError(FailedPreconditionError):
    """The daemon restarted or the device was reset: upload the resident tensor again."""


class DeadlineExceededError(OpserveError, TimeoutError):
    """The timeout passed; nothing was launched after it."""


class UnavailableError(OpserveError, ConnectionError):
    """No connection, the daemon drains, or no device is ready.

    Without a connection, the message names `target`, the cause and a remedy.
    """


class UnimplementedError(OpserveError, NotImplementedError):
    """The daemon or its ACL libraries lack it."""


class InternalError(OpserveError):
    """A fault of the device (`acl_error`), or an answer that breaks the protocol."""


class DataLossError(OpserveError):
    """Other bytes arrived than were sent."""


class CancelledError(OpserveError):
    """The call was cancelled by closing its client or stream."""


_CLASSES: dict[grpc.StatusCode, type[OpserveError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExistsError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.UNIMPLEMENTED: UnimplementedError,
    grpc.StatusCode.INTERNAL: InternalError,
    grpc.StatusCode.DATA_LOSS: DataLossError,
    grpc.StatusCode.CANCELLED: CancelledError,
}
_CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def make_error(
    code: grpc.StatusCode,
    message: str,
    detail: Optional[Any] = None,
    retry_after: Optional[float] = None,
) -> OpserveError:
    """The error of the class that belongs to `code` and the detail's reason."""
    kind = _CLASSES.get(code, OpserveError)
    if detail is not None and detail.reason == "tensor_lost":
        kind = TensorLostError
    return kind(message, code=code, detail=detail, retry_after=retry_after)


def from_rpc_error(error: Any) -> OpserveError:
    """The error behind a grpc.RpcError or grpc.aio.AioRpcError of a call that ended."""
    trailers = {str(key): value for key, value in (error.trailing_metadata() or ())}
    detail = None
    if _DETAILS_TRAILER in trailers:
        try:
            status = _wire.StatusDetails.FromString(trailers[_DETAILS_TRAILER])
            detail = _detail_of(status.details)
        except Exception:  # not ours; the code and the message are enough
            detail = None
    retry_after = None
    if _PUSHBACK_TRAILER in trailers:
        try:
            retry_after = _seconds(int(trailers[_PUSHBACK_TRAILER]))
        except ValueError:  # gRPC's rule: anything but a number means "never"
            retry_after = _seconds(-1)
    if detail is None or detail.reason == "too_large":
        sizes = _TOO_LARGE.search(error.details() or "")
        if sizes is not None:
            return _too_large(*(int(size) for size in sizes.groups() if size))
    code = error.code()
    if code is grpc.StatusCode.UNKNOWN and detail is None and error.details() in _LOST_STREAMS:
        code = grpc.StatusCode.UNAVAILABLE
    return make_error(code, error.details() or "", detail, retry_after)


def from_status(status: Any) -> OpserveError:
    """The error in a StatusDetails message."""
    code = _CODES.get(status.code, grpc.StatusCode.UNKNOWN)
    return make_error(code, status.message, _detail_of(status.details))


def without_answer() -> OpserveError:
    """A call that must have an answer ended without one."""
    return make_error(grpc.StatusCode.INTERNAL, "the call ended well, without an answer")


def bad_answer(what: object) -> OpserveError:
    """The daemon's answer breaks the protocol."""
    return make_error(grpc.StatusCode.INTERNAL, f"the daemon's answer: {what}")


def _too_large(size: int, limit: int) -> OpserveError:
    message = (
        f"a message of {size} bytes ({size / 2**20:.1f} MiB); the daemon takes at most {limit} "
        f"({limit / 2**20:.1f} MiB, --max_message_bytes): put large inputs on the device with "
        "client.upload(), with a chunk_bytes below that limit, or into shared memory with "
        "client.create_region()"
    )
    detail = _wire.ErrorDetail(reason="too_large")
    return make_error(grpc.StatusCode.INVALID_ARGUMENT, message, detail)


def _restore(
    kind: type[OpserveError], message: str, code: grpc.StatusCode
) -> OpserveError:
    return kind(message, code=code)


def _detail_of(details: Iterable[Any]) -> Optional[Any]:
    for packed in details:
        if packed.type_url == _DETAIL_URL:
            return _wire.ErrorDetail.FromString(packed.value)
    return None


def _seconds(milliseconds: int) -> float:
    return float("inf") if milliseconds < 0 else milliseconds / 1000
