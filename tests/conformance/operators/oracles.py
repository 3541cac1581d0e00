"""What each operator gives, in PyTorch's float64 or int64.

A function takes arguments of the operator by name: tensors in float64 if anything about the call is
floating, else in int64 (BOOL as 0 and 1), scalars as numbers, optional ones that are left out as None. It
gives the outputs in their order, or a dict of them. generate.py rounds them to the outputs' dtypes.
"""

import dataclasses
import math
from typing import Any, Callable, Optional

import numpy as np
import torch
import torch.nn.functional as F

aten = torch.ops.aten
NAN, INF = float("nan"), float("inf")


class Unclear(Exception):
    """There is nothing to compare with."""


@dataclasses.dataclass
class Entry:
    function: Callable
    ulps: float = 2
    # The sum of the magnitudes that the result is a sum of; it may be off by k units of rounding of it.
    terms: Optional[Callable] = None
    k: float = 2
    domains: dict = dataclasses.field(default_factory=dict)  # by input: see Source.elements
    attributes: dict = dataclasses.field(default_factory=dict)  # by attribute: values, or a function of the dtype
    dtypes: dict = dataclasses.field(default_factory=dict)  # by input: its dtype, or a function of the case's
    # Instead of the usual ones: (shapes by input, attributes) and perhaps domains.
    calls: list = dataclasses.field(default_factory=list)
    specials: bool = True
    special_values: Optional[Callable] = None
    special_inputs: Optional[list] = None
    whole: bool = False  # computed in integers whatever the outputs are
    only_dtypes: Optional[list] = None
    mixed: Optional[bool] = None
    scalars_decide: bool = True
    extra: Optional[Callable] = None
    skip: Optional[Callable] = None


ENTRIES = {}


def define(names, function, **options):
    for name in names.split():
        ENTRIES[name] = Entry(function, **options)


def find(name):
    import oracles_of_layers  # the rest of the entries, which needs this module
    del oracles_of_layers
    if name in ENTRIES:
        return ENTRIES[name]
    if name.startswith("Inplace"):
        return ENTRIES.get(name[len("Inplace"):])
    return None


def spread(function):
    """With its tensors broadcast first."""
    def spreading(*arguments):
        tensors = torch.broadcast_tensors(*[a for a in arguments if isinstance(a, torch.Tensor)])
        tensors = iter(tensors)
        return function(*[next(tensors).contiguous() if isinstance(a, torch.Tensor) else a for a in arguments])
    return spreading


def finite(values):
    return [v for v in values if not isinstance(v, float) or math.isfinite(v)]


def moderate(values):
    """Without infinities and numbers whose products overflow."""
    return [v for v in values if v != v or abs(v) < 1e4]


def full(tensor):
    return tensor if tensor.is_floating_point() else tensor.to(torch.float64)


# Arithmetic

define("Add", lambda self, other, alpha: self + alpha * other,
       terms=lambda self, other, alpha: self.abs() + (alpha * other).abs())
define("Adds", lambda self, other, alpha: self + alpha * other,
       terms=lambda self, other, alpha: self.abs() + abs(alpha * other))
define("Sub", lambda self, other, alpha: self - alpha * other,
       terms=lambda self, other, alpha: self.abs() + (alpha * other).abs())
define("Subs", lambda self, other, alpha: self - alpha * other,
       terms=lambda self, other, alpha: self.abs() + abs(alpha * other))
define("Rsub", lambda self, other, alpha: other - alpha * self,
       terms=lambda self, other, alpha: other.abs() + (alpha * self).abs())
define("Rsubs", lambda self, other, alpha: other - alpha * self,
       terms=lambda self, other, alpha: (alpha * self).abs() + abs(other))
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
    result = torch.div(self, torch.where(zero, torch.ones_like(other), other),
                       rounding_mode={1: "trunc", 2: "floor"}[mode])
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
                operator.add(f"limits {least} {most}", operator.make_inputs(
                    {"self": [4, 5]}, operator.uniform("FLOAT")), given)


define("Clamp", clamp, extra=clamp_cases, calls=[
    ({"self": [4, 5]}, {"clip_value_min": -1, "clip_value_max": 2}),
    ({"self": [4, 5]}, {"clip_value_min": -1}), ({"self": [4, 5]}, {"clip_value_max": 1}),
    ({"self": [133]}, {"clip_value_min": 0.5, "clip_value_max": 2.5}), ({"self": []}, {"clip_value_max": 1}),
    ({"self": [0, 3]}, {"clip_value_max": 1}), ({"self": [1]}, {"clip_value_min": 2, "clip_value_max": -2}),
    ({"self": [1, 2, 1, 3, 1, 2, 1, 2]}, {"clip_value_min": 0.25})])
define("ClampMin", lambda self, clip_value_min: clamp(self, clip_value_min, None))
define("ClampMax", lambda self, clip_value_max: clamp(self, None, clip_value_max))
define("ClampTensor", clamp)


def power(base, exponent):
    if torch.is_tensor(base) and base.is_floating_point() or torch.is_tensor(exponent) and exponent.is_floating_point():
        both = [x.numpy() if torch.is_tensor(x) else float(x) for x in (base, exponent)]
        return torch.from_numpy(np.asarray(np.power(*both)))
    base, exponent = torch.broadcast_tensors(torch.as_tensor(base, dtype=torch.int64),
                                             torch.as_tensor(exponent, dtype=torch.int64))

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
        [] if dtype not in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else
        [("FLOAT", 0.5), ("FLOAT", -0.5), ("INT64", -1), ("FLOAT", 1.5), ("FLOAT", -2.0)])


define("PowTensorScalar", lambda self, exponent: power(self, exponent), attributes={"exponent": exponents},
       special_values=moderate)
define("PowTensorTensor", lambda self, exponent: power(self, exponent), domains={"exponent": (-4, 4)})
define("PowScalarTensor", lambda self, exponent: power(self, exponent), domains={"exponent": (-4, 4)},
       attributes={"self": [("FLOAT", 2.0), ("INT64", 3), ("FLOAT", 0.5), ("INT64", 1), ("INT64", -2)]})
define("Addcmul", lambda self, tensor1, tensor2, value: self + value * tensor1 * tensor2, special_values=moderate,
       terms=lambda self, tensor1, tensor2, value: self.abs() + (value * tensor1 * tensor2).abs(), k=4)


def addcdiv(self, tensor1, tensor2, value):
    if self.is_floating_point():
        return self + value * tensor1 / tensor2
    return self + quotient(value * tensor1, tensor2, 1)


