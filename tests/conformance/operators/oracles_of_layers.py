"""The entries of operators on rows, lists, matrices, indices and windows, and of optimizers; see oracles.py."""

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F

from oracles import (INF, Unclear, axes_of, clamp, define, full, gelu, gelu_backward, log_sigmoid, moderate, power, quotient,
                     reduced, softmax_calls, steep, swish, swish_backward)

# Gated units


def halves(x, dim):
    return torch.chunk(x, 2, dim)


def gate_calls(whole, *half):
    calls = []
    for shape, dim in (([4, 6], -1), ([4, 6], 0), ([2, 4, 3], 1), ([134], 0), ([3, 66], 1), ([0, 4], 1), ([2], 0),
                       ([1, 2, 1, 2, 1, 2, 1, 2], 3)):
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


define("Glu", lambda self, dim: halves(self, dim)[0] * torch.sigmoid(halves(self, dim)[1]),
       calls=gate_calls("self"), specials=False)
define("GluBackward", glu_backward, calls=gate_calls("self", "grad_out"), specials=False, ulps=3)
define("GeGlu", lambda self, dim, approximate: (
    halves(self, dim)[0] * gelu(halves(self, dim)[1], approximate), gelu(halves(self, dim)[1], approximate)),
       calls=gate_calls("self"), specials=False, ulps=3)
define("GeGluBackward", lambda grad_output, self, gelu, dim, approximate: geglu_backward(
    grad_output, self, gelu, dim, approximate), calls=gate_calls("self", "grad_output", "gelu"), specials=False, ulps=3,
       terms=lambda grad_output, self: ones(grad_output) * ones(self))
define("SwiGlu", lambda x, dim: swish(halves(x, dim)[0]) * halves(x, dim)[1], calls=gate_calls("x"), specials=False,
       ulps=3)
define("SwiGluGrad", swiglu_backward, calls=gate_calls("x", "y_grad"), specials=False, ulps=3,
       terms=lambda y_grad, x: ones(y_grad) * ones(x))


def logit(input, eps):
    x = input if eps < 0 else clamp(input, eps, 1 - eps)
    return torch.log(x / (1 - x))


def logit_grad(x, dy, eps):
    slope = dy / (x * (1 - x))
    if eps < 0:
        return torch.where((x < 0) | (x > 1), torch.full_like(x, math.nan), slope)
    return torch.where((x < eps) | (x > 1 - eps), torch.zeros_like(x), slope)


define("Logit", logit, domains={"input": (0.01, 0.99)}, attributes={"eps": [-1.0, 0.125, 0.0]},
       terms=lambda input: torch.ones([]), special_values=lambda v: [0.25, 0.5, 0.75, 1.0, 0.0, math.nan])
define("LogitGrad", logit_grad, domains={"x": (0.01, 0.99)}, attributes={"eps": [-1.0, 0.125]}, specials=False, ulps=3)

# Makers

define("Arange", lambda start, end, step, out_dtypes: torch.tensor(
    [start + i * step for i in range(max(0, math.ceil((end - start) / step)))],
    dtype=torch.float64), calls=[
        ({}, {"start": a, "end": b, "step": c}) for a, b, c in (
            (0, 5, 1), (2, 20, 3), (5, 0, -2), (0.5, 4.0, 0.5), (0, 0, 1), (-3, 3, 2), (0, 300, 1),
            (1.0, -1.0, -0.25), (3, 5, 0.75), (("INT32", 3), ("INT32", 9), ("INT32", 2)), (0, 7, 7), (0, 1, 5))],
       attributes={"step": [2, 1.5, ("DOUBLE", 0.5)], "start": [1, -2.5]})
define("Eye", lambda n, m: torch.eye(n, m, dtype=torch.float64), calls=[
    ({}, {"n": n, "m": m}) for n, m in ((3, 3), (2, 4), (4, 2), (1, 1), (0, 3), (3, 0), (19, 21), (1, 7), (7, 1))])
define("Linspace", lambda start, end, steps: torch.linspace(float(start), float(end), steps, dtype=torch.float64),
       calls=[({}, {"start": a, "end": b, "steps": n}) for a, b, n in (
           (0, 1, 5), (-3, 10, 4), (1.0, 0.0, 9), (2, 2, 3), (0, 1, 1), (0, 1, 0), (-8.0, 8.0, 133))],
       terms=lambda start, end: torch.tensor(abs(start) + abs(end), dtype=torch.float64))

# Lists

_list = [[4, 5], [3], [], [0, 2], [133], [2, 3, 4]]
LISTS = [_list, [[4, 5]], [[7]] * 3, [[1, 2, 1, 3, 1, 2, 1, 2]], [[], []], [[0]], [[5, 3]] * 20]


def list_calls(*lists, **others):
    return [({**{n: shapes for n in lists}, **others}, {}) for shapes in LISTS]


def each(function, *lists):
    """Of the lists by their names and one other argument."""
    def on_lists(*arguments):
        return [function(*tensors) for tensors in zip(*arguments)]
    del lists
    return on_lists


_scalar_dtype = lambda d: d if d in ("FLOAT", "FLOAT16") else "INT32" if d in (
    "INT8", "UINT8", "INT16", "INT32") else "FLOAT"
_scalar = {"dtypes": {"scalar": _scalar_dtype}, "specials": False, "k": 4}


def one(tensor):
    return tensor.reshape(()) if torch.is_tensor(tensor) else tensor


def sizes(*factors):
    """Magnitudes, list by list."""
    return lambda *arguments: None


define("ForeachAddScalar ForeachAddScalarV2", lambda x, scalar: [t + one(scalar) for t in x],
       calls=list_calls("x", scalar=[1]), terms=lambda x, scalar: {"out": [t.abs() + abs(one(scalar)) for t in x]}, **_scalar)
