"""Random graphs of constants, views, changes in place and operators, beside eager torch."""

from __future__ import annotations

import os

import opserve
import opserve.torch
import pytest
import torch
from optim_helpers import backend, fresh  # noqa: F401
from random_graphs import Drawn, total

Tensor = torch.Tensor

FIRST = int(os.environ.get("OPSERVE_FIRST_GRAPH", "0"))
COUNT = int(os.environ.get("OPSERVE_TORCH_GRAPHS", "25"))


def close(name: str, seen: Tensor, expected: Tensor) -> None:
    # Errors grow on their way through a graph: values, and sums of up to thousands of them.
    torch.testing.assert_close(
        seen, expected, rtol=1e-4, atol=1e-4, equal_nan=True, msg=lambda text: f"{name}: {text}"
    )


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_graph_gives_torchs_results_and_gradients(
    backend: opserve.torch.Backend, seed: int
) -> None:
    drawn = Drawn(seed)
    print(drawn)
    trains = seed % 2 == 1
    ours, theirs = (
        [one.clone().requires_grad_(trains) for one in drawn.inputs] for _ in range(2)
    )

    seen, expected = torch.compile(drawn, backend=backend)(*ours), drawn(*theirs)

    for number, (one, other) in enumerate(zip(seen, expected)):
        close(f"result {number}", one, other)
    loss, other_loss = total(seen), total(expected)
    if other_loss is None:
        return
    found = zip(
        torch.autograd.grad(loss, ours, allow_unused=True),
        torch.autograd.grad(other_loss, theirs, allow_unused=True),
    )
    for number, (one, other) in enumerate(found):
        zeros = torch.zeros_like(ours[number])
        close(f"gradient {number}", *(zeros if x is None else x for x in (one, other)))
