"""Daemons that are away, lost, or not those that were meant: waits, repetitions and texts."""

import asyncio
import concurrent.futures
import socket
import threading

import grpc
import numpy as np
import pytest
from counting_proxy import CountingProxy
from formulas import normal

import opserve
from opserve import _wire

STATUS = _wire.GetServerStatusResponse(version="1").SerializeToString()
AT_ONCE = opserve.Retry(max_attempts=1)


def status_of(target, is_async=False, **options):
    if not is_async:
        with opserve.Client(target, **options) as client:
            return client.server_status()

    async def ask():
        async with opserve.AsyncClient(target, **options) as client:
            return await client.server_status()

    return asyncio.run(ask())


@pytest.fixture
def waiting(monkeypatch):
    """An event that is set when a client begins to wait for a daemon that is away."""
    from opserve._retry import RetryPolicy

    event = threading.Event()
    decide = RetryPolicy.wait_for_daemon

    def wait_for_daemon(self, waits, error):
        event.set()
        return decide(self, waits, error)

    monkeypatch.setattr(RetryPolicy, "wait_for_daemon", wait_for_daemon)
    return event


def replaced(client, tensor):
    """Runs a program that changes a tensor, so that it must not run twice."""
    program = opserve.Program()
    result = program.abs(normal(3))
    return client.execute(program, [program.replace(tensor, result)])


def stop(daemon, client):
    """Stops the daemon, and lets the client notice that its connection is gone."""
    daemon.stop()
    program = opserve.Program()
    program.abs(1.0)
    with pytest.raises(opserve.UnavailableError, match="cannot reach"):
        client.execute(program, wait_for_daemon=False)


CALLS = {
    "an operator": lambda client: client.l1_loss_backward(1, normal(3), normal(3)),
    "an upload": lambda client: client.upload(normal(3)),
    "a status": lambda client: client.server_status(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_restart_is_bridged(start_daemon, waiting, call):
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        client.server_status()
        stop(daemon, client)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            future = pool.submit(CALLS[call], client)
            assert waiting.wait(timeout=30)
            daemon.start()
            future.result(timeout=60)


def test_a_restart_is_bridged_in_asyncio(start_daemon, waiting):
    daemon = start_daemon()
    program = opserve.Program()
    program.abs(1.0)

    async def run():
        async with opserve.AsyncClient(daemon.target) as client:
            await client.server_status()
            daemon.stop()
            with pytest.raises(opserve.UnavailableError, match="cannot reach"):
                await client.execute(program, wait_for_daemon=False)
            calls = asyncio.gather(
                client.l1_loss_backward(1, normal(3), normal(3)),
                client.upload(normal(3)),
            )
            assert await asyncio.to_thread(waiting.wait, 30)
            daemon.start()
            await asyncio.wait_for(calls, 60)

    asyncio.run(run())


def test_a_program_that_changes_tensors_waits_for_a_connection(start_daemon, waiting):
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        tensor = client.upload(normal(3))
        stop(daemon, client)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            future = pool.submit(replaced, client, tensor)
            assert waiting.wait(timeout=30)
            daemon.start()
            with pytest.raises(opserve.TensorLostError):  # it has reached the daemon
                future.result(timeout=60)


class LostCalls:
    """A server that reads a request and cuts its connection, as a daemon that is killed."""

    def __init__(self):
        self.messages = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.target = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(30)
                connection.sendall(b"\0\0\0\4\0\0\0\0\0")  # SETTINGS
                self._read_until_data(connection)

    def _read_until_data(self, connection):
        reader = connection.makefile("rb")
        reader.read(24)  # the preface
        while True:
            header = reader.read(9)
            if len(header) < 9:
                return
            body = reader.read(int.from_bytes(header[:3], "big"))
            if header[3] == 0:  # DATA
                self.messages.append(body[5:])  # behind gRPC's header
                return

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(30)


@pytest.fixture
def lost_calls():
    server = LostCalls()
    yield server
    server.close()


@pytest.mark.parametrize("fate", ["sent", "replaced", "kept"])
def test_what_may_have_run_is_repeated_as_the_same_request(lost_calls, fate):
    """By its identity, if it is not the same to run it twice."""
    program = opserve.Program()
    result = program.abs(normal(3))
    tensor = opserve.ResidentTensor(b"1", opserve.DataType.FLOAT, (3,), None, 0)
    results = {
        "sent": [result],
        "replaced": [program.replace(tensor, result)],
        "kept": [program.keep(result)],
    }[fate]
    retry = opserve.Retry(max_attempts=3)
    with opserve.Client(lost_calls.target, retry=retry, session=False) as client:
        with pytest.raises(opserve.UnavailableError) as raised:
            client.execute(program, results)
    requests = [_wire.ExecuteRequest.FromString(one) for one in lost_calls.messages]
    assert len(requests) == 3
    assert len({request.SerializeToString() for request in requests}) == 1
    assert len(requests[0].identity.client) == (0 if fate == "sent" else 16)
    assert raised.value.target == lost_calls.target
    assert f"lost the connection to the daemon at {lost_calls.target}" in str(
        raised.value
    )
    assert "the call may have run" in str(raised.value)


@pytest.mark.parametrize("reason", ["draining", "tensor_moved", "tensor_arriving"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "asyncio"])
def test_a_draining_daemon_is_waited_for(scripted, is_async, reason):
    """However often it says so: its successor comes within the timeout."""
    detail = _wire.ErrorDetail(reason=reason, retry_pushback_ms=1)
    status = _wire.StatusDetails(code=14, message=reason)
    status.details.add(
        type_url="type.googleapis.com/opserve.v1.ErrorDetail",
        value=detail.SerializeToString(),
    )
    refusal = (
        grpc.StatusCode.UNAVAILABLE,
        ("grpc-status-details-bin", status.SerializeToString()),
    )
    server = scripted(*[refusal] * 30, STATUS)
    assert status_of(server.target, is_async).version == "1"
    assert len(server.calls) == 31


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "asyncio"])
def test_a_daemon_that_stays_away_is_named_with_a_remedy(tmp_path, is_async):
    target = f"unix:{tmp_path}/none"
    with pytest.raises(opserve.UnavailableError) as raised:
        status_of(target, is_async, timeout=0.3)
    error = raised.value
    assert error.target == target and not error.from_daemon
    assert isinstance(error, ConnectionError)
    assert f"cannot reach the daemon at {target}" in str(error)
    assert "No such file or directory" in str(error)
    assert "start opserved there, or name another daemon: Client(target)" in str(error)
    assert str(error).endswith("(waited for it until the deadline)")