define("ForeachMulScalar ForeachMulScalarV2", lambda x, scalar: [t * one(scalar) for t in x],
       calls=list_calls("x", scalar=[1]), **_scalar)
define("ForeachDivScalar", lambda x, scalar: [t / one(scalar) for t in x], calls=list_calls("x", scalar=[1]), **_scalar)
define("ForeachPowScalar", lambda x, scalar: [power(t, one(scalar)) for t in x], calls=list_calls("x", scalar=[1]),
       domains={"x": (0.1, 5), "scalar": (1, 3)}, **_scalar)
_scalars = lambda shapes: [1.5 if i % 2 else 2.0 for i in range(len(shapes))]
define("ForeachAddScalarList", lambda x, scalars: [t + s for t, s in zip(x, scalars)], specials=False,
       terms=lambda x, scalars: {"out": [t.abs() + abs(s) for t, s in zip(x, scalars)]}, only_dtypes=["FLOAT", "FLOAT16", "BF16"],
       calls=[({"x": s}, {"scalars": _scalars(s)}) for s in LISTS])
define("ForeachMulScalarList", lambda x, scalars: [t * s for t, s in zip(x, scalars)], specials=False,
       only_dtypes=["FLOAT", "FLOAT16", "BF16"], calls=[({"x": s}, {"scalars": _scalars(s)}) for s in LISTS])
_alpha = {"dtypes": {"alpha": _scalar_dtype}, "specials": False, "k": 4}
define("ForeachAddList ForeachAddListV2", lambda x1, x2, alpha: [a + one(alpha) * b for a, b in zip(x1, x2)],
       calls=list_calls("x1", "x2", alpha=[1]),
       terms=lambda x1, x2, alpha: {"out": [a.abs() + (one(alpha) * b).abs() for a, b in zip(x1, x2)]}, **_alpha)
define("ForeachMulList", lambda x1, x2: [a * b for a, b in zip(x1, x2)], calls=list_calls("x1", "x2"), specials=False)
define("ForeachMaximumList", lambda x1, x2: [torch.maximum(a, b) for a, b in zip(x1, x2)],
       calls=list_calls("x1", "x2"), specials=False)
define("ForeachAddcmulScalar ForeachAddcmulScalarV2", lambda x1, x2, x3, scalar: [
    a + one(scalar) * b * c for a, b, c in zip(x1, x2, x3)], calls=list_calls("x1", "x2", "x3", scalar=[1]),
       terms=lambda x1, x2, x3, scalar: {"out": [
           a.abs() + (one(scalar) * b * c).abs() for a, b, c in zip(x1, x2, x3)]}, **_scalar)
define("ForeachAddcdivScalar ForeachAddcdivScalarV2", lambda x1, x2, x3, scalar: [
    a + one(scalar) * b / c for a, b, c in zip(x1, x2, x3)], calls=list_calls("x1", "x2", "x3", scalar=[1]),
       terms=lambda x1, x2, x3, scalar: {"out": [
           a.abs() + (one(scalar) * b / c).abs() for a, b, c in zip(x1, x2, x3)]}, **_scalar)
define("ForeachAddcdivScalarList", lambda x1, x2, x3, scalars: [
    a + s * b / c for a, b, c, s in zip(x1, x2, x3, scalars)], specials=False, k=4,
       calls=[({"x1": s, "x2": s, "x3": s, "scalars": [len(s)]}, {}) for s in LISTS],
       terms=lambda x1, x2, x3, scalars: {"out": [
           a.abs() + (s * b / c).abs() for a, b, c, s in zip(x1, x2, x3, scalars)]})
define("ForeachLerpScalar", lambda x1, x2, weight: [a + weight * (b - a) for a, b in zip(x1, x2)],
       calls=list_calls("x1", "x2"), specials=False, k=4,
       terms=lambda x1, x2, weight: {"out": [(a.abs() + b.abs()) * (1 + abs(weight)) for a, b in zip(x1, x2)]})
define("ForeachSqrt", lambda x: [torch.sqrt(t) for t in x], calls=list_calls("x"), domains={"x": (0, 9)}, specials=False)
define("ForeachNeg", lambda x: [-t for t in x], calls=list_calls("x"), specials=False)
define("ForeachReciprocal", lambda x: [1 / t for t in x], calls=list_calls("x"), specials=False)
define("ForeachCopy", lambda x: list(x), calls=list_calls("x"), specials=False)
define("ForeachZeroInplace", lambda x: [torch.zeros_like(t) for t in x], calls=list_calls("x"), specials=False)


def whole_norm(x, order):
    x = x.abs().reshape(-1)
    if math.isinf(order):
        return x.max() if x.numel() else torch.zeros([], dtype=torch.float64)
    return (x**order).sum() ** (1 / order)


define("ForeachNorm", lambda x, scalar: [whole_norm(t, scalar) for t in x], specials=False, ulps=4,
       attributes={"scalar": [("FLOAT", 2.0), ("INT64", 1), ("FLOAT", 3.0), ("FLOAT", INF)]}, calls=list_calls("x"))
define("Sum", lambda tensors: sum(torch.broadcast_tensors(*tensors)), specials=False, k=8,
       calls=[({"tensors": s}, {}) for s in ([[4, 5], [4, 5]], [[4, 5]], [[4, 5], [5], [4, 1]], [[133]] * 7,
                                             [[0, 3], [3]], [[1, 2, 1, 3]] * 2, [[4, 5]] * 20)],
       terms=lambda tensors: sum(t.abs() for t in torch.broadcast_tensors(*tensors)))
