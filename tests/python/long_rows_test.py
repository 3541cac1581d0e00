"""Rows longer than what kernels work on at a time give PyTorch's results, at the seams too."""

import pytest
import torch
from torch.nn import functional

LENGTH = 200_000  # kernels sort and pool in blocks of 65,536


def _numbers(*shape):
    """Few values, many of them equal, and NaNs on both sides of a seam."""
    numbers = torch.randint(-500, 500, shape, generator=torch.Generator().manual_seed(7)).float()
    numbers.view(-1)[[65_535, 65_536, shape[-1] - 1]] = float("nan")
    return numbers


def _sorted(numbers, descending):
    return torch.sort(numbers, stable=True, descending=descending)


def _first(numbers, k, largest):
    """The values of torch.topk, which does not say which of equal elements it takes."""
    return torch.sort(numbers, stable=True, descending=largest).values[:k]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("length", [65_536, 65_537, 131_072, LENGTH])
def test_sort(client, length, descending):
    numbers = _numbers(length + 3)[:length]
    values, indices = client.sort(numbers.numpy(), dim=0, descending=descending)
    expected = _sorted(numbers, descending)
    torch.testing.assert_close(torch.as_tensor(values), expected.values, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(torch.as_tensor(indices), expected.indices)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 1000, 65_536, 65_537, LENGTH - 1])
def test_topk(client, k, largest):
    numbers = _numbers(LENGTH)
    values, indices = client.topk(numbers.numpy(), k=k, dim=0, largest=largest)
    torch.testing.assert_close(torch.as_tensor(values), _first(numbers, k, largest), rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(
        numbers[torch.as_tensor(indices)], torch.as_tensor(values), rtol=0, atol=0, equal_nan=True)
    assert len(set(indices.tolist())) == k


@pytest.mark.parametrize("size,stride,padding,dilation", [
    (3, 1, 1, 1), (3, 2, 1, 40_000), (70_000, 1000, 3000, 1), (140_000, 60_000, 0, 1), (2, 65_536, 0, 2)])
def test_max_pool(client, size, stride, padding, dilation):
    numbers = _numbers(1, 1, 2, LENGTH)
    values, indices = client.max_pool2d_with_indices(
        numbers.numpy(), kernel_size=[2, size], stride=[1, stride], padding=[0, padding], dilation=[1, dilation])
    expected, places = functional.max_pool2d(
        numbers, (2, size), (1, stride), (0, padding), (1, dilation), return_indices=True)
    torch.testing.assert_close(torch.as_tensor(values), expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(torch.as_tensor(indices).long(), places)


@pytest.mark.parametrize("size,stride,padding", [(3, 1, 1), (70_000, 1000, 3000), (140_000, 60_000, 0), (2, 65_535, 1)])
def test_avg_pool(client, size, stride, padding):
    numbers = torch.nan_to_num(_numbers(1, 1, 2, LENGTH))
    values = client.avg_pool2d(
        numbers.numpy(), kernel_size=[2, size], strides=[1, stride], paddings=[0, padding])
    expected = functional.avg_pool2d(numbers, (2, size), (1, stride), (0, padding))
    torch.testing.assert_close(torch.as_tensor(values), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("height,width", [(1, LENGTH), (3, 70_000), (LENGTH, 2)])
def test_upsample(client, height, width):
    image = torch.nan_to_num(_numbers(1, 2, 5, 65_537))[..., :2500].contiguous().requires_grad_()
    for mode, forward, backward in (("nearest", client.upsample_nearest2d, client.upsample_nearest2d_backward),
                                    ("bilinear", client.upsample_bilinear2d, client.upsample_bilinear2d_backward)):
        image.grad = None
        expected = functional.interpolate(image, (height, width), mode=mode)
        values = forward(image.detach().numpy(), output_size=[height, width])
        torch.testing.assert_close(torch.as_tensor(values), expected.detach(), rtol=1e-4, atol=1)  # places are float32
        gradient = torch.ones_like(expected)
        expected.backward(gradient)
        values = backward(gradient.numpy(), output_size=[height, width], input_size=list(image.shape))
        torch.testing.assert_close(torch.as_tensor(values), image.grad, rtol=1e-2, atol=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("positions", [500, 512, 1024, 1500, 4096, 5000])  # kernels have 4096 columns at a time
@pytest.mark.parametrize("channels,groups", [(6, 2), (4, 4), (3, 1)])
def test_group_norm(client, channels, groups, positions, dtype):
    random = torch.Generator().manual_seed(positions)
    x, gradient = (torch.randn(2, channels, positions, generator=random).to(dtype) for _ in range(2))
    gamma, beta = (torch.randn(channels, generator=random).to(dtype) for _ in range(2))
    inputs = [one.double().requires_grad_() for one in (x, gamma, beta)]
    expected = functional.group_norm(inputs[0], groups, inputs[1], inputs[2])
    expected.backward(gradient.double())

    sizes = {"n": 2, "c": channels, "hxw": positions, "group": groups}
    values, mean, deviation = client.group_norm(x.numpy(), gamma.numpy(), beta.numpy(), **sizes)
    gradients = client.group_norm_backward(gradient.numpy(), x.numpy(), mean, deviation, gamma.numpy(), **sizes)

    tolerance = 1e-5 if dtype is torch.float32 else 2e-3  # statistics are rounded to the dtype
    for seen, wanted in zip((values, *gradients), (expected, *(one.grad for one in inputs))):
        wanted = wanted.detach()
        torch.testing.assert_close(
            torch.as_tensor(seen).double(), wanted, rtol=tolerance, atol=tolerance * wanted.abs().max().item())
