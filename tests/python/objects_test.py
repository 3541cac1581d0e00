"""Clients and what they give as objects: their ends, their texts, and pickling."""

import asyncio
import copy
import multiprocessing
import pickle
import subprocess
import sys
import textwrap

import grpc
import numpy as np
import pytest
from conftest import script_environment
from formulas import normal

import opserve
from opserve import errors


@pytest.fixture
def own(daemon):
    """A client that a test may close."""
    with opserve.Client(daemon.target) as client:
        yield client


USES = {
    "an operator": lambda client: client.abs(1.0),
    "a status": lambda client: client.server_status(),
    "an upload": lambda client: client.upload(1.0),
    "a stream": lambda client: client.open_stream(),
    "a region": lambda client: client.create_region(100),
    "with": lambda client: client.__enter__(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("is_connected", [False, True])
def test_a_closed_client_stays_closed(own, use, is_connected):
    if is_connected:
        own.server_status()
    own.close()
    own.close()
    with pytest.raises(opserve.ClosedError, match="the client is closed: make another"):
        USES[use](own)
    assert repr(own).endswith(", closed>")


def test_what_was_made_by_a_client_that_is_closed_is_closed(own):
    program = opserve.Program()
    program.abs(program.input("float32", (1,)))
    prepared = own.prepare(program)
    region = own.create_region(100)
    tensor = own.upload(1.0)
    own.close()
    for call in (lambda: prepared([1.0]), lambda: own.download(tensor)):
        with pytest.raises(opserve.ClosedError):
            call()
    region.close()
    assert isinstance(opserve.ClosedError("x"), (RuntimeError, opserve.OpserveError))


def test_a_closed_client_of_asyncio_stays_closed(daemon):
    async def run():
        client = opserve.AsyncClient(daemon.target)
        await client.server_status()
        await client.close()
        await client.close()
        with pytest.raises(opserve.ClosedError):
            await client.server_status()
        with pytest.raises(opserve.ClosedError):
            await client.abs(1.0)
        with pytest.raises(opserve.ClosedError):
            async with client:
                pass
        assert repr(client) == f"<opserve.AsyncClient {daemon.target}, closed>"

    asyncio.run(run())


def test_objects_say_what_they_are(own, daemon):
    assert repr(own) == f"<opserve.Client {daemon.target}>"
    assert own.target == daemon.target
    tensor = own.upload(normal(2, 3), lease=60)
    end = f"{tensor.lease_end:%Y-%m-%d %H:%M:%S} UTC"
    assert repr(tensor) == (
        f"<opserve.ResidentTensor float32 [2, 3] on device {tensor.device}, lease until {end}>"
    )
    program = opserve.Program()
    assert repr(program) == "<opserve.Program without invocations>"
    x = program.input("float32", (2, 3))
    y = program.abs(x)
    program.mul(y, program.full((2, 3), 2, "float32"))
    assert repr(program) == "<opserve.Program Abs, Mul>"
    assert repr(y) == "OutputOf(invocation=0, output='out')"
    assert repr(own.prepare(program)) == (
        "<opserve.PreparedProgram of 2 invocations, inputs: float32 [2, 3]>"
    )
    with own.create_region(1000) as region:
        region.empty(3, np.float32)
        assert repr(region) == (
            f"<opserve.SharedRegion {region.number}: 64 of 1000 bytes used>"
        )
    assert repr(region).endswith(", closed>")
    with own.open_stream() as stream:
        assert repr(stream) == "<opserve.ExecuteStream 0 in progress>"
    assert repr(stream) == "<opserve.ExecuteStream finished>"


def test_long_programs_have_short_texts(own):
    program = opserve.Program()
    y = program.abs(program.literal(np.zeros(1000, "f4")))
    for _ in range(99):
        y = program.abs(y)
    assert len(repr(program)) < 120 and "(100 in all)" in repr(program)
    assert len(repr(program.literal(np.zeros(1000, "f4")))) < 120


def test_a_token_and_a_handle_are_in_no_text(own):
    tensor = own.upload(1.0)
    with opserve.Client(own.target, token="se-cret") as client:
        texts = [repr(client), str(vars(client)), repr(tensor)]
    assert not any("se-cret" in text for text in texts)
    assert not any(repr(tensor.handle)[2:-1] in text for text in texts)


def things(client):
    program = opserve.Program()
    y = program.abs(normal(3))
    return {
        "Client": client,
        "AsyncClient": opserve.AsyncClient(client.target),
        "ExecuteStream": client.open_stream(),
        "SharedRegion": client.create_region(100),
        "PreparedProgram": client.prepare(program),
        "Program": program,
        "OutputOf": y,
    }


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_what_belongs_to_a_process_is_not_pickled_or_copied(own, copied):
    for name, thing in things(own).items():
        if name == "OutputOf" and copied is copy.copy:
            continue  # of the same program
        with pytest.raises(TypeError, match="cannot be pickled or copied") as raised:
            copied(thing)
        if name != "OutputOf":
            assert name in str(raised.value)


def test_a_resident_tensor_may_be_pickled(own):
    tensor = own.upload(normal(3))
    again = pickle.loads(pickle.dumps(tensor))
    assert again == tensor
    np.testing.assert_array_equal(own.download(again), normal(3))


@pytest.mark.parametrize("kind", [*errors._CLASSES.values(), opserve.TensorLostError])
def test_errors_may_be_pickled(kind):
    from opserve import _wire

    detail = _wire.ErrorDetail(reason="queue_full", operator="Abs", retry_pushback_ms=7)
    error = kind("full", code=grpc.StatusCode.RESOURCE_EXHAUSTED, detail=detail)
    error.target = "unix:/x"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error)
    assert vars(again) == vars(error)
    assert (again.reason, again.retry_after, again.target) == (
        "queue_full",
        0.007,
        "unix:/x",
    )
    closed = pickle.loads(pickle.dumps(opserve.ClosedError("closed")))
    assert type(closed) is opserve.ClosedError and closed.message == "closed"


def fail_in_worker(target):
    with opserve.Client(target) as client:
        client.l1_loss_backward(1, normal(3), normal(4))


def test_errors_of_workers_reach_the_parent(daemon):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with pytest.raises(opserve.InvalidArgumentError) as raised:
            pool.apply_async(fail_in_worker, (daemon.target,)).get(timeout=120)
    assert raised.value.argument == "target"


@pytest.mark.parametrize(
    "x, arguments, line, text",
    [
        ("torch.ones(2)", "", 7, "FallbackWarning: computing gradients locally"),
        ("torch.ones(2).double()", "", 6, "FallbackWarning: computing gradients"),
        (
            "torch.ones(3, 2)",
            "",
            6,
            "UserWarning: Using a target size ([2]) that is different",
        ),
        (
            "torch.ones(2)",
            ", size_average=True",
            6,
            "UserWarning: size_average and red",
        ),
    ],
    ids=["backward", "forward", "broadcast", "legacy"],
)
def test_warnings_point_at_the_line_of_the_caller(tmp_path, x, arguments, line, text):
    script = tmp_path / "training.py"
    script.write_text(textwrap.dedent(f"""
            import torch, opserve, opserve.torch
            client = opserve.Client("unix:{tmp_path}/none")
            functions = opserve.torch.Functions(client, fallback="local")
            x = {x}.requires_grad_()
            loss = functions.l1_loss(x, torch.zeros(2){arguments})
            loss.backward()
            """))
    run = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=120,
        env=script_environment(),
    )
    assert run.returncode == 0, run.stderr
    assert f"training.py:{line}: {text}" in run.stderr
