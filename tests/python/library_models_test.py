"""Models of libraries on the pool, in strict mode, against eager torch in float64.

After its first step a model sends its batch and what has changed, and nothing else.

OPSERVE_LIBRARY_MODELS=all tries all of them, else two.
"""

from __future__ import annotations

import copy
import os

import opserve
import opserve.torch
import opserve.torch.optim
import pytest
import torch
from library_models import CASES
from optim_helpers import fresh  # noqa: F401
from sent_bytes import RecordingBackend, SentBytes
from torch_models import STEPS

SHORT = ["electra", "vit-transformers"]
NAMES = list(CASES) if os.environ.get("OPSERVE_LIBRARY_MODELS") == "all" else SHORT


@pytest.mark.parametrize("name", NAMES)
def test_a_models_losses_and_gradients_are_as_exact_as_torchs(
    client: opserve.Client, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    backend = RecordingBackend(client)
    sent = SentBytes(client, monkeypatch)
    case = CASES[name]
    model = case.make().train()
    eager, exact = copy.deepcopy(model), copy.deepcopy(model).double()
    optimizers = [
        opserve.torch.optim.AdamW(model.parameters(), lr=1e-4, backend=backend),
        torch.optim.AdamW(eager.parameters(), lr=1e-4),
        torch.optim.AdamW(exact.parameters(), lr=1e-4),
    ]
    runs = [torch.compile(model, backend=backend), eager, exact]
    losses: list[list[float]] = []
    for step in range(STEPS):
        batch = case.batch(step)
        wide = [one.double() if one.is_floating_point() else one for one in batch]
        row = []
        sent.clear()
        for run, optimizer, given in zip(runs, optimizers, (batch, batch, wide)):
            optimizer.zero_grad()
            loss = case.loss(run, *given)
            loss.backward()
            row.append(loss.item())
        losses.append(row)
        if step == 0:
            _check_gradients(model, eager, exact, 5e-3 if case.has_kinks else 1e-6)
        for optimizer in optimizers:
            optimizer.step()
        if step > 0:
            sent.check_step(batch, backend, model)
    print(name, "after", STEPS, "steps: pool, float32, float64:", losses[-1])

    seen, single, right = losses[0]
    # Either is a float32 computation: a few times the other's error, and half a dozen roundings.
    assert abs(seen - right) <= 4 * abs(single - right) + 1e-6 * abs(right)
    # A step of AdamW takes the signs of gradients that are only rounding errors.
    if not case.has_kinks:
        assert [row[0] for row in losses] == pytest.approx([row[2] for row in losses], rel=1e-3)
    else:
        early = losses[:3]
        assert [row[0] for row in early] == pytest.approx([row[2] for row in early], rel=1e-2)
    assert all(not plan.unsupported for plan in backend.plans)


def _check_gradients(
    model: torch.nn.Module, eager: torch.nn.Module, exact: torch.nn.Module, floor: float
) -> None:
    """Each is as close to float64's as four times eager float32's, or the floor.

    Distances are norms, relative to that of all gradients.
    """
    gradients = [
        {
            name: one.grad.double()
            for name, one in which.named_parameters()
            if one.grad is not None
        }
        for which in (model, eager, exact)
    ]
    seen, single, right = gradients
    assert seen.keys() == single.keys() == right.keys() and right
    total = torch.stack([one.norm() for one in right.values()]).norm().item()
    for name, expected in right.items():
        error = (seen[name] - expected).norm().item()
        allowed = 4 * (single[name] - expected).norm().item() + floor * total
        assert error <= allowed, name
