"""PyTorch models, losses and gradients on a pool of NPUs.

    import opserve.torch

    model = torch.compile(model, backend="opserve")

runs forward and backward passes of any model on the pool: see `backend`, which has options. It
needs torch 2.4 or later.

Single losses and their softmax are functions, which torch.nn.functional has with the same
signatures, and modules, which torch.nn has:

    import opserve.torch as F

    loss = F.kl_div(F.log_softmax(logits, -1), target, reduction="batchmean")
    loss.backward()

Forward passes are computed here, by torch; backward passes by the daemon, without a copy of the
tensors but those of the transport. The gradient of a loss of a softmax takes one call: a
program of both backward operators. Where inputs lie in shared memory of the client, so do
gradients.

The functions of this module use a client of their own, connected to the default target; for
another one, or to compute here when the pool cannot:

    F = opserve.torch.Functions(opserve.Client("unix:/run/opserve.sock"), fallback="local")

Thread-safe. Workers of a DataLoader may be forked at any time, but cannot compute gradients with
a client of their parent.

Gradients of gradients (`create_graph=True`: Hessians, gradient penalties) are right: the first
gradient comes from the pool, and its derivatives are computed here, by torch. So are gradients
under the transforms of torch.func (torch 2.0 or later): under vmap they are one program with the
operators of each sample. Batched gradients (`is_grads_batched=True`), and the transforms of older
versions, cannot be followed into a daemon: there a gradient is a NotImplementedError, or
computed here with fallback="local". torch.compile leaves calls of these functions out of its graphs.

Where gradients differ from torch's, within what both leave open: that of kl_div with respect
to a plain target is 0 where the target is 0, and NaN compares as equal in l1_loss. Sums are
taken in float32. float64 is only for kl_div with respect to its input: the other operators do
not have it, and a TypeError says so in the forward pass.
"""

from __future__ import annotations

import importlib
from typing import Any

from opserve.torch._functions import FallbackWarning, Functions, default
from opserve.torch._modules import (
    CrossEntropyLoss,
    KLDivLoss,
    L1Loss,
    LogSoftmax,
    MSELoss,
    SmoothL1Loss,
    Softmax,
)

cross_entropy = default.cross_entropy
kl_div = default.kl_div
l1_loss = default.l1_loss
log_softmax = default.log_softmax
mse_loss = default.mse_loss
smooth_l1_loss = default.smooth_l1_loss
softmax = default.softmax

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
    "optim": "optim",
}

__all__ = [
    "CrossEntropyLoss",
    "FallbackWarning",
    "Functions",
    "KLDivLoss",
    "L1Loss",
    "LogSoftmax",
    "MSELoss",
    "SmoothL1Loss",
    "Softmax",
    "cross_entropy",
    "default",
    "kl_div",
    "l1_loss",
    "log_softmax",
    "mse_loss",
    "smooth_l1_loss",
    "softmax",
    *_OF_BACKEND,
]


def __getattr__(name: str) -> Any:
    if name not in _OF_BACKEND:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    module = importlib.import_module(f"opserve.torch.{_OF_BACKEND[name]}")
    return module if name == _OF_BACKEND[name] else getattr(module, name)
