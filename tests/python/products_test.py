"""Products of matrices that are cut into several tiles, with tails of every kind, as PyTorch computes them in float64."""

import pytest
import torch

# Batches, rows, depth and columns. A left factor that tiles beside one another share is packed for all of them; tiles
# below one another are there where it is high.
_SHAPES = [
    (1, 130, 300, 700),
    (1, 1700, 300, 130),
    (1, 101, 515, 1031),
    (1, 21, 2000, 300),
    (3, 200, 260, 300),
    (1, 385, 700, 33),
    (1, 2, 600, 5000),
]
_UNITS = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
# Whether the left and the right factor lie transposed, and, beyond, with a step of two.
_LAYOUTS = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 2)]


def _laid(tensor, layout):
    if layout == 0:
        return tensor
    if layout == 1:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    return torch.stack([tensor, torch.zeros_like(tensor)], -1).flatten(-2)[..., ::2]


@pytest.mark.parametrize("dtype", _UNITS, ids=str)
@pytest.mark.parametrize("layouts", _LAYOUTS, ids=str)
@pytest.mark.parametrize("shape", _SHAPES, ids=str)
def test_products(client, shape, layouts, dtype):
    torch.manual_seed(0)
    batches, rows, depth, columns = shape
    left = torch.randn(batches, rows, depth).to(dtype)
    right = torch.randn(batches, depth, columns).to(dtype)
    added = torch.randn(columns).to(dtype)

    result = torch.as_tensor(
        client.baddbmm(added, _laid(left, layouts[0]), _laid(right, layouts[1]), beta=0.5, alpha=-2.0))

    expected = torch.baddbmm(added.double(), left.double(), right.double(), beta=0.5, alpha=-2.0)
    terms = torch.baddbmm(added.double().abs(), left.double().abs(), right.double().abs(), beta=0.5, alpha=2.0)
    allowed = 8 * 2.0**-24 * terms + _UNITS[dtype] * expected.abs()
    assert ((result.double() - expected).abs() <= allowed).all()
