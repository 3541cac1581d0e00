"""Activation functions, gated units and their gradients."""

import math

import torch

from families.arithmetic import clamp
from oracles import define, finite, full, moderate

# Activations

define("Relu", lambda self: torch.where(self < 0, torch.zeros_like(self), self))
define("Threshold", lambda self, threshold, value: torch.where(self <= threshold, torch.full_like(self, value), self))
define(
    "ThresholdBackward",
    lambda grad_output, self, threshold: torch.where(self <= threshold, torch.zeros_like(grad_output), grad_output),
    domains={"self": (-3, 3)},
)


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
define(
    "GeluBackward",
    lambda grad_output, self: gelu_backward(grad_output, self),
    special_values=steep,
    terms=lambda grad_output, self: (grad_output * (normal_below(self) + (self * density(self)).abs())).abs(),
)
define(
    "GeluBackwardV2",
    gelu_backward,
    special_values=steep,
    terms=lambda grad_output, self: (grad_output * (1 + self.abs())).abs(),
)


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
define(
    "FastGeluBackward",
    lambda grad_output, self: swish_backward(grad_output, self, 1.702),
    special_values=steep,
    terms=lambda grad_output, self: swish_terms(grad_output, self, 1.702),
)
define("Silu", lambda self: swish(self), special_values=moderate)
define(
    "SiluBackward",
    lambda grad_output, self: swish_backward(grad_output, self),
    special_values=steep,
    terms=lambda grad_output, self: swish_terms(grad_output, self),
)
define("Swish", swish, special_values=moderate)
define("SwishBackward", swish_backward, special_values=steep, terms=swish_terms)
define("Sigmoid", lambda self: torch.sigmoid(self))
define(
    "SigmoidBackward",
    lambda grad_output, output: grad_output * ((1 - output) * output),
    domains={"output": (0, 1)},
    special_values=moderate,
)
define("Tanh", lambda self: torch.tanh(self))
define(
    "TanhBackward",
    lambda grad_output, output: grad_output * ((1 - output) * (1 + output)),
    domains={"output": (-1, 1)},
    special_values=moderate,
)


def log_sigmoid(self):
    return torch.where(self < 0, self, torch.zeros_like(self)) - torch.log1p(torch.exp(-self.abs()))


define("LogSigmoid", lambda self: torch.where(self != self, self, log_sigmoid(self)))
define("LogSigmoidForward", lambda self: {"out": torch.where(self != self, self, log_sigmoid(self))})
define(
    "LogSigmoidBackward",
    lambda grad_output, self: grad_output * torch.sigmoid(-self),
    special_inputs=["grad_output", "self"],
    special_values=moderate,
)


def softplus(self, beta, threshold):
    curve = -log_sigmoid(-self * beta) / beta
    return torch.where(self * beta > threshold, self, torch.where(self != self, self, curve))


define("Softplus", softplus, attributes={"beta": [1.0, 0.5, 2.0, -1.5], "threshold": [20.0, 1.0, 0.0]})
define(
    "SoftplusBackward",
    lambda grad_output, self, beta, threshold: torch.where(
        self * beta > threshold, grad_output, grad_output * torch.sigmoid(self * beta)
    ),
    special_values=moderate,
    attributes={"beta": [1.0, 0.5, 2.0], "threshold": [20.0, 1.0, 0.0]},
)
_elu = {"alpha": [1.0, 0.5, 2.0], "scale": [1.0, 1.5], "input_scale": [1.0, 0.5]}
define(
    "Elu",
    lambda self, alpha, scale, input_scale: torch.where(
        self < 0, torch.expm1(self * input_scale) * alpha * scale, self * scale
    ),
    attributes=_elu,
)


def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    slope = (
        input_scale * (self_or_result + alpha * scale)
        if is_result
        else input_scale * alpha * scale * torch.exp(self_or_result * input_scale)
    )
    return torch.where(self_or_result <= 0, grad_output * slope, grad_output * scale)


