"""Callers that leave at each stage of a request: it is counted there, nothing of it stays, the next one is served."""

import sys

import numpy as np
import opserve
import pytest
from opserve import _frame, _wire

from conftest import ROOT
from watcher import Watcher

sys.path.insert(0, str(ROOT / "tests/hardening"))
import raw_peer  # noqa: E402

RESET = raw_peer.frame(raw_peer.RST_STREAM, 0, 1, b"\0\0\0\x08")
# Three whole frames; HTTP/2's first windows are 65535 bytes.
SAFE_BYTES = 3 * (9 + 16384)
PING = raw_peer.frame(raw_peer.PING, 0, 0, b"has read")
PONG = raw_peer.frame(raw_peer.PING, 1, 0, b"has read")


def loss(rows, columns, invocations=1):
    """A request whose inputs are one row each, repeated."""
    message = _wire.ExecuteRequest()
    for _ in range(invocations):
        invocation = message.invocations.add(operator="L1LossBackward")
        for name in ("grad_output", "self", "target"):
            tensor = invocation.inputs.add(name=name).tensor
            tensor.dtype = 1
            tensor.shape.extend([rows, columns])
            tensor.strides.extend([0, 1])
            tensor.payload = 0
    message.results.add(invocation=invocations - 1)
    return _frame.join(message, [bytes(4 * columns)])


class Caller:
    """A connection of its own with one call, whose result is not read."""

    def __init__(self, daemon, body, window=None, part=None, awaits_ping=False):
        self._connection = raw_peer.Address(path=str(daemon.socket)).connect()
        frames = raw_peer.message(1, body)[:part]
        self._connection.sendall(
            raw_peer.settings(window)
            + raw_peer.call(1, "/opserve.v1.OperatorService/Execute")
            + frames[:SAFE_BYTES]
        )
        if awaits_ping or len(frames) > SAFE_BYTES:
            self._await_ping()
        self._connection.sendall(frames[SAFE_BYTES:])

    def _await_ping(self):
        """Returns when the daemon has read all that was sent."""
        self._connection.sendall(PING)
        received = b""
        while PONG not in received:
            part = self._connection.recv(65536)
            assert part, "the daemon has closed the connection"
            received += part

    def leave(self, how):
        if how == "cancels":
            self._connection.sendall(RESET)
        else:
            self._connection.close()

    def close(self):
        self._connection.close()


# To hang where a caller leaves, and not in the call after it.
def hanging(*launches):
    return ";".join(f"kernel=aclnnL1LossBackward,nth={nth},hang" for nth in launches)


SLOW_COPIES = "copies,rate=24K"
# Of the request, after the golden case, and of the one after assert_right's. No plan of one is left for the next.
SLOW_STAGE_ONE = ";".join(
    f"call=aclnnL1LossBackwardGetWorkspaceSize,nth={nth},slow=500000" for nth in (2, 4)
)
IN_FLIGHT = ("opserve_requests_in_flight", 1)
# Of a request in flight, in their order.
ON_THE_LANE = ("prepare", "h2d", "execute", "d2h")
# By stage: faults (the first launch is that of the golden case), the request, how it is sent or its result taken,
# the sample that shows it there, and the stage that its end is counted for. A copy or a stage one that has begun ends
# before its call does. (Payloads of up to 80 KiB are copied while the stage is `execute`.) The thread that validates a
# request also hears of its caller's leaving, and does so afterwards: the lane is busy, so that the request is in the
# queue by then.
STAGES = {
    "read": ("", loss(8, 8), {"part": 60}, ("opserve_requests_in_flight", 0), None),
    "validate": (hanging(2, 4), loss(8, 8, 500), {"awaits_ping": True}, None, "queue"),
    "queue": (hanging(2, 4), loss(8, 8), {}, ("opserve_queue_depth", 1), "queue"),
    "prepare": (SLOW_STAGE_ONE, loss(8, 8), {}, IN_FLIGHT, "prepare"),
    "h2d": ("copies,rate=88K", loss(1, 22528), {}, IN_FLIGHT, "h2d"),
    "execute": (hanging(2, 4), loss(8, 8), {}, IN_FLIGHT, "execute"),
    "between invocations": (hanging(3, 6), loss(8, 8, 2), {}, IN_FLIGHT, "execute"),
    "d2h": (SLOW_COPIES, loss(1024, 8), {}, IN_FLIGHT, "d2h"),
    "write": ("", loss(1024, 64), {"window": 0}, ("opserve_requests_total", 1), None),
}


def left_in(stage):
    """The sample of callers that left in the stage."""
    return f'opserve_cancelled_requests_total{{stage="{stage}"}}'


def await_left(watcher, stage, times):
    """Waits until so many have left in the stage, or a little earlier: a busy machine may still be on its way there."""
    stages = ON_THE_LANE[: ON_THE_LANE.index(stage) + 1] if stage in ON_THE_LANE else (stage,)
    watcher.await_sum(list(map(left_in, stages)), times)


def assert_right(daemon):
    with opserve.Client(daemon.target) as client:
        ones = np.ones((2, 2), "f4")
        gradient = client.l1_loss_backward(ones, 3 * ones, ones, reduction="sum")
        np.testing.assert_array_equal(gradient, ones)


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_stays_of_a_call_whose_caller_leaves(start_daemon, stage):
    faults, body, ways, there, counted = STAGES[stage]
    daemon = start_daemon(
        "--device=0",
        "--streams_per_device=1",
        "--executor_cache_entries=1",
        "--metrics_listen=127.0.0.1:0",
        faults=faults,
    )
    watcher = Watcher(daemon)
    for times, how in enumerate(("cancels", "hangs up"), start=1):
        callers = []
        if stage in ("validate", "queue"):
            callers.append(Caller(daemon, loss(8, 8)))
            watcher.await_value(*IN_FLIGHT)
        callers.insert(0, Caller(daemon, body, **ways))
        if there:
            before = 2 * (times - 1) if there[0] == "opserve_requests_total" else 0
            watcher.await_value(there[0], before + there[1])
        callers[0].leave(how)
        if counted:
            await_left(watcher, counted, times)
        for other in callers[1:]:
            other.leave("cancels")
        for held in (
            "opserve_queue_depth",
            "opserve_requests_in_flight",
            "opserve_workspace_pool_allocated_bytes",
            "opserve_pinned_pool_allocated_bytes",
        ):
            watcher.await_value(held, 0)
        assert_right(daemon)
        for caller in callers:
            caller.close()
    assert watcher.value("opserve_device_quarantines_total") == 0
    if counted:
        assert watcher.value(left_in(counted)) >= 1
