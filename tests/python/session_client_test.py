"""proto/SESSION.md as a client that was written from it alone speaks it: what is answered, and what
ends a session."""

import pathlib
import signal

import grpc
import numpy as np
import pytest

from session_client import (
    ANSWER,
    CANCEL,
    ERROR,
    GOING_AWAY,
    HEADER,
    HELLO,
    METHOD,
    PING,
    PONG,
    REQUEST,
    START,
    Frame,
    ProtocolError,
    Session,
    messages,
    read,
    request_body,
    write,
)

STORED = pathlib.Path(__file__).resolve().parents[1] / "data/wire/session"
FLOAT = 1  # DATA_TYPE_FLOAT
SUM = 2  # of L1LossBackward's reduction
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(scope="module")
def channel(daemon):
    with grpc.insecure_channel(daemon.target) as connected:
        yield connected


@pytest.fixture
def session(channel):
    return Session(channel, timeout=60)


def l1_loss_backward(grad_output, own, target, operator="L1LossBackward"):
    """A request for the gradient of a sum of absolute differences."""
    request = messages.ExecuteRequest()
    invocation = request.invocations.add(operator=operator)
    inputs = {"grad_output": grad_output, "self": own, "target": target}
    for number, (name, elements) in enumerate(inputs.items()):
        tensor = invocation.inputs.add(name=name).tensor
        tensor.dtype, tensor.payload = FLOAT, number
        tensor.shape.extend(elements.shape)
        request.payloads.append(elements.astype("<f4").tobytes())
    invocation.attributes.add(name="reduction").value.int64_value = SUM
    return request


def example(shape=(2, 3), seed=7):
    """A request, and its result by numpy."""
    generator = np.random.default_rng(seed)
    grad, own, target = (
        generator.integers(-3, 4, shape).astype(np.float32) for _ in range(3)
    )
    return l1_loss_backward(grad, own, target), np.sign(own - target) * grad


def result_of(answer):
    [result] = answer.results
    [payload] = answer.payloads
    return np.frombuffer(payload, "<f4").reshape(result.tensor.shape)


def stored(name):
    """The bytes of a message that is stored, and its frames, which give the same bytes."""
    message = (STORED / f"{name}.bin").read_bytes()
    frames = list(read(message))
    assert write(*frames) == message
    return message, frames


def floats(payload):
    return list(np.frombuffer(payload, "<f4"))


def check_request(body, microseconds, traceparent, elements):
    """A stored request has these values."""
    assert START.unpack_from(body) == (microseconds, len(traceparent))
    assert body[START.size :].startswith(traceparent.encode())
    request = messages.ExecuteRequest.FromString(body[START.size + len(traceparent) :])
    [invocation] = request.invocations
    assert invocation.operator == "L1LossBackward"
    shapes = {named.name: list(named.tensor.shape) for named in invocation.inputs}
    assert shapes == dict.fromkeys(("grad_output", "self", "target"), [elements])
    values = [[1, 2, 4], [1, -1, 0], [0, 1, 0]]
    assert [floats(payload) for payload in request.payloads] == [
        value[:elements] for value in values
    ]


def test_stored_messages_are_read():
    _, [hello] = stored("hello_client")
    assert hello[:2] == (HELLO, 0)
    theirs = messages.SessionHello(version=1, build="example 1.0")
    assert messages.SessionHello.FromString(hello.body) == theirs
    _, [hello] = stored("hello_daemon")
    assert hello[:2] == (HELLO, 0)
    limits = {
        "max_requests": 256,
        "max_request_bytes": 1 << 20,
        "max_message_bytes": 4 << 20,
    }
    ours = messages.SessionHello(version=1, build="opserved 1.0", limits=limits)
    assert messages.SessionHello.FromString(hello.body) == ours
    _, [request] = stored("request")
    assert request[:2] == (REQUEST, 1)
    check_request(request.body, 1_500_000, TRACE, 3)
    _, [answer] = stored("answer")
    assert answer[:2] == (ANSWER, 1)
    result = result_of(messages.ExecuteResponse.FromString(answer.body))
    assert list(result) == [1, -2, 0]
    _, [error] = stored("error")
    assert error[:2] == (ERROR, 2)
    status = messages.StatusDetails.FromString(error.body)
    assert (status.code, status.message) == (3, 'L1LossBackward: no input "other"')
    detail = messages.ErrorDetail()
    assert status.details[0].Unpack(detail)
    assert detail == messages.ErrorDetail(
        reason="invalid",
        operator="L1LossBackward",
        argument="other",
        retry_pushback_ms=-1,
    )
    assert stored("cancel")[1] == [Frame(CANCEL, 3)]
    assert stored("ping")[1] == [Frame(PING, 7)]
    assert stored("pong")[1] == [Frame(PONG, 7)]
    _, [away] = stored("going_away")
    assert away[:2] == (GOING_AWAY, 0)
    expected = messages.SessionGoingAway(last_request=3, reason="the daemon ends")
    assert messages.SessionGoingAway.FromString(away.body) == expected
    _, [first, ping, second, cancel] = stored("batch")
    assert first[:2] == (REQUEST, 4) and second[:2] == (REQUEST, 1 << 40)
    check_request(first.body, 0, "", 3)
    check_request(second.body, 2_000_000, "", 1)
    assert (ping, cancel) == (Frame(PING, (1 << 64) - 1), Frame(CANCEL, 4))


