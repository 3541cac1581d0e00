"""Trainings whose daemon ends: their tensors go to another daemon, and they go on there by themselves."""

import hashlib
import os
import signal

import numpy as np
import opserve
import pytest

from program_training_test import batches, parameters, step_program

# How long a training may wait for the first loss from the receiver after the sender's signal.
GAP_SECONDS = 5
TENANT = f'tenant {{ name: "t" token_sha256: "{hashlib.sha256(b"token").hexdigest()}" }}'


@pytest.fixture
def two_daemons(start_daemon, tmp_path):
    """One that ends, and one that receives its tensors."""

    def start(name, settings):
        path = tmp_path / name
        path.write_text(TENANT + settings)
        return start_daemon(f"--config={path}")

    receiver = start(
        "receiver", f'peer {{ uid: {os.getuid()} tenant: "t" max_bytes: 100000000 }}'
    )
    return start("sender", f'deposit {{ address: "{receiver.target}" }}'), receiver


def train(target, after_step=lambda step: None, timeout=lambda: None):
    """The losses."""
    losses = []
    with opserve.Client(target, token="token", balance=False) as client:
        program, results, given_up = step_program()
        run = client.prepare(program, results, donated=given_up)
        state = [client.upload(np.zeros(1, "i8"))]
        for one in parameters():
            state += [
                client.upload(one),
                *(client.upload(np.zeros_like(one)) for _ in range(2)),
            ]
        for step, (x, digits) in enumerate(batches()):
            response = run(x, digits, *state, timeout=timeout())
            losses.append(float(response.results[0]))
            after_step(step)
        assert run.prepared_again == 0  # the receiver has the program under its handle
        assert client.download(state[0])[0] == len(losses)
        assert client.release(state) == len(state)
    return losses


def test_a_training_goes_on_where_its_tensors_are(two_daemons):
    sender, receiver = two_daemons
    undisturbed = train(receiver.target)
    is_ending = False

    def end_sender(step):
        nonlocal is_ending
        if step == 5:
            is_ending = True
            sender.process.send_signal(signal.SIGTERM)

    # One of these steps is the first at the receiver.
    losses = train(
        f"{sender.target},{receiver.target}", end_sender, lambda: GAP_SECONDS if is_ending else None
    )

    assert losses == undisturbed
    assert sender.process.wait(timeout=60) == 0


def test_a_handle_is_good_at_the_other_daemon(two_daemons):
    sender, receiver = two_daemons
    with opserve.Client(sender.target, token="token") as client:
        tensor = client.upload(np.ones(3, "f4"))
    sender.stop()
    with opserve.Client(receiver.target, token="token") as client:
        assert client.download(tensor).tolist() == [1, 1, 1]
        assert client.release([tensor]) == 1
