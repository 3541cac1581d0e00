"""Prepared programs against opserved: what travels, who shares them, and how they end."""

from __future__ import annotations

import asyncio
import datetime
import pickle
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opserve
from opserve import _wire


def chain(length: int = 3) -> tuple[opserve.Program, Any]:
    """tanh(x @ w) and so on, of an input x and an input w."""
    program = opserve.Program()
    x = program.input("float32", (4, 8))
    w = program.input("float32", (8, 8))
    value: Any = x
    for _ in range(length):
        value = program.tanh(program.matmul(value, w))
    return program, value


def expected(x: np.ndarray, w: np.ndarray, length: int = 3) -> np.ndarray:
    for _ in range(length):
        x = np.tanh(x @ w)
    return x


class Traffic:
    """The messages of a client's calls, by method."""

    def __init__(self, client: opserve.Client, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages: list[tuple[str, bytes]] = []
        call = client._call

        def recording(method: str, message: bytes, *arguments: Any) -> bytes:
            self.messages.append((method, message))
            return call(method, message, *arguments)

        monkeypatch.setattr(client, "_call", recording)

    def count(self, method: str) -> int:
        return sum(one == method for one, _ in self.messages)


def arrays() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return (
        random.standard_normal((4, 8), np.float32),
        random.standard_normal((8, 8), np.float32),
    )


def test_a_call_carries_its_inputs_and_little_more(client, monkeypatch):
    traffic = Traffic(client, monkeypatch)
    program, value = chain(length=200)
    run = client.prepare(program, [value])
    x, w = arrays()

    for _ in range(3):
        [result] = run(x, w).results
        np.testing.assert_allclose(result, expected(x, w, 200), rtol=1e-4, atol=1e-5)
        x = x + 1

    assert traffic.count(_wire.PREPARE) == 1
    sizes = [len(message) for method, message in traffic.messages if method == _wire.EXECUTE]
    assert len(sizes) == 3
    assert max(sizes) < x.nbytes + w.nbytes + 64


def test_each_way_of_an_input_gives_the_same(client, monkeypatch):
    traffic = Traffic(client, monkeypatch)
    program, value = chain()
    run = client.prepare(program, [value])
    x, w = arrays()
    resident = client.upload(w)
    with client.create_region(w.nbytes) as region:
        shared = region.empty((8, 8), "float32")
        shared[...] = w
        ways = [w, resident, shared, w, resident, shared]
        for way in ways:
            [result] = run(x, way).results
            np.testing.assert_allclose(result, expected(x, w), rtol=1e-5, atol=1e-6)
        last = traffic.messages[-1]
    client.release([resident])

    assert traffic.count(_wire.PREPARE) == 3
    assert last[0] == _wire.EXECUTE
    assert len(last[1]) < x.nbytes + 128  # w is in shared memory


def test_tensors_of_the_program_keep_what_they_held(client):
    x, w = arrays()
    program = opserve.Program()
    given = program.input("float32", (4, 8))
    program.add(program.matmul(given, w.T), w[0])
    run = client.prepare(program)
    right = x @ w.T + w[0]
    w[...] = 0

    np.testing.assert_allclose(run(x).results[0], right, rtol=1e-5, atol=1e-6)


def test_an_attribute_has_another_value_in_one_call(client):
    program = opserve.Program()
    x = program.input("float32", (3, 5))
    program.log_softmax(x, dim=1)
    run = client.prepare(program)
    values = np.arange(15, dtype=np.float32).reshape(3, 5)

    def of(axis: int) -> np.ndarray:
        shifted = values - values.max(axis, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))

    np.testing.assert_allclose(run(values).results[0], of(1), atol=1e-5)
    np.testing.assert_allclose(
        run(values, attributes={0: {"dim": 0}}).results[0], of(0), atol=1e-5
    )
    np.testing.assert_allclose(run(values).results[0], of(1), atol=1e-5)
    with pytest.raises(opserve.InvalidArgumentError, match="dim"):
        run(values, attributes={0: {"dim": 7}})
    with pytest.raises(opserve.InvalidArgumentError, match="no such attribute"):
        run(values, attributes={0: {"width": 7}})


def test_a_program_that_the_daemon_lost_is_prepared_again(start_daemon):
    daemon = start_daemon()
    x, w = arrays()
    with opserve.Client(daemon.target) as client:
        program, value = chain()
        run = client.prepare(program, [value])
        first = run(x, w).results[0]
        daemon.stop()
        daemon.start()

        again = run(x, w).results[0]

        np.testing.assert_array_equal(first, again)
        assert run.prepared_again == 1
        run(x, w)
        assert run.prepared_again == 1


