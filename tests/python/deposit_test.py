"""Trainings whose daemon ends: their tensors go to another daemon, and they go on there by themselves."""

import hashlib
import os
import signal
import time

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


class Gap:
    """From the sender's signal to the first loss from the receiver."""

    def __init__(self):
        self._end = None

    def begin(self):
        self._end = time.monotonic() + GAP_SECONDS

    def timeout(self, run):
        """Of the next step of `run`, which it prepares again where it goes on; None: no gap."""
        if self._end is None or run.prepared_again > 0:
            return None
        return max(self._end - time.monotonic(), 1e-3)


def train(target, after_step=lambda step: None, timeout=lambda run: None):
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
            response = run(x, digits, *state, timeout=timeout(run))
            losses.append(float(response.results[0]))
            after_step(step)
        assert client.download(state[0])[0] == len(losses)
        assert client.release(state) == len(state)
    return losses


def test_a_training_goes_on_where_its_tensors_are(two_daemons):
    sender, receiver = two_daemons
    undisturbed = train(receiver.target)
    gap = Gap()

    def end_sender(step):
        if step == 5:
            gap.begin()
            sender.process.send_signal(signal.SIGTERM)

    losses = train(f"{sender.target},{receiver.target}", end_sender, gap.timeout)

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