define("ForeachNonFiniteCheckAndUnscale", lambda scaled_grads, found_inf, inv_scale: {
    "scaled_grads": [t * inv_scale.reshape(()) for t in scaled_grads],
    "found_inf": torch.ones_like(found_inf) if any(
        not bool(torch.isfinite(t).all()) for t in scaled_grads) else found_inf}, specials=False,
       calls=list_calls("scaled_grads", found_inf=[1], inv_scale=[1]) + [
           ({"scaled_grads": [[4], [5]], "found_inf": [1], "inv_scale": [1]}, {}, {
               "scaled_grads": lambda s, r, v=v: torch.full(s, v, dtype=torch.float64)}) for v in (INF, -INF, math.nan)])

# Optimizers


def bounded(*tensors):
    return sum(t.abs() for t in tensors)


def adam(param, m, v, most, grad, t, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, scale=1.0):
    t = float(t)
    grad = (-grad if maximize else grad) / scale
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad * grad
    if amsgrad:
        if most is None:
            raise Unclear
        most = torch.maximum(most, v)
    root = torch.sqrt((most if amsgrad else v) / (1 - beta2**t)) + eps
    param = param * (1 - lr * weight_decay) - lr / (1 - beta1**t) * m / root
    return param, m, v, most


def adamw(var, m, v, max_grad_norm, grad, step, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize):
    results = adam(var, m, v, max_grad_norm, grad, step.reshape(()) + 1, lr, beta1, beta2, weight_decay, eps, amsgrad,
                   maximize)
    found = dict(zip(("var", "m", "v", "max_grad_norm"), results))
    if max_grad_norm is None:
        del found["max_grad_norm"]
    return found


def whole_numbers(shape, random):
    return random.integers(1, 20, shape)


def adamw_calls():
    calls = []
    for shape in ([4, 5], [133], [], [0, 3], [1], [2, 3, 4]):
        for amsgrad, maximize in itertools.product((False, True), repeat=2):
            names = ["var", "m", "v", "grad"] + (["max_grad_norm"] if amsgrad else [])
            calls.append(({**{n: shape for n in names}, "step": [1]},
                          {"lr": 0.125, "amsgrad": amsgrad, "maximize": maximize}))
    return calls


_decays = {n: [0.5, 0.75] for n in ("beta1", "beta2", "weight_decay", "eps", "momentum", "dampening", "ema_decay", "lr")}
_adam = {"attributes": _decays, "specials": False, "ulps": 4, "k": 16, "mixed": False}
_moments = {"v": (0.1, 4), "max_grad_norm": (0.1, 4), "s": (-2, 2), "step": whole_numbers}
define("ApplyAdamWV2", adamw, calls=adamw_calls(), domains=_moments,
       dtypes={"step": "INT64"},
       terms=lambda var, m, v, grad, lr: {"var": bounded(var) + 10 * lr * bounded(m, grad), "m": bounded(m, grad), "v": bounded(v, grad * grad)}, **_adam)


def ema_adam(grad, var, m, v, s, step, lr, ema_decay, beta1, beta2, eps, mode, bias_correction, weight_decay):
    t = float(step.reshape(()))
    g = grad + weight_decay * var if mode == 0 else grad
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    c1, c2 = (1 - beta1**t, 1 - beta2**t) if bias_correction else (1.0, 1.0)
    update = m / c1 / (torch.sqrt(v / c2) + eps)
    if mode == 1:
        update = update + weight_decay * var
    var = var - lr * update
    return {"var": var, "m": m, "v": v, "s": ema_decay * s + (1 - ema_decay) * var}


_ema_terms = lambda grad, var, m, v, s, lr: {"v": bounded(v) + (grad.abs() + var.abs())**2, "var": bounded(var) + 10 * lr * bounded(m, grad, var),
                                          "m": bounded(m, grad, var), "s": bounded(s, var) + lr * bounded(m, grad)}
define("ApplyFusedEmaAdam", ema_adam, domains=_moments, terms=_ema_terms, **{**_adam, "k": 100}, calls=[
    ({**{n: s for n in ("grad", "var", "m", "v", "s")}, "step": [1]}, {
        "lr": 0.125, "mode": mode, "bias_correction": bias, "weight_decay": 0.25})
    for s in ([4, 5], [133], [1], [], [0, 3]) for mode in (0, 1) for bias in (True, False)])


def fused_adamw(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, grad_scale, found_inf, lr, beta1,
                beta2, weight_decay, eps, amsgrad, maximize):
    results = []
    scale = 1.0 if grad_scale is None else float(grad_scale.reshape(()))
    for i, param in enumerate(params):
        most = max_exp_avg_sqs[i] if max_exp_avg_sqs else None
        if found_inf is not None and float(found_inf.reshape(())) == 1:
            results.append((param, exp_avgs[i], exp_avg_sqs[i], most))
            continue
        results.append(adam(param, exp_avgs[i], exp_avg_sqs[i], most, grads[i], state_steps[i].reshape(()), lr, beta1,
                            beta2, weight_decay, eps, amsgrad, maximize, scale))
    names = ["params", "exp_avgs", "exp_avg_sqs"] + (["max_exp_avg_sqs"] if max_exp_avg_sqs else [])
    return {n: [r[k] for r in results] for k, n in enumerate(names)}


def fused_adamw_calls():
    calls = []
    for shapes in (_list, [[4, 5]], [[133], [7]]):
        for amsgrad, maximize, scaled in itertools.product((False, True), repeat=3):
            names = ["params", "grads", "exp_avgs", "exp_avg_sqs"] + (["max_exp_avg_sqs"] if amsgrad else [])
            given = {**{n: shapes for n in names}, "state_steps": [[1]] * len(shapes)}
            if scaled:
                given.update(grad_scale=[1], found_inf=[1])
            calls.append((given, {"lr": 0.125, "amsgrad": amsgrad, "maximize": maximize}, {
                "found_inf": lambda s, r: np.zeros(s), "grad_scale": (1, 3)}))
    calls.append(({**calls[4][0], "grad_scale": [1], "found_inf": [1]}, {"lr": 0.125, "amsgrad": "max_exp_avg_sqs" in calls[4][0]},
                  {"found_inf": lambda s, r: np.ones(s), "grad_scale": (1, 3)}))
    return calls


