"""The daemon's side of sessions, as tests of clients play it by proto/SESSION.md."""

import concurrent.futures
import contextlib
import queue
import threading

import grpc
from opserve import _wire
from session_client import ERROR, GOING_AWAY, HELLO, Frame, messages, read, write

SECONDS = 30
BY_CALL = b"by a call"


def hello(daemon="", version=1, features=5, max_requests=64, max_request_bytes=1 << 20):
    limits = {
        "max_requests": max_requests,
        "max_request_bytes": max_request_bytes,
        "max_message_bytes": 2 << 20,
    }
    said = messages.SessionHello(
        version=version, features=features, daemon=daemon, limits=limits
    )
    return Frame(HELLO, 0, said.SerializeToString())


def going_away(last_request):
    said = messages.SessionGoingAway(last_request=last_request)
    return Frame(GOING_AWAY, 0, said.SerializeToString())


def error(number, code, text="told"):
    status = messages.StatusDetails(code=code.value[0], message=text)
    return Frame(ERROR, number, status.SerializeToString())


class Peer:
    """The daemon's side of a session, as a test plays it."""

    def __init__(self, messages_of_client):
        self._incoming = queue.SimpleQueue()
        self._outgoing = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(messages_of_client,), daemon=True).start()

    def _read(self, messages_of_client):
        # The iterator of a stream that is cancelled ends, or raises an error without a public class.
        with contextlib.suppress(Exception):
            for message in messages_of_client:
                for frame in read(message):
                    self._incoming.put(frame)
        self._incoming.put(None)
        self.end()

    def next(self, kind=None):
        """The client's next frame. None: it has closed its side, or cancelled the stream."""
        frame = self._incoming.get(timeout=SECONDS)
        assert kind is None or frame.kind == kind, frame
        return frame

    def is_empty(self):
        """Whether next() would wait."""
        return self._incoming.empty()

    def say(self, *frames):
        self._outgoing.put(write(*frames))

    def end(self, outcome=None):
        """`outcome`: None, or a status code."""
        self._outgoing.put(outcome)

    def answers(self, context):
        while True:
            said = self._outgoing.get()
            if said is None:
                return
            if isinstance(said, grpc.StatusCode):
                context.abort(said, "scripted end")
            yield said


class PlayedDaemon:
    """Answers calls with BY_CALL, and has a Peer for each session."""

    def __init__(self, path):
        self.peers = queue.SimpleQueue()
        self.hellos = []  # of the next sessions, in place of the usual one; None: silence
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(32))
        self._server.add_generic_rpc_handlers((self._handler(),))
        self.target = f"unix:{path}/played.sock"
        self._server.add_insecure_port(self.target)
        self._server.start()

    def _handler(self):
        daemon = self

        def call(message, context):
            return BY_CALL

        def session(messages_of_client, context):
            first = daemon.hellos.pop(0) if daemon.hellos else hello()
            if isinstance(first, grpc.StatusCode):
                context.abort(first, "scripted end")
            peer = Peer(messages_of_client)
            peer.next(HELLO)
            daemon.peers.put(peer)
            if first is not None:
                peer.say(first)
            yield from peer.answers(context)

        class Handler(grpc.GenericRpcHandler):
            def service(self, details):
                if details.method == _wire.SESSION:
                    return grpc.stream_stream_rpc_method_handler(session)
                if details.method == _wire.EXECUTE:
                    return grpc.unary_unary_rpc_method_handler(call)
                return None

        return Handler()

    def stop(self):
        self._server.stop(None).wait()
