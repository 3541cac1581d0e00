"""Normalisation over rows, groups and channels, and its gradients."""

import itertools
import math

import torch

from families.activations import ones
from families.optimizers import whole_numbers
from oracles import Unclear, define


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


LAYERS = [
    ([4, 5], [5]),
    ([2, 3, 4], [4]),
    ([2, 3, 4], [3, 4]),
    ([7, 67], [67]),
    ([133], [133]),
    ([2, 3, 4], [2, 3, 4]),
    ([3, 1], [1]),
    ([0, 5], [5]),
]


def layer_calls(given):
    """`given`: shapes from the whole and the normalised one, and attributes from the latter."""
    return [given(shape, normal) for shape, normal in LAYERS]


def with_optional(calls, *names):
    first = calls[0]
    more = [
        ({n: s for n, s in first[0].items() if n not in left_out}, *first[1:])
        for count in range(1, len(names) + 1)
        for left_out in itertools.combinations(names, count)
    ]
    return calls + more


_rows = {"specials": False}
_layer_calls = with_optional(
    layer_calls(lambda s, n: ({"input": s, "weight": n, "bias": n}, {"normalized_shape": n})), "weight", "bias"
)
define(
    "LayerNorm LayerNormWithImplMode FastLayerNorm",
    layer_norm,
    terms=layer_norm_terms,
    calls=_layer_calls,
    attributes={"eps": [1e-5, 0.125], "impl_mode": [0, 1, "precise", "fast"]},
    mixed=False,
    **_rows
)


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
    return shape[: len(shape) - len(normal)] + [1] * len(normal)


def layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight):
    xhat = (input - mean) * rstd
    axes = trailing_axes(input, normalized_shape)
    return {
        "grad_input_out": norm_backward(grad_out, xhat, rstd, weight, axes),
        "grad_weight_out": leading_sum(grad_out * xhat, normalized_shape),
        "grad_bias_out": leading_sum(grad_out, normalized_shape),
    }


def layer_norm_backward_terms(grad_out, input, normalized_shape, mean, rstd, weight):
    xhat = (input.abs() + mean.abs()) * rstd.abs()
    axes = trailing_axes(input, normalized_shape)
    return {
        "grad_input_out": norm_backward_terms(grad_out, xhat, rstd, weight, axes),
        "grad_weight_out": leading_sum(grad_out.abs() * xhat, normalized_shape),
        "grad_bias_out": leading_sum(grad_out.abs(), normalized_shape),
    }


_rstd = {"rstd": (0.2, 2), "invstd": (0.2, 2), "save_invstd": (0.2, 2), "running_var": (0.2, 3)}
define(
    "LayerNormBackward",
    layer_norm_backward,
    terms=layer_norm_backward_terms,
    domains=_rstd,
    mixed=False,
    calls=with_optional(
        layer_calls(
            lambda s, n: (
                {"grad_out": s, "input": s, "mean": mean_shape(s, n), "rstd": mean_shape(s, n), "weight": n, "bias": n},
                {"normalized_shape": n},
            )
        ),
        "weight",
        "bias",
    ),
    **_rows
)


def rms(x, gamma, epsilon):
    axes = trailing_axes(x, gamma.shape)
    count = math.prod(gamma.shape)
    rstd = 1 / torch.sqrt((x * x).sum(axes, keepdim=True) / count + epsilon)
    return x * rstd * gamma, rstd


define(
    "RmsNorm",
    lambda x, gamma, epsilon: rms(x, gamma, epsilon),
    mixed=False,
    attributes={"epsilon": [1e-6, 0.125]},
    calls=layer_calls(lambda s, n: ({"x": s, "gamma": n}, {})),
    specials=False,
)
define(
    "RmsNormGrad",
    lambda dy, x, rstd, gamma: {
        "dx_out": norm_backward(dy, x * rstd, rstd, gamma, trailing_axes(x, gamma.shape), centred=False),
        "dgamma_out": leading_sum(dy * x * rstd, gamma.shape),
    },
    terms=lambda dy, x, rstd, gamma: {
        "dx_out": norm_backward_terms(dy, x.abs() * rstd, rstd, gamma, trailing_axes(x, gamma.shape)),
        "dgamma_out": leading_sum((dy * x * rstd).abs(), gamma.shape),
    },
    domains=_rstd,
    mixed=False,
    **_rows,
    calls=layer_calls(lambda s, n: ({"dy": s, "x": s, "rstd": mean_shape(s, n), "gamma": n}, {}))
)


def add_rms(x1, x2, gamma, epsilon):
    y, rstd = rms(x1 + x2, gamma, epsilon)
    return y, rstd, x1 + x2