def test_programs_that_were_not_used_for_longest_make_room(start_daemon):
    daemon = start_daemon("--prepared_max_programs_per_tenant=2")
    x, w = arrays()
    with opserve.Client(daemon.target) as client:
        runs = []
        for length in (1, 2, 3):
            program, value = chain(length)
            runs.append((length, client.prepare(program, [value])))
        for _ in range(2):
            for length, run in runs:
                [result] = run(x, w).results
                np.testing.assert_allclose(result, expected(x, w, length), rtol=1e-5, atol=1e-6)
        assert [run.prepared_again for _, run in runs] == [1, 1, 1]


def test_a_program_without_room_says_which_setting(start_daemon):
    daemon = start_daemon("--prepared_max_bytes_per_tenant=0")
    with opserve.Client(daemon.target) as client:
        program, value = chain()
        run = client.prepare(program, [value])
        with pytest.raises(
            opserve.ResourceExhaustedError, match="--prepared_max_bytes_per_tenant"
        ) as raised:
            run(*arrays())
        assert raised.value.reason == "tenant_memory"


def test_holders_share_a_program_and_none_takes_it_from_another(start_daemon):
    daemon = start_daemon("--metrics_listen=127.0.0.1:0")
    x, w = arrays()
    with opserve.Client(daemon.target) as one, opserve.Client(daemon.target) as other:
        holders = []
        for client in (one, other):
            program, value = chain()
            holders.append(client.prepare(program, [value]))
            holders[-1](x, w)
        assert metric(daemon, "opserve_prepared_programs") == 2
        assert events(daemon, "shared") == 1

        holders[0].release()
        one.prepare(chain()[0])  # tells the daemon what was given up
        holders[1](x, w)

        assert events(daemon, "released") == 1
        assert holders[1].prepared_again == 0
        # It can be used again, which prepares it.
        holders[0](x, w)
        assert events(daemon, "shared") == 2


def test_a_program_nothing_refers_to_is_given_up(start_daemon):
    daemon = start_daemon("--metrics_listen=127.0.0.1:0")
    x, w = arrays()
    with opserve.Client(daemon.target) as client:
        for _ in range(4):
            program, value = chain()
            client.prepare(program, [value])(x, w)
        assert metric(daemon, "opserve_prepared_programs") == 1
        assert events(daemon, "released") == 3


def test_threads_share_a_prepared_program(client, monkeypatch):
    traffic = Traffic(client, monkeypatch)
    program, value = chain()
    run = client.prepare(program, [value])
    x, w = arrays()
    failures: list[object] = []

    def work(number: int) -> None:
        try:
            for _ in range(20):
                [result] = run(x + number, w).results
                np.testing.assert_allclose(
                    result, expected(x + number, w), rtol=1e-4, atol=1e-5
                )
        except BaseException as error:  # noqa: BLE001  (told below)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not failures
    assert traffic.count(_wire.PREPARE) == 1


def test_what_is_wrong_with_a_call_is_told_and_leaves_the_program(client):
    x, w = arrays()
    program, value = chain()
    run = client.prepare(program, [value])
    run(x, w)
    resident = client.upload(w)
    client.release([resident])

    with pytest.raises(opserve.NotFoundError) as unknown:
        run(x, resident)
    assert unknown.value.reason == "tensor_unknown"
    assert run.prepared_again == 0
    np.testing.assert_allclose(run(x, w).results[0], expected(x, w), rtol=1e-5, atol=1e-6)


def adding() -> tuple[opserve.Program, list[Any]]:
    """w += x."""
    program = opserve.Program()
    x = program.input("float32", (2,))
    w = program.input("float32", (2,))
    return program, [program.replace(w, program.add(x, w))]


def test_runs_in_flight_go_in_the_order_in_which_they_were_submitted(client):
    run = client.prepare(*adding())
    total = client.upload(np.zeros(2, np.float32))
    step = np.array([1, 2], np.float32)
    run(step, client.upload(step))  # prepares it, and the session is open then

    pending = [run.submit(step, total, versions={1: 1 + number}) for number in range(20)]

    assert [one.result().results[0].version for one in pending] == list(range(2, 22))
    np.testing.assert_array_equal(client.download(total), 20 * step)
    assert pending[0].result() is pending[0].result()
    client.release([total])


def test_runs_after_one_that_failed_do_nothing(client):
    run = client.prepare(*adding())
    total = client.upload(np.zeros(2, np.float32))
    step = np.array([1, 2], np.float32)
    run(step, client.upload(step))

    pending = [run.submit(step, total, versions={1: version}) for version in (1, 7, 3)]

    pending[0].result()
    for failed in pending[1:]:
        for _ in range(2):
            with pytest.raises(opserve.FailedPreconditionError) as error:
                failed.result()
            assert error.value.reason == "tensor_version"
    with pytest.raises(opserve.FailedPreconditionError):
        run(step, total, versions={1: 1})
    np.testing.assert_array_equal(client.download(total), step)
    client.release([total])


