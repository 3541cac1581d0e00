"""What moves elements."""

import torch
import torch.nn.functional as F

from oracles import define


def sliced(self, dim, start, end, step):
    # Python's numbers: torch's slices overflow where the step is long.
    return self.index_select(dim, torch.tensor(range(self.shape[dim])[start:end:step], dtype=torch.int64))


define(
    "Slice",
    sliced,
    specials=False,
    calls=[
        ({"self": s}, {"dim": d, "start": a, "end": b, "step": c})
        for s, d, a, b, c in (
            ([4, 5], 1, 1, 4, 1),
            ([4, 5], 0, 0, 4, 2),
            ([4, 5], -1, -3, -1, 1),
            ([4, 5], 1, 3, 2, 1),
            ([133], 0, 5, 130, 3),
            ([4, 5], 1, 0, 100, 1),
            ([4, 5], 1, -100, 3, 1),
            ([2, 3, 4], 1, 1, 2, 1),
            ([4, 5], 1, 2, 2**62, 2),
            ([4, 5], 1, 2, 5, 2**63 - 1),
            ([4, 5], 0, 1, 2**63 - 1, 2**62),
            ([1, 2, 1, 3, 1, 2, 1, 2], 3, 0, 3, 2),
            ([0, 3], 1, 1, 2, 1),
        )
    ],
)
define(
    "Permute",
    lambda self, dims: self.permute(dims),
    specials=False,
    calls=[
        ({"self": s}, {"dims": d})
        for s, d in (
            ([4, 5], [1, 0]),
            ([2, 3, 4], [2, 0, 1]),
            ([2, 3, 4], [-1, 0, 1]),
            ([133], [0]),
            ([], []),
            ([0, 3], [1, 0]),
            ([1, 2, 1, 3, 1, 2, 1, 2], [7, 6, 5, 4, 3, 2, 1, 0]),
            ([17, 33], [1, 0]),
            ([2, 3, 4, 5], [0, 2, 1, 3]),
        )
    ],
)
LISTS = [
    ([[4, 5], [4, 5]], 0),
    ([[4, 5], [4, 2]], 1),
    ([[2, 3, 4], [2, 1, 4], [2, 5, 4]], -2),
    ([[133]], 0),
    ([[0, 3], [2, 3]], 0),
    ([[1, 2, 1, 3], [1, 2, 1, 3]], 3),
    ([[3]] * 40, 0),
]
define(
    "Cat",
    lambda tensors, dim: torch.cat(tensors, dim),
    specials=False,
    calls=[({"tensors": t}, {"dim": d}) for t, d in LISTS],
)
define(
    "Stack",
    lambda tensors, dim: torch.stack(tensors, dim),
    specials=False,
    calls=[
        ({"tensors": t}, {"dim": d})
        for t, d in (
            ([[4, 5], [4, 5]], 0),
            ([[4, 5]] * 3, 1),
            ([[4, 5]] * 3, -1),
            ([[4, 5]] * 2, 2),
            ([[]] * 3, 0),
            ([[133]], 0),
            ([[0, 3]] * 2, 1),
            ([[3]] * 40, 0),
            ([[1, 2, 1, 2, 1, 2, 3]] * 2, 4),
        )
    ],
)
define(
    "SplitTensor",
    lambda self, split_sections, dim: list(torch.split(self, split_sections, dim)),
    specials=False,
    calls=[
        ({"self": s}, {"split_sections": n, "dim": d})
        for s, n, d in (
            ([4, 5], 2, 0),
            ([4, 5], 2, 1),
            ([4, 5], 2, -1),
            ([133], 50, 0),
            ([2, 3, 4], 1, 1),
            ([4, 5], 9, 0),
            ([1, 2, 1, 3, 1, 2, 1, 2], 2, 3),
        )
    ],
)
define(
    "SplitWithSize",
    lambda self, split_size, dim: list(torch.split(self, split_size, dim)),
    specials=False,
    calls=[
        ({"self": s}, {"split_size": n, "dim": d})
        for s, n, d in (
            ([4, 5], [1, 3], 0),
            ([4, 5], [2, 3], 1),
            ([4, 5], [4, 1], -1),
            ([133], [100, 33], 0),
            ([2, 3, 4], [1, 1, 1], 1),
            ([4, 5], [0, 4], 0),
            ([1, 2, 1, 3, 1, 2, 1, 2], [2, 1], 3),
        )
    ],
)
define(
    "Expand",
    lambda self, size: self.expand(size),
    specials=False,
    calls=[
        ({"self": s}, {"size": n})
        for s, n in (
            ([4, 1], [4, 5]),
            ([5], [4, 5]),
            ([4, 5], [4, 5]),
            ([1, 3], [2, -1]),
            ([], [3]),
            ([1], [0]),
            ([133], [2, 133]),
            ([1, 2, 1, 3], [2, 2, 2, 3]),
            ([2, 1, 1], [2, 3, 4]),
        )
    ],
)
define(
    "Repeat",
    lambda self, repeats: self.repeat(repeats),
    specials=False,
    calls=[
        ({"self": s}, {"repeats": n})
        for s, n in (
            ([4, 5], [2, 3]),
            ([5], [2, 3]),
            ([4, 5], [1, 1]),
            ([], [3]),
            ([2, 3], [0, 2]),
            ([133], [2]),
            ([2, 3, 4], [2, 1, 2]),
            ([1, 2, 1, 3], [2, 1, 3, 1]),
            ([3], [1, 1, 1, 2]),
        )
    ],
)
define(
    "Flip",
    lambda self, dims: self.flip(dims),
    specials=False,
    calls=[
        ({"self": s}, {"dims": d})
        for s, d in (
            ([4, 5], [0]),
            ([4, 5], [1]),
            ([4, 5], [0, 1]),
            ([4, 5], [-1]),
            ([133], [0]),
            ([2, 3, 4], [0, 2]),
            ([4, 5], []),
            ([0, 3], [1]),
            ([1, 2, 1, 3, 1, 2, 1, 2], [1, 3, 5]),
        )
    ],
)
define(
    "Roll",
    lambda x, shifts, dims: x.roll(shifts, dims) if dims else x.roll(shifts),
    specials=False,
    calls=[
        ({"x": s}, {"shifts": n, "dims": d})
        for s, n, d in (
            ([4, 5], [1], [0]),
            ([4, 5], [-2], [1]),
            ([4, 5], [1, 2], [0, 1]),
            ([4, 5], [7], [-1]),
            ([133], [40], [0]),
            ([4, 5], [3], []),
            ([2, 3, 4], [1, 1], [0, 2]),
            ([0, 3], [1], [0]),
            ([4, 5], [0], [1]),
        )
    ],
)
define(
    "ConstantPadNd",
    lambda self, pad, value: F.pad(self, pad, value=value),
    specials=False,
    attributes={
        "value": lambda d: [("INT64", 2), ("INT64", 0)]
        + ([("FLOAT", 1.5), ("DOUBLE", -0.5)] if d in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else [])
    },
    calls=[
        ({"self": s}, {"pad": p})
        for s, p in (
            ([4, 5], [1, 2]),
            ([4, 5], [1, 2, 3, 0]),
            ([4, 5], [-1, 2]),
            ([133], [3, 4]),
            ([2, 3, 4], [0, 1, 1, 0]),
            ([4, 5], [-1, -1, 1, 1]),
            ([0, 3], [1, 1]),
            ([4, 5], [0, 0]),
            ([2, 1, 3], [1, 1, 1, 1, 1, 1]),
        )
    ],
)
