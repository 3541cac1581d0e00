"""Steps of optimizers."""

import itertools

import numpy as np
import torch

from families.lists import LIST
from oracles import Unclear, define


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
    results = adam(
        var, m, v, max_grad_norm, grad, step.reshape(()) + 1, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize
    )
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
            calls.append(
                ({**{n: shape for n in names}, "step": [1]}, {"lr": 0.125, "amsgrad": amsgrad, "maximize": maximize})
            )
    return calls


_decays = {
    n: [0.5, 0.75] for n in ("beta1", "beta2", "weight_decay", "eps", "momentum", "dampening", "ema_decay", "lr")
}
_adam = {"attributes": _decays, "specials": False, "mixed": False}
_moments = {"v": (0.1, 4), "max_grad_norm": (0.1, 4), "s": (-2, 2), "step": whole_numbers}
define(
    "ApplyAdamWV2",
    adamw,
    calls=adamw_calls(),
    domains=_moments,
    dtypes={"step": "INT64"},
    terms=lambda var, m, v, grad, lr: {
        "var": bounded(var) + 10 * lr * bounded(m, grad),
        "m": bounded(m, grad),
        "v": bounded(v, grad * grad),
    },
    **_adam
)


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


_ema_terms = lambda grad, var, m, v, s, lr: {
    "v": bounded(v) + (grad.abs() + var.abs()) ** 2,
    "var": bounded(var) + 10 * lr * bounded(m, grad, var),
    "m": bounded(m, grad, var),
    "s": bounded(s, var) + lr * bounded(m, grad),
}
define(
    "ApplyFusedEmaAdam",
    ema_adam,
    domains=_moments,
    terms=_ema_terms,
    **_adam,
    calls=[
        (
            {**{n: s for n in ("grad", "var", "m", "v", "s")}, "step": [1]},
            {"lr": 0.125, "mode": mode, "bias_correction": bias, "weight_decay": 0.25},
        )
        for s in ([4, 5], [133], [1], [], [0, 3])
        for mode in (0, 1)
        for bias in (True, False)
    ]
)


def fused_adamw(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    grad_scale,
    found_inf,
    lr,
    beta1,
    beta2,
    weight_decay,
    eps,
    amsgrad,
    maximize,
):
    results = []
    scale = 1.0 if grad_scale is None else float(grad_scale.reshape(()))
    for i, param in enumerate(params):
        most = max_exp_avg_sqs[i] if max_exp_avg_sqs else None
        if found_inf is not None and float(found_inf.reshape(())) == 1:
            results.append((param, exp_avgs[i], exp_avg_sqs[i], most))
            continue
        results.append(
            adam(
                param,
                exp_avgs[i],
                exp_avg_sqs[i],
                most,
                grads[i],
                state_steps[i].reshape(()),
                lr,
                beta1,
                beta2,
                weight_decay,
                eps,
                amsgrad,
                maximize,
                scale,
            )
        )
    names = ["params", "exp_avgs", "exp_avg_sqs"] + (["max_exp_avg_sqs"] if max_exp_avg_sqs else [])
    return {n: [r[k] for r in results] for k, n in enumerate(names)}


def fused_adamw_calls():
    calls = []
    for shapes in (LIST[:4], [[4, 5]], [[33], [7]]):
        for amsgrad, maximize, scaled in itertools.product((False, True), repeat=3):
            names = ["params", "grads", "exp_avgs", "exp_avg_sqs"] + (["max_exp_avg_sqs"] if amsgrad else [])
            given = {**{n: shapes for n in names}, "state_steps": [[1]] * len(shapes)}
            if scaled:
                given.update(grad_scale=[1], found_inf=[1])
            calls.append(
                (
                    given,
                    {"lr": 0.125, "amsgrad": amsgrad, "maximize": maximize},
                    {"found_inf": lambda s, r: np.zeros(s), "grad_scale": (1, 3)},
                )
            )
    calls.append(
        (
            {**calls[4][0], "grad_scale": [1], "found_inf": [1]},
            {"lr": 0.125, "amsgrad": "max_exp_avg_sqs" in calls[4][0]},
            {"found_inf": lambda s, r: np.ones(s), "grad_scale": (1, 3)},
        )
    )
    return calls