define("Addcdiv", addcdiv, special_values=moderate, k=4,
       terms=lambda self, tensor1, tensor2, value: self.abs() + (value * tensor1 / tensor2).abs())
define("Lerp Lerps", lambda self, end, weight: self + weight * (end - self), special_values=moderate, k=4,
       domains={"weight": (-1, 2)}, terms=lambda self, end, weight: (self.abs() + end.abs()) * (1 + abs(weight)))

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
define("RemainderTensorTensor RemainderTensorScalar RemainderScalarTensor",
       lambda self, other: remainder(self, other, True), special_values=moderate)
_bits = {"whole": True, "attributes": {"other": lambda d: [("INT64", 5), ("INT64", -3), ("INT64", 0), ("INT32", 6)] if d != "BOOL"
                        else [("BOOL", True), ("BOOL", False)]}}
for _name, _function in {"And": lambda a, b: a & b, "Or": lambda a, b: a | b, "Xor": lambda a, b: a ^ b}.items():
    define(f"Bitwise{_name}Tensor", (lambda f: lambda self, other: f(self, other))(_function), whole=True)
    define(f"Bitwise{_name}Scalar", (lambda f: lambda self, other: f(self, other))(_function), **_bits)

# Comparisons and logic

for _name, _function in {"Eq": torch.eq, "Ne": torch.ne, "Gt": torch.gt, "Ge": torch.ge, "Lt": torch.lt,
                         "Le": torch.le}.items():
    define(f"{_name}Tensor", lambda self, other, f=_function: f(self, other),
           domains={"self": (-2, 2), "other": (-2, 2)})
    define(f"{_name}Scalar", lambda self, other, f=_function: f(self, other), domains={"self": (-2, 2)})
# (Their function is no argument of the operator.)
for _entry in list(ENTRIES.values()):
    if _entry.function.__defaults__:
        _entry.function = (lambda f: lambda self, other: f(self, other))(_entry.function.__defaults__[0])
define("LogicalAnd", lambda self, other: (self != 0) & (other != 0), domains={"self": (-1, 1), "other": (-1, 1)})
define("LogicalOr", lambda self, other: (self != 0) | (other != 0), domains={"self": (-1, 1), "other": (-1, 1)})
define("LogicalXor", lambda self, other: (self != 0) ^ (other != 0), domains={"self": (-1, 1), "other": (-1, 1)})
define("LogicalNot", lambda self: self == 0, domains={"self": (-1, 1)})
define("BitwiseNot", lambda self, dtypes: 1 - self if dtypes["self"] == "BOOL" else ~self)
define("IsFinite", lambda self: torch.isfinite(self))
define("IsInf", lambda x: torch.isinf(x))
define("IsPosInf", lambda self: self == INF if self.is_floating_point() else torch.zeros_like(self))
define("IsNegInf", lambda self: self == -INF if self.is_floating_point() else torch.zeros_like(self))

# Copies

define("SWhere", lambda condition, self, other: torch.where(condition != 0, self, other),
       special_inputs=["self", "other"])
define("MaskedFillScalar", lambda self, mask, value: torch.where(
    mask != 0, torch.as_tensor(value, dtype=self.dtype), self), special_inputs=["self"])
define("MaskedFillTensor", lambda self, mask, value: torch.where(mask != 0, value, self), calls=[
    ({"self": s, "mask": m, "value": []}, {}) for s, m in (
        ([4, 5], [4, 5]), ([4, 5], [5]), ([4, 5], [4, 1]), ([4, 5], []), ([133], [133]), ([], []), ([0, 3], [3]),
        ([2, 1, 3, 2], [3, 1]), ([1, 2, 1, 3, 1, 2, 1, 2], [2, 1, 2]))], specials=False)
define("Cast", lambda self: self)
define("Copy", lambda self, src: src.expand(self.shape), special_inputs=["src"])
define("Zero", lambda self: torch.zeros_like(self), specials=False)
define("One", lambda self: torch.ones_like(self), specials=False)
define("FillScalar", lambda self, value: torch.full_like(self, value), specials=False, attributes={
    "value": lambda d: [("FLOAT", 1.5), ("INT64", 2), ("DOUBLE", 0.1), ("BOOL", True), ("FLOAT", -0.0),
                        ("FLOAT", 3e38)][:4 if d in ("INT8", "UINT8", "INT16", "INT32", "INT64", "BOOL") else 6]})
define("FillTensor", lambda self, value: value.reshape(()).expand(self.shape), specials=False, calls=[
    ({"self": s, "value": v}, {}) for s, v in (
        ([4, 5], []), ([4, 5], [1]), ([133], []), ([], [1]), ([0, 3], []), ([1, 2, 1, 3, 1, 2, 1, 2], [1]))])
for _name, _function in {"Tril": np.tril, "Triu": np.triu}.items():
    define(_name, (lambda f: lambda self, diagonal: torch.from_numpy(f(self.numpy(), diagonal)))(_function),
           specials=False, attributes={"diagonal": [-1, 0, 1, -4, 5, 100, -100]}, calls=[
               ({"self": s}, {"diagonal": d}) for s, d in (
                   ([4, 5], 0), ([4, 5], 1), ([5, 4], -2), ([2, 3, 3], 0), ([7, 19], 3), ([0, 3], 0), ([1, 1], 0),
                   ([1, 2, 1, 2, 1, 2, 3, 4], 1), ([4, 5], -9))])

# Mathematics

define("Neg", lambda self: -self)
define("Abs", lambda self: self.abs())
define("Sign", lambda self: torch.where(self != self, torch.zeros_like(self), torch.sign(self)))
define("Exp", lambda self: torch.exp(self))
define("Expm1", lambda self: torch.expm1(self))
define("Log", lambda self: torch.log(self), domains={"self": (0, 10)})
define("Log1p", lambda self: torch.from_numpy(np.asarray(np.log1p(self.numpy()))), domains={"self": (-0.9, 10)})
define("Log2", lambda self: torch.log2(self), domains={"self": (0, 10)})
define("Sqrt", lambda self: torch.sqrt(self), domains={"self": (0, 10)})
define("Rsqrt", lambda self: 1 / torch.sqrt(self), domains={"self": (0, 10)})
define("Reciprocal", lambda self: 1 / self)
define("Sin", lambda self: torch.sin(self), special_values=moderate)
define("Cos", lambda input: torch.cos(input), special_values=moderate)
define("InplaceCos", lambda self: torch.cos(self), special_values=moderate)
define("Erf", lambda self: torch.erf(self))
define("Erfc", lambda self: torch.erfc(self), ulps=4)
define("Floor", lambda self: torch.floor(self) if self.is_floating_point() else self)
define("Ceil", lambda self: torch.ceil(self))
define("Round", lambda self: torch.round(self) if self.is_floating_point() else self)


