"""Calls with one message and one answer that cost gRPC one operation.

gRPC's own function for such a call waits for the answer. Those that do not wait have a thread of
gRPC's between, or take the answer in five events, which take longer than all else that a small
request costs the caller. gRPC's core has calls whose parts are one operation, with one event, which
the thread that wants the answer takes. gRPC offers them to itself only, so its own function serves
where a version of gRPC has them otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import grpc

try:
    from grpc._cython import cygrpc
except ImportError:
    cygrpc = None

_CODES = {code.value[0]: code for code in grpc.StatusCode}

Metadata = Sequence[tuple[str, str]]


def one_batch(method: Any) -> Any:
    """As `method`, a channel's unary_stream(), for calls with one answer.

    Its calls are read as those of `method`: by iteration, which raises a grpc.RpcError.
    """
    if type(method).__name__ != "_SingleThreadedUnaryStreamMultiCallable":
        return method
    try:
        return _Method(method)
    except AttributeError:
        return method


class _Method:
    """Makes calls of a method. AttributeError: this gRPC has other internals."""

    def __init__(self, method: Any) -> None:
        self._public = method
        self._call = method._channel.segregated_call
        self._name = method._method
        self._flags = cygrpc.PropagationConstants.GRPC_PROPAGATE_DEFAULTS
        self._last: tuple[Any, ...] = (method._context,)
        if hasattr(method, "_registered_call_handle"):  # not in grpcio 1.57
            self._last += (method._registered_call_handle,)
        self._send_metadata = cygrpc.SendInitialMetadataOperation
        self._send_message = cygrpc.SendMessageOperation
        self._others = (
            cygrpc.SendCloseFromClientOperation,
            cygrpc.ReceiveInitialMetadataOperation,
            cygrpc.ReceiveMessageOperation,
            cygrpc.ReceiveStatusOnClientOperation,
        )

    def __call__(self, message: bytes, timeout: float, metadata: Metadata) -> Any:
        try:
            return self._begin(message, timeout, metadata)
        except TypeError:  # other parameters: nothing was sent
            return self._public(message, timeout=timeout, metadata=metadata)

    def _begin(self, message: bytes, timeout: float, metadata: Metadata) -> _Call:
        operations = (
            self._send_metadata(metadata, 0),
            self._send_message(message, 0),
            *[one(0) for one in self._others],
        )
        return _Call(
            self._call(
                self._flags,
                self._name,
                None,
                time.time() + timeout,
                metadata,
                None,
                ((operations, None),),
                *self._last,
            )
        )


class Status:
    """How a call or a stream ended, read as a grpc.RpcError."""

    def __init__(self, operation: Any) -> None:
        """
        Args:
            operation: gRPC's ReceiveStatusOnClientOperation, which has ended.
        """
        self._operation = operation

    def code(self) -> grpc.StatusCode:
        return _CODES.get(self._operation.code(), grpc.StatusCode.UNKNOWN)

    def details(self) -> str:
        details: str = self._operation.details()
        return details

    def trailing_metadata(self) -> Any:
        return self._operation.trailing_metadata()


class _Call(grpc.RpcError):
    """A call, which one thread at a time reads; and its error. It ends with this object."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self._call = call
        self._status: Optional[Status] = None

    def __iter__(self) -> Iterator[bytes]:
        _, message, status = self._call.next_event().batch_operations[-3:]
        self._status = Status(status)
        if status.code() != 0:
            raise self
        answer = message.message()
        return iter(() if answer is None else (answer,))

    def code(self) -> grpc.StatusCode:
        assert self._status is not None
        return self._status.code()

    def details(self) -> str:
        assert self._status is not None
        return self._status.details()

    def trailing_metadata(self) -> Any:
        assert self._status is not None
        return self._status.trailing_metadata()

    def __del__(self) -> None:
        if self._status is None:
            self._call.cancel(grpc.StatusCode.CANCELLED.value[0], "nothing needs the answer")