define("FusedAdamw", fused_adamw, calls=fused_adamw_calls(), **{**_adam, "k": 32},
       dtypes={"state_steps": "FLOAT"},
       domains={"exp_avg_sqs": (0.1, 4), "max_exp_avg_sqs": (0.1, 4), "state_steps": whole_numbers},
       terms=lambda params, exp_avgs, grads, lr: {
           "params": [bounded(p) + 10 * lr * bounded(m, g) for p, m, g in zip(params, exp_avgs, grads)],
           "exp_avgs": [bounded(m, g) for m, g in zip(exp_avgs, grads)]})


def fused_sgd(params, grads, momentum_buffers, grad_scale, weight_decay, momentum, lr, dampening, nesterov, maximize,
              is_first_step):
    results = []
    scale = 1.0 if grad_scale is None else float(grad_scale.reshape(()))
    for param, grad, buffer in zip(params, grads, momentum_buffers):
        grad = grad / scale
        g = (-grad if maximize else grad) + weight_decay * param
        step = g
        if momentum != 0:
            buffer = g if is_first_step else momentum * buffer + (1 - dampening) * g
            step = g + momentum * buffer if nesterov else buffer
        results.append((param - lr * step, grad, buffer))
    return {n: [r[k] for r in results] for k, n in enumerate(("params", "grads", "momentum_buffers"))}


define("FusedSgd", fused_sgd, **_adam, domains={"grad_scale": (1, 3)}, calls=[
    ({**{n: shapes for n in ("params", "grads", "momentum_buffers")}, **({"grad_scale": [1]} if scaled else {})},
     {"lr": 0.125, "momentum": momentum, "nesterov": nesterov, "maximize": maximize, "weight_decay": 0.25,
      "dampening": 0.5 if not nesterov else 0.0, "is_first_step": first})
    for (shapes, momentum, nesterov, maximize, first, scaled) in (
        (_list, 0.0, False, False, False, False), (_list, 0.5, False, False, False, False),
        ([[4, 5]], 0.5, True, False, False, True), ([[4, 5]], 0.5, False, True, False, True),
        ([[133], [7]], 0.5, True, True, True, False), ([[4, 5]], 0.0, False, False, True, True),
        ([[4, 5]], 0.5, False, False, True, True))],
       terms=lambda params, grads, momentum_buffers: {
           n: [bounded(p, g, b) for p, g, b in zip(params, grads, momentum_buffers)]
           for n in ("params", "momentum_buffers")})


def amp_update(current_scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval):
    if float(found_inf.reshape(())) != 0:
        return current_scale * backoff_factor, torch.zeros_like(growth_tracker)
    if int(growth_tracker.reshape(())) + 1 != growth_interval:
        return current_scale, growth_tracker + 1
    grown = current_scale * growth_factor
    return (grown if bool((grown < 3e38).all()) else current_scale), torch.zeros_like(growth_tracker)


define("AmpUpdateScale", amp_update, specials=False, mixed=False, only_dtypes=["FLOAT"], calls=[
    ({"current_scale": [1], "growth_tracker": [1], "found_inf": [1]}, {"growth_interval": interval},
     {"found_inf": lambda s, r, f=found: np.full(s, f), "growth_tracker": lambda s, r, t=tracker: np.full(s, t),
      "current_scale": lambda s, r, c=scale: np.full(s, c)})
    for found in (0.0, 1.0) for tracker, interval in ((0, 2000), (4, 5), (5, 5), (0, 1)) for scale in (65536.0, 3e38, 1.5)])


def renorm(self, p, dim, max_norm):
    others = [d for d in range(self.dim()) if d != dim % self.dim()]
    norm = (self.abs() ** p).sum(others, keepdim=True) ** (1 / p)
    return torch.where(norm > max_norm, self * (max_norm / (norm + 1e-7)), self)


define("Renorm", renorm, specials=False, ulps=6, calls=[({"self": s}, {"dim": d, "max_norm": m, "p": p}) for s, d, m, p in (
    ([4, 5], 0, 3.0, 2), ([4, 5], 1, 1.0, 2), ([2, 3, 4], -1, 2.0, 1), ([4, 5], 0, 100.0, 2), ([7, 19], 0, 2.5, 3),
    ([4, 5], 0, 0.0, 2), ([2, 3, 2, 2], 1, 1.5, 2))], attributes={"p": [2, 1, 3, 0.5], "max_norm": [2.5, 1]})

# Softmax


define("Softmax", lambda self, dim: torch.softmax(self, dim), calls=softmax_calls("self"), specials=False, ulps=4,
       terms=lambda self, dim: torch.softmax(self, dim) * ones(self, 1.0))
define("LogSoftmax", lambda self, dim: torch.log_softmax(self, dim), calls=softmax_calls("self"), specials=False,
       ulps=4, terms=lambda self: ones(self), k=2)
define("SoftmaxBackward", lambda grad_output, output, dim: output * (grad_output - (grad_output * output).sum(
    dim, keepdim=True)), calls=softmax_calls("grad_output", "output"), domains={"output": (0, 1)}, specials=False, k=8,
       terms=lambda grad_output, output, dim: output * (grad_output.abs() + (grad_output * output).abs().sum(
           dim, keepdim=True)))


def masked_softmax(x, mask, scale):
    return torch.softmax(torch.where(mask != 0, torch.full_like(x, -10000.0), x * scale), -1)


MASKED = [([2, 3, 4, 5], [2, 3, 4, 5]), ([2, 3, 4, 5], [1, 1, 4, 5]), ([2, 3, 4, 5], [2, 1, 4, 5]), ([1, 1, 1, 133], [1, 1, 1, 133]),
          ([1, 2, 32, 32], [1, 2, 32, 32]), ([2, 2, 3, 64], [1, 2, 3, 64])]