def nan_to_num(self, nan, posinf, neginf):
    if not self.is_floating_point():
        return self
    result = torch.where(self == INF, torch.full_like(self, posinf), self)
    result = torch.where(self == -INF, torch.full_like(self, neginf), result)
    return torch.where(self != self, torch.full_like(self, nan), result)


define("NanToNum", nan_to_num, attributes={"nan": [0.5, -2.0], "posinf": [2.0, 100.0], "neginf": [-2.0, -100.0]})

for _name in ("Tan", "Sinh", "Cosh", "Atan", "Asinh", "Exp2", "Trunc", "Frac"):
    _function = {"Exp2": torch.exp2}.get(_name) or getattr(torch, _name.lower())
    define(_name, (lambda f: lambda self: f(self))(_function),
           special_values=moderate if _name in ("Tan", "Sinh", "Cosh") else None)
define("Asin", lambda self: torch.asin(self), domains={"self": (-1, 1)})
define("Acos", lambda self: torch.acos(self), domains={"self": (-1, 1)})
define("Acosh", lambda self: torch.acosh(self), domains={"self": (1, 9)})
define("Atanh", lambda self: torch.atanh(self), domains={"self": (-1, 1)})
define("Log10", lambda self: torch.log10(self), domains={"self": (0, 10)})

# Activations

define("Relu", lambda self: torch.where(self < 0, torch.zeros_like(self), self))
define("Threshold", lambda self, threshold, value: torch.where(
    self <= threshold, torch.full_like(self, value), self))
define("ThresholdBackward", lambda grad_output, self, threshold: torch.where(
    self <= threshold, torch.zeros_like(grad_output), grad_output), domains={"self": (-3, 3)})


def normal_below(x):
    return 0.5 * torch.special.erfc(-x / math.sqrt(2))


def gelu(x, approximate="none"):
    if approximate in ("tanh", 1):
        argument = math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)
        return x * torch.sigmoid(argument)
    return x * normal_below(x)


def density(x):
    return torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def sigmoid_slope(x):
    return torch.sigmoid(x) * torch.sigmoid(-x)


def gelu_backward(grad_output, self, approximate="none"):
    if approximate in ("tanh", 1):
        argument = math.sqrt(8 / math.pi) * (self + 0.044715 * self**3)
        slope = math.sqrt(8 / math.pi) * (1 + 3 * 0.044715 * self**2)
        return grad_output * (torch.sigmoid(argument) + self * sigmoid_slope(argument) * slope)
    return grad_output * (normal_below(self) + self * density(self))


def steep(values):
    """For gradients that are sums: as far as no sum has cancelled out, or infinities met 0."""
    return [v for v in values if v != v or abs(v) < 1e3 and v != -100.0]


define("Gelu", lambda self: gelu(self), special_values=finite)
define("GeluV2", lambda x, approximate: gelu(x, approximate), special_values=moderate)
define("GeluBackward", lambda grad_output, self: gelu_backward(grad_output, self), special_values=steep,
       terms=lambda grad_output, self: (grad_output * (normal_below(self) + (self * density(self)).abs())).abs())
define("GeluBackwardV2", gelu_backward, special_values=steep,
       terms=lambda grad_output, self: (grad_output * (1 + self.abs())).abs())


def swish(self, beta=1.0):
    beta = 1.0 if beta is None else beta
    return self * torch.sigmoid(beta * self)


def swish_backward(grad_output, self, beta=1.0):
    beta = 1.0 if beta is None else beta
    return grad_output * (torch.sigmoid(beta * self) + beta * self * sigmoid_slope(beta * self))


def swish_terms(grad_output, self, beta=1.0):
    beta = 1.0 if beta is None else beta
    return (grad_output * (torch.sigmoid(beta * self) + (beta * self * sigmoid_slope(beta * self)).abs())).abs()


define("FastGelu", lambda self: swish(self, 1.702), special_values=moderate)
define("FastGeluBackward", lambda grad_output, self: swish_backward(grad_output, self, 1.702), special_values=steep,
       terms=lambda grad_output, self: swish_terms(grad_output, self, 1.702))
define("Silu", lambda self: swish(self), special_values=moderate)
define("SiluBackward", lambda grad_output, self: swish_backward(grad_output, self), special_values=steep,
       terms=lambda grad_output, self: swish_terms(grad_output, self))
define("Swish", swish, special_values=moderate)
define("SwishBackward", swish_backward, special_values=steep, terms=swish_terms)
define("Sigmoid", lambda self: torch.sigmoid(self))
define("SigmoidBackward", lambda grad_output, output: grad_output * ((1 - output) * output), ulps=3,
       domains={"output": (0, 1)}, special_values=moderate)
define("Tanh", lambda self: torch.tanh(self))
define("TanhBackward", lambda grad_output, output: grad_output * ((1 - output) * (1 + output)), ulps=3,
       domains={"output": (-1, 1)}, special_values=moderate)


def log_sigmoid(self):
    return torch.where(self < 0, self, torch.zeros_like(self)) - torch.log1p(torch.exp(-self.abs()))


define("LogSigmoid", lambda self: torch.where(self != self, self, log_sigmoid(self)))
define("LogSigmoidForward", lambda self: {"out": torch.where(self != self, self, log_sigmoid(self))})
define("LogSigmoidBackward", lambda grad_output, self: grad_output * torch.sigmoid(-self),
       special_inputs=["grad_output", "self"], special_values=moderate)


def softplus(self, beta, threshold):
    curve = -log_sigmoid(-self * beta) / beta
    return torch.where(self * beta > threshold, self, torch.where(self != self, self, curve))


define("Softplus", softplus, attributes={"beta": [1.0, 0.5, 2.0, -1.5], "threshold": [20.0, 1.0, 0.0]})
define("SoftplusBackward", lambda grad_output, self, beta, threshold: torch.where(
    self * beta > threshold, grad_output, grad_output * torch.sigmoid(self * beta)), special_values=moderate,
       attributes={"beta": [1.0, 0.5, 2.0], "threshold": [20.0, 1.0, 0.0]})
