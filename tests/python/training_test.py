"""Whole trainings on the pool, in strict mode: model, loss and optimizer, against eager torch."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import opserve
import opserve.torch
import opserve.torch.optim
import pytest
import torch
from optim_helpers import Traffic, backend, fresh, traffic  # noqa: F401
from sent_bytes import RecordingBackend, SentBytes
from torch import nn
from torch_models import CASES, IS_LONG, LIBRARY_CASES, STEPS, Case, Mlp

ALL_CASES = {**CASES, **LIBRARY_CASES}


def train(
    case: Case,
    model: nn.Module,
    run: Any,
    optimizer: torch.optim.Optimizer,
    steps: Iterable[int] = range(STEPS),
) -> list[float]:
    dtype = next(model.parameters()).dtype
    losses = []
    for step in steps:
        optimizer.zero_grad()
        batch = [one.to(dtype) if one.is_floating_point() else one for one in case.batch(step)]
        loss = case.loss(run, *batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", ALL_CASES)
def test_training_stays_on_the_pool_sends_its_batches_and_gives_torchs_losses(
    client: opserve.Client, traffic: Traffic, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = ALL_CASES[name]
    model = case.make()
    eager = copy.deepcopy(model)
    backend = RecordingBackend(client)
    sent = SentBytes(client, monkeypatch)
    run = torch.compile(model, backend=backend)
    options: dict[str, Any] = {"lr": 1e-4, "weight_decay": 0.01}
    ours = opserve.torch.optim.AdamW(model.parameters(), backend=backend, **options)

    seen = []
    for step in range(STEPS):
        sent.clear()
        seen += train(case, model, run, ours, [step])
        backend.synchronize()
        if step > 0:
            sent.check_step(case.batch(step), backend, model)

    expected = train(case, eager, eager, torch.optim.AdamW(eager.parameters(), **options))
    assert seen[0] == pytest.approx(expected[0], rel=1e-5)
    assert seen == pytest.approx(expected, rel=1e-3)
    assert traffic.downloads == 0
    assert all(not plan.unsupported for plan in backend.plans)


@pytest.mark.parametrize("name", ["mlp", "gpt", *(["resnet18"] if IS_LONG else [])])
def test_training_in_bfloat16_is_as_close_as_its_precision(
    backend: opserve.torch.Backend, name: str
) -> None:
    case = ALL_CASES[name]
    exact = case.make()
    model = copy.deepcopy(exact).bfloat16()
    run = torch.compile(model, backend=backend)
    ours = opserve.torch.optim.SGD(model.parameters(), lr=0.01, backend=backend)

    seen = train(case, model, run, ours)

    expected = train(case, exact, exact, torch.optim.SGD(exact.parameters(), lr=0.01))
    assert seen == pytest.approx(expected, rel=0.05)
    assert all(not plan.unsupported for plan in backend.plans)


def test_a_training_with_dropout_learns_and_repeats(backend: opserve.torch.Backend) -> None:
    def run_once() -> list[float]:
        torch._dynamo.reset()
        torch.manual_seed(3)
        model = Mlp(dropout=0.3)
        run = torch.compile(model, backend=backend)
        optimizer = opserve.torch.optim.AdamW(model.parameters(), lr=1e-2, backend=backend)
        case = CASES["mlp"]
        same = Case(case.make, lambda _: case.batch(0), case.loss)
        return train(same, model, run, optimizer, range(20))

    losses = run_once()
    assert losses[-1] < losses[0] / 2
    assert run_once() == losses
