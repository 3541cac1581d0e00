"""What signals do, seen by callers."""

import signal

import grpc
import numpy as np
import opserve

ONES = np.ones((2, 2), "f4")
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"
# Health follows SIGTERM within 100 ms. A slow machine needs longer, for these checks too: each takes a third of a
# millisecond on an idle one.
CHECKS = 300


def assert_right(client):
    gradient = client.l1_loss_backward(ONES, 3 * ONES, ONES, reduction="sum")
    np.testing.assert_array_equal(gradient, ONES)


def test_health_follows_sigterm_before_calls_are_refused(start_daemon):
    daemon = start_daemon("--drain_delay=10m")
    with grpc.insecure_channel(daemon.target) as channel, opserve.Client(daemon.target) as client:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert check(b"", timeout=60) == SERVING
        daemon.process.send_signal(signal.SIGTERM)
        answers = (check(b"", timeout=60) for _ in range(CHECKS))
        assert NOT_SERVING in answers
        assert_right(client)
        # A second one waits for nothing.
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.wait(timeout=60)


def test_sigpipe_changes_nothing(start_daemon):
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        daemon.process.send_signal(signal.SIGPIPE)
        for _ in range(3):
            assert_right(client)
    assert daemon.process.poll() is None
