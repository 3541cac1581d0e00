"""A client of opserve's sessions, written from proto/SESSION.md: needs grpcio, protobuf, protoc and
the .proto files, nothing else of opserve.

    session = Session(grpc.insecure_channel("unix:/run/opserve/opserve.sock"))
    numbers = session.begin(request, another)
    answers = [session.finish(number) for number in numbers]
    session.close()
"""

import pathlib
import queue
import struct
import subprocess
import tempfile
import types
from typing import NamedTuple

from google.protobuf import descriptor_pb2, message_factory

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"
METHOD = "/opserve.v1.OperatorService/Session"
HEADER = struct.Struct("<IBBHQ")  # bytes of the body, kind, flags, 0, number
START = struct.Struct("<QI")  # microseconds, bytes of the traceparent
HELLO, REQUEST, ANSWER, ERROR, CANCEL, PING, PONG, GOING_AWAY = range(1, 9)
ANNOUNCEMENT, CHUNK, CREDIT, PART = range(9, 13)


def _load_messages():
    """The message classes of opserve.v1, as protoc's generated modules have them."""
    files = [f"opserve/v1/{name}.proto" for name in ("operator_service", "error")]
    with tempfile.NamedTemporaryFile() as output:
        command = ["protoc", f"-I{PROTO}", "--include_imports", f"-o{output.name}"]
        subprocess.run([*command, *files], check=True)
        protos = descriptor_pb2.FileDescriptorSet.FromString(output.read()).file
    classes = message_factory.GetMessages(protos)
    return types.SimpleNamespace(**{name.split(".")[-1]: classes[name] for name in classes})


messages = _load_messages()


class Frame(NamedTuple):
    kind: int
    number: int = 0
    body: bytes = b""


class ProtocolError(Exception):
    """The daemon broke a rule of the session."""


def write(*frames):
    """The message that consists of the frames."""
    parts = [HEADER.pack(len(body), kind, 0, 0, number) + body for kind, number, body in frames]
    return messages.SessionMessage(frames=b"".join(parts)).SerializeToString()


def read(message):
    """The frames of a message."""
    rest = messages.SessionMessage.FromString(message).frames
    while rest:
        size, kind, flags, zero, number = HEADER.unpack_from(rest)
        body, rest = rest[HEADER.size : HEADER.size + size], rest[HEADER.size + size :]
        if not HELLO <= kind <= PART or flags or zero or len(body) < size:
            raise ProtocolError(f"a frame of kind {kind}, flags {flags}, {zero}, {size} bytes")
        yield Frame(kind, number, body)


def request_body(request, timeout=0.0, traceparent=""):
    """The body of a request's frame; `timeout` in seconds, 0: the daemon's default."""
    start = START.pack(round(timeout * 1e6), len(traceparent)) + traceparent.encode("ascii")
    return start + request.SerializeToString()


class Session:
    """A session that one thread uses. grpc.RpcError: the stream ended with an error."""

    def __init__(self, channel, **options):
        self.outgoing = queue.SimpleQueue()
        self._call = channel.stream_stream(METHOD)(iter(self.outgoing.get, None), **options)
        self.incoming = (frame for message in self._call for frame in read(message))
        self._number = 0
        self._outcomes = {}  # of each request without an answer: None
        self.last_request = None  # of a going-away
        hello = messages.SessionHello(version=1, build="session_client.py")
        self.send(Frame(HELLO, 0, hello.SerializeToString()))
        first = next(self.incoming)
        if first.kind != HELLO:
            self._fail("the first frame is no hello")
        self.limits = messages.SessionHello.FromString(first.body).limits

    def send(self, *frames):
        self.outgoing.put(write(*frames))

    def begin(self, *requests, **start):
        """Sends requests in one message and returns their numbers."""
        numbers = range(self._number + 1, self._number + 1 + len(requests))
        self._number += len(requests)
        self._outcomes.update(dict.fromkeys(numbers))
        bodies = [request_body(request, **start) for request in requests]
        self.send(*(Frame(REQUEST, number, body) for number, body in zip(numbers, bodies)))
        return list(numbers)

    def finish(self, number):
        """Waits for an ExecuteResponse, or for the StatusDetails of a request that failed."""
        while self._outcomes[number] is None:
            self.receive()
        return self._outcomes.pop(number)

    def close(self):
        """Waits for what is not answered yet, and for the end."""
        self.outgoing.put(None)
        for frame in self.incoming:
            self._handle(frame)
        if None in self._outcomes.values():
            self._fail("the session ended without some answers")

    def receive(self):
        """Waits for the next frame and returns it, handled."""
        frame = next(self.incoming, None) or self._fail("the daemon ended the session")
        self._handle(frame)
        return frame

    def _handle(self, frame):
        kind, number, body = frame
        if kind in (ANSWER, ERROR):
            if self._outcomes.get(number, frame) is not None:
                self._fail(f"an answer to request {number}")
            message = messages.ExecuteResponse if kind == ANSWER else messages.StatusDetails
            self._outcomes[number] = message.FromString(body)
        elif kind == PING:
            self.send(Frame(PONG, number))
        elif kind == GOING_AWAY:
            self.last_request = messages.SessionGoingAway.FromString(body).last_request
            for behind in [n for n in self._outcomes if n > self.last_request]:
                del self._outcomes[behind]  # not started: to be sent elsewhere
        elif kind != PONG:
            self._fail(f"a frame of kind {kind}")

    def _fail(self, text):
        self._call.cancel()
        raise ProtocolError(text)
