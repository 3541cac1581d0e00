"""The tables of lowerings and views, to which the modules of this package add."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten

Lowering = Callable[..., Any]

LOWERINGS: dict[Any, Lowering] = {}

# Nodes that only look at elements in another way.
VIEWS = {
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.permute.default,
    aten.expand.default,
    aten.slice.Tensor,
    aten.select.int,
    aten.unsqueeze.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.transpose.int,
    aten.t.default,
    aten.alias.default,
    aten.detach.default,
    aten.diagonal.default,
    aten.unfold.default,
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.unbind.int,
    aten.chunk.default,
}


def lowers(*targets: Any) -> Callable[[Lowering], Lowering]:
    """Adds a lowering to the table for nodes that had none."""

    def add(lowering: Lowering) -> Lowering:
        for target in targets:
            assert target not in LOWERINGS, target
            LOWERINGS[target] = lowering
        return lowering

    return add
