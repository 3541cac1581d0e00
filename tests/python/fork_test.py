"""Processes that are forked after a client has connected, such as those of a DataLoader."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from conftest import script_environment

import opserve

# Of a script, which has time for a few processes that import torch.
TIMEOUT = 60


def run(script, target):
    """Runs a Python script in a process of its own; nothing may be printed on standard error."""
    environment = script_environment(OPSERVE_TARGET=target, PYTHONWARNINGS="ignore")
    environment.pop("GRPC_ENABLE_FORK_SUPPORT", None)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        output, printed = process.communicate(timeout=TIMEOUT)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # children that hang
        except ProcessLookupError:
            pass
    assert (printed, process.returncode) == ("", 0)
    return output.splitlines()


def test_a_fork_alone_neither_prints_nor_hangs_nor_hurts_the_parent(daemon):
    # Children end as os.fork and multiprocessing end them: through the whole end of the
    # interpreter, and by os._exit; other threads of the parent are in calls meanwhile.
    printed = run(
        """
        import multiprocessing, os, sys, threading, opserve

        client, idle = opserve.Client(), opserve.Client("127.0.0.1:1")
        client.server_status()
        region = client.create_region(1000)
        stream = client.open_stream()
        is_over = threading.Event()
        def call():
            while not is_over.is_set():
                client.server_status()
        threads = [threading.Thread(target=call, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            for _ in range(4):
                stream.abs(1.0)
            child = os.fork()
            if child == 0:
                try:
                    del region, stream
                    sys.exit(7)
                finally:
                    client.close()
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        context = multiprocessing.get_context("fork")
        for _ in range(5):
            child = context.Process(target=int)
            child.start()
            child.join()
            assert child.exitcode == 0
        is_over.set()
        for thread in threads:
            thread.join()
        stream.finish()
        region.close()
        client.server_status()
        client.close()
        print("done")
        """,
        daemon.target,
    )
    assert printed == ["done"]


def test_workers_of_a_data_loader_are_forked_under_a_training_loop(daemon):
    printed = run(
        """
        import torch, opserve.torch as F

        class Squares(torch.utils.data.Dataset):
            def __len__(self):
                return 12
            def __getitem__(self, index):
                return torch.full((3,), float(index * index))

        weight = torch.ones(3, requires_grad=True)
        for epoch in range(3):  # each forks its workers anew
            total = 0
            for batch in torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2):
                F.l1_loss(weight * batch, torch.zeros_like(batch)).backward()
                total += int(batch.sum())
            print(total)
        print(bool(weight.grad.sum() > 0))
        """,
        daemon.target,
    )
    assert printed == ["1518"] * 3 + ["True"]


USES = {
    "a call": "client.server_status()",
    "an upload": "client.upload(x)",
    "a stream": "client.open_stream()",
    "a stream of the parent": "stream.l1_loss_backward(x, x, x)",
    "shared memory": "client.create_region(100)",
    "a new client": "opserve.Client().server_status()",
    "asyncio": "asyncio.run(opserve.AsyncClient().server_status())",
}


@pytest.mark.parametrize("use", USES)
def test_use_in_a_forked_child_is_refused(daemon, use):
    printed = run(
        f"""
        import asyncio, os, sys, numpy as np, opserve

        x = np.float32(1)
        client = opserve.Client()
        stream = client.open_stream()
        client.server_status()
        child = os.fork()
        if child == 0:
            try:
                {USES[use]}
            except opserve.ClosedError as error:
                print(error, flush=True)
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stream.finish()
        client.server_status()
        """,
        daemon.target,
    )
    [sentence] = printed
    assert "make a client in a child that is started by spawn or forkserver" in sentence


def test_a_refusal_in_a_worker_of_a_data_loader_reaches_the_parent(daemon):
    printed = run(
        """
        import torch, opserve.torch as F

        class Gradients(torch.utils.data.Dataset):
            def __len__(self):
                return 2
            def __getitem__(self, index):
                x = torch.ones(3, requires_grad=True)
                F.l1_loss(x, torch.zeros(3)).backward()
                return x.grad

        Gradients()[0]
        try:
            list(torch.utils.data.DataLoader(Gradients(), num_workers=2))
        except RuntimeError as error:
            print("make a client in a child that is started by spawn" in str(error))
        Gradients()[0]
        """,
        daemon.target,
    )
    assert printed == ["True"]


def call_in_child(target, answers):
    with opserve.Client(target) as client:
        answers.put(client.server_status().version)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_client_is_made_in_a_child_that_is_no_fork(daemon, client, method):
    version = client.server_status().version
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    child = context.Process(target=call_in_child, args=(daemon.target, answers))
    child.start()
    assert answers.get(timeout=TIMEOUT) == version
    child.join(TIMEOUT)
    assert child.exitcode == 0


def test_a_child_that_was_forked_before_the_first_call_may_use_clients(daemon):
    printed = run(
        """
        import os, sys, opserve

        client = opserve.Client()
        child = os.fork()
        if child == 0:
            client.server_status()
            opserve.Client().server_status()
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        client.server_status()
        print("done")
        """,
        daemon.target,
    )
    assert printed == ["done"]
