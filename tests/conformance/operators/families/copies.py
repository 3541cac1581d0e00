"""Copies, choices, fills, sequences and masks."""

import math

import numpy as np
import torch

from oracles import Unclear, define

# Copies

define(
    "SWhere", lambda condition, self, other: torch.where(condition != 0, self, other), special_inputs=["self", "other"]
)
define(
    "MaskedFillScalar",
    lambda self, mask, value: torch.where(mask != 0, torch.as_tensor(value, dtype=self.dtype), self),
    special_inputs=["self"],
)
define(
    "MaskedFillTensor",
    lambda self, mask, value: torch.where(mask != 0, value, self),
    calls=[
        ({"self": s, "mask": m, "value": []}, {})
        for s, m in (
            ([4, 5], [4, 5]),
            ([4, 5], [5]),
            ([4, 5], [4, 1]),
            ([4, 5], []),
            ([133], [133]),
            ([], []),
            ([0, 3], [3]),
            ([2, 1, 3, 2], [3, 1]),
            ([1, 2, 1, 3, 1, 2, 1, 2], [2, 1, 2]),
        )
    ],
    specials=False,
)
define("Cast", lambda self: self)
define("Copy", lambda self, src: src.expand(self.shape), special_inputs=["src"])
define("Zero", lambda self: torch.zeros_like(self), specials=False)
define("One", lambda self: torch.ones_like(self), specials=False)
define(
    "FillScalar",
    lambda self, value: torch.full_like(self, value),
    specials=False,
    attributes={
        "value": lambda d: [
            ("FLOAT", 1.5),
            ("INT64", 2),
            ("DOUBLE", 0.1),
            ("BOOL", True),
            ("FLOAT", -0.0),
            ("FLOAT", 3e38),
        ][: 4 if d in ("INT8", "UINT8", "INT16", "INT32", "INT64", "BOOL") else 6]
    },
)
define(
    "FillTensor",
    lambda self, value: value.reshape(()).expand(self.shape),
    specials=False,
    calls=[
        ({"self": s, "value": v}, {})
        for s, v in (([4, 5], []), ([4, 5], [1]), ([133], []), ([], [1]), ([0, 3], []), ([1, 2, 1, 3, 1, 2, 1, 2], [1]))
    ],
)
for _name, _function in {"Tril": np.tril, "Triu": np.triu}.items():
    define(
        _name,
        (lambda f: lambda self, diagonal: torch.from_numpy(f(self.numpy(), diagonal)))(_function),
        specials=False,
        attributes={"diagonal": [-1, 0, 1, -4, 5, 100, -100]},
        calls=[
            ({"self": s}, {"diagonal": d})
            for s, d in (
                ([4, 5], 0),
                ([4, 5], 1),
                ([5, 4], -2),
                ([2, 3, 3], 0),
                ([7, 19], 3),
                ([0, 3], 0),
                ([1, 1], 0),
                ([1, 2, 1, 2, 1, 2, 3, 4], 1),
                ([4, 5], -9),
            )
        ],
    )


# Makers

define(
    "Arange",
    lambda start, end, step, out_dtypes: torch.tensor(
        [start + i * step for i in range(max(0, math.ceil((end - start) / step)))], dtype=torch.float64
    ),
    calls=[
        ({}, {"start": a, "end": b, "step": c})
        for a, b, c in (
            (0, 5, 1),
            (2, 20, 3),
            (5, 0, -2),
            (0.5, 4.0, 0.5),
            (0, 0, 1),
            (-3, 3, 2),
            (0, 300, 1),
            (1.0, -1.0, -0.25),
            (3, 5, 0.75),
            (("INT32", 3), ("INT32", 9), ("INT32", 2)),
            (0, 7, 7),
            (0, 1, 5),
        )
    ],
    attributes={"step": [2, 1.5, ("DOUBLE", 0.5)], "start": [1, -2.5]},
)
define(
    "Eye",
    lambda n, m: torch.eye(n, m, dtype=torch.float64),
    calls=[
        ({}, {"n": n, "m": m})
        for n, m in (
            (3, 3),
            (2, 4),
            (4, 2),
            (1, 1),
            (0, 3),
            (3, 0),
            (19, 21),
            (1, 7),
            (7, 1),
            (8, 8),
            (2, 3),
            (0, 0),
            (5, 4),
            (16, 3),
            (3, 16),
            (6, 6),
        )
    ],
)
define(
    "Linspace",
    lambda start, end, steps: torch.linspace(float(start), float(end), steps, dtype=torch.float64),
    calls=[
        ({}, {"start": a, "end": b, "steps": n})
        for a, b, n in (
            (0, 1, 5),
            (-3, 10, 4),
            (1.0, 0.0, 9),
            (2, 2, 3),
            (0, 1, 1),
            (0, 1, 0),
            (-8.0, 8.0, 133),
            (0.25, 100, 7),
        )
    ],
    terms=lambda start, end: torch.tensor(abs(start) + abs(end), dtype=torch.float64),
)


