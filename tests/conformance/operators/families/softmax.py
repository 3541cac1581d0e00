"""Softmax and its relatives."""

import torch

from families.activations import ones
from oracles import define

# Softmax


def softmax_calls(*names):
    return [
        ({n: s for n in names}, {"dim": d})
        for s, d in (
            ([4, 5], 1),
            ([4, 5], 0),
            ([2, 3, 4], -2),
            ([133], 0),
            ([3, 67], -1),
            ([67, 3], 0),
            ([1], 0),
            ([0, 3], 1),
            ([1, 2, 1, 3, 1, 2, 1, 2], 3),
            ([4, 1], 1),
        )
    ]


define(
    "LogSoftmaxBackward",
    lambda grad_output, output, dim: grad_output - torch.exp(output) * grad_output.sum(dim, keepdim=True),
    domains={"output": (-5, 0)},
    specials=False,
    terms=lambda grad_output, output, dim: grad_output.abs()
    + torch.exp(output) * grad_output.abs().sum(dim, keepdim=True),
    calls=softmax_calls("grad_output", "output"),
)

# Softmax


define(
    "Softmax",
    lambda self, dim: torch.softmax(self, dim),
    calls=softmax_calls("self"),
    specials=False,
    terms=lambda self, dim: torch.softmax(self, dim) * ones(self, 1.0),
)
define(
    "LogSoftmax",
    lambda self, dim: torch.log_softmax(self, dim),
    calls=softmax_calls("self"),
    specials=False,
    terms=lambda self: ones(self),
)
define(
    "SoftmaxBackward",
    lambda grad_output, output, dim: output * (grad_output - (grad_output * output).sum(dim, keepdim=True)),
    calls=softmax_calls("grad_output", "output"),
    domains={"output": (0, 1)},
    specials=False,
    terms=lambda grad_output, output, dim: output
    * (grad_output.abs() + (grad_output * output).abs().sum(dim, keepdim=True)),
)


def masked_softmax(x, mask, scale):
    return torch.softmax(torch.where(mask != 0, torch.full_like(x, -10000.0), x * scale), -1)


MASKED = [
    ([2, 3, 4, 5], [2, 3, 4, 5]),
    ([2, 3, 4, 5], [1, 1, 4, 5]),
    ([2, 3, 4, 5], [2, 1, 4, 5]),
    ([1, 1, 1, 133], [1, 1, 1, 133]),
    ([1, 2, 5, 32], [1, 2, 5, 32]),
    ([2, 2, 3, 64], [1, 2, 3, 64]),
]
define(
    "ScaledMaskedSoftmax",
    masked_softmax,
    specials=False,
    attributes={"scale": [1.0, 0.5, 2.0], "fixed_triu_mask": [False]},
    terms=lambda x, mask, scale: masked_softmax(x, mask, scale) * ones(x * scale, 1.0),
    calls=[({"x": s, "mask": m}, {}) for s, m in MASKED],
)
define(
    "ScaledMaskedSoftmaxBackward",
    lambda grad_output, y, mask, scale: torch.where(
        mask != 0, torch.zeros_like(y), scale * y * (grad_output - (grad_output * y).sum(-1, keepdim=True))
    ),
    specials=False,
    domains={"y": (0, 1)},
    attributes={"scale": [1.0, 0.5, 2.0], "fix_triu_mask": [False]},
    terms=lambda grad_output, y, scale: abs(scale)
    * y
    * (grad_output.abs() + (grad_output * y).abs().sum(-1, keepdim=True)),
    calls=[({"grad_output": s, "y": s, "mask": m}, {}) for s, m in MASKED],
)
