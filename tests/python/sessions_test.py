"""The client's sessions, beside a daemon that the tests play by proto/SESSION.md, and beside opserved."""

import asyncio
import concurrent.futures
import gc
import subprocess
import sys
import threading
import time

import grpc
import numpy as np
import opserve
import pytest
from integration.await_true import await_true
from opserve import _frame, _session_choice, _session_frames, _wire
from opserve._answer_parts import AnswerParts
from played_daemon import BY_CALL, SECONDS, PlayedDaemon, error, going_away, hello
from session_client import (
    ANNOUNCEMENT,
    ANSWER,
    CANCEL,
    CHUNK,
    CREDIT,
    ERROR,
    GOING_AWAY,
    PART,
    PING,
    PONG,
    REQUEST,
    START,
    Frame,
    messages,
    read,
    write,
)
from conftest import script_environment
from watcher import Watcher

TRACE = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
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


@of_threads
def test_the_second_request_opens_a_session(played, connect, threads):
    client = connect()
    assert execute(client) == BY_CALL
    second = threads.submit(execute, client, b"second")
    peer = played.peers.get(timeout=SECONDS)
    request = peer.next(REQUEST)
    assert body_of(request) == b"second"
    peer.say(Frame(ANSWER, request.number, b"answer"))
    assert second.result(SECONDS) == b"answer"


@pytest.mark.parametrize("step", [1, -1], ids=["first first", "last first"])
def test_answers_come_in_any_order(connect, open_session, threads, step):
    """The thread that reads them all hands over when it has its own."""
    client = connect()
    peer = open_session(client)
    calls = {}
    for i in range(16):
        call = threads.submit(execute, client, b"%d" % i)
        calls[peer.next(REQUEST)] = call
    for request in list(calls)[::step]:
        peer.say(Frame(ANSWER, request.number, body_of(request) * 2))
        assert calls[request].result(SECONDS) == body_of(request) * 2


def test_answers_may_come_in_one_message(connect, open_session):
    client = connect()
    peer = open_session(client)
    sent = [client._send(_wire.EXECUTE, b"%d" % i, SECONDS) for i in range(16)]
    requests = [peer.next(REQUEST) for _ in sent]
    peer.say(*(Frame(ANSWER, one.number, body_of(one)) for one in requests))
    assert [one.result() for one in sent] == [b"%d" % i for i in range(16)]


def test_a_request_has_its_time_and_its_trace(connect, open_session, threads):
    trace = [None]
    client = connect(traceparent=lambda: trace[0])
    peer = open_session(client)
    for trace[0] in (TRACE, "", None):
        call = threads.submit(execute, client, b"x", 2.5)
        request = peer.next(REQUEST)
        expected = (trace[0] or "").encode()
        microseconds, trace_bytes = START.unpack_from(request.body)
        assert 2_000_000 < microseconds <= 2_500_000
        assert request.body[START.size :] == expected + b"x"
        assert trace_bytes == len(expected)
        peer.say(Frame(ANSWER, request.number, b"answer"))
        assert call.result(SECONDS) == b"answer"


def test_an_error_is_that_of_its_request_alone(connect, open_session, threads):
    client = connect()
    peer = open_session(client)
    calls = [threads.submit(execute, client) for _ in range(3)]
    requests = [peer.next(REQUEST) for _ in calls]
    refused = error(requests[1].number, grpc.StatusCode.NOT_FOUND)
    peer.say(refused, *(Frame(ANSWER, one.number, b"answer") for one in requests[::2]))
    outcomes = [call.exception(SECONDS) or call.result() for call in calls]
    assert sorted(map(str, outcomes)) == ["NOT_FOUND: told", "b'answer'", "b'answer'"]


def test_a_ping_is_answered(connect, open_session, threads):
    client = connect()
    peer = open_session(client)
    call = threads.submit(execute, client)
    request = peer.next(REQUEST)
    peer.say(Frame(PING, 7))
    assert peer.next() == Frame(PONG, 7)
    peer.say(Frame(ANSWER, request.number, b"answer"))
    assert call.result(SECONDS) == b"answer"


def test_without_sessions_calls_remain_calls(played, connect):
    client = connect(session=False)
    assert [execute(client) for _ in range(3)] == [BY_CALL] * 3
    assert played.peers.empty()