define("ScaledMaskedSoftmax", masked_softmax, specials=False, ulps=4,
       attributes={"scale": [1.0, 0.5, 2.0], "fixed_triu_mask": [False]},
       terms=lambda x, mask, scale: masked_softmax(x, mask, scale) * ones(x * scale, 1.0),
       calls=[({"x": s, "mask": m}, {}) for s, m in MASKED])
define("ScaledMaskedSoftmaxBackward", lambda grad_output, y, mask, scale: torch.where(
    mask != 0, torch.zeros_like(y), scale * y * (grad_output - (grad_output * y).sum(-1, keepdim=True))),
       specials=False, k=8, domains={"y": (0, 1)}, attributes={"scale": [1.0, 0.5, 2.0], "fix_triu_mask": [False]},
       terms=lambda grad_output, y, scale: abs(scale) * y * (grad_output.abs() + (grad_output * y).abs().sum(-1, keepdim=True)),
       calls=[({"grad_output": s, "y": s, "mask": m}, {}) for s, m in MASKED])

# Normalisation


def trailing_axes(x, shape):
    return list(range(x.dim() - len(shape), x.dim()))


def leading_sum(x, shape):
    axes = list(range(x.dim() - len(shape)))
    return x.sum(axes) if axes else x


def standardized(x, axes, eps):
    """Mean and 1 / standard deviation."""
    count = math.prod(x.shape[a] for a in axes)
    mean = x.sum(axes, keepdim=True) / count if axes else x
    variance = ((x - mean) ** 2).sum(axes, keepdim=True) / count if axes else x * 0
    return mean, 1 / torch.sqrt(variance + eps)


def affine(x, weight, bias):
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def norm_scale(x, weight, bias, mean, rstd):
    size = (x.abs() + mean.abs()) * rstd
    if weight is not None:
        size = size * weight.abs()
    return size if bias is None else size + bias.abs()


def layer_norm(input, normalized_shape, weight, bias, eps):
    mean, rstd = standardized(input, trailing_axes(input, normalized_shape), eps)
    return {"out": affine((input - mean) * rstd, weight, bias), "mean_out": mean, "rstd_out": rstd}


def layer_norm_terms(input, normalized_shape, weight, bias, eps):
    mean, rstd = standardized(input, trailing_axes(input, normalized_shape), eps)
    most = input.abs().max() if input.numel() else torch.zeros([])
    return {"out": norm_scale(input, weight, bias, most, rstd), "mean_out": most, "rstd_out": rstd}


LAYERS = [([4, 5], [5]), ([2, 3, 4], [4]), ([2, 3, 4], [3, 4]), ([7, 67], [67]), ([133], [133]), ([2, 3, 4], [2, 3, 4]),
          ([3, 1], [1]), ([0, 5], [5])]


def layer_calls(given):
    """`given`: shapes from the whole and the normalised one, and attributes from the latter."""
    return [given(shape, normal) for shape, normal in LAYERS]


def with_optional(calls, *names):
    first = calls[0]
    more = [({n: s for n, s in first[0].items() if n not in left_out}, *first[1:])
            for count in range(1, len(names) + 1) for left_out in itertools.combinations(names, count)]
    return calls + more


_rows = {"specials": False, "k": 16, "ulps": 3}
_layer_calls = with_optional(layer_calls(lambda s, n: (
    {"input": s, "weight": n, "bias": n}, {"normalized_shape": n})), "weight", "bias")
define("LayerNorm LayerNormWithImplMode FastLayerNorm", layer_norm, terms=layer_norm_terms, calls=_layer_calls,
       attributes={"eps": [1e-5, 0.125], "impl_mode": [0, 1, "precise", "fast"]}, mixed=False, **_rows)


def norm_backward(dy, xhat, rstd, weight, axes, centred=True):
    g = dy if weight is None else dy * weight
    count = math.prod(dy.shape[a] for a in axes)
    average = lambda t: t.sum(axes, keepdim=True) / count
    return rstd * (g - (average(g) if centred else 0) - xhat * average(g * xhat))


def norm_backward_terms(dy, xhat, rstd, weight, axes):
    g = dy.abs() if weight is None else (dy * weight).abs()
    count = math.prod(dy.shape[a] for a in axes)
    average = lambda t: t.sum(axes, keepdim=True) / count
    return rstd.abs() * (g + average(g) + xhat * average(g * xhat))


def mean_shape(shape, normal):
    return shape[:len(shape) - len(normal)] + [1] * len(normal)


def layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight):
    xhat = (input - mean) * rstd
    axes = trailing_axes(input, normalized_shape)
    return {"grad_input_out": norm_backward(grad_out, xhat, rstd, weight, axes),
            "grad_weight_out": leading_sum(grad_out * xhat, normalized_shape),
            "grad_bias_out": leading_sum(grad_out, normalized_shape)}


def layer_norm_backward_terms(grad_out, input, normalized_shape, mean, rstd, weight):
    xhat = (input.abs() + mean.abs()) * rstd.abs()
    axes = trailing_axes(input, normalized_shape)
    return {"grad_input_out": norm_backward_terms(grad_out, xhat, rstd, weight, axes),
            "grad_weight_out": leading_sum(grad_out.abs() * xhat, normalized_shape),
            "grad_bias_out": leading_sum(grad_out.abs(), normalized_shape)}


_rstd = {"rstd": (0.2, 2), "invstd": (0.2, 2), "save_invstd": (0.2, 2), "running_var": (0.2, 3)}
define("LayerNormBackward", layer_norm_backward, terms=layer_norm_backward_terms, domains=_rstd, mixed=False,
       calls=with_optional(layer_calls(lambda s, n: (
           {"grad_out": s, "input": s, "mean": mean_shape(s, n), "rstd": mean_shape(s, n), "weight": n, "bias": n},
           {"normalized_shape": n})), "weight", "bias"), **_rows)