define(
    "AddRmsNorm",
    add_rms,
    mixed=False,
    attributes={"epsilon": [1e-6, 0.125]},
    **_rows,
    terms=lambda x1, x2, gamma, epsilon: {
        "y_out": (x1.abs() + x2.abs()) * add_rms(x1, x2, gamma, epsilon)[1] * gamma.abs(),
        "x_out": x1.abs() + x2.abs(),
    },
    calls=layer_calls(lambda s, n: ({"x1": s, "x2": s, "gamma": n}, {}))
)


def add_layer_norm(x1, x2, gamma, beta, bias, epsilon, additional_output):
    x = x1 + x2 + (0 if bias is None else bias)
    mean, rstd = standardized(x, trailing_axes(x, gamma.shape), epsilon)
    return {
        "y_out": affine((x - mean) * rstd, gamma, beta),
        "mean_out": mean,
        "rstd_out": rstd,
        "x_out": x if additional_output else torch.zeros_like(x),
    }


def add_layer_norm_terms(x1, x2, gamma, beta, bias, epsilon):
    x = x1 + x2 + (0 if bias is None else bias)
    size = x1.abs() + x2.abs() + (0 if bias is None else bias.abs())
    _, rstd = standardized(x, trailing_axes(x, gamma.shape), epsilon)
    most = size.max() if size.numel() else torch.zeros([])
    return {"y_out": norm_scale(size, gamma, beta, most, rstd), "mean_out": most, "x_out": size, "rstd_out": rstd}


define(
    "AddLayerNorm",
    add_layer_norm,
    terms=add_layer_norm_terms,
    mixed=False,
    attributes={"epsilon": [1e-5, 0.125]},
    calls=with_optional(layer_calls(lambda s, n: ({"x1": s, "x2": s, "gamma": n, "beta": n, "bias": n}, {})), "bias"),
    **_rows
)


def deep_norm(x, gx, beta, gamma, alpha, epsilon):
    total = x * alpha + gx
    mean, rstd = standardized(total, trailing_axes(x, gamma.shape), epsilon)
    return {"mean_out": mean, "rstd_out": rstd, "y_out": affine((total - mean) * rstd, gamma, beta)}


def deep_norm_terms(x, gx, beta, gamma, alpha, epsilon):
    size = (x * alpha).abs() + gx.abs()
    _, rstd = standardized(x * alpha + gx, trailing_axes(x, gamma.shape), epsilon)
    most = size.max() if size.numel() else torch.zeros([])
    return {"mean_out": most, "rstd_out": rstd, "y_out": norm_scale(size, gamma, beta, most, rstd)}


define(
    "DeepNorm",
    deep_norm,
    terms=deep_norm_terms,
    mixed=False,
    attributes={"epsilon": [1e-6, 0.125], "alpha": [0.25, 2.0]},
    calls=layer_calls(lambda s, n: ({"x": s, "gx": s, "beta": n, "gamma": n}, {})),
    **_rows
)


def add_layer_norm_grad(dy, x1, x2, rstd, mean, gamma, dsum):
    xhat = (x1 + x2 - mean) * rstd
    dx = norm_backward(dy, xhat, rstd, gamma, trailing_axes(dy, gamma.shape))
    return (dx if dsum is None else dx + dsum, leading_sum(dy * xhat, gamma.shape), leading_sum(dy, gamma.shape))


def add_layer_norm_grad_terms(dy, x1, x2, rstd, mean, gamma, dsum):
    xhat = (x1.abs() + x2.abs() + mean.abs()) * rstd
    dx = norm_backward_terms(dy, xhat, rstd, gamma, trailing_axes(dy, gamma.shape))
    return {
        "dx_out": dx if dsum is None else dx + dsum.abs(),
        "dgamma_out": leading_sum(dy.abs() * xhat, gamma.shape),
        "dbeta_out": leading_sum(dy.abs(), gamma.shape),
    }


define(
    "AddLayerNormGrad",
    add_layer_norm_grad,
    terms=add_layer_norm_grad_terms,
    domains=_rstd,
    mixed=False,
    calls=with_optional(
        layer_calls(
            lambda s, n: (
                {"dy": s, "x1": s, "x2": s, "rstd": mean_shape(s, n), "mean": mean_shape(s, n), "gamma": n, "dsum": s},
                {},
            )
        ),
        "dsum",
    ),
    **_rows
)


def deep_norm_grad(dy, x, gx, gamma, mean, rstd, alpha):
    xhat = (alpha * x + gx - mean) * rstd
    dgx = norm_backward(dy, xhat, rstd, gamma, trailing_axes(dy, gamma.shape))
    return (alpha * dgx, dgx, leading_sum(dy, gamma.shape), leading_sum(dy * xhat, gamma.shape))