define(
    "EluBackward",
    elu_backward,
    attributes=_elu,
    special_values=moderate,
    terms=lambda grad_output, self_or_result: (grad_output * (1 + self_or_result.abs())).abs() * 2,
)
define(
    "Celu",
    lambda self, alpha: torch.where(self < 0, alpha * torch.expm1(self / alpha), self),
    attributes={"alpha": [1.0, 0.5, 2.0]},
)
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
define(
    "Selu",
    lambda self, dtypes: torch.where(
        full(self) < 0, SELU_SCALE * SELU_ALPHA * torch.expm1(full(self)), SELU_SCALE * full(self)
    ),
)
define(
    "SeluBackward",
    lambda grad_output, result: full(grad_output)
    * torch.where(result > 0, torch.full_like(full(result), SELU_SCALE), result + SELU_SCALE * SELU_ALPHA),
    special_values=moderate,
    terms=lambda grad_output, result: (grad_output * (result.abs() + 2)).abs(),
)
define(
    "LeakyRelu",
    lambda self, negative_slope: torch.where(self > 0, self, self * negative_slope),
    attributes={"negative_slope": [0.01, 0.5, 2.0, -1.5]},
)
define(
    "LeakyReluBackward",
    lambda grad_output, self, negative_slope: torch.where(self > 0, grad_output, grad_output * negative_slope),
    attributes={"negative_slope": [0.01, 0.5, 2.0]},
)


def prelu_weight(weight, self):
    return weight.reshape([1, -1] + [1] * (self.dim() - 2)) if weight.numel() > 1 else weight.reshape([])


PRELU = [
    ({"self": s, "weight": w}, {})
    for s, w in (
        ([4, 5], [5]),
        ([4, 5], [1]),
        ([2, 3, 4], [3]),
        ([133], [1]),
        ([7, 19], [19]),
        ([2, 3, 2, 2], [3]),
        ([0, 3], [3]),
        ([1, 2, 1, 3, 1, 2, 1, 2], [2]),
    )
]
define(
    "Prelu",
    lambda self, weight: torch.where(self > 0, self, self * prelu_weight(weight, self)),
    calls=PRELU,
    specials=False,
)
define(
    "PreluBackward",
    lambda grad_output, self, weight: (
        torch.where(self > 0, grad_output, grad_output * prelu_weight(weight, self)),
        prelu_sums(torch.where(self > 0, torch.zeros_like(self), grad_output * self), weight),
    ),
    calls=[({**c[0], "grad_output": c[0]["self"]}, {}) for c in PRELU],
    specials=False,
    terms=lambda grad_output, self, weight: {"grad_weight": prelu_sums((grad_output * self).abs(), weight)},
)


def prelu_sums(terms, weight):
    if weight.numel() == 1:
        return terms.sum().reshape(weight.shape)
    return terms.sum([d for d in range(terms.dim()) if d != 1]).reshape(weight.shape)


def six(x):
    return torch.clamp(x + 3, 0, 6) / 6


define(
    "Hardswish",
    lambda self: self * six(self),
    special_values=moderate,
    terms=lambda self: (self * 3).abs().clamp(max=10),
)
define(
    "HardswishBackward HardswishBackwardV2",
    lambda grad_output, self: torch.where(
        self < -3,
        torch.zeros_like(self * grad_output),
        torch.where(self > 3, grad_output + 0 * self, grad_output * (self / 3 + 0.5)),
    ),
    special_values=moderate,
    terms=lambda grad_output, self: (grad_output * (self.abs() + 1)).abs(),
)
define("Hardsigmoid", lambda self: torch.clamp(full(self) + 3, 0, 6) / 6, terms=lambda self: torch.ones_like(self))
define(
    "HardsigmoidBackward",
    lambda grad_output, self: torch.where((self > -3) & (self < 3), grad_output / 6, torch.zeros_like(grad_output)),
)
define(
    "Hardtanh",
    lambda self, clip_value_min, clip_value_max: clamp(self, clip_value_min, clip_value_max),
    attributes={"clip_value_min": lambda d: [-1, -2] if d != "UINT8" else [0, 1], "clip_value_max": [1, 3]},
)
define(
    "HardtanhBackward",
    lambda grad_output, self, min, max: torch.where(
        (self <= min) | (self >= max), torch.zeros_like(grad_output), grad_output
    ),
    attributes={"min": [-1.0, -2.5], "max": [1.0, 3.0]},
)
define(
    "Hardshrink",
    lambda self, lambd: torch.where((self >= -lambd) & (self <= lambd), torch.zeros_like(self), self),
    attributes={"lambd": [0.5, 0.0, 2.0, -1.0]},
)
define(
    "HardshrinkBackward SoftshrinkBackward",
    lambda grad_output, self, lambd: torch.where(
        (self >= -lambd) & (self <= lambd), torch.zeros_like(grad_output), grad_output
    ),
    attributes={"lambd": [0.5, 0.0, 2.0]},
)
define(
    "Softshrink",
    lambda self, lambd: torch.where(
        self > lambd,
        self - lambd,
        torch.where(self < -lambd, self + lambd, torch.where(self != self, self, torch.zeros_like(self))),
    ),
    attributes={"lambd": [0.5, 0.0, 2.0]},
)