_elu = {"alpha": [1.0, 0.5, 2.0], "scale": [1.0, 1.5], "input_scale": [1.0, 0.5]}
define("Elu", lambda self, alpha, scale, input_scale: torch.where(
    self < 0, torch.expm1(self * input_scale) * alpha * scale, self * scale), attributes=_elu)


def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    slope = (input_scale * (self_or_result + alpha * scale) if is_result else
             input_scale * alpha * scale * torch.exp(self_or_result * input_scale))
    return torch.where(self_or_result <= 0, grad_output * slope, grad_output * scale)


define("EluBackward", elu_backward, attributes=_elu, special_values=moderate,
       terms=lambda grad_output, self_or_result: (grad_output * (1 + self_or_result.abs())).abs() * 2)
define("Celu", lambda self, alpha: torch.where(self < 0, alpha * torch.expm1(self / alpha), self),
       attributes={"alpha": [1.0, 0.5, 2.0]})
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
define("Selu", lambda self, dtypes: torch.where(
    full(self) < 0, SELU_SCALE * SELU_ALPHA * torch.expm1(full(self)), SELU_SCALE * full(self)))
define("SeluBackward", lambda grad_output, result: full(grad_output) * torch.where(
    result > 0, torch.full_like(full(result), SELU_SCALE), result + SELU_SCALE * SELU_ALPHA),
       special_values=moderate,
       terms=lambda grad_output, result: (grad_output * (result.abs() + 2)).abs())
define("LeakyRelu", lambda self, negative_slope: torch.where(self > 0, self, self * negative_slope),
       attributes={"negative_slope": [0.01, 0.5, 2.0, -1.5]})
define("LeakyReluBackward", lambda grad_output, self, negative_slope: torch.where(
    self > 0, grad_output, grad_output * negative_slope), attributes={"negative_slope": [0.01, 0.5, 2.0]})


def prelu_weight(weight, self):
    return weight.reshape([1, -1] + [1] * (self.dim() - 2)) if weight.numel() > 1 else weight.reshape([])


PRELU = [({"self": s, "weight": w}, {}) for s, w in (
    ([4, 5], [5]), ([4, 5], [1]), ([2, 3, 4], [3]), ([133], [1]), ([7, 19], [19]), ([2, 3, 2, 2], [3]),
    ([0, 3], [3]), ([1, 2, 1, 3, 1, 2, 1, 2], [2]))]
define("Prelu", lambda self, weight: torch.where(self > 0, self, self * prelu_weight(weight, self)), calls=PRELU,
       specials=False)
define("PreluBackward", lambda grad_output, self, weight: (
    torch.where(self > 0, grad_output, grad_output * prelu_weight(weight, self)),
    prelu_sums(torch.where(self > 0, torch.zeros_like(self), grad_output * self), weight)),
       calls=[({**c[0], "grad_output": c[0]["self"]}, {}) for c in PRELU], specials=False, k=4,
       terms=lambda grad_output, self, weight: {
           "grad_weight": prelu_sums((grad_output * self).abs(), weight)})


def prelu_sums(terms, weight):
    if weight.numel() == 1:
        return terms.sum().reshape(weight.shape)
    return terms.sum([d for d in range(terms.dim()) if d != 1]).reshape(weight.shape)


def six(x):
    return torch.clamp(x + 3, 0, 6) / 6


define("Hardswish", lambda self: self * six(self), special_values=moderate,
       terms=lambda self: (self * 3).abs().clamp(max=10), k=1)
define("HardswishBackward HardswishBackwardV2", lambda grad_output, self: torch.where(
    self <= -3, torch.zeros_like(self * grad_output), torch.where(
        self >= 3, grad_output + 0 * self, grad_output * (2 * self + 3) / 6)), special_values=moderate,
       terms=lambda grad_output, self: (grad_output * (self.abs() + 1)).abs())
define("Hardsigmoid", lambda self: torch.clamp(full(self) + 3, 0, 6) / 6,
       terms=lambda self: torch.ones_like(self), k=1)
define("HardsigmoidBackward", lambda grad_output, self: torch.where(
    (self > -3) & (self < 3), grad_output / 6, torch.zeros_like(grad_output)))
define("Hardtanh", lambda self, clip_value_min, clip_value_max: clamp(self, clip_value_min, clip_value_max),
       attributes={"clip_value_min": lambda d: [-1, -2] if d != "UINT8" else [0, 1], "clip_value_max": [1, 3]})
define("HardtanhBackward", lambda grad_output, self, min, max: torch.where(
    (self <= min) | (self >= max), torch.zeros_like(grad_output), grad_output),
       attributes={"min": [-1.0, -2.5], "max": [1.0, 3.0]})
define("Hardshrink", lambda self, lambd: torch.where((self >= -lambd) & (self <= lambd), torch.zeros_like(self), self),
       attributes={"lambd": [0.5, 0.0, 2.0, -1.0]})
define("HardshrinkBackward SoftshrinkBackward", lambda grad_output, self, lambd: torch.where(
    (self >= -lambd) & (self <= lambd), torch.zeros_like(grad_output), grad_output),
       attributes={"lambd": [0.5, 0.0, 2.0]})
define("Softshrink", lambda self, lambd: torch.where(self > lambd, self - lambd, torch.where(
    self < -lambd, self + lambd, torch.where(self != self, self, torch.zeros_like(self)))),
       attributes={"lambd": [0.5, 0.0, 2.0]})


def mish(self):
    return self * torch.tanh(-log_sigmoid(-self))


def mish_backward(grad_output, self):
    tanh = torch.tanh(-log_sigmoid(-self))
    return grad_output * (tanh + self * (1 - tanh * tanh) * torch.sigmoid(self))


define("Mish", mish, special_values=moderate)
define("MishBackward", mish_backward, special_values=steep,
       terms=lambda grad_output, self: (grad_output * (1 + self.abs())).abs())

# Losses


def reduced(terms, reduction, one=False, batch=None):
    if reduction == 0:
        return terms
    total = terms.sum()
    if reduction == 1:
        total = total / terms.numel() if terms.is_floating_point() else torch.div(
            total, max(terms.numel(), 1), rounding_mode="trunc")
    if reduction == 3:
        total = total / batch
    return total.reshape([1]) if one else total


def divisor(reduction, *tensors):
    shape = torch.broadcast_shapes(*[t.shape for t in tensors])
    if reduction == 1:
        return max(math.prod(shape), 1)
    if reduction == 3:
        return shape[0] if shape else 1
    return 1