def rms(x, gamma, epsilon):
    axes = trailing_axes(x, gamma.shape)
    count = math.prod(gamma.shape)
    rstd = 1 / torch.sqrt((x * x).sum(axes, keepdim=True) / count + epsilon)
    return x * rstd * gamma, rstd


define("RmsNorm", lambda x, gamma, epsilon: rms(x, gamma, epsilon), mixed=False, attributes={"epsilon": [1e-6, 0.125]},
       calls=layer_calls(lambda s, n: ({"x": s, "gamma": n}, {})), specials=False, ulps=6)
define("RmsNormGrad", lambda dy, x, rstd, gamma: {
    "dx_out": norm_backward(dy, x * rstd, rstd, gamma, trailing_axes(x, gamma.shape), centred=False),
    "dgamma_out": leading_sum(dy * x * rstd, gamma.shape)},
       terms=lambda dy, x, rstd, gamma: {
           "dx_out": norm_backward_terms(dy, x.abs() * rstd, rstd, gamma, trailing_axes(x, gamma.shape)),
           "dgamma_out": leading_sum((dy * x * rstd).abs(), gamma.shape)}, domains=_rstd, mixed=False, **_rows,
       calls=layer_calls(lambda s, n: ({"dy": s, "x": s, "rstd": mean_shape(s, n), "gamma": n}, {})))


def add_rms(x1, x2, gamma, epsilon):
    y, rstd = rms(x1 + x2, gamma, epsilon)
    return y, rstd, x1 + x2


define("AddRmsNorm", add_rms, mixed=False, attributes={"epsilon": [1e-6, 0.125]}, **_rows,
       terms=lambda x1, x2, gamma, epsilon: {
           "y_out": (x1.abs() + x2.abs()) * add_rms(x1, x2, gamma, epsilon)[1] * gamma.abs(),
           "x_out": x1.abs() + x2.abs()},
       calls=layer_calls(lambda s, n: ({"x1": s, "x2": s, "gamma": n}, {})))


def add_layer_norm(x1, x2, gamma, beta, bias, epsilon, additional_output):
    x = x1 + x2 + (0 if bias is None else bias)
    mean, rstd = standardized(x, trailing_axes(x, gamma.shape), epsilon)
    return {"y_out": affine((x - mean) * rstd, gamma, beta), "mean_out": mean, "rstd_out": rstd,
            "x_out": x if additional_output else torch.zeros_like(x)}


def add_layer_norm_terms(x1, x2, gamma, beta, bias, epsilon):
    x = x1 + x2 + (0 if bias is None else bias)
    size = x1.abs() + x2.abs() + (0 if bias is None else bias.abs())
    _, rstd = standardized(x, trailing_axes(x, gamma.shape), epsilon)
    most = size.max() if size.numel() else torch.zeros([])
    return {"y_out": norm_scale(size, gamma, beta, most, rstd), "mean_out": most, "x_out": size, "rstd_out": rstd}


define("AddLayerNorm", add_layer_norm, terms=add_layer_norm_terms, mixed=False, attributes={"epsilon": [1e-5, 0.125]},
       calls=with_optional(layer_calls(lambda s, n: (
           {"x1": s, "x2": s, "gamma": n, "beta": n, "bias": n}, {})), "bias"), **_rows)


def deep_norm(x, gx, beta, gamma, alpha, epsilon):
    total = x * alpha + gx
    mean, rstd = standardized(total, trailing_axes(x, gamma.shape), epsilon)
    return {"mean_out": mean, "rstd_out": rstd, "y_out": affine((total - mean) * rstd, gamma, beta)}


def deep_norm_terms(x, gx, beta, gamma, alpha, epsilon):
    size = (x * alpha).abs() + gx.abs()
    _, rstd = standardized(x * alpha + gx, trailing_axes(x, gamma.shape), epsilon)
    most = size.max() if size.numel() else torch.zeros([])
    return {"mean_out": most, "rstd_out": rstd, "y_out": norm_scale(size, gamma, beta, most, rstd)}


define("DeepNorm", deep_norm, terms=deep_norm_terms, mixed=False,
       attributes={"epsilon": [1e-6, 0.125], "alpha": [0.25, 2.0]},
       calls=layer_calls(lambda s, n: ({"x": s, "gx": s, "beta": n, "gamma": n}, {})), **_rows)


def add_layer_norm_grad(dy, x1, x2, rstd, mean, gamma, dsum):
    xhat = (x1 + x2 - mean) * rstd
    dx = norm_backward(dy, xhat, rstd, gamma, trailing_axes(dy, gamma.shape))
    return (dx if dsum is None else dx + dsum, leading_sum(dy * xhat, gamma.shape), leading_sum(dy, gamma.shape))


def add_layer_norm_grad_terms(dy, x1, x2, rstd, mean, gamma, dsum):
    xhat = (x1.abs() + x2.abs() + mean.abs()) * rstd
    dx = norm_backward_terms(dy, xhat, rstd, gamma, trailing_axes(dy, gamma.shape))
    return {"dx_out": dx if dsum is None else dx + dsum.abs(), "dgamma_out": leading_sum(dy.abs() * xhat, gamma.shape),
            "dbeta_out": leading_sum(dy.abs(), gamma.shape)}


define("AddLayerNormGrad", add_layer_norm_grad, terms=add_layer_norm_grad_terms, domains=_rstd, mixed=False,
       calls=with_optional(layer_calls(lambda s, n: (
           {"dy": s, "x1": s, "x2": s, "rstd": mean_shape(s, n), "mean": mean_shape(s, n), "gamma": n, "dsum": s},
           {})), "dsum"), **_rows)


