"""Streams of requests in the client's sessions, beside a daemon that the tests play."""

import threading

import opserve
import pytest
from integration.await_true import await_true
from played_daemon import BY_CALL, SECONDS, going_away
from session_client import ANSWER, CANCEL, PING, PONG, REQUEST, Frame
from session_fixtures import (  # noqa: F401  (fixtures)
    body_of,
    connect,
    execute,
    loop_thread,
    of_threads,
    open_session,
    played,
    threads,
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
