"""Sums, products, quotients, remainders, powers and limits."""

import numpy as np
import torch

from oracles import INF, NAN, define, full, moderate, spread

define(
    "Add",
    lambda self, other, alpha: self + alpha * other,
    terms=lambda self, other, alpha: self.abs() + (alpha * other).abs(),
)
define(
    "Adds",
    lambda self, other, alpha: self + alpha * other,
    terms=lambda self, other, alpha: self.abs() + abs(alpha * other),
)
define(
    "Sub",
    lambda self, other, alpha: self - alpha * other,
    terms=lambda self, other, alpha: self.abs() + (alpha * other).abs(),
)
define(
    "Subs",
    lambda self, other, alpha: self - alpha * other,
    terms=lambda self, other, alpha: self.abs() + abs(alpha * other),
)
define(
    "Rsub",
    lambda self, other, alpha: other - alpha * self,
    terms=lambda self, other, alpha: other.abs() + (alpha * self).abs(),
)
define(
    "Rsubs",
    lambda self, other, alpha: other - alpha * self,
    terms=lambda self, other, alpha: (alpha * self).abs() + abs(other),
)
define("Mul Muls", lambda self, other: self * other)
define("Div Divs", lambda self, other: self / other)


def quotient(self, other, mode):
    other = torch.as_tensor(other, dtype=self.dtype)
    if mode == 0:
        return full(self) / other
    if self.is_floating_point():
        if mode == 1:
            return torch.trunc(self / other)
        return torch.from_numpy(np.asarray(np.floor_divide(self.numpy(), other.numpy())))
    zero = other == 0
    result = torch.div(
        self, torch.where(zero, torch.ones_like(other), other), rounding_mode={1: "trunc", 2: "floor"}[mode]
    )
    return torch.where(zero, torch.zeros_like(result), result)  # of integers: 0


define("DivMod", quotient, special_values=moderate)
define("DivMods", quotient, special_values=moderate)
define("Maximum ClampMinTensor", spread(lambda a, b: torch.maximum(a, b)))
define("Maximum", lambda self, other: torch.maximum(self, other))
define("Minimum", lambda self, other: torch.minimum(self, other))
define("ClampMinTensor", lambda self, clip_value_min: torch.maximum(self, clip_value_min))
define("ClampMaxTensor", lambda self, clip_value_max: torch.minimum(self, clip_value_max))


def clamp(self, clip_value_min, clip_value_max):
    if clip_value_min is not None:
        self = torch.maximum(self, torch.as_tensor(clip_value_min, dtype=self.dtype))
    if clip_value_max is not None:
        self = torch.minimum(self, torch.as_tensor(clip_value_max, dtype=self.dtype))
    return self


def clamp_cases(operator):
    for least, most in ((-1.5, 1.5), (2.0, -2.0), (0.0, INF), (NAN, 1.0)):
        if any(a.name == "clip_value_max" for a in operator.attributes) and len(operator.attributes) == 2:
            given = {"clip_value_min": {"scalar": ["FLOAT", least]}, "clip_value_max": {"scalar": ["FLOAT", most]}}
            if least == least:
                operator.add(
                    f"limits {least} {most}", operator.make_inputs({"self": [4, 5]}, operator.uniform("FLOAT")), given
                )


define(
    "Clamp",
    clamp,
    extra=clamp_cases,
    calls=[
        ({"self": [4, 5]}, {"clip_value_min": -1, "clip_value_max": 2}),
        ({"self": [4, 5]}, {"clip_value_min": -1}),
        ({"self": [4, 5]}, {"clip_value_max": 1}),
        ({"self": [133]}, {"clip_value_min": 0.5, "clip_value_max": 2.5}),
        ({"self": []}, {"clip_value_max": 1}),
        ({"self": [0, 3]}, {"clip_value_max": 1}),
        ({"self": [1]}, {"clip_value_min": 2, "clip_value_max": -2}),
        ({"self": [1, 2, 1, 3, 1, 2, 1, 2]}, {"clip_value_min": 0.25}),
    ],
)
define("ClampMin", lambda self, clip_value_min: clamp(self, clip_value_min, None))
define("ClampMax", lambda self, clip_value_max: clamp(self, None, clip_value_max))
define("ClampTensor", clamp)