def test_what_is_too_large_or_too_much_is_a_call(played, connect, open_session, threads):
    played.hellos = [hello(max_requests=1, max_request_bytes=1000)]
    client = connect()
    peer = open_session(client)
    assert execute(client, bytes(1000)) == BY_CALL
    call = threads.submit(execute, client)
    request = peer.next(REQUEST)
    assert execute(client) == BY_CALL
    peer.say(Frame(ANSWER, request.number, b"answer"))
    assert call.result(SECONDS) == b"answer"


@pytest.mark.parametrize("is_reader", [True, False], ids=["reader", "another waits"])
def test_a_deadline_ends_a_request_and_nothing_else(connect, open_session, threads, is_reader):
    client = connect()
    peer = open_session(client)
    if not is_reader:
        other = threads.submit(execute, client)
        first = peer.next(REQUEST)
    late = threads.submit(execute, client, b"late", 0.2)
    request = peer.next(REQUEST)
    assert isinstance(late.exception(SECONDS), opserve.DeadlineExceededError)
    assert peer.next() == Frame(CANCEL, request.number)
    if is_reader:
        other = threads.submit(execute, client)
        first = peer.next(REQUEST)
    peer.say(Frame(ANSWER, request.number, b"late"))
    peer.say(Frame(ANSWER, first.number, b"answer"))
    assert other.result(SECONDS) == b"answer"


def test_a_daemon_that_says_no_hello_costs_a_moment(played, connect):
    played.hellos = [None]
    client = connect()
    assert [execute(client) for _ in range(3)] == [BY_CALL] * 3


def drop(sent):
    """Needs these answers no more."""
    for one in sent:
        if isinstance(one, concurrent.futures.Future):
            one.cancel()
    sent.clear()
    gc.collect()


def test_a_request_that_nobody_needs_is_cancelled(connect, open_session, threads):
    client = connect()
    peer = open_session(client)
    sent = [client._send(_wire.EXECUTE, b"unwanted", SECONDS)]
    unwanted = peer.next(REQUEST)
    drop(sent)
    call = threads.submit(execute, client)
    assert peer.next() == Frame(CANCEL, unwanted.number)
    request = peer.next(REQUEST)
    peer.say(error(unwanted.number, grpc.StatusCode.CANCELLED))
    peer.say(Frame(ANSWER, request.number, b"answer"))
    assert call.result(SECONDS) == b"answer"


def test_what_a_daemon_that_goes_away_has_not_started_is_sent_as_a_call(
    connect, open_session, threads
):
    client = connect()
    peer = open_session(client)
    calls = [threads.submit(execute, client, b"%d" % i) for i in range(4)]
    requests = [peer.next(REQUEST) for _ in calls]
    peer.say(going_away(requests[1].number))
    taken = {body_of(one) for one in requests[:2]}
    await_true(lambda: sum(call.done() for call in calls) == 2, "two calls are made")
    peer.say(*(Frame(ANSWER, one.number, b"answer") for one in requests[:2]))
    for i, call in enumerate(calls):
        assert call.result(SECONDS) == (b"answer" if b"%d" % i in taken else BY_CALL)
    assert peer.next() is None  # the client has closed its side
    assert execute(client) == BY_CALL


BREAKS = {
    "a second hello": hello(),
    "an answer to nothing": Frame(ANSWER, 1 << 40, b""),
    "a part of nothing": Frame(PART, 1 << 40, b"part"),
    "a credit for nothing": Frame(CREDIT, 1 << 40, bytes(8)),
    "a client's frame": Frame(CANCEL, 1),
    "an error that is none": Frame(ERROR, 0, b"\xff"),
    "a going-away that is none": Frame(GOING_AWAY, 0, b"\xff"),
}


@pytest.mark.parametrize("frame", BREAKS.values(), ids=BREAKS)
def test_a_daemon_that_breaks_the_protocol_gets_calls(connect, open_session, threads, frame):
    client = connect()
    peer = open_session(client)
    call = threads.submit(execute, client)
    request = peer.next(REQUEST)
    if frame.kind == ERROR:
        frame = frame._replace(number=request.number)
    peer.say(frame)
    assert isinstance(call.exception(SECONDS), opserve.InternalError)
    assert peer.next() is None
    assert [execute(client) for _ in range(3)] == [BY_CALL] * 3


