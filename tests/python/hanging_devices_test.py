"""Kernels that hang: all else goes on, and a device whose streams cannot be stopped leaves service."""

import concurrent.futures
import signal

import numpy as np
import opserve
import pytest

from watcher import Watcher

HANG = "kernel=aclnnKlDivBackward,"
# The golden cases of two devices come before.
HANG_ONCE = HANG + "nth=3,hang"
ONES = np.ones((2, 2), "f4")


@pytest.fixture
def start(start_daemon):
    def start(*flags, faults):
        daemon = start_daemon("--metrics_listen=127.0.0.1:0", *flags, faults=faults)
        return daemon, Watcher(daemon)

    return start


@pytest.fixture
def connect():
    clients = []

    def connect(daemon, **options):
        clients.append(opserve.Client(daemon.target, retry=opserve.Retry(max_attempts=1), **options))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


def kl_div(client):
    return client.kl_div_backward(np.float32(1), ONES, ONES)


def l1(client, tensor):
    return client.l1_loss_backward(ONES, tensor, ONES, reduction="sum")


def test_other_lanes_and_devices_go_on_beside_a_hang(start, connect):
    daemon, watcher = start("--execution_timeout=1h", faults=HANG_ONCE)
    receipts = []
    client = connect(daemon, on_receipt=receipts.append)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        hanging = threads.submit(kl_div, connect(daemon, timeout=20))
        watcher.await_value("opserve_requests_in_flight", 1)
        # A call runs on the device that has its tensor: one of the two is that of the hang.
        for device in (0, 1):
            tensor = client.upload(3 * ONES, device=device)
            for gradient in threads.map(lambda _, tensor=tensor: l1(client, tensor), range(30)):
                np.testing.assert_array_equal(gradient, ONES)
            assert {receipt.device for receipt in receipts} == {device}
            receipts.clear()
        assert not hanging.done()
        assert watcher.value("opserve_requests_in_flight") == 1, "a scrape waits for no kernel"
        daemon.stop(signal.SIGKILL)
        with pytest.raises(opserve.UnavailableError):
            hanging.result(timeout=60)


def test_streams_that_cannot_be_stopped_take_their_device_out(start, connect):
    daemon, watcher = start(
        "--device=0",
        "--execution_timeout=500ms",
        faults=f"call=aclrtStreamAbort,code=207000,count=all;{HANG}nth=2,count=3,hang",
    )
    client = connect(daemon)
    for abandoned in (1, 2, 3):
        assert watcher.value("opserve_device_quarantines_total") == 0
        # With the third the device leaves service, which may end its call before its own limit does.
        ends = (opserve.InternalError, opserve.UnavailableError)
        with pytest.raises(ends if abandoned == 3 else ends[0]):
            kl_div(client)
        watcher.await_value('opserve_stream_aborts_total{device="0",kind="abandoned"}', abandoned)
    watcher.await_value('opserve_device_quarantines_total{device="0",kind="stream"}', 1)
    # A forced reset ends them.
    watcher.await_value('opserve_device_state{device="0",state="ready"}', 1)
    np.testing.assert_array_equal(l1(client, 3 * ONES), ONES)
