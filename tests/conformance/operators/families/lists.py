"""Operators on lists of tensors."""

import math

import torch

from families.arithmetic import power
from oracles import INF, define

LIST = [[4, 5], [3], [], [0, 2], [133], [2, 3, 4]]
LISTS = [LIST, [[4, 5]], [[7]] * 3, [[1, 2, 1, 3, 1, 2, 1, 2]], [[], []], [[0]], [[5, 3]] * 20]


def list_calls(*lists, **others):
    return [({**{n: shapes for n in lists}, **others}, {}) for shapes in LISTS]


_scalar_dtype = lambda d: (
    d if d in ("FLOAT", "FLOAT16") else "INT32" if d in ("INT8", "UINT8", "INT16", "INT32") else "FLOAT"
)
_scalar = {"dtypes": {"scalar": _scalar_dtype}, "specials": False}


def one(tensor):
    return tensor.reshape(()) if torch.is_tensor(tensor) else tensor


define(
    "ForeachAddScalar ForeachAddScalarV2",
    lambda x, scalar: [t + one(scalar) for t in x],
    calls=list_calls("x", scalar=[1]),
    terms=lambda x, scalar: {"out": [t.abs() + abs(one(scalar)) for t in x]},
    **_scalar
)
define(
    "ForeachMulScalar ForeachMulScalarV2",
    lambda x, scalar: [t * one(scalar) for t in x],
    calls=list_calls("x", scalar=[1]),
    **_scalar
)
define("ForeachDivScalar", lambda x, scalar: [t / one(scalar) for t in x], calls=list_calls("x", scalar=[1]), **_scalar)
define(
    "ForeachPowScalar",
    lambda x, scalar: [power(t, one(scalar)) for t in x],
    calls=list_calls("x", scalar=[1]),
    domains={"x": (0.1, 5), "scalar": (1, 3)},
    **_scalar
)
_scalars = lambda shapes: [1.5 if i % 2 else 2.0 for i in range(len(shapes))]
define(
    "ForeachAddScalarList",
    lambda x, scalars: [t + s for t, s in zip(x, scalars)],
    specials=False,
    terms=lambda x, scalars: {"out": [t.abs() + abs(s) for t, s in zip(x, scalars)]},
    only_dtypes=["FLOAT", "FLOAT16", "BF16"],
    calls=[({"x": s}, {"scalars": _scalars(s)}) for s in LISTS],
)
define(
    "ForeachMulScalarList",
    lambda x, scalars: [t * s for t, s in zip(x, scalars)],
    specials=False,
    only_dtypes=["FLOAT", "FLOAT16", "BF16"],
    calls=[({"x": s}, {"scalars": _scalars(s)}) for s in LISTS],
)
_alpha = {"dtypes": {"alpha": _scalar_dtype}, "specials": False}
define(
    "ForeachAddList ForeachAddListV2",
    lambda x1, x2, alpha: [a + one(alpha) * b for a, b in zip(x1, x2)],
    calls=list_calls("x1", "x2", alpha=[1]),
    terms=lambda x1, x2, alpha: {"out": [a.abs() + (one(alpha) * b).abs() for a, b in zip(x1, x2)]},
    **_alpha
)
define("ForeachMulList", lambda x1, x2: [a * b for a, b in zip(x1, x2)], calls=list_calls("x1", "x2"), specials=False)
define(
    "ForeachMaximumList",
    lambda x1, x2: [torch.maximum(a, b) for a, b in zip(x1, x2)],
    calls=list_calls("x1", "x2"),
    specials=False,
)
define(
    "ForeachAddcmulScalar ForeachAddcmulScalarV2",
    lambda x1, x2, x3, scalar: [a + one(scalar) * b * c for a, b, c in zip(x1, x2, x3)],
    calls=list_calls("x1", "x2", "x3", scalar=[1]),
    terms=lambda x1, x2, x3, scalar: {"out": [a.abs() + (one(scalar) * b * c).abs() for a, b, c in zip(x1, x2, x3)]},
    **_scalar
)
define(
    "ForeachAddcdivScalar ForeachAddcdivScalarV2",
    lambda x1, x2, x3, scalar: [a + one(scalar) * b / c for a, b, c in zip(x1, x2, x3)],
    calls=list_calls("x1", "x2", "x3", scalar=[1]),
    terms=lambda x1, x2, x3, scalar: {"out": [a.abs() + (one(scalar) * b / c).abs() for a, b, c in zip(x1, x2, x3)]},
    **_scalar
)
define(
    "ForeachAddcdivScalarList",
    lambda x1, x2, x3, scalars: [a + s * b / c for a, b, c, s in zip(x1, x2, x3, scalars)],
    specials=False,
    calls=[({"x1": s, "x2": s, "x3": s, "scalars": [len(s)]}, {}) for s in LISTS],
    terms=lambda x1, x2, x3, scalars: {"out": [a.abs() + (s * b / c).abs() for a, b, c, s in zip(x1, x2, x3, scalars)]},
)
define(
    "ForeachLerpScalar",
    lambda x1, x2, weight: [a + weight * (b - a) for a, b in zip(x1, x2)],
    calls=list_calls("x1", "x2"),
    specials=False,
    terms=lambda x1, x2, weight: {"out": [(a.abs() + b.abs()) * (1 + abs(weight)) for a, b in zip(x1, x2)]},
)
define(
    "ForeachSqrt", lambda x: [torch.sqrt(t) for t in x], calls=list_calls("x"), domains={"x": (0, 9)}, specials=False
)
define("ForeachNeg", lambda x: [-t for t in x], calls=list_calls("x"), specials=False)
define("ForeachReciprocal", lambda x: [1 / t for t in x], calls=list_calls("x"), specials=False)
define("ForeachCopy", lambda x: list(x), calls=list_calls("x"), specials=False)
define("ForeachZeroInplace", lambda x: [torch.zeros_like(t) for t in x], calls=list_calls("x"), specials=False)