@pytest.mark.parametrize(
    "first",
    [Frame(PONG, 1), hello(version=0), hello(max_requests=0), grpc.StatusCode.UNIMPLEMENTED],
    ids=["another frame", "no version", "no requests", "sessions are unknown"],
)
def test_a_daemon_without_sessions_gets_calls(played, connect, first):
    played.hellos = [first]
    client = connect()
    assert [execute(client) for _ in range(3)] == [BY_CALL] * 3
    await_true(lambda: client._sessions._choice.is_given_up, "it is known")
    assert execute(client) == BY_CALL


def serve(peer, client, threads):
    """A request that comes to this peer."""
    call = threads.submit(execute, client, b"request")
    peer.say(Frame(ANSWER, peer.next(REQUEST).number, b"answer"))
    assert call.result(SECONDS) == b"answer"


def test_daemons_behind_one_target_get_requests_in_turn(connect, open_sessions, threads):
    client = connect()
    peers = open_sessions(client, ["one", "another", "a third"])
    for peer in 2 * peers:
        serve(peer, client, threads)


def test_a_full_session_leaves_its_turn_to_another(played, connect, open_sessions, threads):
    client = connect()
    first, other = open_sessions(client, ["one", "another"])
    waiting = [client._send(_wire.EXECUTE, b"", SECONDS) for _ in range(128)]
    for peer in (first, other):
        requests = [peer.next(REQUEST) for _ in range(64)]
        if peer is first:
            held = requests
        else:
            peer.say(*(Frame(ANSWER, one.number, b"answer") for one in requests))
    for sent in waiting[1::2]:
        assert sent.result() == b"answer"
    for _ in range(2):
        serve(other, client, threads)
    first.say(*(Frame(ANSWER, one.number, b"answer") for one in held))
    assert [sent.result() for sent in waiting[::2]] == [b"answer"] * 64


def test_a_daemon_that_cannot_serve_is_left_for_others(played, connect, open_sessions, threads):
    client = connect()
    away, other = open_sessions(client, ["one", "another"])
    call = threads.submit(execute, client)
    away.say(error(away.next(REQUEST).number, grpc.StatusCode.UNAVAILABLE))
    assert isinstance(call.exception(SECONDS), opserve.UnavailableError)
    for _ in range(3):
        serve(other, client, threads)
    assert away.next() is None
    played.hellos = [hello("one")]
    client._sessions._choice.next_look = 0  # that daemon is not tried again at once
    await_true(lambda: execute(client, LONG) == BY_CALL and not played.hellos, "a probe is sent")
    serve(other, client, threads)
    serve(other, client, threads)
    call = threads.submit(execute, client)
    other.say(error(other.next(REQUEST).number, grpc.StatusCode.UNAVAILABLE))
    assert isinstance(call.exception(SECONDS), opserve.UnavailableError)
    serve(other, client, threads)  # the last one


def test_a_daemon_that_goes_away_leaves_its_turn_to_another(connect, open_sessions, threads):
    client = connect()
    leaving, other = open_sessions(client, ["one", "another"])
    call = threads.submit(execute, client)
    request = leaving.next(REQUEST)
    leaving.say(going_away(request.number), Frame(ANSWER, request.number, b"answer"))
    assert call.result(SECONDS) == b"answer"
    for _ in range(3):
        serve(other, client, threads)


def test_one_daemon_without_sessions_is_enough_for_calls(played, connect, open_sessions):
    client = connect()
    peers = open_sessions(client, ["one", "another"])
    played.hellos = [grpc.StatusCode.UNIMPLEMENTED]
    client._sessions._choice.next_look = 0
    assert execute(client, LONG) == BY_CALL
    assert [peer.next() for peer in peers] == [None, None]
    assert [execute(client) for _ in range(3)] == [BY_CALL] * 3


def test_daemons_that_invent_names_open_no_more_sessions_than_the_limit(
    played, connect, monkeypatch
):
    monkeypatch.setattr(_session_choice, "_MOST_SESSIONS", 3)
    played.hellos = [hello(f"daemon {i}") for i in range(6)]
    client = connect()
    choice = client._sessions._choice
    await_true(
        lambda: execute(client, LONG) == BY_CALL and len(choice.current) == 3, "three sessions"
    )
    choice.next_look = 0
    assert [execute(client, LONG) for _ in range(3)] == [BY_CALL] * 3
    assert len(played.hellos) == 3