# Masks of bits


def bits_of(mask, count):
    return torch.from_numpy(np.unpackbits(mask.numpy().astype(np.uint8), bitorder="little")[:count].astype(np.float64))


def any_bytes(shape, random):
    return random.integers(0, 256, shape)


MASKS = [[4, 5], [133], [2, 3, 4], [1], [17, 19], [0, 3], [128]]


def mask_bytes(shape):
    return [(math.prod(shape) + 127) // 128 * 16]


define(
    "DropoutDoMask",
    lambda self, mask, prob: (
        self * bits_of(mask, self.numel()).reshape(self.shape) / (1 - prob) if prob < 1 else torch.zeros_like(self)
    ),
    specials=False,
    mixed=False,
    domains={"mask": any_bytes},
    calls=[({"self": s, "mask": mask_bytes(s)}, {"prob": p}) for s in MASKS for p in (0.5, 0.25, 0.0)],
)
define(
    "DropoutBackward",
    lambda grad_output, mask, scale: torch.where(
        bits_of(mask, grad_output.numel()).reshape(grad_output.shape) != 0,
        grad_output * scale,
        torch.zeros_like(grad_output),
    ),
    specials=False,
    mixed=False,
    domains={"mask": any_bytes},
    calls=[({"grad_output": s, "mask": mask_bytes(s)}, {"scale": p}) for s in MASKS for p in (2.0, 1.25, 1.0)],
)


def masked_scatter(self, mask, source):
    mask = (mask != 0).expand(self.shape)
    if int(mask.sum()) > source.numel():
        raise Unclear
    result = self.clone()
    result[mask] = source.reshape(-1)[: int(mask.sum())]
    return result


define(
    "InplaceMaskedScatter",
    masked_scatter,
    specials=False,
    mixed=False,
    dtypes={"mask": "BOOL"},
    calls=[
        ({"self": s, "mask": m, "source": o}, {})
        for s, m, o in (
            ([4, 5], [4, 5], [20]),
            ([4, 5], [5], [4, 5]),
            ([133], [133], [133]),
            ([], [], [1]),
            ([0, 3], [3], [0]),
            ([2, 3, 4], [3, 1], [24]),
            ([4, 5], [], [30]),
        )
    ],
)


def dropped(input, p, train):
    if train and 0 < p < 1:
        raise Unclear  # random
    return {"out": torch.zeros_like(input) if train and p == 1 else input}


define(
    "Dropout",
    dropped,
    specials=False,
    calls=[
        ({"input": s}, {"p": p, "train": t, "seed": 7, "offset": 0})
        for s in ([4, 5], [133], [], [0, 3], [2, 3, 4])
        for p, t in ((0.5, False), (0.0, True), (1.0, True))
    ],
    attributes={"p": [0.0, 1.0], "train": []},
)


def all_bits(shape, prob):
    if 0 < prob < 1:
        raise Unclear
    return torch.full(mask_bytes(shape), 0 if prob == 1 else 255, dtype=torch.int64)


define(
    "DropoutGenMask",
    all_bits,
    calls=[
        ({}, {"shape": s, "prob": p, "seed": 7})
        for s in (
            [128],
            [2, 128],
            [256],
            [128, 3],
            [1, 128],
            [64, 2],
            [4, 32],
            [2, 4, 16],
            [0, 3],
            [8, 1, 2, 1, 4, 1, 2, 1],
            [16, 133, 8],
        )
        for p in (0.0, 1.0)
    ],
    specials=False,
)
