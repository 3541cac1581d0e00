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
    ({}, {"n": n, "m": m}) for n, m in ((3, 3), (2, 4), (4, 2), (1, 1), (0, 3), (3, 0), (19, 21), (1, 7), (7, 1), (8, 8), (2, 3), (0, 0), (5, 4),
                                                   (16, 3), (3, 16), (6, 6))])
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
    for shapes in (_list[:4], [[4, 5]], [[33], [7]]):
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
          ([1, 2, 5, 32], [1, 2, 5, 32]), ([2, 2, 3, 64], [1, 2, 3, 64])]
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

# Matrices. Sums of n products may be off by n units of rounding at most; by much less, in pieces.

_sums = {"specials": False, "k": 8}


def products(function, *names):
    """A function of tensors, and the same of their magnitudes."""
    return {"function": function, "terms": magnitudes(function)}


def magnitudes(function):
    import inspect
    names = list(inspect.signature(function).parameters)

    def of_magnitudes(**arguments):
        return function(**{n: a.abs() if torch.is_tensor(a) else abs(a) if isinstance(a, (int, float)) and not isinstance(
            a, bool) else a for n, a in arguments.items()})

    of_magnitudes.__signature__ = inspect.signature(function)
    return of_magnitudes


def matrix(names, function, **options):
    define(names, function, **{"terms": magnitudes(function), **_sums, **options})


MATMULS = [([4, 5], [5, 3]), ([5], [5]), ([4, 5], [5]), ([5], [5, 3]), ([2, 4, 5], [2, 5, 3]), ([2, 4, 5], [5, 3]),
           ([1, 4, 5], [3, 5, 2]), ([2, 1, 4, 5], [3, 5, 2]), ([17, 67], [67, 19]), ([1, 133], [133, 1]), ([4, 0], [0, 3]),
           ([0, 4], [4, 3]), ([2, 4, 5], [5]), ([5], [2, 5, 3]), ([33, 34], [34, 35])]
matrix("Matmul", lambda self, mat2: torch.matmul(self, mat2), calls=[({"self": a, "mat2": b}, {}) for a, b in MATMULS])
MMS = [(a, b) for a, b in MATMULS[:-1] if len(a) == len(b) == 2]
BMMS = [([2, 4, 5], [2, 5, 3]), ([3, 1, 7], [3, 7, 2]), ([1, 17, 67], [1, 67, 19]), ([2, 4, 0], [2, 0, 3]), ([0, 4, 5], [0, 5, 3]),
        ([2, 1, 1], [2, 1, 1]), ([5, 9, 8], [5, 8, 9])]
matrix("Mm", lambda self, mat2: torch.mm(self, mat2), calls=[({"self": a, "mat2": b}, {}) for a, b in MMS])
matrix("BatchMatMul", lambda self, mat2: torch.matmul(self, mat2), calls=[
    ({"self": a, "mat2": b}, {}) for a, b in BMMS + [([1, 4, 5], [3, 5, 2])]])


def rows_of(a, b):
    return [*a[:-1], b[-1]]


def added(name_a, name_b, pairs, self_shapes):
    return [({"self": shape, name_a: a, name_b: b}, {}) for a, b in pairs for shape in self_shapes(rows_of(a, b))]


_factors = {"attributes": {"alpha": [2.0, 0.5, ("INT64", 3), 0.0], "beta": [0.5, 0.0, -1.0]}}
matrix("Addmm", lambda self, mat1, mat2, beta, alpha: (beta * self if beta else 0) + alpha * (mat1 @ mat2), **_factors,
       calls=added("mat1", "mat2", MMS[:2], lambda s: [s, s[1:], [s[0], 1], []]) +
       added("mat1", "mat2", MMS[2:], lambda s: [s[1:]]))
matrix("InplaceAddmm", lambda self, mat1, mat2, beta, alpha: (beta * self if beta else 0) + alpha * (mat1 @ mat2),
       **_factors, calls=added("mat1", "mat2", MMS, lambda s: [s]))
matrix("Baddbmm", lambda self, batch1, batch2, beta, alpha: (beta * self if beta else 0) + alpha * (batch1 @ batch2),
       **_factors, calls=added("batch1", "batch2", BMMS, lambda s: [s, s[1:], s[2:]]))
matrix("InplaceBaddbmm", lambda self, batch1, batch2, beta, alpha: (beta * self if beta else 0) + alpha * (
    batch1 @ batch2), **_factors, calls=added("batch1", "batch2", BMMS, lambda s: [s]))
matrix("Addbmm", lambda self, batch1, batch2, beta, alpha: (beta * self if beta else 0) + alpha * (
    batch1 @ batch2).sum(0), **_factors, calls=added("batch1", "batch2", BMMS, lambda s: [s[1:], s[2:]]))
MVS = [([4, 5], [5]), ([17, 67], [67]), ([1, 133], [133]), ([4, 0], [0]), ([0, 4], [4]), ([133, 1], [1])]
matrix("Mv", lambda self, vec: self @ vec, calls=[({"self": a, "vec": b}, {}) for a, b in MVS])
matrix("Addmv", lambda self, mat, vec, alpha, beta: (beta * self if beta else 0 * self) + alpha * (mat @ vec), calls=[
    ({"self": shape, "mat": a, "vec": b}, {}) for a, b in MVS for shape in ([a[0]], [1], [])],
       attributes={"alpha": lambda d: [2, 3] if d not in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else [2.0, 0.5],
                   "beta": lambda d: [0, 2] if d not in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else [0.0, 0.5]})
matrix("Dot", lambda self, tensor: (self * tensor).sum(), calls=[
    ({"self": [n], "tensor": [n]}, {}) for n in (5, 1, 133, 0, 1000, 64, 17)])
matrix("Ger", lambda self, vec2: torch.outer(self, vec2), calls=[
    ({"self": [n], "vec2": [m]}, {}) for n, m in ((4, 5), (1, 1), (133, 2), (0, 3), (3, 0), (17, 19))])