def test_a_stream_that_breaks_is_a_lost_connection(connect, open_session, threads):
    client = connect()
    peer = open_session(client)
    call = threads.submit(execute, client)
    peer.next(REQUEST)
    peer.end(grpc.StatusCode.RESOURCE_EXHAUSTED)
    failure = call.exception(SECONDS)
    assert isinstance(failure, opserve.UnavailableError)
    assert "lost the connection" in str(failure) and "the session broke: scripted end" in str(failure)
    assert not failure.from_daemon
    assert execute(client) == BY_CALL


@of_threads
def test_a_client_asks_after_a_break_whether_the_session_is_open(
    connect, open_session, threads, monkeypatch
):
    client = connect()
    peer = open_session(client)
    client._sessions._choice.current[0].last_event -= 10
    call = threads.submit(execute, client)
    ping = peer.next(PING)
    peer.say(Frame(PONG, ping.number))
    request = peer.next(REQUEST)
    peer.say(Frame(ANSWER, request.number, b"answer"))
    assert call.result(SECONDS) == b"answer"


@of_threads
def test_a_session_with_requests_in_progress_is_not_asked(connect, open_session, threads):
    client = connect()
    peer = open_session(client)
    first = client._send(_wire.EXECUTE, b"first", SECONDS)
    sent = peer.next(REQUEST)
    client._sessions._choice.current[0].last_event -= 10
    second = threads.submit(execute, client, b"second")
    request = peer.next(REQUEST)  # no ping comes before it
    peer.say(*(Frame(ANSWER, one.number, body_of(one)) for one in (sent, request)))
    assert (first.result(), second.result(SECONDS)) == (b"first", b"second")


def test_close_waits_for_nobody(connect, open_session):
    client = connect()
    peer = open_session(client)
    sent = [client._send(_wire.EXECUTE, b"", SECONDS) for _ in range(3)]
    for _ in sent:
        peer.next(REQUEST)
    client.close()
    assert peer.next() is None


@of_threads
def test_requests_that_nobody_needs_do_not_fill_a_session(played, connect, open_session, threads):
    played.hellos = [hello(max_requests=2)]
    client = connect()
    peer = open_session(client)
    sent = [client._send(_wire.EXECUTE, b"", SECONDS) for _ in range(2)]
    numbers = [peer.next(REQUEST).number for _ in sent]
    drop(sent)
    assert execute(client) == BY_CALL
    assert sorted(peer.next(CANCEL).number for _ in numbers) == numbers
    peer.say(*(error(number, grpc.StatusCode.CANCELLED) for number in numbers))
    client._sessions._choice.current[0].last_event -= 10
    call = threads.submit(execute, client)
    peer.say(Frame(PONG, peer.next(PING).number))
    request = peer.next(REQUEST)
    peer.say(Frame(ANSWER, request.number, b"answer"))
    assert call.result(SECONDS) == b"answer"


def test_close_ends_what_is_in_progress(connect, open_session, threads):
    client = connect()
    peer = open_session(client)
    calls = [threads.submit(execute, client) for _ in range(3)]
    for _ in calls:
        peer.next(REQUEST)
    unread = client._send(_wire.EXECUTE, b"", SECONDS)
    client.close()
    ends = (opserve.CancelledError, opserve.ClosedError)  # the latter before it was sent
    for call in calls:
        assert isinstance(call.exception(SECONDS), ends)
    with pytest.raises(ends):
        unread.result()
    with pytest.raises(opserve.ClosedError):
        execute(client)


@of_both_kinds
def test_a_client_that_is_gone_leaves_no_session(open_session, played, kind):
    client = kind(played.target)
    peer = open_session(client)
    del client
    gc.collect()
    assert peer.next() is None


MOST_CHUNK = 256 << 10
PAYLOADS = [b"a" * 1_000_000, b"", b"b" * 300_000]
LARGE = _frame.Message(
    messages.ExecuteRequest(want_receipt=True).SerializeToString(), PAYLOADS, None, is_plain=True
)


@of_threads
def test_requests_of_a_stream_are_answered_in_any_order(connect, open_session):
    client = connect()
    peer = open_session(client)
    with client.open_stream() as stream:
        futures = {}
        for i in range(16):
            future = stream._submit(b"%d" % i, bytes, SECONDS, None)
            futures[peer.next(REQUEST)] = future
        for request in reversed(list(futures)):
            peer.say(Frame(ANSWER, request.number, body_of(request) * 2))
            assert futures.pop(request).result(SECONDS) == body_of(request) * 2
            assert not any(future.done() for future in futures.values())


