"""Makes the calls of a forked process, which cannot use gRPC, in a process of its own.

Both are connected by a socket pair. The first message has the client's options; then each has
method, timeout, metadata and message of a call, and is answered by what came of it. The relay ends
when the process that started it does.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

import grpc

from opserve import errors
from opserve._connection import Options

_PROGRAM = "from opserve import _relay; _relay.serve()"


@dataclasses.dataclass(frozen=True)
class _Failure:
    """What from_rpc_error wants to know of an error."""

    number: int
    text: str
    trailers: tuple[tuple[str, Any], ...]

    def code(self) -> grpc.StatusCode:
        return next(code for code in grpc.StatusCode if code.value[0] == self.number)

    def details(self) -> str:
        return self.text

    def trailing_metadata(self) -> tuple[tuple[str, Any], ...]:
        return self.trailers


class Relay:
    """The relay of a client in this process. Thread-safe; calls wait for each other."""

    def __init__(self, options: Options) -> None:
        self._options = options
        ours, theirs = socket.socketpair()
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
        )
        theirs.close()
        self._lock = threading.Lock()
        self._connection = Connection(ours.detach())  # guarded by _lock
        self._connection.send(dataclasses.replace(options, on_receipt=None, traceparent=None))

    def call(self, method: str, message: bytes, timeout: float) -> bytes:
        """OpserveError: of the call, or UnavailableError if the relay is gone."""
        try:
            with self._lock:
                self._connection.send((method, timeout, self._options.metadata))
                self._connection.send_bytes(message)
                failure = self._connection.recv()
                if failure is None:
                    return self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            raise errors.make_error(
                grpc.StatusCode.UNAVAILABLE, f"the relay of this process ended: {error}"
            ) from error
        raise errors.from_rpc_error(failure)

    def close(self) -> None:
        """Ends it."""
        with self._lock:
            self._connection.close()
        self._process.wait()


def _serve(connection: Connection) -> None:
    options = connection.recv()
    uri, credentials, arguments = options.channel_arguments()
    channel = (
        grpc.insecure_channel(uri, arguments)
        if credentials is None
        else grpc.secure_channel(uri, credentials, arguments)
    )
    while True:
        method, timeout, metadata = connection.recv()
        message = connection.recv_bytes()
        try:
            answer = channel.unary_unary(method)(
                message, timeout=timeout, metadata=metadata
            )
        except grpc.RpcError as raised:
            trailers = tuple(
                (key, value) for key, value in raised.trailing_metadata() or ()
            )
            number = raised.code().value[0]
            connection.send(_Failure(number, raised.details() or "", trailers))
            continue
        connection.send(None)
        connection.send_bytes(answer)


def serve() -> None:
    """Serves the process at the other end of the socket whose number is the program's argument."""
    try:
        _serve(Connection(int(sys.argv[1])))
    except (EOFError, OSError, KeyboardInterrupt):
        pass