def power(base, exponent):
    if torch.is_tensor(base) and base.is_floating_point() or torch.is_tensor(exponent) and exponent.is_floating_point():
        both = [x.numpy() if torch.is_tensor(x) else float(x) for x in (base, exponent)]
        return torch.from_numpy(np.asarray(np.power(*both)))
    base, exponent = torch.broadcast_tensors(
        torch.as_tensor(base, dtype=torch.int64), torch.as_tensor(exponent, dtype=torch.int64)
    )

    def one(a, b):
        if b < 0:
            return 1 if a == 1 else (1 if b % 2 == 0 else -1) if a == -1 else 0
        result = pow(a, b, 2**64)
        return result - 2**64 if result >= 2**63 else result

    values = [one(a, b) for a, b in zip(base.reshape(-1).tolist(), exponent.reshape(-1).tolist())]
    return torch.tensor(values, dtype=torch.int64).reshape(base.shape)


def exponents(dtype):
    if dtype == "BOOL":
        return [("INT64", 2), ("INT64", 0), ("BOOL", True)]
    return [("INT64", 2), ("INT64", 3), ("INT64", 0), ("INT64", 5)] + (
        []
        if dtype not in ("FLOAT", "FLOAT16", "BF16", "DOUBLE")
        else [("FLOAT", 0.5), ("FLOAT", -0.5), ("INT64", -1), ("FLOAT", 1.5), ("FLOAT", -2.0)]
    )


define(
    "PowTensorScalar",
    lambda self, exponent: power(self, exponent),
    attributes={"exponent": exponents},
    special_values=moderate,
)
define("PowTensorTensor", lambda self, exponent: power(self, exponent), domains={"exponent": (-4, 4)})
define(
    "PowScalarTensor",
    lambda self, exponent: power(self, exponent),
    domains={"exponent": (-4, 4)},
    attributes={"self": [("FLOAT", 2.0), ("INT64", 3), ("FLOAT", 0.5), ("INT64", 1), ("INT64", -2)]},
)
define(
    "Addcmul",
    lambda self, tensor1, tensor2, value: self + value * tensor1 * tensor2,
    special_values=moderate,
    terms=lambda self, tensor1, tensor2, value: self.abs() + (value * tensor1 * tensor2).abs(),
)


def addcdiv(self, tensor1, tensor2, value):
    if self.is_floating_point():
        return self + value * tensor1 / tensor2
    return self + quotient(value * tensor1, tensor2, 1)


define(
    "Addcdiv",
    addcdiv,
    special_values=moderate,
    terms=lambda self, tensor1, tensor2, value: self.abs() + (value * tensor1 / tensor2).abs(),
)
define(
    "Lerp Lerps",
    lambda self, end, weight: self + weight * (end - self),
    special_values=moderate,
    domains={"weight": (-1, 2)},
    terms=lambda self, end, weight: (self.abs() + end.abs()) * (1 + abs(weight)),
)

define("Atan2", lambda self, other: torch.atan2(self, other))
define("FloorDivide FloorDivides", lambda self, other: quotient(self, other, 2), special_values=moderate)


def remainder(self, other, sign_of_divisor):
    """Of integers divided by 0: 0."""
    template = self if torch.is_tensor(self) else other
    self, other = (torch.as_tensor(x, dtype=template.dtype) for x in (self, other))
    if template.is_floating_point():
        rest = torch.from_numpy(np.asarray(np.fmod(self.numpy(), other.numpy())))  # torch's fails for subnormals
        if sign_of_divisor:
            rest = torch.where((rest != 0) & ((rest < 0) != (other < 0)), rest + other, rest)
        return rest
    zero = other == 0
    divisor_ = torch.where(zero, torch.ones_like(other), other)
    rest = self - torch.div(self, divisor_, rounding_mode="floor" if sign_of_divisor else "trunc") * divisor_
    return torch.where(zero, torch.zeros_like(rest), rest)


define("FmodTensor FmodScalar", lambda self, other: remainder(self, other, False), special_values=moderate)
define(
    "RemainderTensorTensor RemainderTensorScalar RemainderScalarTensor",
    lambda self, other: remainder(self, other, True),
    special_values=moderate,
)
_bits = {
    "whole": True,
    "attributes": {
        "other": lambda d: (
            [("INT64", 5), ("INT64", -3), ("INT64", 0), ("INT32", 6)]
            if d != "BOOL"
            else [("BOOL", True), ("BOOL", False)]
        )
    },
}
for _name, _function in {"And": lambda a, b: a & b, "Or": lambda a, b: a | b, "Xor": lambda a, b: a ^ b}.items():
    define(f"Bitwise{_name}Tensor", (lambda f: lambda self, other: f(self, other))(_function), whole=True)
    define(f"Bitwise{_name}Scalar", (lambda f: lambda self, other: f(self, other))(_function), **_bits)