def both_ways(function, one=False):
    """A loss and the magnitude of what it sums up."""
    return {"function": lambda self, target, reduction: reduced(function(self, target), reduction, one),
            "terms": lambda self, target, reduction: reduced(function(self, target).abs(), reduction, one), "k": 8}


define("L1Loss", **both_ways(lambda self, target: (self - target).abs()), special_values=moderate)
define("MseLoss", **both_ways(lambda self, target: (self - target) ** 2), special_values=moderate, ulps=3)
define("SoftMarginLoss", **both_ways(lambda self, target: -log_sigmoid(self * target)), special_values=moderate)


def smooth_l1(self, target, reduction, beta):
    distance = (self - target).abs()
    terms = torch.where(distance < beta, 0.5 * distance**2 / (beta or 1.0), distance - 0.5 * beta)
    return reduced(terms, reduction, True)


define("SmoothL1Loss", smooth_l1, terms=smooth_l1, k=16, special_values=moderate,
       attributes={"beta": [1.0, 0.5, 0.0, 2.0]})


def smooth_l1_backward(grad_out, self, target, reduction, beta):
    difference = self - target
    slope = torch.clamp(difference / beta, -1, 1) if beta > 0 else torch.sign(difference)
    return slope * grad_out / divisor(reduction, grad_out, self, target)


define("SmoothL1LossBackward", smooth_l1_backward, special_values=moderate, attributes={"beta": [1.0, 0.5, 0.0, 2.0]},
       terms=lambda grad_out, self, target, beta: (grad_out * (self.abs() + target.abs())).abs() / (beta or 1))


def l1_backward(grad_output, self, target, reduction):
    return torch.sign(self - target) * grad_output / divisor(reduction, grad_output, self, target)


def mse_backward(grad_output, self, target, reduction):
    return 2 * (self - target) * grad_output / divisor(reduction, grad_output, self, target)


define("L1LossBackward", l1_backward, special_values=moderate)
define("MseLossBackward", mse_backward, special_values=moderate, ulps=3)


def kl_div(self, target, reduction, log_target):
    if log_target:
        terms = torch.exp(target) * (target - self)
    else:
        terms = torch.where(target == 0, torch.zeros_like(target * self), target * (torch.log(target) - self))
    batch = self.shape[0] if self.dim() else 1
    return reduced(terms, reduction, True, batch)


def kl_terms(self, target, reduction, log_target):
    if log_target:
        terms = torch.exp(target) * (target.abs() + self.abs())
    else:
        terms = target.abs() * (torch.log(target.abs() + 1e-9).abs() + self.abs())
    return reduced(terms, reduction, True, self.shape[0] if self.dim() else 1)


define("KlDiv", kl_div, terms=kl_terms, k=8, domains={"self": (-4, 0), "target": (0.01, 2)}, special_values=moderate)


def summed_to(terms, like):
    shape = torch.broadcast_shapes(terms.shape, like.shape)
    return terms.expand(shape).sum_to_size(like.shape)


def kl_backward(grad_output, self, target, reduction, log_target):
    weight = torch.exp(target) if log_target else target
    both = torch.broadcast_tensors(self, target)[0]
    return summed_to(-weight * grad_output / divisor(reduction, self, target) + torch.zeros(both.shape), self)


define("KlDivBackward", kl_backward, domains={"target": (-2, 2)}, k=8, special_values=moderate,
       special_inputs=["grad_output", "target"],
       terms=lambda grad_output, self, target, reduction, log_target: kl_backward(
           grad_output.abs(), self, target if log_target else -target.abs(), reduction, log_target).abs())


def kl_target_backward(grad_output, self, target, reduction, log_target):
    if log_target:
        terms = torch.exp(target) * (target + 1 - self)
    else:
        terms = torch.where(target > 0, torch.log(target) + 1 - self, torch.zeros_like(target - self))
    return summed_to(terms * grad_output / divisor(reduction, self, target), target)


define("KlDivTargetBackward", kl_target_backward, domains={"self": (-4, 0), "target": (0.05, 2)}, k=8,
       special_values=lambda v: [x for x in moderate(v) if x == x], specials=False,
       terms=lambda grad_output, self, target, reduction, log_target: summed_to(
           grad_output.abs() * ((torch.exp(target) if log_target else 1.0) * (
               1 + self.abs() + (target.abs() if log_target else torch.log(target.abs() + 1e-9).abs())))
           / divisor(reduction, self, target), target))


def weighted(terms, weight):
    return terms if weight is None else terms * weight


def bce_terms(self, target):
    return (target - 1) * torch.clamp(torch.log1p(-self), min=-100) - target * torch.clamp(torch.log(self), min=-100)


define("BinaryCrossEntropy", lambda self, target, weight, reduction: reduced(
    weighted(bce_terms(self, target), weight), reduction), k=8, specials=False,
       domains={"self": (0.01, 0.99), "target": (0, 1), "weight": (0, 2)},
       terms=lambda self, target, weight, reduction: reduced(
           weighted(bce_terms(self, target), weight).abs(), reduction))
define("BinaryCrossEntropyBackward", lambda grad_output, self, target, weight, reduction: weighted(
    grad_output * (self - target) / torch.clamp((1 - self) * self, min=1e-12), weight)
    / divisor(reduction, self), k=8, specials=False, ulps=4,
       domains={"self": (0.01, 0.99), "target": (0, 1), "weight": (0, 2)})


def logit_terms(self, target, pos_weight):
    positive = 1.0 if pos_weight is None else pos_weight
    return (1 - target) * self + ((positive - 1) * target + 1) * -log_sigmoid(self)


def logit_size(self, target, weight, pos_weight, reduction):
    positive = 1.0 if pos_weight is None else pos_weight
    terms = (1 + target.abs()) * self.abs() + ((positive + 1) * target + 1) * -log_sigmoid(self)
    return reduced(weighted(terms, weight), reduction, True)


_logits = {"domains": {"target": (0, 1), "weight": (0, 2), "pos_weight": (0, 3)}, "specials": False, "k": 8}
define("BinaryCrossEntropyWithLogits", lambda self, target, weight, pos_weight, reduction: reduced(
    weighted(logit_terms(self, target, pos_weight), weight), reduction, True), terms=logit_size, **_logits)


def logits_backward(grad_output, self, target, weight, pos_weight, reduction):
    positive = 1.0 if pos_weight is None else pos_weight
    slope = torch.sigmoid(self) * (1 - target) - torch.sigmoid(-self) * target * positive
    return weighted(grad_output * slope, weight) / divisor(reduction, target)