define(
    "FusedAdamw",
    fused_adamw,
    calls=fused_adamw_calls(),
    **_adam,
    dtypes={"state_steps": "FLOAT"},
    domains={"exp_avg_sqs": (0.1, 4), "max_exp_avg_sqs": (0.1, 4), "state_steps": whole_numbers},
    terms=lambda params, exp_avgs, grads, lr: {
        "params": [bounded(p) + 10 * lr * bounded(m, g) for p, m, g in zip(params, exp_avgs, grads)],
        "exp_avgs": [bounded(m, g) for m, g in zip(exp_avgs, grads)],
    }
)


def fused_sgd(
    params,
    grads,
    momentum_buffers,
    grad_scale,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
    is_first_step,
):
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


define(
    "FusedSgd",
    fused_sgd,
    **_adam,
    domains={"grad_scale": (1, 3)},
    calls=[
        (
            {**{n: shapes for n in ("params", "grads", "momentum_buffers")}, **({"grad_scale": [1]} if scaled else {})},
            {
                "lr": 0.125,
                "momentum": momentum,
                "nesterov": nesterov,
                "maximize": maximize,
                "weight_decay": 0.25,
                "dampening": 0.5 if not nesterov else 0.0,
                "is_first_step": first,
            },
        )
        for (shapes, momentum, nesterov, maximize, first, scaled) in (
            (LIST, 0.0, False, False, False, False),
            (LIST, 0.5, False, False, False, False),
            ([[4, 5]], 0.5, True, False, False, True),
            ([[4, 5]], 0.5, False, True, False, True),
            ([[133], [7]], 0.5, True, True, True, False),
            ([[4, 5]], 0.0, False, False, True, True),
            ([[4, 5]], 0.5, False, False, True, True),
        )
    ],
    terms=lambda params, grads, momentum_buffers: {
        n: [bounded(p, g, b) for p, g, b in zip(params, grads, momentum_buffers)]
        for n in ("params", "momentum_buffers")
    }
)


def amp_update(current_scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval):
    if float(found_inf.reshape(())) != 0:
        return current_scale * backoff_factor, torch.zeros_like(growth_tracker)
    if int(growth_tracker.reshape(())) + 1 != growth_interval:
        return current_scale, growth_tracker + 1
    grown = current_scale * growth_factor
    return (grown if bool((grown < 3e38).all()) else current_scale), torch.zeros_like(growth_tracker)


define(
    "AmpUpdateScale",
    amp_update,
    specials=False,
    mixed=False,
    only_dtypes=["FLOAT"],
    calls=[
        (
            {"current_scale": [1], "growth_tracker": [1], "found_inf": [1]},
            {"growth_interval": interval},
            {
                "found_inf": lambda s, r, f=found: np.full(s, f),
                "growth_tracker": lambda s, r, t=tracker: np.full(s, t),
                "current_scale": lambda s, r, c=scale: np.full(s, c),
            },
        )
        for found in (0.0, 1.0)
        for tracker, interval in ((0, 2000), (4, 5), (5, 5), (0, 1))
        for scale in (65536.0, 3e38, 1.5)
    ],
)


def renorm(self, p, dim, max_norm):
    others = [d for d in range(self.dim()) if d != dim % self.dim()]
    norm = (self.abs() ** p).sum(others, keepdim=True) ** (1 / p)
    return torch.where(norm > max_norm, self * (max_norm / (norm + 1e-7)), self)


define(
    "Renorm",
    renorm,
    specials=False,
    calls=[
        ({"self": s}, {"dim": d, "max_norm": m, "p": p})
        for s, d, m, p in (
            ([4, 5], 0, 3.0, 2),
            ([4, 5], 1, 1.0, 2),
            ([2, 3, 4], -1, 2.0, 1),
            ([4, 5], 0, 100.0, 2),
            ([7, 19], 0, 2.5, 3),
            ([4, 5], 0, 0.0, 2),
            ([2, 3, 2, 2], 1, 1.5, 2),
        )
    ],
    attributes={"p": [2, 1, 3, 0.5], "max_norm": [2.5, 1]},
)
