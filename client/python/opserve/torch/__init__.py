"""PyTorch models, losses and gradients on a pool of NPUs.

    import opserve.torch

    model = torch.compile(model, backend="opserve")

runs forward and backward passes of any model on the pool: see `backend`, which has options. It
needs torch 2.4 or later.

Three losses are functions of their own, for any torch: `kl_div`, `l1_loss` and `log_softmax`
(see opserve.torch._losses).
"""

from __future__ import annotations

import importlib
from typing import Any

from opserve.torch._losses import (
    FallbackWarning,
    Functions,
    default,
    kl_div,
    l1_loss,
    log_softmax,
)

# Of the backend, which older versions of torch have no use for: names and their modules.
_OF_BACKEND = {
    "Backend": "_backend",
    "Comparison": "_compare",
    "Explanation": "_explain",
    "LocalNodesWarning": "_backend",
    "UnsupportedError": "_backend",
    "backend": "_backend",
    "compare": "_compare",
    "compile_graph": "_backend",
    "explain": "_explain",
}

__all__ = [
    "FallbackWarning",
    "Functions",
    "default",
    "kl_div",
    "l1_loss",
    "log_softmax",
    *_OF_BACKEND,
]


def __getattr__(name: str) -> Any:
    if name not in _OF_BACKEND:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    module = importlib.import_module(f"opserve.torch.{_OF_BACKEND[name]}")
    return getattr(module, name)
