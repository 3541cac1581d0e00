"""Convolutions, pooling and resampling."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from families.activations import ones
from families.matrices import magnitudes
from families.normalization import channel_axes
from oracles import define


def convolve(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    return torch.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def conv_calls():
    cases = []
    for n, (x, w, stride, pad, dilation, transposed, more, groups) in enumerate(
        (
            ([2, 3, 5, 6], [4, 3, 2, 3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
            ([2, 3, 5, 6], [4, 3, 3, 3], [2, 1], [1, 2], [1, 1], False, [0, 0], 1),
            ([1, 4, 7, 7], [4, 2, 3, 3], [1, 1], [1, 1], [2, 2], False, [0, 0], 2),
            ([1, 4, 6, 6], [4, 1, 3, 3], [2, 2], [1, 1], [1, 1], False, [0, 0], 4),
            ([2, 3, 4, 5], [3, 4, 2, 3], [2, 2], [0, 1], [1, 1], True, [1, 0], 1),
            ([1, 4, 4, 4], [4, 2, 3, 3], [1, 1], [1, 1], [1, 1], True, [0, 0], 2),
            ([2, 3, 9], [4, 3, 3], [2], [1], [1], False, [0], 1),
            ([1, 2, 4, 5, 3], [3, 2, 2, 2, 2], [1, 1, 1], [0, 1, 0], [1, 1, 1], False, [0, 0, 0], 1),
            ([1, 16, 8, 8], [8, 16, 1, 1], [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
            ([2, 3, 8, 8], [16, 3, 3, 3], [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
        )
    ):
        attributes = {
            "stride": stride,
            "padding": pad,
            "dilation": dilation,
            "transposed": transposed,
            "output_padding": more,
            "groups": groups,
        }
        out = w[1] * groups if transposed else w[0]
        cases.append((x, w, out, attributes))
    return cases


_conv = {"specials": False, "mixed": False, "attributes": {"transposed": [], "groups": []}}
define(
    "Convolution",
    convolve,
    terms=magnitudes(convolve),
    **_conv,
    calls=[
        ({"input": x, "weight": w, **({"bias": [out]} if biased else {})}, a)
        for x, w, out, a in conv_calls()
        for biased in (True, False)
    ]
)


def conv_backward(grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups):
    input, weight = (t.detach().clone().requires_grad_() for t in (input, weight))
    with torch.enable_grad():
        out = convolve(input, weight, None, stride, padding, dilation, transposed, output_padding, groups)
        grads = torch.autograd.grad(out, (input, weight), grad_output)
    return {"grad_input": grads[0], "grad_weight": grads[1], "grad_bias": grad_output.sum(channel_axes(grad_output))}


define(
    "ConvolutionBackward",
    conv_backward,
    **_conv,
    terms=lambda grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups: conv_backward(
        grad_output.abs(), input.abs(), weight.abs(), stride, padding, dilation, transposed, output_padding, groups
    ),
    calls=[
        (
            {
                "grad_output": list(convolve(torch.zeros(x), torch.zeros(w), None, *a.values()).shape),
                "input": x,
                "weight": w,
            },
            {**a, "bias_sizes": [out]},
        )
        for x, w, out, a in conv_calls()
    ]
)


def average(self, kernel_size, strides, paddings, ceil_mode, count_include_pad, divisor_override):
    return F.avg_pool2d(
        self, kernel_size, strides or None, paddings, ceil_mode, count_include_pad, divisor_override or None
    )


POOLS = [
    ([2, 3, 6, 7], [2, 2], [2, 2], [0, 0], False),
    ([2, 3, 6, 7], [3, 2], [1, 2], [1, 1], False),
    ([3, 6, 7], [2, 3], [2, 2], [0, 1], True),
    ([1, 1, 5, 5], [5, 5], [1, 1], [0, 0], False),
    ([2, 2, 7, 7], [3, 3], [2, 2], [1, 1], True),
    ([1, 2, 4, 4], [2, 2], [], [0, 0], False),
    ([1, 2, 33, 17], [3, 3], [2, 1], [1, 0], False),
]
_pool = {"specials": False, "mixed": False}
_pool_modes = [(c, d) for c in (True, False) for d in (0, 3)]
define(
    "AvgPool2d",
    average,
    terms=magnitudes(average),
    **_pool,
    attributes={"divisor_override": [], "ceil_mode": []},
    calls=[
        (
            {"self": s},
            {
                "kernel_size": k,
                "strides": st,
                "paddings": p,
                "ceil_mode": c,
                "count_include_pad": i,
                "divisor_override": d,
            },
        )
        for s, k, st, p, c in POOLS
        for i, d in _pool_modes
    ]
)


def average_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    x = torch.zeros_like(self).requires_grad_()
    with torch.enable_grad():
        out = average(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return torch.autograd.grad(out, x, grad_output)[0]


def pooled(shape, kernel, stride, padding, ceil):
    return list(F.avg_pool2d(torch.zeros(shape), kernel, stride or None, padding, ceil).shape)


define(
    "AvgPool2dBackward",
    average_backward,
    **_pool,
    attributes={"divisor_override": [], "ceil_mode": []},
    terms=lambda grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: average_backward(
        grad_output.abs(), self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    ),
    calls=[
        (
            {"grad_output": pooled(s, k, st, p, c), "self": s},
            {
                "kernel_size": k,
                "stride": st,
                "padding": p,
                "ceil_mode": c,
                "count_include_pad": i,
                "divisor_override": d,
            },
        )
        for s, k, st, p, c in POOLS
        for i, d in _pool_modes
    ]
)


def largest(self, kernel_size, stride, padding, dilation, ceil_mode):
    return F.max_pool2d(self, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True)


MAX_POOLS = [(*p, d) for p, d in zip(POOLS, ([1, 1], [1, 1], [2, 2], [1, 1], [1, 1], [1, 1], [2, 3]))]
define(
    "MaxPool2dWithIndices",
    largest,
    **_pool,
    domains={"self": "distinct"},
    attributes={"ceil_mode": []},
    calls=[
        ({"self": s}, {"kernel_size": k, "stride": st, "padding": p, "dilation": d, "ceil_mode": c})
        for s, k, st, p, c, d in MAX_POOLS
        if math.prod(s) <= 600
    ]
)


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


define(
    "MaxPool2dWithIndicesBackward",
    largest_backward,
    **_pool,
    dtypes={"indices": "INT32"},
    attributes={"ceil_mode": []},
    terms=lambda grad_output, self, indices: largest_backward(grad_output.abs(), self, indices),
    calls=[
        (
            {
                "grad_output": list(largest(torch.zeros(s), k, st, p, d, c)[0].shape),
                "self": s,
                "indices": list(largest(torch.zeros(s), k, st, p, d, c)[0].shape),
            },
            {"kernel_size": k, "stride": st, "padding": p, "dilation": d, "ceil_mode": c},
            {"indices": places_in(s, k, st, p, d, c)},
        )
        for s, k, st, p, c, d in MAX_POOLS
    ]
)


def nearest(self, output_size, scales_h=0.0, scales_w=0.0):
    def places(extent, wanted, scale):
        factor = np.float32(1 / scale) if scale > 0 else np.float32(extent) / np.float32(wanted)
        return torch.from_numpy(
            np.minimum(np.floor(np.arange(wanted, dtype=np.float32) * factor), extent - 1).astype(np.int64)
        )

    rows = places(self.shape[2], output_size[0], scales_h)
    columns = places(self.shape[3], output_size[1], scales_w)
    return self[:, :, rows][:, :, :, columns]


SIZES = [
    ([2, 3, 4, 5], [8, 10]),
    ([2, 3, 4, 5], [3, 7]),
    ([1, 1, 1, 1], [3, 2]),
    ([1, 2, 7, 9], [2, 2]),
    ([1, 2, 3, 4], [3, 4]),
    ([1, 1, 8, 8], [16, 5]),
    ([2, 1, 5, 3], [1, 1]),
    ([0, 1, 5, 3], [2, 2]),
]


def empty_images(operator):
    """Refused: there is nothing to resize along an axis."""
    inputs, attributes = operator.plain
    for empty in ([2, 3, 0, 5], [2, 3, 4, 0]):
        if "self" in inputs:
            operator.refuse(f"empty image {empty}", "self", {**inputs, "self": operator.shaped("self", empty)})
        else:
            sizes = {**attributes, "input_size": {"int64_list": empty}}
            operator.refuse(f"empty image {empty}", "input_size", attributes=sizes)


define(
    "UpsampleNearest2d",
    lambda self, output_size: nearest(self, output_size),
    **_pool,
    extra=empty_images,
    calls=[({"self": s}, {"output_size": n}) for s, n in SIZES]
)
define(
    "UpsampleNearest2dV2",
    lambda self, output_size, scales_h, scales_w: nearest(self, output_size, scales_h, scales_w),
    attributes={"scales_h": [2.0], "scales_w": [2.0]},
    **_pool,
    extra=empty_images,
    calls=[({"self": s}, {"output_size": n}) for s, n in SIZES]
)


def transposed_of(function, grad_out, input_size):
    x = torch.zeros(input_size, dtype=torch.float64).requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(function(x), x, grad_out)[0]


define(
    "UpsampleNearest2dBackward",
    lambda grad_out, output_size, input_size, scales_h, scales_w: transposed_of(
        lambda x: nearest(x, output_size, scales_h, scales_w), grad_out, input_size
    ),
    **_pool,
    terms=lambda grad_out, output_size, input_size, scales_h, scales_w: transposed_of(
        lambda x: nearest(x, output_size, scales_h, scales_w), grad_out.abs(), input_size
    ),
    attributes={"scales_h": [2.0], "scales_w": [2.0]},
    extra=empty_images,
    calls=[({"grad_out": [*s[:2], *n]}, {"output_size": n, "input_size": s}) for s, n in SIZES]
)


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


_scaled = {"attributes": {"align_corners": [True], "scales_h": [2.0], "scales_w": [2.0]}, "extra": empty_images}
define(
    "UpsampleBilinear2d",
    bilinear,
    **_pool,
    **_scaled,
    calls=[({"self": s}, {"output_size": n, "align_corners": a}) for s, n in SIZES for a in (False, True)],
    terms=lambda self: self.abs().max() if self.numel() else self.abs().sum()
)
define(
    "UpsampleBilinear2dBackward",
    lambda grad_out, output_size, input_size, align_corners, scales_h, scales_w: transposed_of(
        lambda x: bilinear(x, output_size, align_corners, scales_h, scales_w), grad_out, input_size
    ),
    **_pool,
    **_scaled,
    terms=lambda grad_out: ones(grad_out),
    calls=[
        ({"grad_out": [*s[:2], *n]}, {"output_size": n, "input_size": s, "align_corners": a})
        for s, n in SIZES
        for a in (False, True)
    ]
)