def deep_norm_grad_terms(dy, x, gx, gamma, mean, rstd, alpha):
    xhat = ((alpha * x).abs() + gx.abs() + mean.abs()) * rstd
    dgx = norm_backward_terms(dy, xhat, rstd, gamma, trailing_axes(dy, gamma.shape))
    return {
        "dx_out": abs(alpha) * dgx,
        "dgx_out": dgx,
        "dbeta_out": leading_sum(dy.abs(), gamma.shape),
        "dgamma_out": leading_sum(dy.abs() * xhat, gamma.shape),
    }


define(
    "DeepNormGrad",
    deep_norm_grad,
    terms=deep_norm_grad_terms,
    domains=_rstd,
    mixed=False,
    attributes={"alpha": [0.25, 2.0]},
    calls=layer_calls(
        lambda s, n: ({"dy": s, "x": s, "gx": s, "gamma": n, "mean": mean_shape(s, n), "rstd": mean_shape(s, n)}, {})
    ),
    **_rows
)


def by_channel(t, x):
    return None if t is None else t.reshape([1, -1] + [1] * (x.dim() - 2))


def channel_axes(x):
    return [d for d in range(x.dim()) if d != 1]


def group_norm(self, gamma, beta, group, eps):
    n = self.shape[0]
    x = self.reshape(n, group, -1)
    mean, rstd = standardized(x, [2], eps)
    y = ((x - mean) * rstd).reshape(self.shape)
    return {
        "out": affine(y, by_channel(gamma, self), by_channel(beta, self)),
        "mean_out": mean[..., 0],
        "rstd_out": rstd[..., 0],
    }


def group_norm_terms(self, gamma, beta, group, eps):
    x = self.reshape(self.shape[0], group, -1)
    _, rstd = standardized(x, [2], eps)
    most = self.abs().max() if self.numel() else torch.zeros([])
    size = ((x.abs() + most) * rstd).reshape(self.shape)
    return {
        "out": affine(
            size,
            None if gamma is None else by_channel(gamma, self).abs(),
            None if beta is None else by_channel(beta, self).abs(),
        ),
        "mean_out": most,
        "rstd_out": rstd[..., 0],
    }


GROUPS = [
    ([2, 4, 3], 2),
    ([2, 4, 3], 4),
    ([2, 4, 3], 1),
    ([3, 6, 2, 2], 3),
    ([1, 2, 133], 1),
    ([2, 6], 2),
    ([2, 4, 1, 3, 2], 2),
]


def group_attributes(shape, group):
    return {"n": shape[0], "c": shape[1], "hxw": math.prod(shape[2:]), "group": group}


define(
    "GroupNorm",
    group_norm,
    terms=group_norm_terms,
    mixed=False,
    attributes={"eps": [1e-5, 0.125]},
    calls=with_optional(
        [({"self": s, "gamma": [s[1]], "beta": [s[1]]}, group_attributes(s, g)) for s, g in GROUPS], "gamma", "beta"
    ),
    **_rows
)


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
    return {
        "grad_input": dx.reshape(input.shape),
        "grad_gamma_out": (grad_out * xhat.reshape(input.shape)).sum(channel_axes(input)),
        "grad_beta_out": grad_out.sum(channel_axes(input)),
    }


define(
    "GroupNormBackward",
    lambda grad_out, input, mean, rstd, gamma, group: group_norm_backward(grad_out, input, mean, rstd, gamma, group),
    terms=lambda grad_out, input, mean, rstd, gamma, group: group_norm_backward(
        grad_out, input, mean, rstd, gamma, group, True
    ),
    domains=_rstd,
    mixed=False,
    **_rows,
    calls=with_optional(
        [
            ({"grad_out": s, "input": s, "mean": [s[0], g], "rstd": [s[0], g], "gamma": [s[1]]}, group_attributes(s, g))
            for s, g in GROUPS
        ],
        "gamma",
    )
)


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
    return {
        "output": norm_scale(input, by_channel(weight, input), by_channel(bias, input), most, invstd),
        "save_mean": most,
        "save_invstd": invstd.reshape(-1),
        "running_mean": most + 4,
        "running_var": most**2 + 4,
    }


CHANNELS = [[4, 3, 5], [6, 2], [2, 3, 4, 4], [133, 1], [2, 4, 2, 2, 2], [3, 2, 67]]
define(
    "BatchNorm",
    batch_norm,
    terms=batch_norm_terms,
    domains=_rstd,
    mixed=False,
    **_rows,
    attributes={"eps": [1e-5, 0.125], "momentum": [0.5, 0.25]},
    calls=[
        ({"input": s, **{n: [s[1]] for n in ("weight", "bias", "running_mean", "running_var")}}, {"training": t})
        for s in CHANNELS
        for t in (False, True)
    ]
    + [({"input": s, "weight": [s[1]], "bias": [s[1]]}, {"training": True}) for s in CHANNELS[:2]]
)