def test_the_daemon_answers_stored_messages(channel):
    sent = [stored(name)[0] for name in ("hello_client", "request", "batch", "ping")]
    call = channel.stream_stream(METHOD)(iter(sent), timeout=60)
    frames = [frame for message in call for frame in read(message)]
    assert frames.pop(0).kind == HELLO
    assert stored("answer")[1][0] in frames
    assert {frame[:2] for frame in frames if frame.kind != ERROR} >= {
        (ANSWER, 1 << 40),
        (PONG, (1 << 64) - 1),
        (PONG, 7),
    }
    # Request 4 is cancelled, which may come too late.
    [end_of_4] = [frame for frame in frames if frame.number == 4]
    assert end_of_4.kind == ANSWER or (
        messages.StatusDetails.FromString(end_of_4.body).code
        == grpc.StatusCode.CANCELLED.value[0]
    )
    assert len(frames) == 5


@pytest.mark.parametrize(
    "frames",
    [
        HEADER.pack(0, 0, 0, 0, 1),
        HEADER.pack(0, 13, 0, 0, 1),
        HEADER.pack(0, PING, 1, 0, 1),
        HEADER.pack(0, PING, 0, 1, 1),
        HEADER.pack(1, PING, 0, 0, 1),
    ],
)
def test_the_client_refuses_frames_that_break_a_rule(frames):
    with pytest.raises(ProtocolError):
        list(read(messages.SessionMessage(frames=frames).SerializeToString()))


def test_an_operator_runs(session):
    request, expected = example()
    [number] = session.begin(request)
    np.testing.assert_array_equal(result_of(session.finish(number)), expected)
    session.close()


def test_requests_of_one_message_are_answered_in_any_order(session):
    count = min(20, session.limits.max_requests)
    pairs = [example((seed + 1, 7), seed) for seed in range(count)]
    numbers = session.begin(*(request for request, _ in pairs))
    for number, (_, expected) in reversed(list(zip(numbers, pairs))):
        np.testing.assert_array_equal(result_of(session.finish(number)), expected)
    session.close()


def test_numbers_may_skip(session):
    request, expected = example()
    for number in (5, 6, 1 << 40, (1 << 64) - 1):
        session.send(Frame(REQUEST, number, request_body(request)))
        kind, answered, body = next(session.incoming)
        assert (kind, answered) == (ANSWER, number)
        answer = messages.ExecuteResponse.FromString(body)
        np.testing.assert_array_equal(result_of(answer), expected)


def test_a_session_goes_on_after_an_invalid_request(session):
    right, expected = example()
    wrong, _ = example()
    wrong.invocations[0].operator = "Nonsense"
    numbers = session.begin(right, wrong, right)
    error = session.finish(numbers[1])
    assert error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert "Nonsense" in error.message
    detail = messages.ErrorDetail()
    assert error.details[0].Unpack(detail) and detail.reason == "invalid"
    for number in (numbers[0], numbers[2], *session.begin(right)):
        np.testing.assert_array_equal(result_of(session.finish(number)), expected)
    session.close()


def test_a_request_may_have_a_time_and_a_trace(session):
    request, expected = example()
    request.want_receipt = True
    [number] = session.begin(request, timeout=30, traceparent=TRACE)
    answer = session.finish(number)
    np.testing.assert_array_equal(result_of(answer), expected)
    assert answer.receipt.trace_id == TRACE.split("-")[1]
    [number] = session.begin(request, timeout=1e-6)
    error = session.finish(number)
    assert error.code == grpc.StatusCode.DEADLINE_EXCEEDED.value[0]
    session.close()