def test_runs_in_flight_of_a_lost_program_prepare_it_again_once(start_daemon):
    daemon = start_daemon()
    x, w = arrays()
    with opserve.Client(daemon.target) as client:
        program, value = chain()
        run = client.prepare(program, [value])
        run(x, w)
        daemon.stop()
        daemon.start()

        pending = [run.submit(x + number, w) for number in range(4)]

        for number, one in enumerate(pending):
            np.testing.assert_allclose(
                one.result().results[0], expected(x + number, w), rtol=1e-4, atol=1e-5
            )
        assert run.prepared_again == 1


@pytest.mark.parametrize(
    ("inputs", "versions", "problem"),
    [
        (1, {}, "1 inputs given; the program has 2"),
        (2, {1: 1}, "a version of input 1, which is no resident tensor"),
        (2, {2: 1}, "a version of input 2, which is no resident tensor"),
        (2, {-1: 1}, "a version of input -1, which is no resident tensor"),
    ],
)
def test_mistakes_of_a_submitted_run_are_told_at_once(client, inputs, versions, problem):
    program, value = chain()
    run = client.prepare(program, [value])

    with pytest.raises((TypeError, ValueError), match=problem):
        run.submit(*arrays()[:inputs], versions=versions)


@pytest.mark.parametrize("session", [True, False])
def test_an_event_loop_calls_prepared_programs(daemon, session):
    async def main() -> None:
        async with opserve.AsyncClient(daemon.target, session=session) as client:
            program, value = chain()
            run = client.prepare(program, [value])
            x, w = arrays()
            resident = await client.upload(w)
            answers = await asyncio.gather(
                *(run(x + number, way) for number in range(8) for way in (w, resident))
            )
            for i, answer in enumerate(answers):
                np.testing.assert_allclose(
                    answer.results[0], expected(x + i // 2, w), rtol=1e-4, atol=1e-5
                )
            assert run.prepared_again == 0
            large = np.full((300, 1024), 2.0, np.float32)
            squares = opserve.Program()
            given = squares.input("float32", large.shape)
            squares.mul(given, squares.view(given, "float32", large.shape))
            pending = asyncio.ensure_future(client.prepare(squares)(large))
            await asyncio.sleep(0)
            large[...] = 0  # it was taken as it was
            assert ((await pending).results[0] == 4).all()

            total = await client.upload(np.zeros(2, np.float32))
            add = client.prepare(*adding())
            step = np.array([1, 2], np.float32)
            for version in (1, 2):
                [changed] = (await add(step, total, versions={1: version})).results
                assert changed.version == version + 1
            with pytest.raises(opserve.FailedPreconditionError):
                await add(step, total, versions={1: 2})
            np.testing.assert_array_equal(await client.download(total), 2 * step)
            with pytest.raises(ValueError, match="a version of input 0"):
                await add(step, total, versions={0: 1})
            with pytest.raises(TypeError, match="AsyncPreparedProgram"):
                pickle.dumps(add)
            await client.release([total, resident])

    asyncio.run(main())


def test_an_event_loop_prepares_a_lost_program_again_once(start_daemon):
    daemon = start_daemon()

    async def main() -> None:
        async with opserve.AsyncClient(daemon.target) as client:
            program, value = chain()
            run = client.prepare(program, [value])
            x, w = arrays()
            await run(x, w)
            await asyncio.to_thread(daemon.stop)
            await asyncio.to_thread(daemon.start)

            answers = await asyncio.gather(*(run(x + number, w) for number in range(4)))

            for number, answer in enumerate(answers):
                np.testing.assert_allclose(
                    answer.results[0], expected(x + number, w), rtol=1e-4, atol=1e-5
                )
            assert run.prepared_again == 1
            run.release()
            await client.prepare(chain(4)[0])(x, w)  # tells the daemon of it
            assert (await client.server_status()).prepared_programs == 1

    asyncio.run(main())


def without_results(answer: bytes) -> bytes:
    """The answer to Prepare of a daemon that does not know brief answers."""
    response = _wire.PrepareResponse.FromString(answer)
    response.ClearField("results")
    return bytes(response.SerializeToString())


def without_wish(message: bytes) -> bytes:
    """The message Execute as such a daemon understands it."""
    request = _wire.ExecuteRequest.FromString(message)
    request.prepared.ClearField("want_brief")
    return bytes(request.SerializeToString())


def same(message: bytes) -> bytes:
    return message


def alter(
    client: opserve.Client,
    monkeypatch: pytest.MonkeyPatch,
    prepared: Callable[[bytes], bytes] = same,
    sent: Callable[[bytes], bytes] = same,
    received: Callable[[bytes], bytes] = same,
) -> list[Any]:
    """Changes messages of a client's calls; the answers to Execute, as they then are."""
    answers = []
    call = client._call

    def altering(method: str, message: bytes, *arguments: Any) -> bytes:
        answer = call(method, sent(message) if method == _wire.EXECUTE else message, *arguments)
        if method == _wire.PREPARE:
            return prepared(answer)
        if method == _wire.EXECUTE:
            answer = received(answer)
            answers.append(_wire.ExecuteResponse.FromString(answer))
        return answer

    monkeypatch.setattr(client, "_call", altering)
    return answers


@pytest.mark.parametrize(
    ("prepared", "sent", "is_brief"),
    [(same, same, True), (without_results, same, False), (same, without_wish, False)],
    ids=["a daemon", "a former one", "a former one with a program of a later one"],
)
def test_results_are_the_same_of_brief_answers_and_of_whole_ones(
    client, monkeypatch, prepared, sent, is_brief
):
    answers = alter(client, monkeypatch, prepared, sent)
    program = opserve.Program()
    x, w, given = (program.input("float32", (4,)) for _ in range(3))
    named = client.upload(np.zeros(4, "f4"))
    total = program.add(x, w)
    results = [
        program.replace(named, program.exp(x)),
        program.keep(program.neg(total), lease=60),
        total,
        program.replace(given, program.sub(given, x)),
        program.mul(x, w),
    ]
    run = client.prepare(program, results)
    values = np.arange(4, dtype="f4")
    tensors = [client.upload(np.full(4, value, "f4")) for value in (10, 100)]

    for number in (1, 2):
        replaced, kept, added, given_again, product = run(values, *tensors).results

        np.testing.assert_array_equal(added, values + 10)
        np.testing.assert_array_equal(product, values * 10)
        assert (replaced.handle, given_again.handle) == (named.handle, tensors[1].handle)
        for tensor in (replaced, kept, given_again):
            assert (tensor.data_type.name, tensor.shape) == ("FLOAT", (4,))
            assert tensor.device == named.device
        assert replaced.lease_end == given_again.lease_end > kept.lease_end
        now = datetime.datetime.now(datetime.timezone.utc)
        assert abs((kept.lease_end - now).total_seconds() - 60) < 50
        np.testing.assert_allclose(client.download(named), np.exp(values), rtol=1e-6)
        np.testing.assert_array_equal(client.download(kept), -added)
        np.testing.assert_array_equal(client.download(given_again), 100 - number * values)
        client.release([kept])
    assert [one.HasField("brief") for one in answers] == [is_brief] * 2
    client.release([named, *tensors])


@pytest.mark.parametrize("prepared", [same, without_results])
def test_outputs_have_their_names_in_brief_answers_too(client, monkeypatch, prepared):
    alter(client, monkeypatch, prepared)
    program = opserve.Program()
    program.var_mean(program.input("float32", (2, 3)), dim=[1], correction=0, keepdim=False)
    run = client.prepare(program)

    outputs = run(np.float32([[1, 2, 3], [4, 4, 4]])).outputs

    np.testing.assert_allclose(outputs.var_out, [2 / 3, 0], rtol=1e-6)
    np.testing.assert_allclose(outputs.mean_out, [2, 4])


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: answer.payloads.append(b""),
        lambda answer: answer.ClearField("payloads"),
        lambda answer: answer.brief.versions.append(1),
        lambda answer: answer.brief.ClearField("kept"),
        lambda answer: answer.payloads.__setitem__(0, b"1234"),
    ],
)
def test_a_brief_answer_that_does_not_fit_the_program_is_none(client, monkeypatch, change):
    def changed(answer: bytes) -> bytes:
        response = _wire.ExecuteResponse.FromString(answer)
        change(response)
        return bytes(response.SerializeToString())

    alter(client, monkeypatch, received=changed)
    program = opserve.Program()
    x = program.input("float32", (4,))
    run = client.prepare(program, [program.neg(x), program.keep(program.exp(x), lease=1)])

    with pytest.raises(opserve.InternalError, match="answer"):
        run(np.zeros(4, "f4"))


def test_results_that_are_not_the_programs_are_refused(client, monkeypatch):
    alter(client, monkeypatch, lambda answer: answer + answer)  # each of them twice
    program = opserve.Program()
    run = client.prepare(program, [program.neg(program.input("float32", (4,)))])

    with pytest.raises(opserve.InternalError, match="2 results; the program has 1"):
        run(np.zeros(4, "f4"))


def metric(daemon, name: str) -> float:
    address = f"http://127.0.0.1:{daemon.ready['metrics_port']}/metrics"
    text = urllib.request.urlopen(address, timeout=30).read().decode()
    for line in text.splitlines():
        if line.startswith(name + " "):
            return float(line.split()[-1])
    raise AssertionError(f"no metric {name}")


def events(daemon, event: str) -> float:
    return metric(daemon, f'opserve_prepared_program_events_total{{event="{event}"}}')
