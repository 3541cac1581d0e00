"""Processes that are forked after their parent has called the daemon."""

import concurrent.futures
import multiprocessing

import numpy as np
import pytest
from formulas import l1, normal

import opserve


def call_in_child(client, seed):
    x = normal(5, 5, seed=seed)
    result = client.l1_loss_backward(np.float32(1), x, -x, reduction="sum")
    return bool((result == l1(1, x, -x)).all())


def in_child(client, seeds, answers):
    answers.put(all(call_in_child(client, seed) for seed in seeds))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_call_for_themselves(daemon):
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    with opserve.Client(daemon.target) as client:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert all(pool.map(call_in_child, [client] * 8, range(8)))
        children = [
            context.Process(target=in_child, args=(client, range(n, n + 5), answers))
            for n in range(4)
        ]
        for child in children:
            child.start()
            assert call_in_child(client, 1)
        try:
            assert all(answers.get(timeout=60) for _ in children)
        finally:
            for child in children:
                child.join(10)
                child.kill()
        assert call_in_child(client, 2)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_after_a_connection_failed(daemon, tmp_path):
    with opserve.Client(f"unix:{tmp_path}/none", retry=opserve.Retry(1)) as lost:
        with pytest.raises(opserve.UnavailableError):
            lost.server_status()
        with opserve.Client(daemon.target) as client:
            context = multiprocessing.get_context("fork")
            answers = context.Queue()
            child = context.Process(target=in_child, args=(client, [1], answers))
            child.start()
            child.join(60)
            assert child.exitcode == 0 and answers.get(timeout=60)


def in_child_with_errors(client, answers):
    try:
        client.l1_loss_backward(np.float32(1), normal(3), normal(4))
    except opserve.InvalidArgumentError as error:
        answers.put((error.argument, error.aclnn_status))
    try:
        client.upload(normal(3))
    except RuntimeError as error:
        answers.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_errors_reach_a_forked_child(client):
    client.server_status()
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=in_child_with_errors, args=(client, answers))
    child.start()
    assert answers.get(timeout=60) == ("target", 161002)
    assert "forked after its parent had connected" in answers.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