def test_a_ping_is_answered_before_the_request_behind_it(session):
    request, _ = example()
    for number in (0, 7, (1 << 64) - 1):
        session.send(Frame(PING, number))
        assert session.receive() == Frame(PONG, number)
    session.send(Frame(PING, 8), Frame(REQUEST, 1, request_body(request)), Frame(PONG, 9))
    assert next(session.incoming) == Frame(PONG, 8)
    assert next(session.incoming).kind == ANSWER
    session.close()


def test_cancelling_what_is_not_there_does_nothing(session):
    request, expected = example()
    session.send(Frame(CANCEL, 0), Frame(CANCEL, 1), Frame(CANCEL, (1 << 64) - 1))
    [number] = session.begin(request)
    np.testing.assert_array_equal(result_of(session.finish(number)), expected)
    session.send(Frame(CANCEL, number))
    session.close()


def test_what_was_sent_before_the_end_is_answered(session):
    request, expected = example()
    numbers = session.begin(request, request)
    session.close()
    for number in numbers:
        np.testing.assert_array_equal(result_of(session.finish(number)), expected)


def test_the_daemon_says_going_away_when_it_ends(start_daemon):
    daemon = start_daemon()
    with grpc.insecure_channel(daemon.target) as channel:
        session = Session(channel, timeout=60)
        request, _ = example()
        [number] = session.begin(request)
        session.finish(number)
        daemon.process.send_signal(signal.SIGTERM)
        assert session.receive().kind == GOING_AWAY
        assert session.last_request == number
    assert daemon.process.wait(timeout=60) == 0


def raw(frames):
    return messages.SessionMessage(frames=frames).SerializeToString()


def header(size=0, kind=PING, flags=0, zero=0, number=1):
    return HEADER.pack(size, kind, flags, zero, number)


def start(microseconds=0, trace_bytes=0):
    return START.pack(microseconds, trace_bytes)


def one(number):
    return Frame(REQUEST, number, request_body(example()[0]))


PING_1 = write(Frame(PING, 1))
VERSION_1 = Frame(HELLO, 0, messages.SessionHello(version=1).SerializeToString())
# Before hello, each with the rule that it breaks.
FIRST_MESSAGES = {
    "a request": (write(one(1)), "the first frame must be hello"),
    "a ping": (PING_1, "the first frame must be hello"),
    "a pong before hello": (
        write(Frame(PONG), VERSION_1),
        "the first frame must be hello",
    ),
    "hello without a version": (write(Frame(HELLO)), "hello has the version 0"),
    "hello that is none": (
        write(Frame(HELLO, 0, b"\x08")),
        "hello is no SessionHello",
    ),
    "hello with a number": (
        write(VERSION_1._replace(number=1)),
        "hello has the number 1, not 0",
    ),
    "hello twice": (write(VERSION_1, VERSION_1), "a second hello"),
    "another field": (b"\x12" + PING_1[1:], "not a SessionMessage"),
}
# After hello. The first request has the number 5.
LATER_MESSAGES = {
    "hello again": (write(VERSION_1), "a second hello"),
    "the kind 0": (raw(header(kind=0)), "the unknown kind 0"),
    "the kind 13": (raw(header(kind=13)), "the unknown kind 13"),
    "a part": (raw(header(kind=12)), "frames of the kind 12 come from the daemon only"),
    "the kind 255": (raw(header(kind=255)), "the unknown kind 255"),
    "an answer": (raw(header(kind=ANSWER)), "the kind 3 come from the daemon only"),
    "an error": (raw(header(kind=ERROR)), "the kind 4 come from the daemon only"),
    "going-away": (raw(header(kind=GOING_AWAY)), "the kind 8 come from the daemon only"),
    "a flag": (raw(header(flags=1)), "flags of a frame and the two bytes behind them"),
    "a byte that is not 0": (raw(header(zero=1)), "the two bytes behind them must be 0"),
    "the same number": (write(one(5)), "request 5 does not come after 5"),
    "a lower number": (write(one(4)), "request 4 does not come after 5"),
    "the number 0": (write(one(0)), "request 0 does not come after 5"),
    "cancel with a body": (write(Frame(CANCEL, 5, b"x")), "a cancel has no body"),
    "ping with a body": (write(Frame(PING, 5, b"x")), "a ping has no body"),
    "pong with a body": (write(Frame(PONG, 5, b"x")), "a pong has no body"),
    "a request without a start": (
        write(Frame(REQUEST, 6, start()[:-1])),
        "the body of a request has 11 bytes, at least 12 expected",
    ),
    "a trace that is too long": (
        write(Frame(REQUEST, 6, start(0, 257) + bytes(257))),
        "a traceparent of 257 bytes, at most 256 allowed",
    ),
    "a trace that is cut off": (
        write(Frame(REQUEST, 6, start(0, 3) + bytes(2))),
        "a traceparent of 3 bytes, at most 256 allowed, 2 left",
    ),
    "a header that is cut off": (
        raw(header()[:15]),
        "a frame's header is cut off after 15 bytes",
    ),
    "a body that is cut off": (
        raw(header(size=2, kind=REQUEST, number=6) + b"x"),
        "a frame's body of 2 bytes is longer than the rest of its message, 1",
    ),
    "4097 frames": (write(*[Frame(CANCEL, 1)] * 4097), "more than 4096 frames"),
    "another length": (
        b"\x0a\x11" + PING_1[2:],
        "of another length than its field `frames` says",
    ),
    "two fields": (PING_1 * 2, "another length than its field `frames` says"),
    "no field": (PING_1[2:], "not a SessionMessage"),
}