def logits_target_backward(grad_output, self, target, weight, pos_weight, reduction):
    positive = 1.0 if pos_weight is None else pos_weight
    slope = (positive - 1) * -log_sigmoid(self) - self
    return weighted(grad_output * slope, weight).expand(target.shape) / divisor(reduction, target)


def logits_magnitude(grad_output, self, target, weight, pos_weight):
    positive = 1.0 if pos_weight is None else pos_weight
    return weighted(grad_output.abs() * (1 + self.abs()) * (1 + positive), weight).expand(target.shape)


define("BinaryCrossEntropyWithLogitsBackward", logits_backward, terms=logits_magnitude, **_logits)
define("BinaryCrossEntropyWithLogitsTargetBackward", logits_target_backward, terms=logits_magnitude, **_logits)
define("SoftMarginLossBackward", lambda grad_output, self, target, reduction: -target * grad_output * torch.sigmoid(
    -self * target) / divisor(reduction, grad_output, self, target), special_values=moderate, ulps=4)

# Reductions


def axes_of(dims, rank):
    return list(dims) if dims else list(range(rank))


def over(function):
    """Of a call whose axes are named in any of these ways."""
    return lambda self, dims, keep: function(self, axes_of(dims, self.dim()), keep)


def total(x, axes, keep):
    return x.sum(axes, keepdim=keep) if axes else x


def reduce_calls(dims, keep, more=None, empty=True):
    shapes = [([4, 5], [1], False), ([4, 5], [0], True), ([2, 3, 4], [0, 2], False), ([2, 3, 4], [-2], True),
              ([2, 3, 4], [], False), ([133], [0], False), ([7, 67], [1], False), ([67, 7], [0], False),
              ([1], [0], True), ([1, 2, 1, 3, 1, 2, 1, 2], [1, 3, 7], False), ([0, 3], [1], False),
              ([4, 5], [0, 1], False), ([3, 1, 5], [1], False), ([1000], [0], False)]
    if empty:
        shapes += [([0, 3], [0], False), ([], [], False), ([2, 0, 3], [1, 2], True)]
    return [({"self": shape}, {dims: axes, keep: kept, **(more or {})}) for shape, axes, kept in shapes]


def one_axis_calls(dim, keep, empty=False):
    shapes = [([4, 5], 1, False), ([4, 5], 0, True), ([2, 3, 4], 1, False), ([2, 3, 4], -2, True), ([133], 0, False),
              ([7, 67], 1, False), ([67, 7], 0, False), ([1], 0, True), ([1, 2, 1, 3, 1, 2, 1, 2], 3, False),
              ([0, 3], 1, False), ([3, 1, 5], 1, False)]
    return [({"self": shape}, {dim: axis, keep: kept}) for shape, axis, kept in shapes]


def sum_dtypes(dtype):
    if dtype in ("FLOAT", "FLOAT16", "BF16", "DOUBLE"):
        return [dtype, "FLOAT"]
    return ["INT64", "INT32", "FLOAT"] if dtype != "DOUBLE" else ["DOUBLE"]


def mean_dtypes(dtype):
    return [dtype, "FLOAT"] if dtype in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else ["FLOAT"]


define("ReduceSum", lambda self, dims, keep_dims: total(self, axes_of(dims, self.dim()), keep_dims), k=4,
       terms=lambda self, dims, keep_dims: total(self.abs(), axes_of(dims, self.dim()), keep_dims),
       calls=reduce_calls("dims", "keep_dims"), attributes={"dtype": sum_dtypes}, specials=False)
define("ReduceNansum", lambda self, dim, keep_dim: total(
    torch.where(self != self, torch.zeros_like(self), self), axes_of(dim, self.dim()), keep_dim), k=4,
       terms=lambda self, dim, keep_dim: total(self.abs(), axes_of(dim, self.dim()), keep_dim),
       calls=reduce_calls("dim", "keep_dim"), attributes={"dtype": sum_dtypes}, specials=False)


def mean(self, axes, keep):
    if not axes:
        return self
    count = math.prod(self.shape[a] for a in axes)
    total_ = self.sum(axes, keepdim=keep)
    if self.is_floating_point():
        return total_ / count
    return torch.div(total_, count, rounding_mode="trunc") if count else torch.zeros_like(total_)


define("Mean", lambda self, dim, keep_dim: mean(self, axes_of(dim, self.dim()), keep_dim), k=4,
       terms=lambda self, dim, keep_dim: mean(self.abs(), axes_of(dim, self.dim()), keep_dim),
       calls=reduce_calls("dim", "keep_dim"), attributes={"dtype": mean_dtypes}, specials=False)
define("MeanV2", lambda self, dim, keep_dim, noop_with_empty_axes: self if noop_with_empty_axes and not dim else
       mean(self, axes_of(dim, self.dim()), keep_dim), k=4, specials=False,
       terms=lambda self, dim, keep_dim, noop_with_empty_axes: self.abs() if noop_with_empty_axes and not dim else
       mean(self.abs(), axes_of(dim, self.dim()), keep_dim),
       calls=reduce_calls("dim", "keep_dim") + [
           ({"self": [4, 5]}, {"dim": [], "noop_with_empty_axes": True}),
           ({"self": [4, 5]}, {"dim": [1], "noop_with_empty_axes": True})])
define("Amax", lambda self, dim, keep_dim: torch.amax(self, axes_of(dim, self.dim()), keepdim=keep_dim),
       calls=reduce_calls("dim", "keep_dim", empty=False), specials=False)
define("Amin", lambda self, dim, keep_dim: torch.amin(self, axes_of(dim, self.dim()), keepdim=keep_dim),
       calls=reduce_calls("dim", "keep_dim", empty=False), specials=False)
ANY_SHAPE = [({"self": s}, {}) for s in ([4, 5], [133], [], [1], [2, 3, 4], [1, 2, 1, 3, 1, 2, 1, 2], [1000])]
define("Max", lambda self: self.max(), calls=ANY_SHAPE)
define("Min", lambda self: self.min(), calls=ANY_SHAPE)
define("MaxDim", lambda self, dim, keepdim: tuple(torch.max(self, dim, keepdim=keepdim)),
       calls=one_axis_calls("dim", "keepdim"), domains={"self": "distinct"}, specials=False)
define("MinDim", lambda self, dim, keepdim: tuple(torch.min(self, dim, keepdim=keepdim)),
       calls=one_axis_calls("dim", "keepdim"), domains={"self": "distinct"}, specials=False)