def deep_norm_grad(dy, x, gx, gamma, mean, rstd, alpha):
    xhat = (alpha * x + gx - mean) * rstd
    dgx = norm_backward(dy, xhat, rstd, gamma, trailing_axes(dy, gamma.shape))
    return (alpha * dgx, dgx, leading_sum(dy, gamma.shape), leading_sum(dy * xhat, gamma.shape))


def deep_norm_grad_terms(dy, x, gx, gamma, mean, rstd, alpha):
    xhat = ((alpha * x).abs() + gx.abs() + mean.abs()) * rstd
    dgx = norm_backward_terms(dy, xhat, rstd, gamma, trailing_axes(dy, gamma.shape))
    return {"dx_out": abs(alpha) * dgx, "dgx_out": dgx, "dbeta_out": leading_sum(dy.abs(), gamma.shape),
            "dgamma_out": leading_sum(dy.abs() * xhat, gamma.shape)}


define("DeepNormGrad", deep_norm_grad, terms=deep_norm_grad_terms, domains=_rstd, mixed=False,
       attributes={"alpha": [0.25, 2.0]}, calls=layer_calls(lambda s, n: (
           {"dy": s, "x": s, "gx": s, "gamma": n, "mean": mean_shape(s, n), "rstd": mean_shape(s, n)}, {})), **_rows)


def by_channel(t, x):
    return None if t is None else t.reshape([1, -1] + [1] * (x.dim() - 2))


def channel_axes(x):
    return [d for d in range(x.dim()) if d != 1]


def group_norm(self, gamma, beta, group, eps):
    n = self.shape[0]
    x = self.reshape(n, group, -1)
    mean, rstd = standardized(x, [2], eps)
    y = ((x - mean) * rstd).reshape(self.shape)
    return {"out": affine(y, by_channel(gamma, self), by_channel(beta, self)), "mean_out": mean[..., 0],
            "rstd_out": rstd[..., 0]}


def group_norm_terms(self, gamma, beta, group, eps):
    x = self.reshape(self.shape[0], group, -1)
    _, rstd = standardized(x, [2], eps)
    most = self.abs().max() if self.numel() else torch.zeros([])
    size = ((x.abs() + most) * rstd).reshape(self.shape)
    return {"out": affine(size, None if gamma is None else by_channel(gamma, self).abs(),
                          None if beta is None else by_channel(beta, self).abs()),
            "mean_out": most, "rstd_out": rstd[..., 0]}


GROUPS = [([2, 4, 3], 2), ([2, 4, 3], 4), ([2, 4, 3], 1), ([3, 6, 2, 2], 3), ([1, 2, 133], 1), ([2, 6], 2), ([2, 4, 1, 3, 2], 2)]


def group_attributes(shape, group):
    return {"n": shape[0], "c": shape[1], "hxw": math.prod(shape[2:]), "group": group}


define("GroupNorm", group_norm, terms=group_norm_terms, mixed=False, attributes={"eps": [1e-5, 0.125]},
       calls=with_optional([({"self": s, "gamma": [s[1]], "beta": [s[1]]}, group_attributes(s, g))
                            for s, g in GROUPS], "gamma", "beta"), **_rows)


def group_norm_backward(grad_out, input, mean, rstd, gamma, group, magnitude=False):
    n = input.shape[0]
    shape = [n, group, -1]
    if magnitude:
        grad_out, input, mean = grad_out.abs(), input.abs(), -mean.abs()
        gamma = None if gamma is None else gamma.abs()
    xhat = (input.reshape(shape) - mean[..., None]) * rstd[..., None]
    weight = None if gamma is None else by_channel(gamma, input).expand(input.shape).reshape(xhat.shape)
    function = norm_backward_terms if magnitude else norm_backward
    dx = function(grad_out.reshape(shape), xhat, rstd[..., None], weight, [2])
    return {"grad_input": dx.reshape(input.shape),
            "grad_gamma_out": (grad_out * xhat.reshape(input.shape)).sum(channel_axes(input)),
            "grad_beta_out": grad_out.sum(channel_axes(input))}


define("GroupNormBackward", lambda grad_out, input, mean, rstd, gamma, group: group_norm_backward(
    grad_out, input, mean, rstd, gamma, group),
       terms=lambda grad_out, input, mean, rstd, gamma, group: group_norm_backward(
           grad_out, input, mean, rstd, gamma, group, True), domains=_rstd, mixed=False, **_rows,
       calls=with_optional([({"grad_out": s, "input": s, "mean": [s[0], g], "rstd": [s[0], g], "gamma": [s[1]]},
                             group_attributes(s, g)) for s, g in GROUPS], "gamma"))


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    axes = channel_axes(input)
    count = input.numel() // max(input.shape[1], 1)
    results = {}
    if training:
        mean, invstd = standardized(input, axes, eps)
        results["save_mean"], results["save_invstd"] = mean.reshape(-1), invstd.reshape(-1)
        variance = ((input - mean) ** 2).sum(axes) / (count - 1)
        if running_mean is not None:
            results["running_mean"] = (1 - momentum) * running_mean + momentum * mean.reshape(-1)
            results["running_var"] = (1 - momentum) * running_var + momentum * variance
    elif running_mean is None:
        raise Unclear
    else:
        mean = by_channel(running_mean, input)
        invstd = 1 / torch.sqrt(by_channel(running_var, input) + eps)
        results["running_mean"], results["running_var"] = running_mean, running_var
    results["output"] = affine((input - mean) * invstd, by_channel(weight, input), by_channel(bias, input))
    return results


def batch_norm_terms(input, weight, bias, running_mean, running_var, training, eps):
    most = input.abs().max() if input.numel() else torch.zeros([])
    _, invstd = standardized(input, channel_axes(input), eps)
    if not training:
        most = most + running_mean.abs().max()
        invstd = 1 / torch.sqrt(by_channel(running_var, input) + eps)
    return {"output": norm_scale(input, by_channel(weight, input), by_channel(bias, input), most, invstd),
            "save_mean": most, "save_invstd": invstd.reshape(-1), "running_mean": most + 4, "running_var": most**2 + 4}