def gemm(a, b, c, alpha, beta, trans_a, trans_b):
    return alpha * ((a.t() if trans_a else a) @ (b.t() if trans_b else b)) + beta * c


matrix("Gemm", gemm, attributes={"alpha": [2.0, 0.5], "beta": [0.5, 0.0], "trans_a": [0], "trans_b": [0]}, calls=[
    ({"a": a[::-1] if ta else a, "b": b[::-1] if tb else b, "c": c}, {"trans_a": ta, "trans_b": tb})
    for a, b in MMS[:3] for ta, tb in ((0, 0), (1, 0), (0, 1), (1, 1)) for c in (rows_of(a, b), [b[-1]])])

# Indices


def below(limit):
    """Indices less than it."""
    return lambda shape, random: random.integers(0, max(limit, 1), shape)


def both_signs(limit):
    return lambda shape, random: random.integers(-limit, limit, shape)


def apart(limit, axis):
    """Indices that differ along an axis."""
    def draw(shape, random):
        shape = list(shape)
        whole = list(shape)
        if shape:
            whole[axis] = limit
        order = np.argsort(random.random(whole), axis=axis if shape else None)
        return np.take(order, range(shape[axis]), axis=axis) if shape else np.zeros([], np.int64)
    return draw


define("Embedding", lambda weight, indices: weight[indices], specials=False, mixed=False, dtypes={"indices": "INT64"}, calls=[
    ({"weight": w, "indices": i}, {}, {"indices": below(w[0])}) for w, i in (
        ([10, 4], [5]), ([10, 4], [2, 3]), ([10, 4], []), ([3, 67], [7]), ([3, 1], [2, 0]), ([133, 3], [64]),
        ([2, 2], [1, 2, 1, 2, 1, 2, 2]), ([1, 5], [9]))], extra=lambda operator: index_dtypes(operator, "indices"))


def index_dtypes(operator, *names):
    """The first call again with each dtype of the indices."""
    operator.call_domains = {}
    shapes, attributes, domains = operator.entry.calls[0]
    operator.call_domains = domains
    by_name = {a.name: a for a in operator.attributes}
    for dtype in ("INT32", "INT64", "UINT8", "INT8", "INT16"):
        chosen = operator.uniform("FLOAT")
        for argument in operator.inputs:
            if argument.name in names:
                if dtype not in argument.dtypes.split() and "integers" not in argument.dtypes.split():
                    return
                chosen[argument.name] = dtype
        operator.add(f"indices of {dtype}", operator.make_inputs(shapes, chosen),
                     {n: operator.as_value(by_name[n], v) for n, v in attributes.items()})


def embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    rows = grad.reshape(-1, grad.shape[-1])
    flat = indices.reshape(-1)
    out = torch.zeros(num_weights, grad.shape[-1], dtype=torch.float64)
    counts = torch.bincount(flat, minlength=num_weights) if flat.numel() else None
    for i, index in enumerate(flat.tolist()):
        if index != padding_idx:
            out[index] += rows[i] / (int(counts[index]) if scale_grad_by_freq else 1)
    return out


define("EmbeddingDenseBackward", embedding_backward, specials=False, mixed=False, k=8, dtypes={"indices": "INT64"}, calls=[
    ({"grad": [*i, c], "indices": i}, {"num_weights": n, "padding_idx": p, "scale_grad_by_freq": s}, {"indices": below(n)})
    for i, c, n, p, s in (([5], 4, 10, -1, False), ([2, 3], 4, 3, -1, False), ([2, 3], 4, 3, 1, True), ([64], 3, 4, 2, False),
                          ([64], 67, 4, -1, True), ([0], 3, 4, -1, False), ([7], 1, 1, -1, False), ([9], 2, 3, 0, True))],
       terms=lambda grad, indices, num_weights: embedding_backward(grad.abs(), indices, num_weights, -1, False),
       extra=lambda operator: index_dtypes(operator, "indices"))
GATHERS = [([4, 5], 1, [4, 3]), ([4, 5], 0, [2, 5]), ([4, 5], -1, [3, 9]), ([133], 0, [67]), ([2, 3, 4], 1, [2, 2, 3]),
           ([4, 5], 0, [0, 5]), ([1, 2, 1, 3, 1, 2, 1, 2], 3, [1, 2, 1, 2, 1, 2, 1, 2]), ([], 0, [])]
define("Gather", lambda self, dim, index: torch.gather(self, dim, index), specials=False, mixed=False,
       dtypes={"index": "INT64"}, calls=[({"self": s, "index": i}, {"dim": d}, {"index": below(s[d] if s else 1)})
                                         for s, d, i in GATHERS], extra=lambda operator: index_dtypes(operator, "index"))


def take(self, dim, index):
    dim %= max(self.dim(), 1)
    flat = torch.index_select(self, dim, index.reshape(-1))
    return flat.reshape([*self.shape[:dim], *index.shape, *self.shape[dim + 1:]])


TAKES = [([4, 5], 1, [3]), ([4, 5], 0, [7]), ([4, 5], -1, []), ([133], 0, [67]), ([2, 3, 4], 1, [5]), ([4, 5], 0, [0]),
         ([1, 2, 1, 3, 1, 2, 1, 2], 3, [4])]
define("GatherV2", take, specials=False, mixed=False, dtypes={"index": "INT64"}, calls=[
    ({"self": s, "index": i}, {"dim": d}, {"index": below(s[d])})
    for s, d, i in TAKES + [([4, 5], 1, [2, 3]), ([4, 5], 0, [2, 1, 2])]],
       extra=lambda operator: index_dtypes(operator, "index"))
define("IndexSelect", lambda self, dim, index: torch.index_select(self, dim, index.reshape(-1)), specials=False,
       mixed=False, dtypes={"index": "INT64"}, calls=[
           ({"self": s, "index": i}, {"dim": d}, {"index": below(s[d])}) for s, d, i in TAKES],
       extra=lambda operator: index_dtypes(operator, "index"))


def gather_nd(self, indices):
    places = tuple(indices[..., k] for k in range(indices.shape[-1]))
    return self[places] if places else self.expand([*indices.shape[:-1], *self.shape])


