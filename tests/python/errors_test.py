"""What calls raise, and which are repeated."""

import asyncio
import math
import os
import signal

import grpc
import numpy as np
import pytest
from formulas import normal

import opserve
from opserve import _wire, errors
from opserve._retry import RetryPolicy


def test_an_error_carries_what_the_daemon_says(client):
    with pytest.raises(opserve.InvalidArgumentError) as raised:
        client.l1_loss_backward(np.float32(1), normal(2, 3), normal(4))
    error = raised.value
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert (error.operator, error.argument) == ("L1LossBackward", "target")
    assert error.aclnn_status == 161002
    assert error.reason == "invalid"
    assert error.from_daemon
    assert "[4]" in error.message and "[2,3]" in error.message
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    "attributes, argument",
    [({"reduction": "batchmean"}, "reduction"), ({"reduction": 7}, "reduction")],
)
def test_attributes_are_named(client, attributes, argument):
    with pytest.raises(opserve.InvalidArgumentError) as raised:
        client.l1_loss_backward(np.float32(1), normal(3), normal(3), **attributes)
    assert raised.value.argument == argument


def test_the_position_in_a_program_is_told(client):
    program = opserve.Program()
    first = program.l1_loss_backward(np.float32(1), normal(2, 3), normal(2, 3))
    program.log_softmax_backward(first, normal(5, 5))
    with pytest.raises(opserve.InvalidArgumentError) as raised:
        client.execute(program)
    assert raised.value.invocation == 1
    assert raised.value.operator == "LogSoftmaxBackward"


def test_an_operator_that_is_none(client):
    program = opserve.Program()
    program.invoke("NoSuchBackward", {"self": normal(3)}, {})
    with pytest.raises(opserve.OpserveError, match="NoSuchBackward"):
        client.execute(program)
    with pytest.raises(opserve.NotFoundError):
        client.list_operators(["NoSuchBackward"])


def test_a_device_fault_has_its_code(start_daemon):
    faulty = start_daemon(
        "--device=0", faults="kernel=aclnnL1LossBackward,nth=2,code=507015"
    )
    with opserve.Client(faulty.target, retry=opserve.Retry(max_attempts=1)) as client:
        with pytest.raises(opserve.OpserveError) as raised:
            client.l1_loss_backward(np.float32(1), normal(3), normal(3))
    assert raised.value.acl_error == 507015


def test_a_deadline_that_passes(start_daemon):
    slow = start_daemon(
        "--device=0", faults="kernel=aclnnL1LossBackward,nth=2,slow=2000000"
    )
    with opserve.Client(slow.target) as client:
        with pytest.raises(opserve.DeadlineExceededError) as raised:
            client.l1_loss_backward(np.float32(1), normal(3), normal(3), timeout=0.2)
    assert isinstance(raised.value, TimeoutError)


FULL = grpc.StatusCode.RESOURCE_EXHAUSTED
AWAY = grpc.StatusCode.UNAVAILABLE
PUSHBACK = ("grpc-retry-pushback-ms", "1")
NEVER = ("grpc-retry-pushback-ms", "-1")
STATUS = _wire.GetServerStatusResponse(version="1").SerializeToString()


def status_of(target, is_async, **options):
    if not is_async:
        with opserve.Client(target, **options) as client:
            return client.server_status()

    async def ask():
        async with opserve.AsyncClient(target, **options) as client:
            return await client.server_status()

    return asyncio.run(ask())


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "asyncio"])
class TestRepetition:
    def test_what_may_pass_is_repeated(self, scripted, is_async):
        server = scripted((FULL, PUSHBACK), (AWAY,), STATUS)
        assert status_of(server.target, is_async).version == "1"
        assert len(server.calls) == 3

    @pytest.mark.parametrize("details", ["Stream removed", "No status received"])
    def test_an_answer_that_was_cut_off_is_a_lost_call(self, scripted, is_async, details):
        """gRPC calls it UNKNOWN when an answer is cut off between its beginning and its status."""
        lost = {"code": grpc.StatusCode.UNKNOWN, "details": details}
        server = scripted(lost, STATUS)
        assert status_of(server.target, is_async).version == "1"
        assert len(server.calls) == 2

    @pytest.mark.parametrize(
        "outcome",
        [
            (FULL, NEVER),
            {"code": grpc.StatusCode.UNKNOWN, "details": "Stream removed, I say"},
            (AWAY, ("grpc-retry-pushback-ms", "soon")),
            (grpc.StatusCode.INTERNAL,),
        ],
    )
    def test_what_cannot_pass_is_not(self, scripted, is_async, outcome):
        server = scripted(outcome, STATUS)
        with pytest.raises(opserve.OpserveError):
            status_of(server.target, is_async)
        assert len(server.calls) == 1

    def test_a_wait_beyond_the_deadline_is_not_begun(self, scripted, is_async):
        server = scripted((FULL, ("grpc-retry-pushback-ms", "60000")), STATUS)
        with pytest.raises(
            opserve.ResourceExhaustedError, match="beyond the deadline"
        ) as raised:
            status_of(server.target, is_async, timeout=5)
        assert raised.value.retry_after == 60
        assert len(server.calls) == 1

    def test_the_token_goes_with_each_call(self, scripted, is_async):
        server = scripted((AWAY, PUSHBACK), STATUS)
        status_of(server.target, is_async, token="secret")
        for _, context in server.calls:
            assert ("authorization", "Bearer secret") in context.invocation_metadata()


