"""Large requests and answers in the client's sessions, chunk by chunk and part by part."""

import grpc
import numpy as np
import opserve
import pytest
from opserve import _frame, _session_frames
from opserve._answer_parts import AnswerParts
from played_daemon import BY_CALL, SECONDS, error, going_away, hello
from session_client import (
    ANNOUNCEMENT,
    ANSWER,
    CANCEL,
    CHUNK,
    CREDIT,
    PART,
    PING,
    PONG,
    REQUEST,
    Frame,
    messages,
    read,
    write,
)
from session_fixtures import (  # noqa: F401  (fixtures)
    ONES,
    body_of,
    connect,
    execute,
    loop_thread,
    of_both_kinds,
    of_threads,
    open_session,
    played,
    threads,
)
from watcher import Watcher

MOST_CHUNK = 256 << 10
PAYLOADS = [b"a" * 1_000_000, b"", b"b" * 300_000]
LARGE = _frame.Message(
    messages.ExecuteRequest(want_receipt=True).SerializeToString(), PAYLOADS, None, is_plain=True
)


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


@pytest.fixture
def fill_session(played, open_session, threads):
    """Has a client open a session of one place, and fill it: the daemon's side, and how to end it."""

    def fill_session(client):
        played.hellos = [hello(max_requests=1)]
        peer = open_session(client)
        small = threads.submit(execute, client)
        number = peer.next(REQUEST).number

        def end():
            peer.say(Frame(ANSWER, number, b"small"))
            assert small.result(SECONDS) == b"small"

        return peer, number, end

    return fill_session


def next_request(peer):
    """The next frame that is no ping, by which a client wakes a thread that waits in vain."""
    frame = peer.next()
    while frame is not None and frame.kind == PING:
        peer.say(Frame(PONG, frame.number))
        frame = peer.next()
    return frame


def serve_large(peer):
    number = check_announcement(next_request(peer))
    peer.say(credit(number, 1 << 30))
    chunks(peer, number, 1_300_000)
    peer.say(Frame(ANSWER, number, b"large"))


def test_large_requests_wait_for_a_place_in_a_full_session(connect, fill_session, threads):
    client = connect()
    peer, _, end = fill_session(client)
    calls = [threads.submit(execute, client, LARGE) for _ in range(3)]
    assert execute(client) == BY_CALL  # a small one does not
    end()
    for _ in calls:
        serve_large(peer)
    assert [call.result(SECONDS) for call in calls] == [b"large"] * 3
    assert peer.is_empty()


@pytest.mark.parametrize("count", [1, 3])
def test_a_deadline_ends_the_wait_for_a_place(connect, fill_session, threads, count):
    client = connect()
    peer, _, end = fill_session(client)
    waiting = [threads.submit(execute, client, LARGE, 0.3) for _ in range(count)]
    for call in waiting:
        with pytest.raises(opserve.DeadlineExceededError):
            call.result(SECONDS)
    end()
    call = threads.submit(execute, client, b"next")
    request = next_request(peer)
    assert request.kind == REQUEST  # the large one is not announced any more
    peer.say(Frame(ANSWER, request.number, b"answer"))
    assert call.result(SECONDS) == b"answer"


@pytest.mark.parametrize("way", ["goes away", "breaks"])
def test_requests_that_wait_for_a_place_go_to_the_next_session(
    played, connect, fill_session, threads, way
):
    client = connect()
    peer, number, end = fill_session(client)
    call = threads.submit(execute, client, LARGE)
    assert execute(client) == BY_CALL
    if way == "goes away":
        peer.say(going_away(number))
        end()
        assert peer.next() is None  # and no announcement
    else:
        peer.end(grpc.StatusCode.UNAVAILABLE)
    serve_large(played.peers.get(timeout=SECONDS))
    assert call.result(SECONDS) == b"large"


@of_threads
def test_a_stream_waits_for_a_place_and_may_be_cancelled(connect, fill_session, threads):
    client = connect()
    peer, _, end = fill_session(client)
    with client.open_stream() as stream:
        first = stream._submit(LARGE, bytes, SECONDS, None)
        stream.cancel()
        with pytest.raises(opserve.CancelledError):
            first.result(SECONDS)
    with client.open_stream() as stream:
        second = stream._submit(LARGE, bytes, SECONDS, None)
        end()
        serve_large(peer)
        assert second.result(SECONDS) == b"large"
    assert peer.is_empty()


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


@of_both_kinds
def test_large_requests_beyond_the_daemons_window_run(start_daemon, threads, kind):
    daemon = start_daemon("--stream_window=2", "--max_message_bytes=1048576")
    own = np.arange(1 << 20, dtype="f4")

    def gradient(number):
        target = np.full(1 << 20, number, "f4")
        return client.l1_loss_backward(ONES[:1, :1], own, target, reduction="sum").reshape(-1)

    with kind(daemon.target) as client:
        gradient(0)
        for number, found in enumerate(threads.map(gradient, range(12))):
            np.testing.assert_array_equal(found, np.sign(own - number))


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