def whole_norm(x, order):
    x = x.abs().reshape(-1)
    if math.isinf(order):
        return x.max() if x.numel() else torch.zeros([], dtype=torch.float64)
    return (x**order).sum() ** (1 / order)


define(
    "ForeachNorm",
    lambda x, scalar: [whole_norm(t, scalar) for t in x],
    specials=False,
    attributes={"scalar": [("FLOAT", 2.0), ("INT64", 1), ("FLOAT", 3.0), ("FLOAT", INF)]},
    calls=list_calls("x"),
)
define(
    "Sum",
    lambda tensors: sum(torch.broadcast_tensors(*tensors)),
    specials=False,
    calls=[
        ({"tensors": s}, {})
        for s in (
            [[4, 5], [4, 5]],
            [[4, 5]],
            [[4, 5], [5], [4, 1]],
            [[133]] * 7,
            [[0, 3], [3]],
            [[1, 2, 1, 3]] * 2,
            [[4, 5]] * 20,
        )
    ],
    terms=lambda tensors: sum(t.abs() for t in torch.broadcast_tensors(*tensors)),
)
define(
    "ForeachNonFiniteCheckAndUnscale",
    lambda scaled_grads, found_inf, inv_scale: {
        "scaled_grads": [t * inv_scale.reshape(()) for t in scaled_grads],
        "found_inf": (
            torch.ones_like(found_inf) if any(not bool(torch.isfinite(t).all()) for t in scaled_grads) else found_inf
        ),
    },
    specials=False,
    calls=list_calls("scaled_grads", found_inf=[1], inv_scale=[1])
    + [
        (
            {"scaled_grads": [[4], [5]], "found_inf": [1], "inv_scale": [1]},
            {},
            {"scaled_grads": lambda s, r, v=v: torch.full(s, v, dtype=torch.float64)},
        )
        for v in (INF, -INF, math.nan)
    ],
)
