"""A training step as one program: forward, loss, backward and optimizer, with parameters that stay."""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Any

import numpy as np
import opserve
import pytest
from counting_proxy import CountingProxy, counting_proxy
from sklearn.datasets import load_digits

BATCH, HIDDEN, CLASSES, PIXELS = 60, 32, 10, 64
LEARNING_RATE, BETA1, BETA2, DECAY, EPSILON = 1e-3, 0.9, 0.999, 0.01, 1e-8
STEPS = 300

# Those before have connected, uploaded and prepared.
FIRST_STEADY_STEP = 10
# Batch, labels, loss, and 1 KiB.
MOST_BYTES_OF_A_STEP = BATCH * (PIXELS * 4 + 8) + 4 + 1024


def parameters() -> list[np.ndarray]:
    random = np.random.default_rng(0)
    shapes = [(PIXELS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,)]
    return [(random.normal(size=shape) * 0.2).astype("f4") for shape in shapes]


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    images, digits = load_digits(return_X_y=True)
    starts = [step * BATCH % (len(images) - BATCH) for step in range(STEPS)]
    return [
        ((images[at : at + BATCH] / 16).astype("f4"), digits[at : at + BATCH])
        for at in starts
    ]


def losses_of_numpy() -> list[float]:
    """In float64, by the same formulas."""
    w1, b1, w2, b2 = state = [one.astype("f8") for one in parameters()]
    moments = [(np.zeros_like(one), np.zeros_like(one)) for one in state]
    losses = []
    for step, (x, digits) in enumerate(batches()):
        hidden = x @ w1 + b1
        active = np.maximum(hidden, 0)
        logits = active @ w2 + b2
        shifted = logits - logits.max(-1, keepdims=True)
        log_q = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
        losses.append(-log_q[np.arange(BATCH), digits].mean())
        of_logits = (np.exp(log_q) - np.eye(CLASSES)[digits]) / BATCH
        of_hidden = of_logits @ w2.T * (hidden > 0)
        gradients = [x.T @ of_hidden, of_hidden.sum(0), active.T @ of_logits, of_logits.sum(0)]
        for one, (m, v), gradient in zip(state, moments, gradients):
            one *= 1 - LEARNING_RATE * DECAY
            m += (1 - BETA1) * (gradient - m)
            v += (1 - BETA2) * (gradient * gradient - v)
            scale = np.sqrt(v / (1 - BETA2 ** (step + 1))) + EPSILON
            one -= LEARNING_RATE / (1 - BETA1 ** (step + 1)) * m / scale
    return losses


def step_program() -> tuple[opserve.Program, list[Any], list[Any]]:
    """The program, its results and the inputs that it gives up: x, labels, steps done, states."""
    p = opserve.Program()
    x = p.input("float32", (BATCH, PIXELS))
    labels = p.input("int64", (BATCH,))
    done = p.input("int64", (1,))
    states = [
        [p.input("float32", one.shape) for _ in ("parameter", "m", "v")] for one in parameters()
    ]
    w1, b1, w2, b2 = (state[0] for state in states)

    hidden = p.add(p.matmul(x, w1), b1)
    active = p.relu(hidden)
    log_q = p.log_softmax(p.add(p.matmul(active, w2), b2))
    ones = p.full((CLASSES,), 1, "float32")
    loss = p.nll_loss(log_q, labels, ones)

    of_log_q = p.nll_loss_backward(
        p.literal(1.0, "float32"), log_q, labels, ones, loss.total_weight_out
    )
    of_logits = p.log_softmax_backward(of_log_q, log_q)
    of_active = p.matmul(of_logits, w2.T)
    of_hidden = p.threshold_backward(of_active, hidden)
    across_active = p.view(active, "float32", (HIDDEN, BATCH), (1, HIDDEN))
    gradients = [
        p.matmul(x.T, of_hidden),
        p.reduce_sum(of_hidden, dims=[0], dtype="float32"),
        p.matmul(across_active, of_logits),
        p.reduce_sum(of_logits, dims=[0], dtype="float32"),
    ]
    results: list[Any] = [loss.out, p.replace(done, p.adds(done, other=1))]
    for (parameter, m, v), gradient in zip(states, gradients):
        changed = p.apply_adam_wv2(
            parameter,
            m,
            v,
            gradient,
            done,
            lr=LEARNING_RATE,
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=DECAY,
            eps=EPSILON,
        )
        results += [
            p.replace(one, output) for one, output in zip((parameter, m, v), changed[:3])
        ]
    return p, results, [one for state in states for one in state]


class SteadySteps:
    """The bytes on the wire of the steps from FIRST_STEADY_STEP on."""

    def __init__(self, proxy: CountingProxy) -> None:
        self._proxy = proxy
        self._steps = 0
        self._before = 0

    def has_ended(self) -> None:
        self._steps += 1
        if self._steps == FIRST_STEADY_STEP:
            self._before = self._proxy.bytes

    def check(self) -> None:
        assert self._steps == STEPS
        of_a_step = (self._proxy.bytes - self._before) / (STEPS - FIRST_STEADY_STEP)
        assert BATCH * PIXELS * 4 < of_a_step <= MOST_BYTES_OF_A_STEP


def test_a_step_is_one_program_and_its_state_stays(daemon: Any) -> None:
    program, results, given_up = step_program()
    losses = []
    with counting_proxy(daemon.socket) as proxy, opserve.Client(proxy.target) as client:
        run = client.prepare(program, results, donated=given_up)
        state = [client.upload(np.zeros(1, "i8"))]
        for one in parameters():
            state += [client.upload(one), *(client.upload(np.zeros_like(one)) for _ in range(2))]

        steady = SteadySteps(proxy)
        for x, digits in batches():
            losses.append(run(x, digits, *state).results[0].item())
            steady.has_ended()
        steady.check()
        done = client.download(state[0])[0]
        released = client.release(state)

    expected = losses_of_numpy()
    assert losses[-1] == pytest.approx(expected[-1], abs=1e-4)
    assert losses == pytest.approx(expected, abs=1e-3)
    assert losses[-1] < losses[0] / 2
    assert (done, released) == (STEPS, len(state))


def test_the_same_in_cpp(daemon: Any, tmp_path: pathlib.Path) -> None:
    images, labels = map(np.concatenate, zip(*batches()))
    arrays = {"images": images, "labels": labels.astype("i8")}
    arrays.update(zip(("w1", "b1", "w2", "b2"), parameters()))
    for name, array in arrays.items():
        array.tofile(tmp_path / name)

    program = pathlib.Path(os.environ["OPSERVED"]).with_name("program_training")
    losses = []
    with counting_proxy(daemon.socket) as proxy:
        # Each of its calls has a timeout, so its lines end.
        with subprocess.Popen(
            [program, proxy.target, tmp_path], stdout=subprocess.PIPE, text=True
        ) as running:
            steady = SteadySteps(proxy)
            assert running.stdout is not None
            for line in running.stdout:
                losses.append(float(line))
                steady.has_ended()
        assert running.returncode == 0
        steady.check()

    expected = losses_of_numpy()
    assert len(losses) == STEPS
    assert losses[-1] == pytest.approx(expected[-1], abs=1e-4)
    assert losses == pytest.approx(expected, abs=1e-3)