def failure(code=AWAY, retry_after=None):
    return errors.make_error(code, "no", retry_after=retry_after)


@pytest.mark.parametrize(
    "attempts, error, wait",
    [
        (1, failure(), 0.025),
        (3, failure(), 0.1),
        (20, failure(), 2.5),
        (1, failure(retry_after=2.0), 2.25),
        (1, failure(FULL, 0.0), 0.0),
        (1, failure(retry_after=math.inf), None),
        (1, failure(grpc.StatusCode.INVALID_ARGUMENT), None),
        (30, failure(), None),
        (1, failure(retry_after=60.0), None),
    ],
)
def test_how_long_is_waited(attempts, error, wait):
    policy = RetryPolicy(opserve.Retry(max_attempts=30), uniform=lambda: 0.5)
    assert policy.wait_after(attempts, 30, error) == wait


def test_the_budget_bounds_what_is_repeated():
    policy = RetryPolicy(opserve.Retry(budget=4), uniform=lambda: 0)
    waits = [policy.wait_after(1, 9, failure(FULL)) for _ in range(5)]
    assert waits == [0, 0, 0, None, None]
    for _ in range(10):
        policy.record_success()
    assert policy.wait_after(1, 9, failure(FULL)) == 0
    error = failure(FULL)
    assert policy.wait_after(1, 9, error) is None
    assert "too many calls failed" in error.message


def test_lost_calls_are_repeated_once_for_nothing():
    policy = RetryPolicy(opserve.Retry(budget=1), uniform=lambda: 0)
    assert [policy.wait_after(1, 9, failure()) for _ in range(100)] == [0] * 100
    assert policy.wait_after(2, 9, failure()) == 0
    assert policy.wait_after(2, 9, failure()) is None
    refused = errors.make_error(
        AWAY, "no", detail=_wire.ErrorDetail(reason="device_unavailable")
    )
    assert policy.wait_after(1, 9, refused) is None


def test_a_daemon_that_falls_silent_is_given_up(start_daemon):
    daemon = start_daemon()
    keepalive = opserve.Keepalive(time=0.5, timeout=0.5)
    with opserve.Client(
        daemon.target, retry=opserve.Retry(max_attempts=1), keepalive=keepalive
    ) as client:
        client.server_status()
        os.kill(daemon.process.pid, signal.SIGSTOP)
        os.waitpid(daemon.process.pid, os.WUNTRACED)  # all its threads have stopped
        try:
            with pytest.raises(opserve.UnavailableError):
                client.server_status()
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)


@pytest.mark.parametrize("times", [{"time": 0}, {"timeout": -1}, {"time": math.nan}])
def test_times_of_keepalive_are_positive(times):
    with pytest.raises(ValueError, match="expected at least 0.001"):
        opserve.Keepalive(**times)
    assert opserve.Keepalive(time=math.inf).channel_arguments()[0][1] == 2**31 - 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"target": "nonsense"}, "neither unix:PATH nor HOST:PORT"),
        ({"target": "unix:"}, "no socket path"),
        ({"target": "a:1,b:2"}, "addresses of one kind"),
        ({"target": "example.com:1", "token": "t"}, "without TLS, a token"),
        ({"target": "unix:/x", "token": "a b"}, "not printable"),
        ({"target": "unix:/x", "timeout": 0}, "timeout is 0"),
        ({"target": "h:1", "tls": opserve.Tls(cert_file="x")}, "go together"),
        ({"target": "127.0.0.1:1,127.0.0.1:2", "tls": opserve.Tls()}, "server_name"),
    ],
)
@pytest.mark.parametrize("kind", [opserve.Client, opserve.AsyncClient])
def test_what_a_client_cannot_meet(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        kind(**arguments)
    if "token" in arguments:
        with pytest.raises(ValueError) as raised:
            kind(**{**arguments, "token": "se cret"})
        assert "cret" not in str(raised.value)


def test_the_default_target(monkeypatch):
    monkeypatch.delenv("OPSERVE_TARGET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert opserve.default_target() == "unix:/run/user/7/opserve/opserve.sock"
    monkeypatch.setenv("OPSERVE_TARGET", "a:1")
    assert opserve.default_target() == "a:1"
