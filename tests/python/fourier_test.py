"""Fourier transforms, and what models do with their results: current torch from PyPI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opserve
import opserve.torch
import pytest
import torch
from optim_helpers import backend, fresh  # noqa: F401
from torch import fft
from torch_helpers import is_torch_2_4

Tensor = torch.Tensor

# One product, two steps with factors that are alike and far apart, and primes.
SIZES = [1, 2, 3, 8, 64, 97, 100, 128, 241, 500, 1000, 1018, 4096]
WINDOW = torch.hann_window(64)


def spectrum(x: Tensor, n: int = 64, hop: int = 16) -> Tensor:
    return torch.stft(x, n, hop, window=WINDOW[:n], return_complex=True)


def mixed(x: Tensor, real: Tensor, imaginary: Tensor) -> Tensor:
    """A layer of a Fourier neural operator: low frequencies, each with weights of its own."""
    low = fft.rfft2(x)[..., :5, :5]
    low = torch.einsum("bixy,ioxy->boxy", low, torch.complex(real, imaginary))
    return fft.irfft2(torch.nn.functional.pad(low, (0, 4, 0, 11)), s=x.shape[-2:])


def placed(x: Tensor) -> Tensor:
    low = fft.rfft2(x)
    out = torch.zeros(low.shape, dtype=torch.cfloat)
    out[..., :4, :4] = low[..., :4, :4] * 2
    out[..., -4:, :4] = low[..., -4:, :4] * 3
    return fft.irfft2(out, s=x.shape[-2:])


CASES: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    **{f"{n} numbers": (lambda x: fft.fft(x).real, [(3, n)]) for n in SIZES},
    **{f"half of {n} frequencies": (lambda x: fft.rfft(x).abs(), [(3, n)]) for n in SIZES},
    **{
        f"back to {n} numbers": (lambda x: fft.irfft(fft.rfft(x) * 2, n=x.shape[-1]), [(3, n)])
        for n in SIZES
    },
    "several axes": (lambda x: fft.fftn(x, dim=(1, 2)).real, [(2, 16, 48)]),
    "orthonormal": (lambda x: fft.fft2(x, norm="ortho").imag, [(2, 12, 20)]),
    "two axes and back": (lambda x: fft.irfft2(fft.rfft2(x), s=x.shape[-2:]), [(2, 12, 20)]),
    "the first axis": (lambda x: fft.rfft(x, dim=0).real, [(12, 5)]),
    "the first axis and back": (
        lambda x: fft.irfft(fft.rfft(x, dim=0), dim=0).reshape(-1), [(12, 5)]
    ),
    "a view of an inverse": (
        lambda x: fft.irfftn(fft.rfftn(x, dim=(0, 2)), dim=(0, 2)).movedim(0, 1).view(-1, 6) * 2,
        [(4, 3, 6)],
    ),
    "the inverse": (lambda x, y: fft.ifft(torch.complex(x, y)).imag, [(4, 30), (4, 30)]),
    "scaled forward": (
        lambda x, y: fft.ifft(torch.complex(x, y), norm="forward").real, [(4, 30), (4, 30)]
    ),
    "Hermitian": (lambda x, y: fft.hfft(torch.complex(x, y)), [(4, 9), (4, 9)]),
    "to a Hermitian one": (lambda x: fft.ihfft(x).imag, [(4, 10)]),
    "padded": (lambda x: fft.rfft(x, n=32).real, [(4, 20)]),
    "cut": (lambda x: fft.rfft(x, n=12).real, [(4, 20)]),
    "a padded spectrum": (lambda x: fft.ifft(fft.fft(x), n=20).real, [(3, 8)]),
    "shifted": (lambda x: fft.fftshift(fft.fft(x)).real, [(4, 9)]),
    "reversed": (lambda x: torch.flip(fft.fft(x), [0]).imag, [(3, 8)]),
    "and real numbers": (lambda x: (1 - (fft.rfft(x) + x[:, :5] - 2j)).abs(), [(3, 8)]),
    "chosen": (lambda x: torch.where(x[:, :5] > 0, fft.rfft(x), x[:, :5] + 0j).imag, [(3, 8)]),
    "ratios": (lambda x, y: (fft.rfft(x) / fft.rfft(y)).imag, [(3, 8), (3, 8)]),
    "ratios of large numbers": (
        lambda x, y: (fft.rfft(x * 1e30) / fft.rfft(y * 1e30)).real, [(3, 8), (3, 8)]
    ),
    "by a constant": (lambda x: (fft.rfft(x) / (1 + 2j)).imag, [(3, 8)]),
    "phases": (lambda x: (fft.rfft(x) * torch.exp(1j * x[:, :5])).imag, [(3, 8)]),
    "angles": (lambda x: torch.angle(fft.rfft(x)[:, 1:4]), [(3, 8)]),
    "means": (lambda x: fft.rfft(x).mean(0).imag, [(3, 8)]),
    "together": (lambda x, y: torch.cat([fft.rfft(x), fft.fft(y)], -1).imag, [(3, 8), (3, 8)]),
    "in a part of zeros": (placed, [(2, 3, 16, 16)]),
    "divided": (lambda x: (fft.rfft(x) / 3).real, [(3, 8)]),
    "lengths of nothing": (lambda x: fft.rfft(x * 0).abs(), [(3, 8)]),
    "a filter": (
        lambda x, w, v: fft.irfft(fft.rfft(x) * torch.complex(w, v), n=x.shape[-1]),
        [(2, 3, 32), (3, 17), (3, 17)],
    ),
    "correlation": (
        lambda x, y: fft.irfft(fft.rfft(x) * torch.conj(fft.rfft(y)), n=32), [(2, 3, 32), (3, 32)]
    ),
    "power": (lambda x: fft.irfft(fft.rfft(x, n=64).abs().pow(2)), [(2, 32)]),
    "a layer of a neural operator": (mixed, [(2, 3, 16, 16), (3, 4, 5, 5), (3, 4, 5, 5)]),
    "a spectrogram": (lambda x: spectrum(x).abs(), [(2, 512)]),
    "a spectrogram and back": (
        lambda x: torch.istft(spectrum(x), 64, 16, window=WINDOW), [(2, 512)]
    ),
    "signs": (lambda x: torch.sgn(fft.fft(x).detach()).real * x, [(3, 8)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_transform_and_its_gradients_are_torchs(
    client: opserve.Client,
    fresh: Any,  # noqa: F811
    name: str,
) -> None:
    if "spectrogram" in name and is_torch_2_4:
        pytest.skip("torch 2.4 does not take the gradient of padding by reflection apart")
    if name in ("by a constant", "phases") and is_torch_2_4:
        pytest.skip("torch 2.4 has no gradient of products with complex constants in its graphs")
    f, shapes = CASES[name]
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    backend = opserve.torch.backend(client, strict=True)  # noqa: F811

    seen, expected = torch.compile(f, backend=backend)(*inputs), f(*inputs)

    weights = torch.randn_like(expected)
    gradients = torch.autograd.grad((seen * weights).sum(), inputs)
    others = torch.autograd.grad((expected * weights).sum(), inputs)
    for one, other in zip((seen, *gradients), (expected, *others)):
        assert one.stride() == other.stride()
        # Each element is a sum over all of an axis.
        size = other.abs().max().item() or 1.0
        torch.testing.assert_close(one, other, rtol=1e-5, atol=3e-6 * size)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: fft.fftn(x, dim=(1, 2)).real,
        lambda x: fft.irfft(fft.rfft(x) * 2, n=x.shape[-1]),
        lambda x: spectrum(x.flatten(1)).abs(),
    ],
    ids=["forward", "and back", "a spectrogram"],
)
def test_batches_of_any_size_run_on_the_pool(
    client: opserve.Client,
    fresh: Any,  # noqa: F811
    f: Callable[[Tensor], Tensor],
) -> None:
    if is_torch_2_4:
        pytest.skip("torch 2.4 does not take the gradient of padding by reflection apart")
    compiled = torch.compile(f, backend=opserve.torch.backend(client, strict=True))
    for batch in (4, 3, 5):
        x = torch.randn(batch, 8, 128, requires_grad=True)
        seen, expected = compiled(x), f(x)
        weights = torch.randn_like(expected)
        (gradient,) = torch.autograd.grad((seen * weights).sum(), x)
        (other,) = torch.autograd.grad((expected * weights).sum(), x)
        torch.testing.assert_close(seen, expected, rtol=1e-5, atol=1e-4)
        torch.testing.assert_close(gradient, other, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: fft.fft(x.double()).real,
        lambda x: fft.fft(x[:, :521]).real,
        lambda x: fft.rfft(x.repeat(1, 20)).real,
    ],
    ids=["float64", "a large prime", "a long axis"],
)
def test_transforms_that_the_pool_lacks_are_computed_here(
    client: opserve.Client,
    fresh: Any,  # noqa: F811
    f: Callable[[Tensor], Tensor],
) -> None:
    x = torch.randn(2, 1024)
    with pytest.warns(opserve.torch.LocalNodesWarning, match="_fft_r2c"):
        seen = torch.compile(f, backend=opserve.torch.backend(client))(x)
    torch.testing.assert_close(seen, f(x))