define("GatherNd", gather_nd, specials=False, mixed=False, dtypes={"indices": "INT64"}, calls=[
    ({"self": s, "indices": i}, {"negative_index_support": n}, {"indices": both_signs(min(s)) if n else below(min(s))})
    for s, i, n in (([4, 5], [3, 1], False), ([4, 5], [3, 2], False), ([2, 3, 4], [5, 2], False), ([4, 5], [2, 3, 2], False),
                    ([133], [67, 1], False), ([4, 5], [2], False), ([4, 5], [3, 2], True), ([2, 3, 4], [0, 2], False))])
INDICES = [([4, 5], [[3]]), ([4, 5], [[3], [3]]), ([2, 3, 4], [[2, 2], [2]]), ([4, 5], [[2, 1], [3]]), ([133], [[67]]),
           ([3, 3, 3], [[2], [2], [2]]), ([4, 5], [[]]), ([4, 5], [[0]])]


def small_indices(shape, indices):
    return both_signs(min(shape[:len(indices)]))


define("Index", lambda self, indices: self[tuple(indices)], specials=False, mixed=False, dtypes={"indices": "INT64"},
       calls=[({"self": s, "indices": i}, {}, {"indices": small_indices(s, i)}) for s, i in INDICES],
       extra=lambda operator: index_dtypes(operator, "indices"))


def index_add(self, dim, index, source, alpha):
    result = self.clone()
    if not self.dim():
        return result + alpha * source.reshape(())
    index = index.reshape(-1)
    for i, at in enumerate(index.tolist()):
        result.select(dim, at).add_(alpha * source.select(dim, i))
    return result


def with_extent(shape, dim, extent):
    shape = list(shape)
    shape[dim] = extent
    return shape


_add_calls = [({"self": s, "index": i, "source": with_extent(s, d, i[0] if i else 1)}, {"dim": d}, {"index": below(s[d])})
              for s, d, i in TAKES if i]
_whole_alpha = {"attributes": {"alpha": lambda d: [1, 2] if d not in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else [2.0, 0.5]}}
define("IndexAdd", index_add, specials=False, mixed=False, dtypes={"index": "INT64"}, calls=_add_calls, k=8, **_whole_alpha,
       terms=lambda self, dim, index, source, alpha: index_add(self.abs(), dim, index, source.abs(), abs(alpha)),
       extra=lambda operator: index_dtypes(operator, "index"))


def index_put(self, indices, values, accumulate):
    self = self.clone()
    shape = self[tuple(indices)].shape
    places = [p + (p < 0) * n for p, n in zip(torch.broadcast_tensors(*indices), self.shape)]
    values = values.expand(shape)
    seen = set()
    for at in itertools.product(*map(range, places[0].shape)):
        place = tuple(int(p[at]) for p in places)
        if not accumulate and place in seen:
            raise Unclear
        seen.add(place)
        if accumulate:
            self[place] += values[at]
        else:
            self[place] = values[at]
    return self


define("IndexPutImpl", index_put, specials=False, mixed=False, dtypes={"indices": "INT64"}, k=8, calls=[
    ({"self": s, "indices": i, "values": v}, {"accumulate": a}, {"indices": below(min(s[:len(i)])) if a else (
        lambda shape, random, n=min(s[:len(i)]): random.permutation(n)[:shape[0]])})
    for s, i, v, a in (([4, 5], [[3]], [3, 5], False), ([4, 5], [[3]], [5], False), ([4, 5], [[3], [3]], [3], False),
                       ([133], [[67]], [67], False), ([2, 3, 4], [[2], [2]], [2, 4], False), ([4, 5], [[7]], [7, 5], True),
                       ([4, 5], [[3], [3]], [], True), ([133], [[67]], [67], True), ([3, 3, 3], [[5], [5], [5]], [5], True))],
       terms=lambda self, indices, values: self.abs() + values.abs().max() * 8 if values.numel() else self.abs())


def scatter(self, dim, index, src, reduce):
    if not self.dim():
        value = src if torch.is_tensor(src) else torch.as_tensor(src, dtype=self.dtype)
        return [value.reshape([]).clone(), self + value, self * value][reduce]
    if not torch.is_tensor(src):
        src = torch.full(index.shape, src, dtype=self.dtype)
    result = self.clone().numpy()
    for at in itertools.product(*map(range, index.shape)):
        to = list(at)
        to[dim] = int(index[at])
        to = tuple(to)
        value = src[at].item()
        if reduce == 0:
            result[to] = value
        elif reduce == 1:
            result[to] += value
        else:
            result[to] *= value
    return torch.from_numpy(result)


SCATTERS = [([4, 5], 1, [4, 3]), ([4, 5], 0, [2, 5]), ([4, 5], -1, [3, 4]), ([133], 0, [67]), ([2, 3, 4], 1, [2, 2, 3]),
            ([4, 5], 0, [0, 5]), ([1, 2, 1, 3, 1, 2, 1, 2], 3, [1, 2, 1, 2, 1, 2, 1, 2])]


def scatter_calls(source, reductions):
    return [({"self": s, "index": i, **({"src": i} if source else {})}, {"dim": d, **({"reduce": r} if r is not None else {})},
             {"index": below(s[d]) if r in (None, 1) and source else apart(s[d], d % len(s)), "self": (-4, 4), "src": (-2, 2)})
            for s, d, i in SCATTERS for r in reductions]


_scatter = {"specials": False, "mixed": False, "dtypes": {"index": "INT64"}, "k": 16}
define("Scatter", lambda self, dim, index, src, reduce: scatter(self, dim, index, src, reduce), **_scatter,
       calls=scatter_calls(True, (0, 1, 2)), attributes={"reduce": [0, "replace"]},
       terms=lambda self, dim, index, src, reduce: scatter(self.abs(), dim, index, src.abs(), reduce))
