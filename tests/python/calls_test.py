"""Ways to call: programs, receipts, streams, asyncio, threads."""

import asyncio
import concurrent.futures
import os
import signal
import sys

import numpy as np
import pytest
from conftest import ROOT
from formulas import kl, l1, log_softmax_gradient, normal

import opserve

sys.path.append(str(ROOT / "tests/integration"))

from await_true import await_true  # noqa: E402
from certificates import make_certificate  # noqa: E402


def distillation(program, g, log_q, p):
    gradient = program.kl_div_backward(g, log_q, p, reduction="batchmean")
    return gradient, program.log_softmax_backward(gradient, log_q)


def test_a_program_feeds_outputs_into_inputs(client):
    g, log_q, p = np.float32(1), normal(4, 5), np.abs(normal(4, 5, seed=1))
    program = opserve.Program()
    gradient, logits = distillation(program, g, log_q, p)
    [last] = client.execute(program).results
    first, again = client.execute(program, [gradient, logits]).results
    np.testing.assert_allclose(first, kl(g, p, 4), rtol=1e-6)
    np.testing.assert_allclose(
        last, log_softmax_gradient(first, log_q), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_array_equal(last, again)


def test_outputs_belong_to_their_program(client):
    one, other = opserve.Program(), opserve.Program()
    output = one.l1_loss_backward(np.float32(1), normal(3), normal(3))
    with pytest.raises(ValueError, match="another program"):
        other.log_softmax_backward(output, normal(3))
    with pytest.raises(ValueError, match="another program"):
        client.execute(other, [output])
    with pytest.raises(ValueError, match="one timeout"):
        one.l1_loss_backward(np.float32(1), normal(3), normal(3), timeout=1)


def test_an_empty_program_is_refused_by_the_daemon(client):
    with pytest.raises(opserve.InvalidArgumentError):
        client.execute(opserve.Program())


def test_a_receipt_says_what_a_call_cost(client, daemon):
    program = opserve.Program()
    program.l1_loss_backward(np.float32(1), normal(3), normal(3))
    assert client.execute(program).receipt is None
    receipt = client.execute(program, want_receipt=True, priority="high").receipt
    assert receipt.total_ns > 0 and receipt.copied_to_device_bytes == 28
    receipts = []
    with opserve.Client(daemon.target, on_receipt=receipts.append) as counting:
        counting.l1_loss_backward(np.float32(1), normal(3), normal(3))
    assert len(receipts) == 1
    with pytest.raises(ValueError, match='priority "urgent"'):
        client.execute(program, priority="urgent")


def test_an_idempotency_key_belongs_to_one_request(client):
    key = os.urandom(8).hex()
    program, other = opserve.Program(), opserve.Program()
    program.l1_loss_backward(np.float32(1), normal(3), normal(3, seed=1))
    other.l1_loss_backward(np.float32(2), normal(3), normal(3, seed=1))
    [first] = client.execute(program, idempotency_key=key).results
    [again] = client.execute(program, idempotency_key=key).results
    np.testing.assert_array_equal(first, again)
    with pytest.raises(opserve.InvalidArgumentError):
        client.execute(other, idempotency_key=key)


def test_a_receipt_says_that_an_answer_was_not_remembered(client):
    for size, is_remembered in ((3, True), (4_200_000, False)):  # 16 MiB are a quarter of the room
        program = opserve.Program()
        program.l1_loss_backward(np.float32(1), np.ones(size, np.float32), np.zeros(size, np.float32))
        answer = client.execute(program, idempotency_key=os.urandom(8).hex(), want_receipt=True)
        assert answer.receipt.not_remembered is not is_remembered


def test_a_stream_answers_each_request(client):
    inputs = [normal(7, 5, seed=seed) for seed in range(100)]
    with client.open_stream(window=8) as stream:
        futures = [
            stream.l1_loss_backward(np.float32(1), x, -x, reduction="sum")
            for x in inputs
        ]
    for x, future in zip(inputs, futures):
        np.testing.assert_array_equal(future.result(timeout=0), l1(1, x, -x))


def test_an_error_in_a_stream_concerns_one_request(client):
    with client.open_stream() as stream:
        good = stream.l1_loss_backward(np.float32(1), normal(3), normal(3))
        bad = stream.l1_loss_backward(np.float32(1), normal(3), normal(4))
        also_good = stream.l1_loss_backward(np.float32(1), normal(3), normal(3))
        assert bad.exception(timeout=30).argument == "target"
        assert good.result(timeout=30).shape == also_good.result(timeout=30).shape
    with pytest.raises(RuntimeError, match="finished"):
        stream.l1_loss_backward(np.float32(1), normal(3), normal(3))


def test_a_stream_takes_programs_from_callbacks(client):
    g, log_q, p = np.float32(1), normal(4, 5), np.abs(normal(4, 5, seed=1))
    second = concurrent.futures.Future()
    program = opserve.Program()
    distillation(program, g, log_q, p)
    with client.open_stream(window=1) as stream:
        first = stream.submit(program, want_receipt=True)
        first.add_done_callback(lambda _: second.set_result(stream.submit(program)))
        again = second.result(timeout=30).result(timeout=30)
        assert (
            first.result().receipt.plan_hits + first.result().receipt.plan_misses == 2
        )
        np.testing.assert_array_equal(first.result().results[0], again.results[0])


def test_a_callback_cannot_wait_for_its_stream(client):
    refusals = concurrent.futures.Future()

    def submit_again(_):
        caught = []
        again = stream.abs(1.0)
        for wait in (lambda: stream.abs(1.0), stream.finish):
            try:
                wait()
            except RuntimeError as error:
                caught.append(str(error))
        stream.cancel()
        refusals.set_result((again, caught))

    stream = client.open_stream(window=1)
    stream.abs(1.0).add_done_callback(submit_again)
    again, caught = refusals.result(timeout=30)
    assert len(caught) == 2 and all("a callback cannot wait" in text for text in caught)
    stream.finish()
    assert isinstance(again.exception(timeout=0), opserve.CancelledError | None)
    with pytest.raises(RuntimeError, match="finished"):
        stream.abs(1.0)


def test_a_stream_takes_a_large_request_as_it_is_when_submitted(client):
    x = normal(3 << 18)
    expected = -x
    with client.open_stream(window=4) as stream:
        futures = []
        for _ in range(8):
            futures.append(stream.neg(x))
            small = stream.neg(x[:3])
            x[:] = 0
            x[:] = -expected
        x[:] = 0
    for future in futures:
        np.testing.assert_array_equal(future.result(timeout=0), expected)
    np.testing.assert_array_equal(small.result(timeout=0), expected[:3])


def test_a_request_of_a_stream_may_replace_resident_tensors(client):
    tensor = client.upload(np.zeros(3, np.float32))
    program = opserve.Program()
    results = [program.replace(tensor, program.add(tensor, np.ones(3, np.float32)))]
    with client.open_stream() as stream:
        futures = [stream.submit(program, results) for _ in range(20)]
    assert {future.result(timeout=0).results[0].handle for future in futures} == {tensor.handle}
    np.testing.assert_array_equal(client.download(tensor), np.full(3, 20))
    client.release([tensor])


def begin_requests(client, stream):
    """Requests of a stream with which the daemon hangs."""
    x = normal(3)
    futures = [stream.l1_loss_backward(np.float32(1), x, -x, reduction="sum") for _ in range(4)]
    await_true(
        lambda: client.server_status().devices[0].executing_requests > 0, "requests execute"
    )
    return futures


# The golden case of the device comes before.
HANG = "kernel=aclnnL1LossBackward,nth=2,count=8,hang"


@pytest.mark.parametrize("session", [True, False])
def test_requests_of_a_stream_are_repeated_when_their_daemon_is_lost(start_daemon, session):
    daemon = start_daemon("--device=0", faults=HANG)
    with opserve.Client(daemon.target, session=session) as client:
        with client.open_stream() as stream:
            futures = begin_requests(client, stream)
            daemon.stop(signal.SIGKILL)
            daemon.start()
        for future in futures:
            np.testing.assert_array_equal(future.result(timeout=0), l1(1, normal(3), -normal(3)))


@pytest.mark.parametrize("session", [True, False])
def test_requests_of_a_stream_fail_with_their_daemon(start_daemon, session):
    daemon = start_daemon("--device=0", faults=HANG)
    once = opserve.Retry(max_attempts=1)
    with opserve.Client(daemon.target, retry=once, session=session) as client:
        stream = client.open_stream()
        futures = begin_requests(client, stream)
        daemon.stop(signal.SIGKILL)
        assert isinstance(futures[-1].exception(timeout=30), opserve.UnavailableError)
        later = stream.abs(1.0)
        stream.finish()
        for future in (*futures, later):
            assert isinstance(future.exception(timeout=0), opserve.UnavailableError)


def test_requests_of_a_stream_wait_for_a_daemon_that_is_away_until_their_timeout(tmp_path):
    with opserve.Client(f"unix:{tmp_path}/none", timeout=0.5) as client:
        with client.open_stream() as stream:
            futures = [stream.abs(1.0) for _ in range(20)]
        kinds = {type(future.exception(timeout=0)) for future in futures}
        assert kinds <= {opserve.UnavailableError, opserve.DeadlineExceededError}


def test_a_stream_that_waits_for_a_daemon_can_be_cancelled(tmp_path):
    with opserve.Client(f"unix:{tmp_path}/none", timeout=600) as client:
        stream = client.open_stream()
        futures = [stream.abs(1.0) for _ in range(20)]
        await_true(lambda: len(stream._waiting) == 20, "all requests wait")
        stream.cancel()
        for future in futures:
            assert isinstance(future.exception(timeout=0), opserve.CancelledError)


def test_a_client_that_is_closed_ends_the_requests_of_its_streams(start_daemon):
    daemon = start_daemon("--device=0", faults=HANG)
    with opserve.Client(daemon.target) as client:
        stream = client.open_stream()
        futures = begin_requests(client, stream)
    stream.finish()
    for future in futures:
        assert isinstance(future.exception(timeout=0), (opserve.CancelledError, opserve.ClosedError))
    with pytest.raises(opserve.ClosedError):
        stream.abs(1.0)


@pytest.mark.parametrize("session", [True, False])
def test_the_timeout_of_a_stream_is_that_of_all_its_requests(start_daemon, session):
    daemon = start_daemon("--device=0", faults=HANG)
    with opserve.Client(daemon.target, session=session) as client:
        stream = client.open_stream(timeout=2)
        x = normal(3)
        futures = [stream.l1_loss_backward(np.float32(1), x, x, timeout=60) for _ in range(4)]
        for future in futures:
            assert isinstance(future.exception(timeout=30), opserve.DeadlineExceededError)
        late = stream.abs(1.0).exception(timeout=30)
        assert isinstance(late, opserve.DeadlineExceededError) and "timeout of 2 s" in str(late)
        for _ in range(2):
            with pytest.raises(opserve.DeadlineExceededError):
                stream.finish()
        with client.open_stream(timeout=60) as other:
            early = other.l1_loss_backward(np.float32(1), x, x, timeout=0.2)
        assert isinstance(early.exception(timeout=0), opserve.DeadlineExceededError)


def test_a_stream_can_be_cancelled(start_daemon):
    daemon = start_daemon(
        "--device=0", faults="kernel=aclnnL1LossBackward,nth=2,slow=1000000"
    )
    with opserve.Client(daemon.target) as client:
        stream = client.open_stream()
        future = stream.l1_loss_backward(np.float32(1), normal(3), normal(3))
        stream.cancel()
        assert isinstance(future.exception(timeout=0), opserve.CancelledError)
        with pytest.raises(RuntimeError, match="finished"):
            stream.abs(1.0)


def test_asyncio(daemon):
    async def run():
        async with opserve.AsyncClient(daemon.target) as client:
            inputs = [normal(6, seed=seed) for seed in range(20)]
            calls = [
                client.l1_loss_backward(np.float32(1), x, -x, reduction="sum")
                for x in inputs
            ]
            for x, result in zip(inputs, await asyncio.gather(*calls)):
                np.testing.assert_array_equal(result, l1(1, x, -x))
            with pytest.raises(opserve.InvalidArgumentError) as raised:
                await client.l1_loss_backward(np.float32(1), normal(2), normal(3))
            assert raised.value.argument == "target"
            names = [operator.name for operator in await client.list_operators()]
            assert "KlDivBackward" in names
            x = normal(10, 10)
            tensor = await client.upload(x, chunk_bytes=100)
            np.testing.assert_array_equal(await client.download(tensor), x)
            other = await client.upload(-x)
            both = await client.snapshot([other, tensor])
            np.testing.assert_array_equal(both, [-x, x])
            assert await client.release([other]) == 1
            assert len(await client.renew([tensor], 60)) == 1
            result = await client.l1_loss_backward(np.float32(1), tensor, -x)
            np.testing.assert_allclose(result, l1(1, x, -x, 100))
            assert await client.release([tensor]) == 1
            with pytest.raises(opserve.NotFoundError):
                await client.download(tensor)

    asyncio.run(run())


def test_asyncio_cancellation_reaches_the_call(start_daemon):
    slow = start_daemon(
        "--device=0", faults="kernel=aclnnL1LossBackward,nth=2,slow=1000000"
    )

    async def run():
        async with opserve.AsyncClient(slow.target) as client:
            awaitable = client.l1_loss_backward(np.float32(1), normal(3), normal(3))
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(awaitable, 0.2)
            return await client.server_status()

    assert asyncio.run(run()).devices


def test_threads_share_a_client(client):
    def work(seed):
        for number in range(20):
            x = normal(9, 7, seed=seed * 100 + number)
            result = client.l1_loss_backward(np.float32(1), x, -x, reduction="sum")
            np.testing.assert_array_equal(result, l1(1, x, -x))
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def call_in_child(client, seed):
    x = normal(5, 5, seed=seed)
    result = client.l1_loss_backward(np.float32(1), x, -x, reduction="sum")
    return bool((result == l1(1, x, -x)).all())


def test_tls_and_tokens(start_daemon, tmp_path):
    import hashlib

    make_certificate(
        tmp_path / "cert.pem", tmp_path / "key.pem", "localhost", alternatives="DNS:localhost"
    )
    digest = hashlib.sha256(b"secret").hexdigest()
    config = tmp_path / "opserved.textproto"
    config.write_text(f'tenant {{ name: "me" token_sha256: "{digest}" }}')
    daemon = start_daemon(
        f"--config={config}",
        f"--tls_cert={tmp_path}/cert.pem",
        f"--tls_key={tmp_path}/key.pem",
        "--enable_shm",
        listen=",127.0.0.1:0",
    )
    address = next(a for a in daemon.ready["listen"] if a.startswith("127."))
    target = address.replace("127.0.0.1", "localhost")
    tls = opserve.Tls(ca_file=str(tmp_path / "cert.pem"))
    with opserve.Client(target, tls=tls, token="secret") as client:
        assert call_in_child(client, 0)
    with opserve.Client(
        address, tls=opserve.Tls(tls.ca_file, server_name="localhost"), token="secret"
    ) as client:
        assert call_in_child(client, 0)
    with opserve.Client(target, tls=tls) as client:
        with pytest.raises(opserve.UnauthenticatedError):
            client.server_status()
    with opserve.Client(daemon.target, token="secret") as client:
        region = client.create_region(100)
        x = region.empty(3, np.float32)
        client.l1_loss_backward(np.float32(1), x, x)


def test_calls_go_round_between_daemons(start_daemon):
    daemons = [start_daemon(), start_daemon()]
    with opserve.Client(",".join(daemon.target for daemon in daemons)) as client:
        for _ in range(50):
            call_in_child(client, 0)
    completed = []
    for daemon in daemons:
        with opserve.Client(daemon.target) as client:
            completed.append(
                sum(d.completed_requests for d in client.server_status().devices)
            )
    assert min(completed) > 0


def test_receipts_name_the_callers_trace(daemon):
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    parents = iter([f"00-{trace}-00f067aa0ba902b7-01", None, ""])
    receipts = []
    with opserve.Client(
        daemon.target, on_receipt=receipts.append, traceparent=lambda: next(parents)
    ) as client:
        for _ in range(3):
            client.l1_loss_backward(np.float32(1), normal(3), normal(3), reduction="sum")
    own, second, third = (receipt.trace_id for receipt in receipts)
    assert own == trace
    assert len({own, second, third}) == 3 and len(second) == len(third) == 32