def test_calls_need_not_wait(tmp_path, waiting):
    with opserve.Client(f"unix:{tmp_path}/none") as client:
        program = opserve.Program()
        program.abs(normal(3))
        with pytest.raises(opserve.UnavailableError, match="cannot reach"):
            client.execute(program, wait_for_daemon=False)
    assert not waiting.is_set()
    with pytest.raises(opserve.UnavailableError, match="cannot reach"):
        status_of(f"unix:{tmp_path}/none", retry=AT_ONCE)


def test_local_fallbacks_do_not_wait(tmp_path, waiting):
    import torch
    import opserve.torch

    with opserve.Client(f"unix:{tmp_path}/none") as client:
        functions = opserve.torch.Functions(client, fallback="local")
        x = torch.ones(2, requires_grad=True)
        with pytest.warns(opserve.torch.FallbackWarning):
            functions.l1_loss(x, torch.zeros(2)).backward()
        assert functions.fallbacks == 1
    assert not waiting.is_set()


def answer_once(answer):
    """The target of a server that says `answer` to each connection and ends it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return listener, thread, f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    "answer, tls, remedy",
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", None, "a server of another kind"),
        (b"", None, r"it may expect TLS: Client\(target, tls="),
        (b"\0\0\0\4\0\0\0\0\0", opserve.Tls(), "does not speak TLS: leave tls= out"),
    ],
    ids=["http", "tls", "plaintext"],
)
def test_likely_mistakes_are_not_waited_for(waiting, answer, tls, remedy):
    listener, thread, target = answer_once(answer)
    try:
        with pytest.raises(opserve.UnavailableError, match=remedy) as raised:
            status_of(target, tls=tls)
        assert target in str(raised.value)
        assert not waiting.is_set()
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(30)


class ClosingProxy(CountingProxy):
    """Ends the first connection, as a daemon does that makes room for others."""

    def _accept(self):
        client, _ = self._listener.accept()
        client.close()
        super()._accept()


@pytest.mark.parametrize("call", ["a status", "a replaced tensor"])
def test_a_new_connection_that_is_ended_is_made_again(start_daemon, waiting, monkeypatch, call):
    from opserve._retry import RetryPolicy

    monkeypatch.setattr(RetryPolicy, "_backoff", lambda *_: 0.0)  # as chance may have it
    daemon = start_daemon()
    proxy = ClosingProxy(daemon.target.removeprefix("unix:"))
    try:
        with opserve.Client(daemon.target) as owner:
            tensor = owner.upload(normal(3))
            with opserve.Client(proxy.target) as client:
                if call == "a status":
                    client.server_status()
                else:  # it has run nowhere, so it may be sent again
                    replaced(client, tensor)
        assert not waiting.is_set()
    finally:
        proxy.close()


def test_tls_against_a_plaintext_daemon_fails_at_once(start_daemon, waiting):
    daemon = start_daemon(listen=",127.0.0.1:0")
    target = daemon.ready["listen"][1]
    with pytest.raises(opserve.UnavailableError, match="speak TLS: leave tls= out"):
        status_of(target, tls=opserve.Tls())
    assert not waiting.is_set()


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:50051", "https://HOST:1", "unix:/a,grpc://HOST:1"]
)
def test_urls_are_no_targets(target):
    with pytest.raises(ValueError, match='is a URL; expected (HOST|127.0.0.1):'):
        opserve.Client(target)


def test_a_daemon_that_does_not_answer_in_time_is_named():
    with socket.create_server(
        ("127.0.0.1", 0)
    ) as listener:  # connects, and says nothing
        target = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(opserve.DeadlineExceededError) as raised:
            status_of(target, timeout=0.2)
    assert f"no answer from the daemon at {target} within the timeout of 0.2 s" in str(
        raised.value
    )


def test_a_request_above_the_message_limit_says_what_to_do(start_daemon):
    limit = 2 << 20
    daemon = start_daemon(f"--max_message_bytes={limit}")
    x = np.zeros((1 << 19) + 1, np.float32)
    with opserve.Client(daemon.target, session=False) as client:
        calls = [
            lambda: client.abs(x),
            lambda: client.upload(np.zeros(1 << 20, "f4"), chunk_bytes=4 << 20),
        ]
        for call in calls:
            before = client._policy._budget
            with pytest.raises(opserve.InvalidArgumentError) as raised:
                call()
            assert raised.value.reason == "too_large"
            assert client._policy._budget == before  # nothing was repeated
            for text in (str(limit), "2.0 MiB", "client.upload()", "create_region()"):
                assert text in raised.value.message
        tensor = client.upload(x)
        assert client.download(tensor).shape == x.shape
        client.release([tensor])


def test_a_request_above_the_message_limit_says_so_in_asyncio_and_streams(start_daemon):
    daemon = start_daemon(f"--max_message_bytes={1 << 20}")
    x = np.zeros((1 << 18) + 1, np.float32)

    async def run():
        async with opserve.AsyncClient(daemon.target, session=False) as client:
            with pytest.raises(opserve.InvalidArgumentError, match="1.0 MiB"):
                await client.abs(x)

    asyncio.run(run())
    with opserve.Client(daemon.target, session=False) as client, client.open_stream() as stream:
        error = stream.abs(x).exception(timeout=30)
        assert isinstance(error, opserve.InvalidArgumentError) and "1.0 MiB" in str(error)


def test_the_default_limit_is_the_one_in_the_text(daemon):
    x = np.broadcast_to(np.float32(1), (1 << 24,)).copy()  # 64 MiB
    with opserve.Client(daemon.target, session=False) as client:
        with pytest.raises(opserve.InvalidArgumentError, match=r"67108864 \(64\.0 MiB"):
            client.abs(x)


@pytest.mark.parametrize("is_async", [False, True])
def test_without_balance_calls_stay_with_the_first_daemon_until_it_is_lost(
    start_daemon, is_async
):
    first, second = start_daemon(), start_daemon()
    target = f"{first.target},{second.target}"

    def completed(daemon):
        with opserve.Client(daemon.target) as one:
            return sum(device.completed_requests for device in one.server_status().devices)

    def call_often(times):
        async def call_all():
            async with opserve.AsyncClient(target, balance=False) as client:
                for _ in range(times):
                    await client.add([1.0], [2.0])

        if is_async:
            asyncio.run(call_all())
        for _ in range(0 if is_async else times):
            client.add([1.0], [2.0])

    with opserve.Client(target, balance=False) as client:
        call_often(8)
        assert (completed(first), completed(second)) == (8, 0)
        first.stop()
        call_often(8)
        assert completed(second) == 8