def mish(self):
    return self * torch.tanh(-log_sigmoid(-self))


def mish_backward(grad_output, self):
    tanh = torch.tanh(-log_sigmoid(-self))
    return grad_output * (tanh + self * (1 - tanh * tanh) * torch.sigmoid(self))


define("Mish", mish, special_values=moderate)
define(
    "MishBackward",
    mish_backward,
    special_values=steep,
    terms=lambda grad_output, self: (grad_output * (1 + self.abs())).abs(),
)


# Gated units


def halves(x, dim):
    return torch.chunk(x, 2, dim)


def gate_calls(whole, *half):
    calls = []
    for shape, dim in (
        ([4, 6], -1),
        ([4, 6], 0),
        ([2, 4, 3], 1),
        ([134], 0),
        ([3, 66], 1),
        ([0, 4], 1),
        ([2], 0),
        ([1, 2, 1, 2, 1, 2, 1, 2], 3),
    ):
        small = list(shape)
        small[dim] //= 2
        calls.append(({whole: shape, **{n: small for n in half}}, {"dim": dim}))
    return calls


def glu_backward(grad_out, self, dim):
    a, b = halves(self, dim)
    gate = torch.sigmoid(b)
    return torch.cat([grad_out * gate, grad_out * a * gate * torch.sigmoid(-b)], dim)


def geglu_backward(grad_output, self, gelu_, dim, approximate):
    a, b = halves(self, dim)
    return torch.cat([grad_output * gelu_, gelu_backward(grad_output * a, b, approximate)], dim)


def swiglu_backward(y_grad, x, dim):
    a, b = halves(x, dim)
    return torch.cat([swish_backward(y_grad * b, a), y_grad * swish(a)], dim)


def ones(x, factor=4.0):
    return torch.full([], factor, dtype=torch.float64) * (x.abs().max() + 1 if x.numel() else 1)


define(
    "Glu",
    lambda self, dim: halves(self, dim)[0] * torch.sigmoid(halves(self, dim)[1]),
    calls=gate_calls("self"),
    specials=False,
)
define("GluBackward", glu_backward, calls=gate_calls("self", "grad_out"), specials=False)
define(
    "GeGlu",
    lambda self, dim, approximate: (
        halves(self, dim)[0] * gelu(halves(self, dim)[1], approximate),
        gelu(halves(self, dim)[1], approximate),
    ),
    calls=gate_calls("self"),
    specials=False,
)
define(
    "GeGluBackward",
    lambda grad_output, self, gelu, dim, approximate: geglu_backward(grad_output, self, gelu, dim, approximate),
    calls=gate_calls("self", "grad_output", "gelu"),
    specials=False,
    terms=lambda grad_output, self: ones(grad_output) * ones(self),
)
define("SwiGlu", lambda x, dim: swish(halves(x, dim)[0]) * halves(x, dim)[1], calls=gate_calls("x"), specials=False)
define(
    "SwiGluGrad",
    swiglu_backward,
    calls=gate_calls("x", "y_grad"),
    specials=False,
    terms=lambda y_grad, x: ones(y_grad) * ones(x),
)


def logit(input, eps):
    x = input if eps < 0 else clamp(input, eps, 1 - eps)
    return torch.log(x / (1 - x))


def logit_grad(x, dy, eps):
    slope = dy / (x * (1 - x))
    if eps < 0:
        return torch.where((x < 0) | (x > 1), torch.full_like(x, math.nan), slope)
    return torch.where((x < eps) | (x > 1 - eps), torch.zeros_like(x), slope)


define(
    "Logit",
    logit,
    domains={"input": (0.01, 0.99)},
    attributes={"eps": [-1.0, 0.125, 0.0]},
    terms=lambda input: torch.ones([]),
    special_values=lambda v: [0.25, 0.5, 0.75, 1.0, 0.0, math.nan],
)
define("LogitGrad", logit_grad, domains={"x": (0.01, 0.99)}, attributes={"eps": [-1.0, 0.125]}, specials=False)
