"""A daemon that tests of the client's sessions play, clients of both kinds, and sessions that are open."""

import asyncio
import concurrent.futures
import threading

import numpy as np
import opserve
import pytest
from integration.await_true import await_true
from opserve import _wire
from played_daemon import BY_CALL, SECONDS, PlayedDaemon, hello
from session_client import ANSWER, REQUEST, START, Frame

ONES = np.ones((2, 2), "f4")


@pytest.fixture
def played(tmp_path):
    daemon = PlayedDaemon(tmp_path)
    yield daemon
    daemon.stop()


LOOP = asyncio.new_event_loop()


@pytest.fixture(scope="module", autouse=True)
def loop_thread():
    thread = threading.Thread(target=LOOP.run_forever)
    thread.start()
    yield
    LOOP.call_soon_threadsafe(LOOP.stop)
    thread.join()


class InLoop:
    """An AsyncClient of a loop that a thread runs, used as a Client."""

    def __init__(self, *arguments, **options):
        self._client = opserve.AsyncClient(*arguments, **options)
        self._sessions = self._client._sessions

    def _send(self, method, message, timeout):
        request = self._client._run_request(message, timeout)
        return asyncio.run_coroutine_threadsafe(request, LOOP)

    def _call(self, method, message, timeout):
        return self._send(method, message, timeout).result(2 * SECONDS)

    def close(self):
        asyncio.run_coroutine_threadsafe(self._client.close(), LOOP).result(SECONDS)

    def __getattr__(self, name):
        method = getattr(self._client, name)

        def call(*arguments, **options):
            answer = method(*arguments, **options)
            return asyncio.run_coroutine_threadsafe(answer, LOOP).result(2 * SECONDS)

        return call

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


CLIENTS = {"threads": opserve.Client, "asyncio": InLoop}
of_both_kinds = pytest.mark.parametrize("kind", CLIENTS.values(), ids=CLIENTS)


@pytest.fixture(params=CLIENTS)
def connect(played, request):
    clients = []

    def connect(**options):
        once = opserve.Retry(max_attempts=1)
        clients.append(CLIENTS[request.param](played.target, retry=once, **options))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


# These are of no concern where a task takes all events.
of_threads = pytest.mark.parametrize("connect", ["threads"], indirect=True)


@pytest.fixture
def threads():
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        yield pool


def execute(client, message=b"", timeout=SECONDS):
    return client._call(_wire.EXECUTE, message, timeout)


# Is no large request, and fits no session.
LONG = bytes(1 << 20)


def body_of(frame):
    """The ExecuteRequest of a request's frame."""
    _, trace_bytes = START.unpack_from(frame.body)
    return frame.body[START.size + trace_bytes :]


@pytest.fixture
def open_sessions(played, threads):
    """Has a client open a session to each of these daemons: the daemons' sides of them.

    The first is the next in turn.
    """

    def open_sessions(client, names):
        played.hellos = [hello(name) for name in (*names, *names)]
        assert execute(client) == BY_CALL
        await_true(
            lambda: execute(client, LONG) == BY_CALL and not played.hellos, "all sessions are open"
        )
        peers = [played.peers.get(timeout=SECONDS) for _ in names]
        for _ in names:  # probes that have met known ones
            assert played.peers.get(timeout=SECONDS).next() is None
        call = threads.submit(execute, client)
        await_true(lambda: not all(peer.is_empty() for peer in peers), "the request comes")
        last = next(i for i, peer in enumerate(peers) if not peer.is_empty())
        peers[last].say(Frame(ANSWER, peers[last].next(REQUEST).number, b"answer"))
        assert call.result(SECONDS) == b"answer"
        return peers[last + 1 :] + peers[: last + 1]

    return open_sessions


@pytest.fixture
def open_session(played):
    """Has a client make its first call and open a session: the daemon's side of it."""

    def open_session(client):
        assert execute(client) == BY_CALL
        await_true(
            lambda: execute(client, LONG) == BY_CALL and played.peers.qsize() == 2, "a session"
        )
        peer = played.peers.get(timeout=SECONDS)
        assert played.peers.get(timeout=SECONDS).next() is None  # the probe has said hello only
        return peer

    return open_session
