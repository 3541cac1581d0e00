"""HTTP/2 peers that send bytes of an attack and keep to no rule.

A Peer is one connection over a Unix socket, TCP or TLS. A Flood drives many peers from one thread: it sends each
peer's endless bytes as fast as the other end takes them, and throws away or leaves unread all that comes back.
"""

import dataclasses
import selectors
import socket
import ssl
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, CONTINUATION = 0, 1, 3, 4, 6, 9
END_STREAM, END_HEADERS = 1, 4
INITIAL_WINDOW_SIZE = 4


@dataclasses.dataclass(frozen=True)
class Address:
    """One listener of a daemon: `path` of a Unix socket, or `port` on loopback, with TLS if `ca_file` is given."""

    path: str = ""
    port: int = 0
    ca_file: str = ""

    @property
    def target(self):
        return f"unix:{self.path}" if self.path else f"127.0.0.1:{self.port}"

    def connect(self, handshake=True):
        """A blocking socket; `handshake`: of TLS, where the address has it."""
        if self.path:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(5)
            try:
                connection.connect(self.path)
            except OSError:
                connection.close()
                raise
            return connection
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=5)
        if not self.ca_file or not handshake:
            return connection
        return self.with_tls(connection)

    def with_tls(self, connection, handshake=True):
        """`handshake`: at once, else with the first bytes that are sent."""
        context = ssl.create_default_context(cafile=self.ca_file)
        context.set_alpn_protocols(["h2"])
        return context.wrap_socket(connection, server_hostname="127.0.0.1", do_handshake_on_connect=handshake)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header_block(path, token=""):
    """The header fields of a gRPC call, as literals that enter no table."""
    fields = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
              ("te", "trailers"), ("content-type", "application/grpc")]
    if token:
        fields.append(("authorization", f"Bearer {token}"))
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in fields)


def _text(text):
    encoded = text.encode()
    if len(encoded) < 127:
        return bytes([len(encoded)]) + encoded
    rest = len(encoded) - 127
    prefix = bytearray([127])
    while rest > 127:
        prefix.append(rest & 127 | 128)
        rest >>= 7
    return bytes(prefix) + bytes([rest]) + encoded


def call(stream, path, token="", end_stream=False):
    """HEADERS that begin a call."""
    flags = END_HEADERS | (END_STREAM if end_stream else 0)
    return frame(HEADERS, flags, stream, header_block(path, token))


def message(stream, body, end_stream=True):
    """DATA with one gRPC message, in frames of at most 16 KiB."""
    whole = b"\0" + struct.pack(">I", len(body)) + body
    pieces = [whole[i:i + 16384] for i in range(0, len(whole), 16384)]
    return b"".join(
        frame(DATA, END_STREAM if end_stream and i == len(pieces) - 1 else 0, stream, piece)
        for i, piece in enumerate(pieces))


def settings(window=None):
    payload = b"" if window is None else struct.pack(">HI", INITIAL_WINDOW_SIZE, window)
    return PREFACE + frame(SETTINGS, 0, 0, payload)


class _Connection:
    """One peer of a Flood."""

    def __init__(self, plain, chunks):
        self.socket = plain
        self.chunks = chunks
        self.unsent = b""
        self.is_done = False
        self.awaits_bytes = False  # to send, as TLS does in its handshake

    def send(self, most):
        """Sends at most `most` bytes; returns how many."""
        sent = 0
        while sent < most and not self.is_done:
            if not self.unsent:
                self.unsent = next(self.chunks, b"")
                if not self.unsent:
                    self.is_done = True
                    break
            try:
                count = self.socket.send(self.unsent)
            except ssl.SSLWantReadError:
                self.awaits_bytes = True
                break
            except (BlockingIOError, ssl.SSLWantWriteError):
                break
            self.unsent = self.unsent[count:]
            sent += count
        return sent


# After a connection that was refused; a loop without a pause would measure the attacker's own hunger for time.
RECONNECT_SECONDS = 0.01


class Flood:
    """Connections that send for a time, as long as a count of bytes is not reached.

    Args:
        address: the listener under attack.
        chunks: gives the bytes of connection i as an iterator; it may be endless.
        connections: open at once. One that the other end closes is replaced.
        reads: whether answers are read (and thrown away).
        hangs_up: whether a connection is closed, and replaced, as soon as all its bytes are sent.
    """

    def __init__(self, address, chunks, connections, reads=True, hangs_up=False):
        self._address = address
        self._chunks = chunks
        self._reads = reads
        self._hangs_up = hangs_up
        self._selector = selectors.DefaultSelector()
        self._sockets = set()
        self.refused = 0
        self.ended = 0  # by either end
        self.sent = 0
        self._missing = []  # numbers of connections to be made, from this time on:
        self._next_connect = 0
        for number in range(connections):
            self._connect(number)

    def _connect(self, number):
        try:
            plain = self._address.connect(handshake=False)
            if self._address.ca_file:
                # The other end may take its time for its part of the handshake.
                plain = self._address.with_tls(plain, handshake=False)
        except (OSError, ssl.SSLError):
            self.refused += 1
            self._missing.append(number)
            self._next_connect = time.monotonic() + RECONNECT_SECONDS
            return
        plain.setblocking(False)
        events = selectors.EVENT_WRITE | (selectors.EVENT_READ if self._reads else 0)
        self._selector.register(plain, events, (number, _Connection(plain, self._chunks(number))))
        self._sockets.add(plain)

    def run(self, seconds, most_bytes):
        """Returns when the time is over; what is left of it after the last byte passes in silence."""
        end = time.monotonic() + seconds
        while self.sent < most_bytes and time.monotonic() < end:
            if self._missing and time.monotonic() >= self._next_connect:
                missing, self._missing = self._missing, []
                for number in missing:
                    self._connect(number)
            for key, events in self._selector.select(RECONNECT_SECONDS if self._missing else 0.1):
                number, connection = key.data
                try:
                    self._serve(key, events, connection)
                except (OSError, ssl.SSLError, EOFError):
                    self._end(key)
                    self._connect(number)
        time.sleep(max(end - time.monotonic(), 0))

    def _serve(self, key, events, connection):
        if connection.awaits_bytes and events & selectors.EVENT_READ:
            connection.awaits_bytes = False
            self._watch(key, selectors.EVENT_WRITE | (selectors.EVENT_READ if self._reads else 0))
            events |= selectors.EVENT_WRITE
        elif events & selectors.EVENT_READ:
            self._read(connection.socket)
        if events & selectors.EVENT_WRITE:
            self.sent += connection.send(most=1 << 18)
            if connection.is_done and self._hangs_up:
                raise EOFError
            if connection.is_done:
                self._stop_writing(key)
            elif connection.awaits_bytes:
                self._watch(key, selectors.EVENT_READ)

    def _watch(self, key, events):
        self._selector.modify(key.fileobj, events, key.data)

    def _read(self, plain):
        try:
            while plain.recv(1 << 16):
                pass
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        raise EOFError

    def _stop_writing(self, key):
        if self._reads:
            self._watch(key, selectors.EVENT_READ)
        else:
            self._selector.unregister(key.fileobj)

    def _end(self, key):
        self._selector.unregister(key.fileobj)
        self._sockets.discard(key.fileobj)
        key.fileobj.close()
        self.ended += 1

    def close(self):
        for one in self._sockets:
            one.close()
        self._selector.close()