define("ScatterValue", lambda self, dim, index, value, reduce: scatter(self, dim, index, value, reduce), **_scatter,
       calls=[({n: s for n, s in c[0].items()}, {**c[1], "value": 2}, c[2]) for c in scatter_calls(False, (0, 1, 2))],
       attributes={"reduce": [0], "value": lambda d: [2, 3] if d not in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else [0.5, 2]},
       terms=lambda self, dim, index, value, reduce: scatter(self.abs(), dim, index, abs(value), reduce))
define("ScatterAdd", lambda self, dim, index, src: scatter(self, dim, index, src, 1), **_scatter,
       calls=scatter_calls(True, (None,)),
       terms=lambda self, dim, index, src: scatter(self.abs(), dim, index, src.abs(), 1),
       extra=lambda operator: index_dtypes(operator, "index"))


def scatter_nd(self, indices, updates):
    result = self.clone()
    places = tuple(indices[..., k] for k in range(indices.shape[-1]))
    result[places] = updates
    return result


define("ScatterNdUpdate", scatter_nd, specials=False, mixed=False, dtypes={"indices": "INT64"}, calls=[
    ({"self": s, "indices": i, "updates": [*i[:-1], *s[i[-1]:]]}, {}, {
        "indices": lambda shape, random, n=s[0]: np.repeat(random.permutation(n)[:shape[0]], shape[1]).reshape(shape)})
    for s, i in (([4, 5], [3, 1]), ([4, 5], [4, 2]), ([133], [67, 1]), ([3, 4, 2], [2, 2]), ([5, 3], [0, 1]), ([7, 7], [5, 2]))])


def unfold_grad(grad_out, input_sizes, dim, size, step):
    result = torch.zeros(input_sizes, dtype=torch.float64)
    dim %= max(len(input_sizes), 1)
    for i in range(grad_out.shape[dim]):
        window = grad_out.select(dim, i).movedim(-1, dim) if grad_out.dim() > 1 else grad_out
        result.narrow(dim, i * step, size).add_(window)
    return result