@of_threads
def test_a_stream_shares_a_session_with_threads(connect, open_session, threads):
    client = connect()
    peer = open_session(client)
    ways = [
        lambda: threads.submit(execute, client, b"x"),
        lambda: stream._submit(b"x", bytes, SECONDS, None),
    ]
    with client.open_stream() as stream:
        for order in ((0, 1), (1, 0)):
            for step in (1, -1):
                sent = []
                for way in order:
                    future = ways[way]()
                    sent.append((peer.next(REQUEST).number, future))
                for number, future in sent[::step]:
                    peer.say(Frame(ANSWER, number, b"answer"))
                    assert future.result(SECONDS) == b"answer"


@of_threads
def test_a_stream_that_is_cancelled_cancels_its_requests(connect, open_session, threads):
    client = connect()
    peer = open_session(client)
    stream = client.open_stream(window=4)
    futures = [stream._submit(b"x", bytes, SECONDS, None) for _ in range(4)]
    waits = threads.submit(stream._submit, b"x", bytes, SECONDS, None)
    numbers = [peer.next(REQUEST).number for _ in futures]
    stream.cancel()
    for future in futures:
        assert isinstance(future.exception(timeout=0), opserve.CancelledError)
    assert isinstance(waits.exception(SECONDS), RuntimeError)
    assert sorted(peer.next(CANCEL).number for _ in futures) == numbers
    other = threads.submit(execute, client, b"x")
    peer.say(Frame(ANSWER, peer.next(REQUEST).number, b"answer"))
    assert other.result(SECONDS) == b"answer"


@of_threads
def test_deadlines_end_requests_of_a_stream_beside_a_silent_daemon(connect, open_session):
    client = connect()
    peer = open_session(client)
    stream = client.open_stream(timeout=2)
    late, early = (stream._submit(b"x", bytes, seconds, None) for seconds in (SECONDS, 0.2))
    first, second = (peer.next(REQUEST).number for _ in range(2))
    assert isinstance(early.exception(SECONDS), opserve.DeadlineExceededError)
    assert not late.done()
    assert peer.next(CANCEL).number == second
    error = late.exception(SECONDS)
    assert peer.next(CANCEL).number == first
    assert isinstance(error, opserve.DeadlineExceededError) and "timeout of 2 s" in str(error)
    with pytest.raises(opserve.DeadlineExceededError):
        stream.finish()


@of_threads
def test_a_request_of_a_stream_that_a_daemon_has_not_started_is_sent_as_a_call(
    connect, open_session
):
    client = connect()
    peer = open_session(client)
    with client.open_stream() as stream:
        future = stream._submit(b"x", bytes, SECONDS, None)
        peer.next(REQUEST)
        peer.say(going_away(0))
        assert future.result(SECONDS) == BY_CALL


@of_threads
def test_threads_of_a_stream_end_and_are_begun_anew(connect, open_session, threads):
    client = connect()
    peer = open_session(client)
    stream = client.open_stream()
    future = stream._submit(b"x", bytes, SECONDS, None)
    peer.say(Frame(ANSWER, peer.next(REQUEST).number, b"answer"))
    assert future.result(SECONDS) == b"answer"
    names = ("opserve-stream", "opserve-session")
    await_true(lambda: not any(one.name in names for one in threading.enumerate()), "both end")
    again = threads.submit(stream._submit, b"x", bytes, SECONDS, None)
    peer.say(Frame(PONG, peer.next(PING).number))  # whether the session is open
    peer.say(Frame(ANSWER, peer.next(REQUEST).number, b"answer"))
    assert again.result(SECONDS).result(SECONDS) == b"answer"


def credit(number, amount):
    return Frame(CREDIT, number, amount.to_bytes(8, "little"))


def check_announcement(frame):
    """Of LARGE: its number."""
    assert frame.kind == ANNOUNCEMENT
    body = body_of(frame)
    sizes = [len(payload) for payload in PAYLOADS]
    assert list(np.frombuffer(body[:4], "<u4")) == [len(sizes)]
    assert list(np.frombuffer(body[4 : 4 + 8 * len(sizes)], "<u8")) == sizes
    header = messages.ExecuteRequest.FromString(body[4 + 8 * len(sizes) :])
    assert header == messages.ExecuteRequest(want_receipt=True)
    return frame.number


