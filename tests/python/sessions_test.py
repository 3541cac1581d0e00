"""The client's sessions, beside a daemon that the tests play by proto/SESSION.md, and beside opserved."""

import concurrent.futures
import gc
import subprocess
import sys
import threading
import time

import grpc
import opserve
import pytest
from integration.await_true import await_true
from opserve import _session_choice, _wire
from played_daemon import BY_CALL, SECONDS, error, going_away, hello
from session_client import (
    ANSWER,
    CANCEL,
    CREDIT,
    ERROR,
    GOING_AWAY,
    PART,
    PING,
    PONG,
    REQUEST,
    START,
    Frame,
)
from conftest import script_environment
from session_fixtures import (  # noqa: F401  (fixtures)
    LONG,
    ONES,
    body_of,
    connect,
    execute,
    loop_thread,
    of_both_kinds,
    of_threads,
    open_session,
    open_sessions,
    played,
    threads,
)
from watcher import Watcher

TRACE = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"


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


@of_threads
def test_a_look_for_other_daemons_takes_no_turn(played, connect, open_sessions, threads):
    client = connect()
    peers = open_sessions(client, ["a", "b"])
    for peer in 2 * peers:
        played.hellos = [hello("a"), hello("b")]  # of probes
        client._sessions._choice.next_look = 0.0
        serve(peer, client, threads)
        assert not played.hellos


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
