"""Products of matrices."""

import inspect

import torch

from oracles import define

# Sums of n products may be off by n units of rounding at most; by much less, in pieces.
_sums = {"specials": False}


def magnitude(value):
    if torch.is_tensor(value):
        return value.abs()
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return abs(value) if is_number else value


def magnitudes(function):
    """The function of its arguments' magnitudes."""

    def of_magnitudes(**arguments):
        return function(**{name: magnitude(value) for name, value in arguments.items()})

    of_magnitudes.__signature__ = inspect.signature(function)
    return of_magnitudes


def matrix(names, function, **options):
    define(names, function, **{"terms": magnitudes(function), **_sums, **options})


MATMULS = [
    ([4, 5], [5, 3]),
    ([5], [5]),
    ([4, 5], [5]),
    ([5], [5, 3]),
    ([2, 4, 5], [2, 5, 3]),
    ([2, 4, 5], [5, 3]),
    ([1, 4, 5], [3, 5, 2]),
    ([2, 1, 4, 5], [3, 5, 2]),
    ([17, 67], [67, 19]),
    ([1, 133], [133, 1]),
    ([4, 0], [0, 3]),
    ([0, 4], [4, 3]),
    ([2, 4, 5], [5]),
    ([5], [2, 5, 3]),
    ([33, 34], [34, 35]),
]
matrix("Matmul", lambda self, mat2: torch.matmul(self, mat2), calls=[({"self": a, "mat2": b}, {}) for a, b in MATMULS])
MMS = [(a, b) for a, b in MATMULS[:-1] if len(a) == len(b) == 2]
BMMS = [
    ([2, 4, 5], [2, 5, 3]),
    ([3, 1, 7], [3, 7, 2]),
    ([1, 17, 67], [1, 67, 19]),
    ([2, 4, 0], [2, 0, 3]),
    ([0, 4, 5], [0, 5, 3]),
    ([2, 1, 1], [2, 1, 1]),
    ([5, 9, 8], [5, 8, 9]),
]
matrix("Mm", lambda self, mat2: torch.mm(self, mat2), calls=[({"self": a, "mat2": b}, {}) for a, b in MMS])
matrix(
    "BatchMatMul",
    lambda self, mat2: torch.matmul(self, mat2),
    calls=[({"self": a, "mat2": b}, {}) for a, b in BMMS + [([1, 4, 5], [3, 5, 2])]],
)


def rows_of(a, b):
    return [*a[:-1], b[-1]]


def added(name_a, name_b, pairs, self_shapes):
    return [({"self": shape, name_a: a, name_b: b}, {}) for a, b in pairs for shape in self_shapes(rows_of(a, b))]


_factors = {"attributes": {"alpha": [2.0, 0.5, ("INT64", 3), 0.0], "beta": [0.5, 0.0, -1.0]}}
matrix(
    "Addmm",
    lambda self, mat1, mat2, beta, alpha: (beta * self if beta else 0) + alpha * (mat1 @ mat2),
    **_factors,
    calls=added("mat1", "mat2", MMS[:2], lambda s: [s, s[1:], [s[0], 1], []])
    + added("mat1", "mat2", MMS[2:], lambda s: [s[1:]])
)
matrix(
    "InplaceAddmm",
    lambda self, mat1, mat2, beta, alpha: (beta * self if beta else 0) + alpha * (mat1 @ mat2),
    **_factors,
    calls=added("mat1", "mat2", MMS, lambda s: [s])
)
matrix(
    "Baddbmm",
    lambda self, batch1, batch2, beta, alpha: (beta * self if beta else 0) + alpha * (batch1 @ batch2),
    **_factors,
    calls=added("batch1", "batch2", BMMS, lambda s: [s, s[1:], s[2:]])
)
matrix(
    "InplaceBaddbmm",
    lambda self, batch1, batch2, beta, alpha: (beta * self if beta else 0) + alpha * (batch1 @ batch2),
    **_factors,
    calls=added("batch1", "batch2", BMMS, lambda s: [s])
)
matrix(
    "Addbmm",
    lambda self, batch1, batch2, beta, alpha: (beta * self if beta else 0) + alpha * (batch1 @ batch2).sum(0),
    **_factors,
    calls=added("batch1", "batch2", BMMS, lambda s: [s[1:], s[2:]])
)
MVS = [([4, 5], [5]), ([17, 67], [67]), ([1, 133], [133]), ([4, 0], [0]), ([0, 4], [4]), ([133, 1], [1])]
matrix("Mv", lambda self, vec: self @ vec, calls=[({"self": a, "vec": b}, {}) for a, b in MVS])
matrix(
    "Addmv",
    lambda self, mat, vec, alpha, beta: (beta * self if beta else 0 * self) + alpha * (mat @ vec),
    calls=[({"self": shape, "mat": a, "vec": b}, {}) for a, b in MVS for shape in ([a[0]], [1], [])],
    attributes={
        "alpha": lambda d: [2, 3] if d not in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else [2.0, 0.5],
        "beta": lambda d: [0, 2] if d not in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else [0.0, 0.5],
    },
)
matrix(
    "Dot",
    lambda self, tensor: (self * tensor).sum(),
    calls=[({"self": [n], "tensor": [n]}, {}) for n in (5, 1, 133, 0, 1000, 64, 17)],
)
matrix(
    "Ger",
    lambda self, vec2: torch.outer(self, vec2),
    calls=[({"self": [n], "vec2": [m]}, {}) for n, m in ((4, 5), (1, 1), (133, 2), (0, 3), (3, 0), (17, 19))],
)


def gemm(a, b, c, alpha, beta, trans_a, trans_b):
    return alpha * ((a.t() if trans_a else a) @ (b.t() if trans_b else b)) + beta * c


matrix(
    "Gemm",
    gemm,
    attributes={"alpha": [2.0, 0.5], "beta": [0.5, 0.0], "trans_a": [0], "trans_b": [0]},
    calls=[
        ({"a": a[::-1] if ta else a, "b": b[::-1] if tb else b, "c": c}, {"trans_a": ta, "trans_b": tb})
        for a, b in MMS[:3]
        for ta, tb in ((0, 0), (1, 0), (0, 1), (1, 1))
        for c in (rows_of(a, b), [b[-1]])
    ],
)