def chunks(peer, number, amount):
    """Chunks of a request, which have so many bytes together."""
    found = []
    while amount > 0:
        frame = peer.next(CHUNK)
        assert frame.number == number and 0 < len(frame.body) <= MOST_CHUNK
        found.append(frame.body)
        amount -= len(frame.body)
    assert amount == 0
    return found


def test_payloads_of_a_large_request_come_as_the_daemon_takes_them(connect, open_session, threads):
    client = connect()
    peer = open_session(client)
    call = threads.submit(execute, client, LARGE)
    number = check_announcement(peer.next())
    peer.say(credit(number, 300_000))
    received = chunks(peer, number, 300_000)
    assert len(received) == 2
    small = threads.submit(execute, client, b"small")  # no chunk comes before it
    request = peer.next(REQUEST)
    peer.say(Frame(ANSWER, request.number, b"answer"))
    assert small.result(SECONDS) == b"answer"
    for amount in (1, 699_998, 2, 1 << 30):
        peer.say(credit(number, amount))
        received += chunks(peer, number, min(amount, 1_300_000 - sum(map(len, received))))
    assert b"".join(received) == b"".join(PAYLOADS)
    assert not any(b"a" in one and b"b" in one for one in received)
    peer.say(Frame(PART, number, b"an "), Frame(PART, number, b"answer "))
    peer.say(Frame(ANSWER, number, b"in parts"))
    assert call.result(SECONDS) == b"an answer in parts"


def test_large_requests_send_chunks_in_turn(connect, open_session, threads):
    client = connect()
    peer = open_session(client)
    calls = [threads.submit(execute, client, LARGE) for _ in range(2)]
    numbers = [check_announcement(peer.next()) for _ in calls]
    peer.say(*(credit(number, 2 * MOST_CHUNK) for number in numbers))
    order = [peer.next(CHUNK).number for _ in range(4)]
    assert sorted(order[:2]) == sorted(order[2:]) == numbers
    for number in numbers:
        peer.say(credit(number, 1 << 30))
    while peer.next(CHUNK).body[-1:] != b"b" or peer.next(CHUNK).body[-1:] != b"b":
        pass
    peer.say(*(Frame(ANSWER, number, b"answer") for number in numbers))
    assert [call.result(SECONDS) for call in calls] == [b"answer"] * 2


@pytest.mark.parametrize("end", ["error", "deadline"])
def test_no_chunk_comes_after_the_end_of_a_request(connect, open_session, threads, end):
    client = connect()
    peer = open_session(client)
    seconds = 0.5 if end == "deadline" else SECONDS
    call = threads.submit(execute, client, LARGE, seconds)
    number = check_announcement(peer.next())
    peer.say(credit(number, 1000))
    chunks(peer, number, 1000)
    if end == "error":
        peer.say(error(number, grpc.StatusCode.RESOURCE_EXHAUSTED))
    failure = call.exception(SECONDS)
    assert failure.code.name == ("DEADLINE_EXCEEDED" if end == "deadline" else "RESOURCE_EXHAUSTED")
    assert peer.next() == Frame(CANCEL, number)
    if end == "deadline":
        peer.say(credit(number, 1 << 30), error(number, grpc.StatusCode.CANCELLED))
    small = threads.submit(execute, client, b"small")
    request = peer.next(REQUEST)
    peer.say(Frame(ANSWER, request.number, b"answer"))
    assert small.result(SECONDS) == b"answer"


def test_a_large_request_that_was_not_started_is_announced_to_the_next_session(
    played, connect, open_session, threads
):
    client = connect()
    peer = open_session(client)
    call = threads.submit(execute, client, LARGE)
    number = check_announcement(peer.next())
    peer.say(credit(number, MOST_CHUNK), going_away(number - 1))
    assert peer.next() is None  # and no chunk
    peer = played.peers.get(timeout=SECONDS)
    number = check_announcement(peer.next())
    peer.say(credit(number, 1 << 30))
    chunks(peer, number, 1_300_000)
    peer.say(Frame(ANSWER, number, b"answer"))
    assert call.result(SECONDS) == b"answer"