def end_of(call):
    """The code and text that a stream ends with."""
    with pytest.raises(grpc.RpcError) as error:
        for _ in call:
            pass
    return error.value.code(), error.value.details()


def expect_broken(call, rule):
    code, text = end_of(call)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "the session's protocol is broken: " in text and rule in text


@pytest.fixture(scope="module")
def other_session(channel):
    """One that goes on whatever the others do."""
    session = Session(channel, timeout=300)
    yield session
    session.close()


def expect_served(session):
    request, expected = example()
    [number] = session.begin(request)
    np.testing.assert_array_equal(result_of(session.finish(number)), expected)


@pytest.mark.parametrize("name", FIRST_MESSAGES)
def test_the_first_frame_must_be_a_hello(channel, other_session, name):
    message, rule = FIRST_MESSAGES[name]
    expect_broken(channel.stream_stream(METHOD)(iter([message]), timeout=60), rule)
    expect_served(other_session)


@pytest.mark.parametrize("name", LATER_MESSAGES)
def test_a_broken_rule_ends_its_session_alone(session, other_session, name):
    message, rule = LATER_MESSAGES[name]
    session.send(one(5))
    assert next(session.incoming).kind == ANSWER
    session.outgoing.put(message)
    expect_broken(session.incoming, rule)
    expect_served(other_session)


def test_a_request_may_be_as_large_as_its_limit(session, other_session):
    limit = session.limits.max_request_bytes
    session.send(Frame(REQUEST, 1, bytes(limit)))
    assert next(session.incoming)[:2] == (ERROR, 1)  # zeros are no ExecuteRequest
    session.send(Frame(REQUEST, 2, bytes(limit + 1)))
    rule = f"the body of request 2 has {limit + 1} bytes, at most {limit} allowed"
    expect_broken(session.incoming, rule)
    expect_served(other_session)


def test_a_message_may_be_as_large_as_its_limit(session, other_session):
    limit = session.limits.max_message_bytes
    first = Frame(REQUEST, 1, bytes(session.limits.max_request_bytes))
    rest = limit - len(write(first)) - HEADER.size
    message = write(first, Frame(REQUEST, 2, bytes(rest)))
    assert len(message) == limit
    session.outgoing.put(message)
    assert {next(session.incoming)[:2] for _ in range(2)} == {(ERROR, 1), (ERROR, 2)}
    session.send(first, Frame(REQUEST, 2, bytes(rest + 1)))
    rule = f"a message of {limit + 1} bytes, at most {limit} allowed"
    expect_broken(session.incoming, rule)
    expect_served(other_session)


def test_one_request_more_than_the_window_ends_the_session(start_daemon):
    # With the first launches the devices prove themselves: of the two of them only one need be quick.
    slow = "kernel=aclnnL1LossBackward,nth=2,count=all,slow=1000000"
    daemon = start_daemon("--stream_window=2", faults=slow)
    with grpc.insecure_channel(daemon.target) as channel:
        session, other = (Session(channel, timeout=60) for _ in range(2))
        assert session.limits.max_requests == 2
        request, _ = example()
        request.want_receipt = True
        body = request_body(request)
        session.send(*(Frame(REQUEST, number, body) for number in (1, 2, 3)))
        answers = [next(session.incoming) for _ in range(2)]
        assert {answer[:2] for answer in answers} == {(ANSWER, 1), (ANSWER, 2)}, [
            messages.ExecuteResponse.FromString(answer.body).receipt
            for answer in answers
        ]
        rule = "more than 2 requests without an answer, with request 3"
        expect_broken(session.incoming, rule)
        expect_served(other)
        other.close()