define("ArgMax", lambda self, dim, keepdim: torch.max(self, dim, keepdim=keepdim)[1],
       calls=one_axis_calls("dim", "keepdim"), domains={"self": "distinct"}, specials=False)
define("ArgMin", lambda self, dim, keepdim: torch.min(self, dim, keepdim=keepdim)[1],
       calls=one_axis_calls("dim", "keepdim"), domains={"self": "distinct"}, specials=False)


def product(x, axes, keep=False):
    for axis in sorted([a % max(x.dim(), 1) for a in axes], reverse=True):
        x = x.prod(axis, keepdim=keep)
    return x


define("Prod", lambda self: self.prod(), calls=ANY_SHAPE[:-1] + [({"self": [0, 3]}, {})], ulps=2, k=160,
       terms=lambda self: self.abs().prod(), attributes={"dtype": sum_dtypes}, domains={"self": (-1.5, 1.5)},
       specials=False)
define("ProdDim", lambda self, dim, keep_dim: self.prod(dim, keepdim=keep_dim), k=160,
       terms=lambda self, dim, keep_dim: self.abs().prod(dim, keepdim=keep_dim), attributes={"dtype": sum_dtypes},
       calls=one_axis_calls("dim", "keep_dim"), domains={"self": (-1.5, 1.5)}, specials=False)
define("Any", lambda self, dim, keepdim: torch.amax((self != 0).to(torch.int64), axes_of(
    dim, self.dim()), keepdim=keepdim), calls=reduce_calls("dim", "keepdim", empty=False), domains={"self": (-1, 1)},
       specials=False)
define("All", lambda self, dim, keepdim: torch.amin((self != 0).to(torch.int64), axes_of(
    dim, self.dim()), keepdim=keepdim), calls=reduce_calls("dim", "keepdim", empty=False), domains={"self": (-1, 1)},
       specials=False)


def variance(self, dim, correction, keep):
    axes = axes_of(dim, self.dim())
    count = math.prod(self.shape[a] for a in axes)
    average = self.mean(axes, keepdim=True) if axes else self
    squares = ((self - average) ** 2).sum(axes, keepdim=keep) if axes else (self - average) ** 2
    spread_ = squares / max(0, count - correction)
    return spread_, mean(self, axes, keep)


def var_calls(more):
    calls = reduce_calls("dim", "keepdim")
    return calls + [({"self": [4, 5]}, {}), ({"self": [4, 5]}, {"keepdim": True})] + [
        ({"self": [4, 5]}, {"dim": [1], **one}) for one in more]


_corrections = [{"correction": c} for c in (0, 1, 2, 5, 7)]
_moments = lambda **outputs: lambda self, dim, keepdim: {
    name: (self.abs().max() if self.numel() else torch.zeros([])) ** power_ for name, power_ in outputs.items()}
define("Var", lambda self, dim, unbiased, keepdim: variance(self, dim, int(unbiased), keepdim)[0], k=4,
       terms=lambda self, dim, keepdim: variance(self, dim, 1, keepdim)[0].nan_to_num(0, 0) * 2,
       calls=var_calls([{"unbiased": False}]), specials=False)
define("VarCorrection", lambda self, dim, correction, keepdim: variance(self, dim, correction, keepdim)[0], ulps=4,
       calls=var_calls(_corrections), specials=False)
define("VarMean", lambda self, dim, correction, keepdim: dict(zip(
    ("var_out", "mean_out"), variance(self, dim, correction, keepdim))), ulps=4, k=4, terms=_moments(mean_out=1),
       calls=var_calls(_corrections), specials=False)
define("Std", lambda self, dim, correction, keepdim: torch.sqrt(variance(self, dim, correction, keepdim)[0]), ulps=4,
       calls=var_calls(_corrections), specials=False)


def std_mean(self, dim, correction, keepdim):
    spread_, average = variance(self, dim, correction, keepdim)
    return {"std_out": torch.sqrt(spread_), "mean_out": average}


define("StdMeanCorrection", std_mean, ulps=4, k=4, terms=_moments(mean_out=1), calls=var_calls(_corrections),
       specials=False)


def norm(self, order, dims, keep):
    axes = axes_of(dims, self.dim())
    order = 2.0 if order is None else order
    x = self.abs()
    if not axes:
        return (x != 0).to(torch.float64) if order == 0 else x
    if order == 0:
        return (x != 0).to(torch.float64).sum(axes, keepdim=keep)
    if math.isinf(order):
        return torch.amax(x, axes, keepdim=keep) if order > 0 else torch.amin(x, axes, keepdim=keep)
    return (x**order).sum(axes, keepdim=keep) ** (1 / order)


_orders = [("FLOAT", v) for v in (2.0, 1.0, 0.0, 3.0, 0.5, INF, -INF)]
define("Norm", lambda self, p_scalar, dim, keepdim: norm(self, p_scalar, dim, keepdim), ulps=4,
       attributes={"p_scalar": _orders}, calls=reduce_calls("dim", "keepdim"), specials=False)
define("LinalgVectorNorm", lambda self, ord, dims, keep_dims: norm(self, ord, dims, keep_dims), ulps=4,
       attributes={"ord": _orders, "dtype": lambda d: [d, "FLOAT"]}, calls=reduce_calls("dims", "keep_dims"),
       specials=False)


def log_sum_exp(self, dim, keep_dim):
    axes = axes_of(dim, self.dim())
    return torch.logsumexp(full(self), axes, keepdim=keep_dim) if axes else full(self)


define("LogSumExp", log_sum_exp, terms=lambda self: torch.ones([]) + self.abs().max() if self.numel() else torch.ones([]),
       k=2, calls=reduce_calls("dim", "keep_dim"), specials=False)

# Shapes

define("Slice", lambda self, dim, start, end, step: self[tuple(
    [slice(None)] * (dim % self.dim()) + [slice(start, end, step)])], specials=False, calls=[
        ({"self": s}, {"dim": d, "start": a, "end": b, "step": c}) for s, d, a, b, c in (
            ([4, 5], 1, 1, 4, 1), ([4, 5], 0, 0, 4, 2), ([4, 5], -1, -3, -1, 1), ([4, 5], 1, 3, 2, 1),
            ([133], 0, 5, 130, 3), ([4, 5], 1, 0, 100, 1), ([4, 5], 1, -100, 3, 1), ([2, 3, 4], 1, 1, 2, 1),
            ([4, 5], 1, 2, 2**62, 2), ([1, 2, 1, 3, 1, 2, 1, 2], 3, 0, 3, 2), ([0, 3], 1, 1, 2, 1))])