SPECIAL = pytest.mark.parametrize(
    "fields",
    [
        {"idempotency_key": "key"},
        {"identity": {"number": 1}},
        {"prepared": {"program": b"p"}},
    ],
    ids=["idempotency key", "identity", "prepared program"],
)


def large(fields):
    header = messages.ExecuteRequest(**fields)
    return _frame.Message(header.SerializeToString(), PAYLOADS, None, is_plain=False)


@SPECIAL
def test_large_requests_of_any_kind_are_announced(connect, open_session, threads, fields):
    client = connect()
    peer = open_session(client)
    call = threads.submit(execute, client, large(fields))
    frame = peer.next(ANNOUNCEMENT)
    sizes = body_of(frame)[: 4 + 8 * len(PAYLOADS)]
    header = messages.ExecuteRequest.FromString(body_of(frame)[len(sizes) :])
    assert header == messages.ExecuteRequest(**fields)
    peer.say(credit(frame.number, 1 << 30))
    assert b"".join(chunks(peer, frame.number, 1_300_000)) == b"".join(PAYLOADS)
    peer.say(Frame(ANSWER, frame.number, b"answer"))
    assert call.result(SECONDS) == b"answer"


@SPECIAL
def test_to_a_daemon_that_announces_no_such_requests_they_are_calls(
    played, connect, open_session, fields
):
    played.hellos = [hello(features=1)]
    client = connect()
    open_session(client)
    assert execute(client, large(fields)) == BY_CALL


def test_a_large_run_of_a_prepared_program_goes_through_the_session(start_daemon):
    daemon = start_daemon("--metrics_listen=127.0.0.1:0")
    program = opserve.Program()
    x = program.input("float32", (1 << 19,))
    w = program.input("float32", (1 << 19,))
    state = np.zeros(1 << 19, "f4")
    with opserve.Client(daemon.target) as client:
        client.l1_loss_backward(ONES[:1, :1], ONES[:1, :1], ONES[:1, :1])  # opens the session
        held = client.upload(state)
        step = client.prepare(program, [program.replace(w, program.add(w, program.mul(x, x)))])
        for number in range(1, 6):
            batch = np.full(1 << 19, number, "f4")
            step(batch, held)
            state += batch * batch
        np.testing.assert_array_equal(client.download(held), state)
    assert Watcher(daemon).value('opserve_session_arrivals_total{result="arrived"}') == 5


def test_large_requests_to_a_daemon_without_announcements_are_calls(played, connect, open_session):
    played.hellos = [hello(features=0)]
    client = connect()
    open_session(client)
    assert execute(client, LARGE) == BY_CALL


@of_both_kinds
def test_a_first_request_that_fits_no_message_runs(start_daemon, kind):
    daemon = start_daemon("--max_message_bytes=1048576")
    own, target = np.arange(1 << 20, dtype="f4"), np.full(1 << 20, 5, "f4")
    with kind(daemon.target) as client:
        gradient = client.l1_loss_backward(ONES[:1, :1], own, target, reduction="sum")
    np.testing.assert_array_equal(gradient.reshape(-1), np.sign(own - target))
    with kind(daemon.target, session=False) as client:
        with pytest.raises(opserve.InvalidArgumentError, match="at most 1048576"):
            client.l1_loss_backward(ONES[:1, :1], own, target, reduction="sum")


def test_parts_make_the_answer_wherever_it_is_cut():
    draw = np.random.default_rng(7)
    response = messages.ExecuteResponse()
    response.receipt.not_remembered = True
    for payloads in ([], [b"a" * 100], [b"a" * 300, b"", b"b" * 70]):
        answer = _frame.join(response, payloads)
        for _ in range(300):
            cuts = sorted(draw.integers(len(answer) + 1, size=draw.integers(1, 6)))
            pieces = [answer[i:j] for i, j in zip([0, *cuts], [*cuts, len(answer)])]
            parts = AnswerParts(pieces[0])
            for piece in pieces[:-1]:
                parts.add(piece)
            assert bytes(parts.end(pieces[-1])) == answer


def test_an_answer_that_begins_with_its_payload_is_copied_once():
    answer = _frame.join(messages.ExecuteResponse(), [b"a" * 300])
    parts = AnswerParts(answer[:50])
    for start in range(0, 300, 50):
        parts.add(answer[start : start + 50])
    whole = parts.end(answer[300:])
    assert isinstance(whole, memoryview) and whole == answer and whole.readonly