def batch_norm_backward(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, training, eps, magnitude=False
):
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
define(
    "BatchNormBackward",
    lambda grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, training, eps: batch_norm_backward(
        grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, training, eps
    ),
    terms=lambda grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, training, eps: batch_norm_backward(
        grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, training, eps, True
    ),
    domains=_rstd,
    mixed=False,
    **_rows,
    calls=[
        ({"grad_out": s, "input": s, **{n: [s[1]] for n in names}}, {"training": t})
        for s in CHANNELS
        for t, names in ((True, ("weight", *_running, *_saved)), (False, ("weight", *_running)))
    ]
    + [({"grad_out": [4, 3, 5], "input": [4, 3, 5], **{n: [3] for n in _saved}}, {"training": True})]
)


def batch_norm_stats(input, eps):
    mean, invstd = standardized(input, channel_axes(input), eps)
    return mean.reshape(-1), invstd.reshape(-1)


define(
    "BatchNormStats",
    batch_norm_stats,
    terms=lambda input, eps: {"mean": ones(input), "invstd": batch_norm_stats(input, eps)[1]},
    calls=[({"input": s}, {}) for s in [*CHANNELS, [1, 7, 2]]],
    attributes={"eps": [1e-5, 0.125]},
    **_rows
)
define(
    "BatchNormElemt",
    lambda input, weight, bias, mean, invstd: affine(
        (input - by_channel(mean, input)) * by_channel(invstd, input),
        by_channel(weight, input),
        by_channel(bias, input),
    ),
    terms=lambda input, weight, bias, mean, invstd: norm_scale(
        input, by_channel(weight, input), by_channel(bias, input), by_channel(mean, input), by_channel(invstd, input)
    ),
    domains=_rstd,
    mixed=False,
    **_rows,
    calls=[({"input": s, **{n: [s[1]] for n in ("weight", "bias", "mean", "invstd")}}, {}) for s in CHANNELS]
)


def reduce_backward(grad_out, input, mean, invstd, magnitude=False):
    if magnitude:
        grad_out, input, mean = grad_out.abs(), input.abs(), -mean.abs()
    axes = channel_axes(input)
    sum_dy = grad_out.sum(axes)
    sum_dy_xmu = (grad_out * (input - by_channel(mean, input))).sum(axes)
    return {"sum_dy": sum_dy, "sum_dy_xmu": sum_dy_xmu, "grad_weight": sum_dy_xmu * invstd, "grad_bias": sum_dy}


define(
    "BatchNormReduceBackward",
    lambda grad_out, input, mean, invstd: reduce_backward(grad_out, input, mean, invstd),
    terms=lambda grad_out, input, mean, invstd: reduce_backward(grad_out, input, mean, invstd, True),
    domains=_rstd,
    attributes={"input_g": [True], "weight_g": [True], "bias_g": [True]},
    mixed=False,
    **_rows,
    calls=with_optional(
        [({"grad_out": s, "input": s, **{n: [s[1]] for n in ("mean", "invstd", "weight")}}, {}) for s in CHANNELS],
        "weight",
    )
)


def elemt_backward(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, counter, magnitude=False):
    n = counter.sum().to(torch.float64)
    if magnitude:
        grad_out, input, mean, sum_dy, sum_dy_xmu = (
            grad_out.abs(),
            input.abs(),
            -mean.abs(),
            -sum_dy.abs(),
            -sum_dy_xmu.abs(),
        )
        weight = None if weight is None else weight.abs()
    c = lambda t: by_channel(t, input)
    slope = grad_out - c(sum_dy) / n - (input - c(mean)) * c(invstd) ** 2 * c(sum_dy_xmu) / n
    return slope * c(invstd) * (1 if weight is None else c(weight))


define(
    "BatchNormElemtBackward",
    lambda grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, counter: elemt_backward(
        grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, counter
    ),
    terms=lambda grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, counter: elemt_backward(
        grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, counter, True
    ),
    domains={**_rstd, "counter": whole_numbers},
    dtypes={"counter": "INT32"},
    mixed=False,
    **_rows,
    calls=with_optional(
        [
            (
                {
                    "grad_out": s,
                    "input": s,
                    "counter": [2],
                    **{n: [s[1]] for n in ("mean", "invstd", "weight", "sum_dy", "sum_dy_xmu")},
                },
                {},
            )
            for s in CHANNELS
        ],
        "weight",
    )
)
