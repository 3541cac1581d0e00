"""A proxy that counts the bytes between clients and a daemon."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class CountingProxy:
    """Listens on TCP, and leads each connection to the Unix socket of a daemon.

    Attributes:
        target: for clients.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._bytes = 0  # guarded by _lock
        self._sockets: list[socket.socket] = []  # likewise
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.target = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def bytes(self) -> int:
        """All bytes in both directions so far: frames, headers and messages, without TCP's own."""
        with self._lock:
            return self._bytes

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()  # no further connections
        with self._lock:
            sockets = list(self._sockets)
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()
        for one in [*sockets, self._listener]:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            daemon = socket.socket(socket.AF_UNIX)
            daemon.connect(self._path)
            with self._lock:
                self._sockets += [client, daemon]
            for source, sink in ((client, daemon), (daemon, client)):
                thread = threading.Thread(target=self._forward, args=(source, sink))
                self._threads.append(thread)
                thread.start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                # Before the receiver has them, so that it finds them counted.
                with self._lock:
                    self._bytes += len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def counting_proxy(path: object) -> Iterator[CountingProxy]:
    """A proxy to the daemon on a Unix socket."""
    proxy = CountingProxy(str(path))
    try:
        yield proxy
    finally:
        proxy.close()