def test_damaged_messages_are_frames_or_an_error():
    good = write(hello(), error(7, grpc.StatusCode.NOT_FOUND), Frame(ANSWER, 8, bytes(300)))
    draw = np.random.default_rng(5)
    refused = 0
    for _ in range(5000):
        message = bytearray(good[: draw.integers(len(good) + 1)])
        for _ in range(draw.integers(4)):
            if message:
                message[draw.integers(min(len(message), 48))] = draw.integers(256)
        try:
            frames = list(_session_frames.split(bytes(message)))
        except _frame.FrameError:
            refused += 1
        else:
            assert sum(len(body) for _, _, body in frames) <= len(message)
    assert refused > 1000
    assert [Frame(*one) for one in _session_frames.split(good)] == list(read(good))


def kl_div(client):
    return client.kl_div_backward(ONES, ONES, ONES)


def test_a_daemon_that_restarted_meanwhile_costs_no_request(start_daemon):
    daemon = start_daemon()
    with opserve.Client(daemon.target, retry=opserve.Retry(max_attempts=1)) as client:
        choice = client._sessions._choice
        for _ in range(3):
            # No request may fail; one that finds no session yet is a call.
            await_true(lambda: kl_div(client) is not None and choice.current, "a session is open")
            daemon.stop()
            daemon.start()
            choice.current[0].last_event -= 10
        kl_div(client)


@of_both_kinds
def test_a_client_that_is_closed_ends_its_sessions_in_order(start_daemon, kind):
    daemon = start_daemon("--metrics_listen=127.0.0.1:0")
    watcher = Watcher(daemon)
    with kind(daemon.target) as client:
        choice = client._sessions._choice
        await_true(
            lambda: kl_div(client) is not None and choice.next_look > time.monotonic(),
            "the probe is over",
        )
        watcher.await_value("opserve_sessions", 1)
    # That of requests, and the one that asked which daemon it is.
    assert watcher.value('opserve_sessions_total{result="closed"}') == 2
    assert watcher.value("opserve_sessions_total") == 2


@of_both_kinds
def test_sessions_that_reach_their_age_cost_no_request(start_daemon, threads, kind):
    daemon = start_daemon("--max_connection_age=1s", "--metrics_listen=127.0.0.1:0")
    watcher = Watcher(daemon)
    with kind(daemon.target) as client:

        def load(_):
            end = time.monotonic() + 4
            while time.monotonic() < end:
                kl_div(client)

        list(threads.map(load, range(4)))
    ended = watcher.value('opserve_sessions_total{result="closed"}')
    assert ended >= 2, ended
    assert watcher.value('opserve_sessions_total{result="broken"}') == 0


@of_both_kinds
def test_daemons_of_a_list_share_requests_and_may_restart(start_daemon, threads, kind):
    daemons = [start_daemon("--metrics_listen=127.0.0.1:0") for _ in range(3)]
    watchers = [Watcher(daemon) for daemon in daemons]
    served = "opserve_requests_total"
    with kind(",".join(daemon.target for daemon in daemons)) as client:
        choice = client._sessions._choice
        await_true(
            lambda: kl_div(client) is not None and len(choice.in_turn(is_large=False)) == 3,
            "each daemon has a session",
        )
        before = [watcher.value(served) for watcher in watchers]
        for _ in range(30):
            kl_div(client)
        after = [watcher.value(served) for watcher in watchers]
        assert [b - a for a, b in zip(before, after)] == [10, 10, 10]

        is_over = threading.Event()

        def load(_):
            while not is_over.is_set():
                kl_div(client)

        loads = [threads.submit(load, i) for i in range(4)]
        try:
            daemons[0].stop()
            await_true(lambda: len(choice.current) == 2, "its session is left")
            daemons[0].start()
            await_true(lambda: len(choice.current) == 3, "it has a session again")
        finally:
            is_over.set()
        for one in loads:
            one.result(SECONDS)


def test_a_loop_ends_well_with_a_session_that_is_not_closed(daemon):
    program = f"""
import asyncio, numpy, opserve
async def main():
    client = opserve.AsyncClient({daemon.target!r})
    ones = numpy.ones((2, 2), "f4")
    while not client._sessions._choice.current:
        await client.kl_div_backward(ones, ones, ones)
asyncio.run(main())
"""
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program],
        env=script_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stderr) == (0, "")