define("UnfoldGrad", unfold_grad, specials=False, k=8, calls=[
    ({"grad_out": [*s[:d], (s[d] - n) // step + 1, *s[d + 1:], n]}, {"input_sizes": s, "dim": d, "size": n, "step": step})
    for s, d, n, step in (([9], 0, 3, 2), ([4, 7], 1, 3, 1), ([7, 4], 0, 2, 2), ([2, 8, 3], 1, 4, 3), ([133], 0, 5, 4),
                          ([5], 0, 5, 1), ([6], 0, 2, 4))], attributes={n: [] for n in ("input_sizes", "dim", "size", "step")},
       terms=lambda grad_out, input_sizes, dim, size, step: unfold_grad(grad_out.abs(), input_sizes, dim, size, step))


def scatter_update(data, indices, updates, axis):
    result = data.clone()
    axis %= data.dim()
    for b in range(updates.shape[0]):
        part = result[b].narrow(axis - 1, int(indices[b]), updates.shape[axis])
        for d in range(1, data.dim()):
            if d != axis:
                part = part.narrow(d - 1, 0, updates.shape[d])
        part.copy_(updates[b])
    return result


define("InplaceScatterUpdate", scatter_update, specials=False, mixed=False, dtypes={"indices": "INT64"}, calls=[
    ({"data": s, "indices": [s[0]], "updates": with_extent(s, a, n)}, {"axis": a}, {"indices": below(s[a] - n + 1)})
    for s, a, n in (([2, 5, 3], -2, 2), ([2, 5, 3], 1, 1), ([3, 2, 9], -1, 4), ([2, 2, 5, 3], -2, 2), ([4, 7, 1], 1, 7))])

# Order


def cumulative(x, dim, exclusive, reverse):
    if reverse:
        return cumulative(x.flip(dim), dim, exclusive, False).flip(dim)
    total = torch.cumsum(x, dim)
    return total - x if exclusive else total


def axis_calls(name, more=({},)):
    return [({name: s}, {"dim": d, **m}) for s, d in (
        ([4, 5], 1), ([4, 5], 0), ([2, 3, 4], -2), ([133], 0), ([3, 67], 1), ([67, 3], 0), ([1], 0), ([0, 3], 1),
        ([1, 2, 1, 3, 1, 2, 1, 2], 3), ([4, 1], 1)) for m in more]


def kept_or_wide(dtype):
    return [dtype, "FLOAT"] if dtype in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else ["INT64", dtype]


define("Cumsum", lambda self, dim: torch.cumsum(self, dim), k=16, specials=False, calls=axis_calls("self"),
       terms=lambda self, dim: torch.cumsum(self.abs(), dim), attributes={"dtype": kept_or_wide})
define("CumsumV2", lambda self, dim, exclusive, reverse: cumulative(self, dim, exclusive, reverse), k=16,
       specials=False, calls=axis_calls("self", ({}, {"exclusive": True}, {"reverse": True}, {"exclusive": True, "reverse": True})),
       terms=lambda self, dim, exclusive, reverse: cumulative(self.abs(), dim, exclusive, reverse))
define("Cumprod", lambda input, dim: torch.cumprod(input, int(dim)), k=140, specials=False,
       calls=[(s, {"dim": ("INT64", a["dim"])}) for s, a in axis_calls("input")], domains={"input": (-1.5, 1.5)},
       terms=lambda input, dim: torch.cumprod(input.abs(), int(dim)), attributes={"dtype": kept_or_wide, "dim": []})


def ordered(self, dim, descending):
    if not self.dim():
        return self, torch.zeros([], dtype=torch.int64)
    return tuple(torch.sort(self, dim=dim, descending=descending, stable=True))


define("Sort", lambda self, dim, descending: ordered(self, dim, descending), specials=False, attributes={"stable": [True]},
       calls=axis_calls("self", ({"stable": True}, {"stable": True, "descending": True})) + [
           ({"self": [20]}, {"dim": 0, "descending": d}, {"self": lambda s, r: np.array(
               [math.nan, 1, INF, -INF, 0, math.nan, 3, 1, 1, 2] * 2)}) for d in (False, True)],
       only_dtypes=["FLOAT", "FLOAT16", "BF16", "INT32", "INT64"])


def top(self, k, dim, largest):
    values, places = ordered(self, dim, largest)
    return values.narrow(dim, 0, k), places.narrow(dim, 0, k)


define("Topk", top, specials=False, domains={"self": "distinct"}, attributes={"sorted": [True]}, calls=[
    ({"self": s}, {"dim": d, "k": k, "largest": g}) for s, d, k in (
        ([4, 5], 1, 2), ([4, 5], 0, 4), ([2, 3, 4], -2, 1), ([133], 0, 67), ([3, 67], 1, 5), ([67, 3], 0, 7), ([1], 0, 1),
        ([4, 5], 1, 0), ([1, 2, 1, 3, 1, 2, 1, 2], 3, 2)) for g in (True, False)])


def one_hot(self, num_classes, on_value, off_value, axis):
    classes = torch.arange(num_classes)
    mark = self.unsqueeze(-1) == classes
    mark = mark.movedim(-1, axis) if axis != -1 else mark
    return torch.where(mark, on_value.reshape(()), off_value.reshape(()))


define("OneHot", one_hot, specials=False, mixed=False, dtypes={"on_value": "FLOAT", "off_value": "FLOAT"}, calls=[
    ({"self": s, "on_value": [1], "off_value": [1]}, {"num_classes": n, "axis": a}, {"self": below(n + 1)}) for s, n, a in (
        ([5], 4, -1), ([5], 4, 0), ([2, 3], 3, 1), ([133], 7, -1), ([0], 3, -1), ([4, 5], 1, -1), ([2, 3, 4], 5, 2))],
       extra=lambda operator: [operator.add(f"values of {d}", operator.make_inputs(
           {"self": [2, 3], "on_value": [1], "off_value": [1]}, {"self": "INT64", "on_value": d, "off_value": d}),
           {"num_classes": {"int64_value": 4}}) for d in ("FLOAT16", "INT8", "UINT8", "INT32", "INT64")])

# Losses of classes


def nll_parts(self, target, weight, ignore_index, axis):
    classes = self.shape[axis]
    used = target != ignore_index
    place = torch.where(used, target, torch.zeros_like(target))
    chosen = torch.gather(self, axis, place.unsqueeze(axis)).squeeze(axis) if self.dim() else self
    weights = weight[place] * used
    del classes
    return chosen, weights


def nll(self, target, weight, reduction, ignore_index):
    axis = 1 if self.dim() > 1 else 0
    chosen, weights = nll_parts(self, target, weight, ignore_index, axis)
    losses = -chosen * weights
    total = weights.sum()
    if reduction == 0:
        return losses if losses.dim() else losses.reshape([]), None
    return (losses.sum() / (total if reduction == 1 else 1)).reshape([1]), total.reshape([1])


def nll_outputs(self, target, weight, reduction, ignore_index):
    out, total = nll(self, target, weight, reduction, ignore_index)
    return {"out": out, **({"total_weight_out": total} if total is not None else {})}


def nll_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    axis = 1 if self.dim() > 1 else 0
    _, weights = nll_parts(self, target, weight, ignore_index, axis)
    grads = grad_output.reshape(target.shape) if reduction == 0 else grad_output.reshape(())
    slope = -weights * grads
    if reduction == 1:
        slope = slope / total_weight.reshape(())
    place = torch.where(target == ignore_index, torch.zeros_like(target), target)
    return torch.zeros_like(self).scatter_(axis, place.unsqueeze(axis), slope.unsqueeze(axis))


def nll_calls(shapes, backward):
    calls = []
    for shape in shapes:
        classes = shape[1] if len(shape) > 1 else shape[0]
        target = shape[:1] + shape[2:] if len(shape) > 1 else []
        for reduction in (0, 1, 2):
            for ignored in (-100, 1):
                given = {"self": shape, "target": target, "weight": [classes]}
                if backward:
                    given.update(grad_output=target if reduction == 0 else [1], total_weight=[1])
                calls.append((given, {"reduction": reduction, "ignore_index": ignored}, {"target": below(classes)}))
    return calls


FLAT = [[4, 5], [133, 3], [1, 1], [7, 67], [6]]
IMAGES = [[2, 3, 4, 5], [1, 4, 1, 1], [2, 2, 7, 9]]
_nll = {"specials": False, "mixed": False, "domains": {"weight": (0.1, 2), "total_weight": (1, 5)},
        "attributes": {"reduction": [], "ignore_index": []}, "dtypes": {"target": "INT64"}, "k": 16}
for _name, _shapes in (("NllLoss", FLAT), ("NllLoss2d", IMAGES)):
    define(_name, nll_outputs, calls=nll_calls(_shapes, False), **_nll,
           terms=lambda self, target, weight, reduction, ignore_index: {
               "out": nll(-self.abs(), target, weight, reduction, ignore_index)[0],
               "total_weight_out": weight.sum() * max(target.numel(), 1)},
           extra=lambda operator: index_dtypes(operator, "target"))
    define(_name + "Backward", nll_backward, calls=nll_calls(_shapes, True), ulps=3, **_nll,
           extra=lambda operator: index_dtypes(operator, "target"))


def cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing):
    log_prob = torch.log_softmax(input, 1)
    weight = torch.ones(input.shape[1], dtype=torch.float64) if weight is None else weight
    chosen, weights = nll_parts(log_prob, target, weight, ignore_index, 1)
    used = (target != ignore_index).to(torch.float64)
    smooth = -(log_prob * weight).sum(1) * used / input.shape[1]
    losses = (1 - label_smoothing) * -chosen * weights + label_smoothing * smooth
    total = weights.sum()
    reduction = reduction or "mean"
    loss = losses if reduction == "none" else (losses.sum() / (total if reduction == "mean" else 1)).reshape([1])
    return {"loss_out": loss, "log_prob_out": log_prob}


def class_calls(names, **more):
    return [({n: s for n in names} | {"target": s[:1]} | {n: [1] if r != "none" else s[:1] for n in more.get("grads", ())} |
             ({"weight": [s[1]]} if w else {}),
             {"reduction": r, "ignore_index": i}, {"target": below(s[1])})
            for s in ([4, 5], [67, 3], [1, 133], [3, 1]) for r in ("none", "mean", "sum") for w in (True, False)
            for i in (-100, 1)]


_classes = {"specials": False, "mixed": False, "k": 16, "dtypes": {"target": "INT64"}}
define("CrossEntropyLoss", cross_entropy, calls=class_calls(["input"]), domains={"weight": (0.1, 2)},
       attributes={"label_smoothing": [0.25, 1.0, 0.0], "lse_square_scale_for_zloss": [0.0], "return_zloss": [False],
                   "reduction": [], "ignore_index": []},
       terms=lambda input, reduction: {
           "log_prob_out": ones(input), "loss_out": ones(input) * (input.shape[0] if reduction == "sum" else 1)}, **_classes)


def cross_entropy_grad(grad_loss, log_prob, target, weight, reduction, ignore_index):
    weight = torch.ones(log_prob.shape[1], dtype=torch.float64) if weight is None else weight
    _, weights = nll_parts(log_prob, target, weight, ignore_index, 1)
    reduction = reduction or "mean"
    grads = grad_loss.reshape(target.shape) if reduction == "none" else grad_loss.reshape(())
    if reduction == "mean":
        grads = grads / weights.sum()
    place = torch.where(target == ignore_index, torch.zeros_like(target), target)
    hot = F.one_hot(place, log_prob.shape[1]).to(torch.float64)
    return (grads * weights).unsqueeze(1) * (torch.exp(log_prob) - hot)


define("CrossEntropyLossGrad", cross_entropy_grad, calls=class_calls(["log_prob"], grads=["grad_loss"]),
       domains={"log_prob": (-4, 0), "weight": (0.1, 2)},
       attributes={"reduction": [], "ignore_index": [], "label_smoothing": [], "lse_square_scale_for_zloss": []},
       terms=lambda grad_loss, log_prob: ones(grad_loss), **_classes)


def softmax_loss(features, labels):
    log_prob = torch.log_softmax(features, 1)
    return -(labels * log_prob).sum(1), torch.exp(log_prob) - labels


define("SoftmaxCrossEntropyWithLogits", softmax_loss, specials=False, k=16, domains={"labels": (0, 1)},
       calls=[({"features": s, "labels": s}, {}) for s in ([4, 5], [133, 3], [3, 133], [1, 1], [0, 3], [17, 19])],
       terms=lambda features, labels: {"loss": ones(features) * (labels.sum(1) + 1), "backprop": labels + 1})


def multilabel(self, target, reduction):
    rows, labels = (self, target) if self.dim() > 1 else (self.reshape(1, -1), target.reshape(1, -1))
    classes = rows.shape[1]
    marks = torch.zeros_like(rows)
    losses = torch.zeros(rows.shape[0], dtype=torch.float64)
    for n in range(rows.shape[0]):
        mine = []
        for t in labels[n].tolist():
            if t < 0:
                break
            mine.append(t)
            marks[n, t] = 1
        for t in mine:
            for i in range(classes):
                if not marks[n, i]:
                    losses[n] += max(0.0, 1 - float(rows[n, t] - rows[n, i]))
        losses[n] /= classes
    losses = losses if self.dim() > 1 else losses.reshape([])
    return {"out": reduced(losses, reduction), "is_target": marks.reshape(self.shape)}


define("MultilabelMarginLoss", multilabel, specials=False, mixed=False, k=64, dtypes={"target": "INT64"},
       terms=lambda self, target: {"out": ones(self)}, calls=[
           ({"self": s, "target": s}, {}, {"target": lambda shape, random, c=s[-1]: np.where(
               np.arange(c) < c // 2, np.argsort(random.random(shape)), -1)}) for s in ([4, 5], [6], [1, 1], [7, 19], [2, 64])])

# Masks of bits


def bits_of(mask, count):
    return torch.from_numpy(np.unpackbits(mask.numpy().astype(np.uint8), bitorder="little")[:count].astype(np.float64))


def any_bytes(shape, random):
    return random.integers(0, 256, shape)


MASKS = [[4, 5], [133], [2, 3, 4], [1], [17, 19], [0, 3], [128]]


def mask_bytes(shape):
    return [(math.prod(shape) + 127) // 128 * 16]


define("DropoutDoMask", lambda self, mask, prob: self * bits_of(mask, self.numel()).reshape(self.shape) / (1 - prob)
       if prob < 1 else torch.zeros_like(self), specials=False, mixed=False, domains={"mask": any_bytes},
       calls=[({"self": s, "mask": mask_bytes(s)}, {"prob": p}) for s in MASKS for p in (0.5, 0.25, 0.0)])
define("DropoutBackward", lambda grad_output, mask, scale: torch.where(
    bits_of(mask, grad_output.numel()).reshape(grad_output.shape) != 0, grad_output * scale, torch.zeros_like(grad_output)),
       specials=False, mixed=False, domains={"mask": any_bytes},
       calls=[({"grad_output": s, "mask": mask_bytes(s)}, {"scale": p}) for s in MASKS for p in (2.0, 1.25, 1.0)])


def masked_scatter(self, mask, source):
    mask = (mask != 0).expand(self.shape)
    if int(mask.sum()) > source.numel():
        raise Unclear
    result = self.clone()
    result[mask] = source.reshape(-1)[:int(mask.sum())]
    return result


define("InplaceMaskedScatter", masked_scatter, specials=False, mixed=False, dtypes={"mask": "BOOL"}, calls=[
    ({"self": s, "mask": m, "source": o}, {}) for s, m, o in (
        ([4, 5], [4, 5], [20]), ([4, 5], [5], [4, 5]), ([133], [133], [133]), ([], [], [1]), ([0, 3], [3], [0]),
        ([2, 3, 4], [3, 1], [24]), ([4, 5], [], [30]))])


def dropped(input, p, train):
    if train and 0 < p < 1:
        raise Unclear  # random
    return {"out": torch.zeros_like(input) if train and p == 1 else input}


define("Dropout", dropped, specials=False, calls=[
    ({"input": s}, {"p": p, "train": t, "seed": 7, "offset": 0}) for s in ([4, 5], [133], [], [0, 3], [2, 3, 4])
    for p, t in ((0.5, False), (0.0, True), (1.0, True))], attributes={"p": [0.0, 1.0], "train": []})


def all_bits(shape, prob):
    if 0 < prob < 1:
        raise Unclear
    return torch.full(mask_bytes(shape), 0 if prob == 1 else 255, dtype=torch.int64)


define("DropoutGenMask", all_bits, calls=[({}, {"shape": s, "prob": p, "seed": 7}) for s in ([128], [2, 128], [256], [128, 3])
                                          for p in (0.0, 1.0)], specials=False)

# Windows


def convolve(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    return torch.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def conv_calls():
    cases = []
    for n, (x, w, stride, pad, dilation, transposed, more, groups) in enumerate((
            ([2, 3, 5, 6], [4, 3, 2, 3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
            ([2, 3, 5, 6], [4, 3, 3, 3], [2, 1], [1, 2], [1, 1], False, [0, 0], 1),
            ([1, 4, 7, 7], [4, 2, 3, 3], [1, 1], [1, 1], [2, 2], False, [0, 0], 2),
            ([1, 4, 6, 6], [4, 1, 3, 3], [2, 2], [1, 1], [1, 1], False, [0, 0], 4),
            ([2, 3, 4, 5], [3, 4, 2, 3], [2, 2], [0, 1], [1, 1], True, [1, 0], 1),
            ([1, 4, 4, 4], [4, 2, 3, 3], [1, 1], [1, 1], [1, 1], True, [0, 0], 2),
            ([2, 3, 9], [4, 3, 3], [2], [1], [1], False, [0], 1),
            ([1, 2, 4, 5, 3], [3, 2, 2, 2, 2], [1, 1, 1], [0, 1, 0], [1, 1, 1], False, [0, 0, 0], 1),
            ([1, 16, 8, 8], [8, 16, 1, 1], [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
            ([2, 3, 8, 8], [16, 3, 3, 3], [1, 1], [1, 1], [1, 1], False, [0, 0], 1))):
        attributes = {"stride": stride, "padding": pad, "dilation": dilation, "transposed": transposed,
                      "output_padding": more, "groups": groups}
        out = w[1] * groups if transposed else w[0]
        cases.append((x, w, out, attributes))
    return cases


_conv = {"specials": False, "mixed": False, "k": 8, "attributes": {"transposed": [], "groups": []}}
define("Convolution", convolve, terms=magnitudes(convolve), **_conv, calls=[
    ({"input": x, "weight": w, **({"bias": [out]} if biased else {})}, a) for x, w, out, a in conv_calls() for biased in (True, False)])


def conv_backward(grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups):
    input, weight = (t.detach().clone().requires_grad_() for t in (input, weight))
    with torch.enable_grad():
        out = convolve(input, weight, None, stride, padding, dilation, transposed, output_padding, groups)
        grads = torch.autograd.grad(out, (input, weight), grad_output)
    return {"grad_input": grads[0], "grad_weight": grads[1], "grad_bias": grad_output.sum(channel_axes(grad_output))}


define("ConvolutionBackward", conv_backward, **_conv,
       terms=lambda grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups: conv_backward(
           grad_output.abs(), input.abs(), weight.abs(), stride, padding, dilation, transposed, output_padding, groups),
       calls=[({"grad_output": list(convolve(torch.zeros(x), torch.zeros(w), None, *a.values()).shape), "input": x, "weight": w},
               {**a, "bias_sizes": [out]}) for x, w, out, a in conv_calls()])


def average(self, kernel_size, strides, paddings, ceil_mode, count_include_pad, divisor_override):
    return F.avg_pool2d(self, kernel_size, strides or None, paddings, ceil_mode, count_include_pad, divisor_override or None)


POOLS = [([2, 3, 6, 7], [2, 2], [2, 2], [0, 0], False), ([2, 3, 6, 7], [3, 2], [1, 2], [1, 1], False),
         ([3, 6, 7], [2, 3], [2, 2], [0, 1], True), ([1, 1, 5, 5], [5, 5], [1, 1], [0, 0], False),
         ([2, 2, 7, 7], [3, 3], [2, 2], [1, 1], True), ([1, 2, 4, 4], [2, 2], [], [0, 0], False),
         ([1, 2, 33, 17], [3, 3], [2, 1], [1, 0], False)]
_pool = {"specials": False, "mixed": False, "k": 8}
_pool_modes = [(c, d) for c in (True, False) for d in (0, 3)]
define("AvgPool2d", average, terms=magnitudes(average), **_pool, attributes={"divisor_override": [], "ceil_mode": []}, calls=[
    ({"self": s}, {"kernel_size": k, "strides": st, "paddings": p, "ceil_mode": c, "count_include_pad": i, "divisor_override": d})
    for s, k, st, p, c in POOLS for i, d in _pool_modes])


def average_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    x = torch.zeros_like(self).requires_grad_()
    with torch.enable_grad():
        out = average(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return torch.autograd.grad(out, x, grad_output)[0]


def pooled(shape, kernel, stride, padding, ceil):
    return list(F.avg_pool2d(torch.zeros(shape), kernel, stride or None, padding, ceil).shape)


define("AvgPool2dBackward", average_backward, **_pool, attributes={"divisor_override": [], "ceil_mode": []},
       terms=lambda grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override:
       average_backward(grad_output.abs(), self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override),
       calls=[({"grad_output": pooled(s, k, st, p, c), "self": s},
               {"kernel_size": k, "stride": st, "padding": p, "ceil_mode": c, "count_include_pad": i, "divisor_override": d})
              for s, k, st, p, c in POOLS for i, d in _pool_modes])


def largest(self, kernel_size, stride, padding, dilation, ceil_mode):
    return F.max_pool2d(self, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True)


MAX_POOLS = [(*p, d) for p, d in zip(POOLS, ([1, 1], [1, 1], [2, 2], [1, 1], [1, 1], [1, 1], [2, 3]))]
define("MaxPool2dWithIndices", largest, **_pool, domains={"self": "distinct"}, attributes={"ceil_mode": []}, calls=[
    ({"self": s}, {"kernel_size": k, "stride": st, "padding": p, "dilation": d, "ceil_mode": c})
    for s, k, st, p, c, d in MAX_POOLS if math.prod(s) <= 600])


def largest_backward(grad_output, self, indices):
    planes = grad_output.reshape(-1, grad_output.shape[-2] * grad_output.shape[-1])
    result = torch.zeros(planes.shape[0], self.shape[-2] * self.shape[-1], dtype=torch.float64)
    return result.scatter_add_(1, indices.reshape(planes.shape).to(torch.int64), planes).reshape(self.shape)


def places_in(shape, kernel, stride, padding, dilation, ceil):
    """Indices as the forward call gives them."""
    def draw(_, random):
        image = torch.from_numpy(random.random(shape))
        return largest(image, kernel, stride, padding, dilation, ceil)[1].numpy()
    return draw


define("MaxPool2dWithIndicesBackward", largest_backward, **_pool, dtypes={"indices": "INT32"},
       attributes={"ceil_mode": []}, terms=lambda grad_output, self, indices: largest_backward(grad_output.abs(), self, indices),
       calls=[({"grad_output": list(largest(torch.zeros(s), k, st, p, d, c)[0].shape), "self": s,
                "indices": list(largest(torch.zeros(s), k, st, p, d, c)[0].shape)},
               {"kernel_size": k, "stride": st, "padding": p, "dilation": d, "ceil_mode": c},
               {"indices": places_in(s, k, st, p, d, c)}) for s, k, st, p, c, d in MAX_POOLS])


def nearest(self, output_size, scales_h=0.0, scales_w=0.0):
    def places(extent, wanted, scale):
        factor = np.float32(1 / scale) if scale > 0 else np.float32(extent) / np.float32(wanted)
        return torch.from_numpy(np.minimum(np.floor(np.arange(wanted, dtype=np.float32) * factor), extent - 1).astype(np.int64))
    rows = places(self.shape[2], output_size[0], scales_h)
    columns = places(self.shape[3], output_size[1], scales_w)
    return self[:, :, rows][:, :, :, columns]


SIZES = [([2, 3, 4, 5], [8, 10]), ([2, 3, 4, 5], [3, 7]), ([1, 1, 1, 1], [3, 2]), ([1, 2, 7, 9], [2, 2]), ([1, 2, 3, 4], [3, 4]),
         ([1, 1, 8, 8], [16, 5]), ([2, 1, 5, 3], [1, 1])]
define("UpsampleNearest2d", lambda self, output_size: nearest(self, output_size), **_pool,
       calls=[({"self": s}, {"output_size": n}) for s, n in SIZES])
define("UpsampleNearest2dV2", lambda self, output_size, scales_h, scales_w: nearest(self, output_size, scales_h, scales_w),
       attributes={"scales_h": [2.0], "scales_w": [2.0]}, **_pool, calls=[({"self": s}, {"output_size": n}) for s, n in SIZES])


def transposed_of(function, grad_out, input_size):
    x = torch.zeros(input_size, dtype=torch.float64).requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(function(x), x, grad_out)[0]


define("UpsampleNearest2dBackward", lambda grad_out, output_size, input_size, scales_h, scales_w: transposed_of(
    lambda x: nearest(x, output_size, scales_h, scales_w), grad_out, input_size), **_pool,
       terms=lambda grad_out, output_size, input_size, scales_h, scales_w: transposed_of(
           lambda x: nearest(x, output_size, scales_h, scales_w), grad_out.abs(), input_size),
       attributes={"scales_h": [2.0], "scales_w": [2.0]},
       calls=[({"grad_out": [*s[:2], *n]}, {"output_size": n, "input_size": s}) for s, n in SIZES])


def bilinear(self, output_size, align_corners, scales_h, scales_w):
    def weights(extent, wanted, scale):
        if align_corners:
            factor = (extent - 1) / (wanted - 1) if wanted > 1 else 0.0
            place = np.arange(wanted) * factor
        else:
            factor = 1 / scale if scale > 0 else extent / wanted
            place = np.maximum((np.arange(wanted) + 0.5) * factor - 0.5, 0)
        low = np.minimum(np.floor(place).astype(int), extent - 1)
        high = np.minimum(low + 1, extent - 1)
        share = np.minimum(place - low, 1.0)
        matrix_ = np.zeros((wanted, extent))
        np.add.at(matrix_, (np.arange(wanted), low), 1 - share)
        np.add.at(matrix_, (np.arange(wanted), high), share)
        return torch.from_numpy(matrix_)
    rows = weights(self.shape[2], output_size[0], scales_h)
    columns = weights(self.shape[3], output_size[1], scales_w)
    return rows @ self.to(torch.float64) @ columns.t()


_scaled = {"attributes": {"align_corners": [True], "scales_h": [2.0], "scales_w": [2.0]}}
define("UpsampleBilinear2d", bilinear, **{**_pool, "k": 32}, **_scaled, calls=[
    ({"self": s}, {"output_size": n, "align_corners": a}) for s, n in SIZES for a in (False, True)],
       terms=lambda self: self.abs().max())
define("UpsampleBilinear2dBackward", lambda grad_out, output_size, input_size, align_corners, scales_h, scales_w:
       transposed_of(lambda x: bilinear(x, output_size, align_corners, scales_h, scales_w), grad_out, input_size),
       **{**_pool, "k": 64}, **_scaled, terms=lambda grad_out: ones(grad_out), calls=[
           ({"grad_out": [*s[:2], *n]}, {"output_size": n, "input_size": s, "align_corners": a})
           for s, n in SIZES for a in (False, True)])