define("Permute", lambda self, dims: self.permute(dims), specials=False, calls=[
    ({"self": s}, {"dims": d}) for s, d in (
        ([4, 5], [1, 0]), ([2, 3, 4], [2, 0, 1]), ([2, 3, 4], [-1, 0, 1]), ([133], [0]), ([], []), ([0, 3], [1, 0]),
        ([1, 2, 1, 3, 1, 2, 1, 2], [7, 6, 5, 4, 3, 2, 1, 0]), ([17, 33], [1, 0]), ([2, 3, 4, 5], [0, 2, 1, 3]))])
LISTS = [([[4, 5], [4, 5]], 0), ([[4, 5], [4, 2]], 1), ([[2, 3, 4], [2, 1, 4], [2, 5, 4]], -2), ([[133]], 0),
         ([[0, 3], [2, 3]], 0), ([[1, 2, 1, 3], [1, 2, 1, 3]], 3), ([[3]] * 40, 0)]
define("Cat", lambda tensors, dim: torch.cat(tensors, dim), specials=False,
       calls=[({"tensors": t}, {"dim": d}) for t, d in LISTS])
define("Stack", lambda tensors, dim: torch.stack(tensors, dim), specials=False, calls=[
    ({"tensors": t}, {"dim": d}) for t, d in (
        ([[4, 5], [4, 5]], 0), ([[4, 5]] * 3, 1), ([[4, 5]] * 3, -1), ([[4, 5]] * 2, 2), ([[]] * 3, 0), ([[133]], 0),
        ([[0, 3]] * 2, 1), ([[3]] * 40, 0), ([[1, 2, 1, 2, 1, 2, 3]] * 2, 4))])
define("SplitTensor", lambda self, split_sections, dim: list(torch.split(self, split_sections, dim)), specials=False,
       calls=[({"self": s}, {"split_sections": n, "dim": d}) for s, n, d in (
           ([4, 5], 2, 0), ([4, 5], 2, 1), ([4, 5], 2, -1), ([133], 50, 0), ([2, 3, 4], 1, 1), ([4, 5], 9, 0),
           ([1, 2, 1, 3, 1, 2, 1, 2], 2, 3))])
define("SplitWithSize", lambda self, split_size, dim: list(torch.split(self, split_size, dim)), specials=False,
       calls=[({"self": s}, {"split_size": n, "dim": d}) for s, n, d in (
           ([4, 5], [1, 3], 0), ([4, 5], [2, 3], 1), ([4, 5], [4, 1], -1), ([133], [100, 33], 0),
           ([2, 3, 4], [1, 1, 1], 1), ([4, 5], [0, 4], 0), ([1, 2, 1, 3, 1, 2, 1, 2], [2, 1], 3))])
define("Expand", lambda self, size: self.expand(size), specials=False, calls=[
    ({"self": s}, {"size": n}) for s, n in (
        ([4, 1], [4, 5]), ([5], [4, 5]), ([4, 5], [4, 5]), ([1, 3], [2, -1]), ([], [3]), ([1], [0]), ([133], [2, 133]),
        ([1, 2, 1, 3], [2, 2, 2, 3]), ([2, 1, 1], [2, 3, 4]))])
define("Repeat", lambda self, repeats: self.repeat(repeats), specials=False, calls=[
    ({"self": s}, {"repeats": n}) for s, n in (
        ([4, 5], [2, 3]), ([5], [2, 3]), ([4, 5], [1, 1]), ([], [3]), ([2, 3], [0, 2]), ([133], [2]),
        ([2, 3, 4], [2, 1, 2]), ([1, 2, 1, 3], [2, 1, 3, 1]), ([3], [1, 1, 1, 2]))])
define("Flip", lambda self, dims: self.flip(dims), specials=False, calls=[
    ({"self": s}, {"dims": d}) for s, d in (
        ([4, 5], [0]), ([4, 5], [1]), ([4, 5], [0, 1]), ([4, 5], [-1]), ([133], [0]), ([2, 3, 4], [0, 2]),
        ([4, 5], []), ([0, 3], [1]), ([1, 2, 1, 3, 1, 2, 1, 2], [1, 3, 5]))])
define("Roll", lambda x, shifts, dims: x.roll(shifts, dims) if dims else x.roll(shifts), specials=False, calls=[
    ({"x": s}, {"shifts": n, "dims": d}) for s, n, d in (
        ([4, 5], [1], [0]), ([4, 5], [-2], [1]), ([4, 5], [1, 2], [0, 1]), ([4, 5], [7], [-1]), ([133], [40], [0]),
        ([4, 5], [3], []), ([2, 3, 4], [1, 1], [0, 2]), ([0, 3], [1], [0]), ([4, 5], [0], [1]))])
define("ConstantPadNd", lambda self, pad, value: F.pad(self, pad, value=value), specials=False,
       attributes={"value": lambda d: [("INT64", 2), ("INT64", 0)] + (
           [("FLOAT", 1.5), ("DOUBLE", -0.5)] if d in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else [])}, calls=[
               ({"self": s}, {"pad": p}) for s, p in (
                   ([4, 5], [1, 2]), ([4, 5], [1, 2, 3, 0]), ([4, 5], [-1, 2]), ([133], [3, 4]), ([2, 3, 4], [0, 1, 1, 0]),
                   ([4, 5], [-1, -1, 1, 1]), ([0, 3], [1, 1]), ([4, 5], [0, 0]), ([2, 1, 3], [1, 1, 1, 1, 1, 1]))])

# Softmax

def softmax_calls(*names):
    return [({n: s for n in names}, {"dim": d}) for s, d in (
        ([4, 5], 1), ([4, 5], 0), ([2, 3, 4], -2), ([133], 0), ([3, 67], -1), ([67, 3], 0), ([1], 0), ([0, 3], 1),
        ([1, 2, 1, 3, 1, 2, 1, 2], 3), ([4, 1], 1))]


define("LogSoftmaxBackward", lambda grad_output, output, dim: grad_output - torch.exp(output) * grad_output.sum(
    dim, keepdim=True), domains={"output": (-5, 0)}, k=8, specials=False,
       terms=lambda grad_output, output, dim: grad_output.abs() + torch.exp(output) * grad_output.abs().sum(
           dim, keepdim=True), calls=softmax_calls("grad_output", "output"))