CHANNELS = [[4, 3, 5], [6, 2], [2, 3, 4, 4], [133, 1], [2, 4, 2, 2, 2], [3, 2, 67]]
define("BatchNorm", batch_norm, terms=batch_norm_terms, domains=_rstd, mixed=False, **_rows,
       attributes={"eps": [1e-5, 0.125], "momentum": [0.5, 0.25]}, calls=[
           ({"input": s, **{n: [s[1]] for n in ("weight", "bias", "running_mean", "running_var")}}, {"training": t})
           for s in CHANNELS for t in (False, True)] + [
               ({"input": s, "weight": [s[1]], "bias": [s[1]]}, {"training": True}) for s in CHANNELS[:2]])


def batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, training, eps,
                        magnitude=False):
    if (save_mean if training else running_mean) is None:
        raise Unclear
    if training:
        mean, invstd = by_channel(save_mean, input), by_channel(save_invstd, input)
    else:
        mean, invstd = by_channel(running_mean, input), 1 / torch.sqrt(by_channel(running_var, input) + eps)
    if magnitude:
        grad_out, input, mean = grad_out.abs(), input.abs(), -mean.abs()
        weight = None if weight is None else weight.abs()
    xhat = (input - mean) * invstd
    weight = by_channel(weight, input)
    axes = channel_axes(input)
    if training:
        dx = (norm_backward_terms if magnitude else norm_backward)(grad_out, xhat, invstd, weight, axes)
    else:
        dx = grad_out * invstd * (1 if weight is None else weight)
    return {"grad_input": dx, "grad_weight": (grad_out * xhat).sum(axes), "grad_bias": grad_out.sum(axes)}


_running = ("running_mean", "running_var")
_saved = ("save_mean", "save_invstd")
define("BatchNormBackward", lambda grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, training,
       eps: batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, training, eps),
       terms=lambda grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, training, eps:
       batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, training, eps, True),
       domains=_rstd, mixed=False, **_rows, calls=[
           ({"grad_out": s, "input": s, **{n: [s[1]] for n in names}}, {"training": t}) for s in CHANNELS
           for t, names in ((True, ("weight", *_running, *_saved)), (False, ("weight", *_running)))] + [
               ({"grad_out": [4, 3, 5], "input": [4, 3, 5], **{n: [3] for n in _saved}}, {"training": True})])


def batch_norm_stats(input, eps):
    mean, invstd = standardized(input, channel_axes(input), eps)
    return mean.reshape(-1), invstd.reshape(-1)


define("BatchNormStats", batch_norm_stats, terms=lambda input, eps: {
    "mean": ones(input), "invstd": batch_norm_stats(input, eps)[1]}, calls=[({"input": s}, {}) for s in CHANNELS],
       attributes={"eps": [1e-5, 0.125]}, **_rows)
define("BatchNormElemt", lambda input, weight, bias, mean, invstd: affine(
    (input - by_channel(mean, input)) * by_channel(invstd, input), by_channel(weight, input), by_channel(bias, input)),
       terms=lambda input, weight, bias, mean, invstd: norm_scale(input, by_channel(weight, input), by_channel(
           bias, input), by_channel(mean, input), by_channel(invstd, input)), domains=_rstd, mixed=False, **_rows,
       calls=[({"input": s, **{n: [s[1]] for n in ("weight", "bias", "mean", "invstd")}}, {}) for s in CHANNELS])


def reduce_backward(grad_out, input, mean, invstd, magnitude=False):
    if magnitude:
        grad_out, input, mean = grad_out.abs(), input.abs(), -mean.abs()
    axes = channel_axes(input)
    sum_dy = grad_out.sum(axes)
    sum_dy_xmu = (grad_out * (input - by_channel(mean, input))).sum(axes)
    return {"sum_dy": sum_dy, "sum_dy_xmu": sum_dy_xmu, "grad_weight": sum_dy_xmu * invstd, "grad_bias": sum_dy}


define("BatchNormReduceBackward", lambda grad_out, input, mean, invstd: reduce_backward(grad_out, input, mean, invstd),
       terms=lambda grad_out, input, mean, invstd: reduce_backward(grad_out, input, mean, invstd, True), domains=_rstd,
       attributes={"input_g": [True], "weight_g": [True], "bias_g": [True]},
       mixed=False, **_rows, calls=with_optional([
           ({"grad_out": s, "input": s, **{n: [s[1]] for n in ("mean", "invstd", "weight")}}, {}) for s in CHANNELS], "weight"))


def elemt_backward(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, counter, magnitude=False):
    n = counter.sum().to(torch.float64)
    if magnitude:
        grad_out, input, mean, sum_dy, sum_dy_xmu = (
            grad_out.abs(), input.abs(), -mean.abs(), -sum_dy.abs(), -sum_dy_xmu.abs())
        weight = None if weight is None else weight.abs()
    c = lambda t: by_channel(t, input)
    slope = grad_out - c(sum_dy) / n - (input - c(mean)) * c(invstd) ** 2 * c(sum_dy_xmu) / n
    return slope * c(invstd) * (1 if weight is None else c(weight))


define("BatchNormElemtBackward", lambda grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, counter:
       elemt_backward(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, counter),
       terms=lambda grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, counter: elemt_backward(
           grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, counter, True),
       domains={**_rstd, "counter": whole_numbers}, dtypes={"counter": "INT32"}, mixed=False, **_rows,
       calls=with_optional([({"grad_out": s, "input": s, "counter": [2], **{
           n: [s[1]] for n in ("mean", "invstd", "weight", "sum_dy", "sum_dy_xmu")}}, {}) for s in CHANNELS], "weight"))
