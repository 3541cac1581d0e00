"""Convolutions and their gradients, as PyTorch computes them in float64: with groups of one channel, which have kernels
of their own, and others.
"""

import functools

import pytest
import torch

# Images, window, stride, padding, dilation, transposed, output padding. The widths are those of
# results below, at and above one, two and four vectors of 4 to 16 floats. Windows step by more, by less
# and by as much as they are dilated, and as they are wide.
_CALLS = [
    ([7, 7], [3, 3], [1, 1], [1, 1], [1, 1], False, [0, 0]),
    ([14, 16], [7, 7], [1, 1], [3, 3], [1, 1], False, [0, 0]),
    ([9, 17], [5, 5], [1, 1], [2, 2], [1, 1], False, [0, 0]),
    ([5, 33], [3, 3], [1, 1], [1, 1], [1, 1], False, [0, 0]),
    ([6, 64], [1, 3], [1, 1], [0, 1], [1, 1], False, [0, 0]),
    ([3, 130], [2, 4], [1, 1], [0, 0], [1, 1], False, [0, 0]),
    ([28, 31], [3, 3], [2, 2], [1, 1], [1, 1], False, [0, 0]),
    ([28, 40], [5, 4], [3, 2], [0, 3], [1, 3], False, [0, 0]),
    ([20, 20], [3, 3], [1, 1], [4, 4], [3, 2], False, [0, 0]),
    ([12, 12], [12, 12], [1, 1], [0, 0], [1, 1], False, [0, 0]),
    ([40, 40], [31, 31], [1, 1], [15, 15], [1, 1], False, [0, 0]),  # too large for the kernel
    ([7, 8], [3, 3], [2, 2], [1, 1], [1, 1], True, [1, 1]),
    ([9, 20], [4, 2], [3, 1], [0, 1], [1, 2], True, [2, 0]),
    ([5, 5], [3, 3], [1, 1], [4, 4], [2, 2], True, [0, 0]),  # more padding than the window reaches
    ([100], [4], [1], [3], [1], False, [0]),
    ([100], [9], [4], [0], [2], False, [0]),
    ([33], [5], [3], [1], [1], True, [2]),
    ([14, 16], [3, 3], [2, 2], [1, 1], [1, 1], False, [0, 0]),
    ([9, 9], [1, 1], [2, 2], [0, 0], [1, 1], False, [0, 0]),  # some elements of the images are not seen
    ([15, 33], [3, 5], [2, 4], [2, 3], [2, 6], False, [0, 0]),
    ([8, 7], [2, 3], [4, 6], [0, 1], [2, 4], True, [3, 5]),
    ([5, 6], [3, 12], [9, 10], [1, 2], [1, 1], True, [4, 5]),  # 90 remainders of places
    ([6, 7, 5], [3, 2, 3], [2, 1, 3], [1, 0, 2], [1, 2, 1], False, [0, 0, 0]),
]
# Channels of the images, of a transposed convolution's results and the other way round, and groups: a block of
# vectors of one channel each is whole, or not, in the second and third.
_CHANNELS = [(3, 3, 3), (16, 16, 16), (21, 21, 21), (5, 14, 1), (6, 4, 2)]
_UNITS = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def _arguments(call):
    _, _, stride, padding, dilation, transposed, output_padding = call
    return {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "transposed": transposed,
        "output_padding": output_padding,
    }


def _results(call, groups, x, weight, bias, gradient_of):
    """Result and gradients, and the gradient that was given."""
    x, weight, bias = (tensor.clone().requires_grad_() for tensor in (x, weight, bias))
    result = torch.convolution(x, weight, bias, **_arguments(call), groups=groups)
    gradient = gradient_of(result)
    result.backward(gradient)
    return [result.detach(), x.grad, weight.grad, bias.grad], gradient


def _assert_near(actual, expected, terms, dtype):
    """Within 8 roundings of float sums of such terms, and one of the result."""
    assert actual.shape == expected.shape
    allowed = 8 * 2.0**-24 * terms + _UNITS[dtype] * expected.abs() + 2.0**-24 * (dtype == torch.float16)
    assert ((actual.double() - expected).abs() <= allowed).all()


@pytest.mark.parametrize("dtype", _UNITS, ids=str)
@pytest.mark.parametrize("channels", _CHANNELS, ids=str)
@pytest.mark.parametrize("call", _CALLS, ids=str)
def test_results_and_gradients(client, call, channels, dtype):
    torch.manual_seed(0)
    given, made, groups = channels
    x = torch.randn(2, given, *call[0]).to(dtype)
    if len(call[0]) == 2 and call[0][0] % 2 == 0:
        x = x.contiguous(memory_format=torch.channels_last)
    shape = [given, made // groups] if call[5] else [made, given // groups]
    weight = torch.randn(*shape, *call[1]).to(dtype)
    bias = torch.randn(made).to(dtype)
    results = functools.partial(_results, call, groups)
    expected, gradient = results(
        x.double(), weight.double(), bias.double(), lambda result: torch.randn(result.shape).to(dtype).double())
    terms, _ = results(x.double().abs(), weight.double().abs(), bias.double().abs(), lambda _: gradient.abs())

    result = client.convolution(x, weight, bias, **_arguments(call), groups=groups)
    gradients = client.convolution_backward(
        gradient.to(dtype), x, weight, bias_sizes=[made], **_arguments(call), groups=groups)

    for actual, one, term in zip([result, *gradients], expected, terms):
        _assert_near(torch.as_tensor(actual), one, term, dtype)


def test_what_a_weight_does_not_see_does_not_count(client):
    """The last column is seen by the window's last weight alone, though vectors of the others reach it."""
    x = torch.ones(1, 1, 3, 17)
    x[..., -1] = torch.inf
    gradients = client.convolution_backward(
        torch.ones(1, 1, 3, 15), x, torch.ones(1, 1, 1, 3), stride=[1, 1], padding=[0, 0], dilation=[1, 1],
        output_padding=[0, 0], groups=1, outputs=["grad_weight"])
    assert torch.as_tensor(gradients.grad_weight).flatten().tolist() == [45, 45, torch.inf]
