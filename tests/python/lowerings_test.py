"""Nodes that an operator of the pool serves, each with its derivative: current torch from PyPI."""

from __future__ import annotations

import collections
import importlib.util
import pathlib
from collections.abc import Callable
from typing import Any, Optional

import opserve
import opserve.torch
import pytest
import torch
from opserve._operators import OPERATORS
from optim_helpers import backend, fresh  # noqa: F401
from torch.nn import functional as F
from torch_helpers import is_torch_2_4
from torch_models import CASES as MODELS

Tensor = torch.Tensor


def positive(*shape: int) -> Tensor:
    return torch.rand(shape) * 0.8 + 0.1


def unusual(*shape: int) -> Tensor:
    x = positive(*shape)
    x[0, 1], x[1, 0], x[1, 2] = float("nan"), float("inf"), -float("inf")
    return x


def with_zeros(*shape: int) -> Tensor:
    x = positive(*shape)
    x[0, 1] = x[1, 0] = x[1, 2] = 0
    return x


ROWS = torch.tensor([4, 0, 2, 2, 5, 1, 0])
STARTS = torch.tensor([0, 3, 3, 5])  # the second bag is empty
STARTS_AND_END = torch.tensor([0, 3, 3, 5, 7])


def bags(
    mode: str, rows: Tensor = ROWS, starts: Optional[Tensor] = STARTS, **options: Any
) -> Callable[..., Tensor]:
    def f(weight: Tensor, *factors: Tensor) -> Tensor:
        of_rows = factors[0] if factors else None
        return F.embedding_bag(
            rows, weight, starts, mode=mode, per_sample_weights=of_rows, **options
        )

    return f


def table() -> list[Tensor]:
    return [torch.randn(6, 3)]


def resized(mode: str, **options: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: F.interpolate(x, mode=mode, **options)


def images() -> list[Tensor]:
    return [torch.randn(2, 3, 4, 5)]


def channels_last() -> list[Tensor]:
    return [torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)]


def table_and_factors() -> list[Tensor]:
    return [torch.randn(6, 3), torch.randn(7)]


SIGNS = torch.tensor([1.0, -1.0, -1.0, 1.0]).expand(3, 4)


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    """Pairs of elements, turned by an angle for each place and pair."""
    turns = torch.polar(torch.ones_like(angles), angles)[None, :, None]
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(3)


def systems(left: tuple[int, ...], right: tuple[int, ...]) -> Callable[[], list[Tensor]]:
    """Triangles of both kinds, each with elements that are not used, and right sides."""
    return lambda: [torch.rand(left) / 2 + torch.eye(left[-1]), torch.randn(right)]


def solved(**options: bool) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda a, b: torch.linalg.solve_triangular(a, b, **options)


def normal() -> list[Tensor]:
    return [torch.randn(3, 4)]


def soft_margin(reduction: str) -> Callable[[Tensor], Tensor]:
    return lambda x: F.soft_margin_loss(x, SIGNS, reduction=reduction)


SOFT_MARGIN = {"SoftMarginLoss", "SoftMarginLossBackward"}
BAG = {"EmbeddingBag", "EmbeddingDenseBackward"}
MAX_BAG = {"EmbeddingBag", "ScatterAdd"}
PRELU = {"Prelu", "PreluBackward"}
NEAREST = {"UpsampleNearest2dV2", "UpsampleNearest2dBackward"}
BILINEAR = {"UpsampleBilinear2d", "UpsampleBilinear2dBackward"}

# Function, arguments, and operators of the pool that it must use.
CASES: dict[str, tuple[Callable[..., Tensor], Callable[[], Any], set[str]]] = {
    "atanh": (torch.atanh, lambda: [positive(3, 4)], {"Atanh"}),
    "asinh": (torch.asinh, lambda: [torch.randn(3, 4)], {"Asinh"}),
    "acosh": (torch.acosh, lambda: [1.5 + positive(3, 4)], {"Acosh"}),
    "weight norm of rows": (
        lambda v, g: torch._weight_norm(v, g, 0),
        lambda: [torch.randn(4, 3, 2), torch.rand(4, 1, 1)],
        {"ReduceSum"},
    ),
    "weight norm of the last axis": (
        lambda v, g: torch._weight_norm(v, g, 2),
        lambda: [torch.randn(4, 3, 2), torch.rand(1, 1, 2)],
        {"ReduceSum"},
    ),
    "batch norm without statistics": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        lambda: [torch.randn(4, 3, 5), torch.rand(3), torch.randn(3)],
        {"BatchNorm", "BatchNormBackward"},
    ),
    "instance norm": (
        lambda x: F.instance_norm(x),  # torch 2.4 does not compile the function itself
        lambda: [torch.randn(2, 3, 5, 4)],
        {"BatchNorm", "BatchNormBackward"},
    ),
    "instance norm with weights": (
        lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
        lambda: [torch.randn(2, 3, 5), torch.rand(3), torch.randn(3)],
        {"BatchNorm", "BatchNormBackward"},
    ),
    "averages of volumes": (
        lambda x: F.avg_pool3d(x, (2, 3, 2), (1, 2, 2), (1, 1, 0)),
        lambda: [torch.randn(2, 3, 4, 7, 6)],
        {"AvgPool2d", "AvgPool2dBackward"},
    ),
    "averages of volumes without their edges": (
        lambda x: F.avg_pool3d(x, (3, 2, 3), (2, 2, 1), 1, count_include_pad=False),
        lambda: [torch.randn(3, 4, 6, 5)],
        {"AvgPool2d", "AvgPool2dBackward"},
    ),
    "averages of volumes with a rest": (
        lambda x: F.avg_pool3d(x, 3, 2, 1, ceil_mode=True),
        lambda: [torch.randn(2, 3, 4, 6, 8)],
        {"AvgPool2d", "AvgPool2dBackward"},
    ),
    "averages of volumes with a rest, without their edges": (
        lambda x: F.avg_pool3d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        lambda: [torch.randn(2, 3, 4, 6, 8)],
        {"AvgPool2d", "AvgPool2dBackward"},
    ),
    "parts of sums of volumes": (
        lambda x: F.avg_pool3d(x, (2, 3, 2), 2, (1, 0, 1), divisor_override=5),
        lambda: [torch.randn(2, 3, 4, 6, 8)],
        {"AvgPool2d", "AvgPool2dBackward"},
    ),
    "local response norm": (
        lambda x: F.local_response_norm(x, 3),
        lambda: [torch.randn(2, 5, 4, 3)],
        {"AvgPool2d", "AvgPool2dBackward"},
    ),
    "repeated edges of rows": (
        lambda x: F.pad(x, (2, 1), mode="replicate"),
        lambda: [torch.randn(2, 3, 4)],
        set(),
    ),
    "repeated and cut edges of planes": (
        lambda x: F.pad(x, (1, -1, 0, 2), mode="replicate"),
        lambda: [torch.randn(2, 3, 4, 5)],
        set(),
    ),
    "repeated edges of volumes": (
        lambda x: F.pad(x, (1, 1, 2, 0, 0, 1), mode="replicate"),
        lambda: [torch.randn(2, 3, 2, 3, 4)],
        set(),
    ),
    "bilinear": (
        F.bilinear,
        lambda: [torch.randn(3, 4), torch.randn(3, 5), torch.randn(2, 4, 5), torch.randn(2)],
        set(),
    ),
    "distances": (
        lambda x, y: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"),
        lambda: [torch.randn(2, 3, 4), torch.randn(2, 5, 4)],
        set(),
    ),
    "distances to itself": (
        lambda x: torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist"),
        lambda: [torch.randn(3, 4)],
        set(),
    ),
    "distances with exponent 1": (
        lambda x, y: torch.cdist(x, y, p=1),
        lambda: [torch.randn(3, 4), torch.randn(5, 4)],
        set(),
    ),
    "rotations": (rotated, lambda: [torch.randn(2, 3, 4, 8), torch.randn(3, 4)], set()),
    "rotations by numbers that no gradient needs": (
        lambda x: rotated(x, torch.outer(torch.arange(3.0), torch.arange(4.0))),
        lambda: [torch.randn(2, 3, 2, 8)],
        set(),
    ),
    "complex numbers": (
        lambda x, y: torch.view_as_real(
            torch.complex(x, y) * 2 * torch.complex(y, x).transpose(0, 1).conj()
            - torch.complex(x, x)[:, 1:2].expand(4, 4)
        ),
        lambda: [torch.randn(4, 4), torch.randn(4, 4)],
        set(),
    ),
    "views of complex numbers in another order": (
        lambda x, y: torch.view_as_real(
            (torch.complex(x, y).t() * torch.complex(y, x).t()).t().view(-1)
        ),
        lambda: [torch.randn(3, 4), torch.randn(3, 4)],
        set(),
    ),
    "complex numbers by an imaginary one": (
        lambda x, y: torch.view_as_real(torch.complex(x, y) * 2j),
        lambda: [torch.randn(3, 4), torch.randn(3, 4)],
        set(),
    ),
    "sums of complex numbers": (
        lambda x, y: torch.view_as_real((torch.complex(x, y) * torch.complex(y, y)).sum(-1)),
        lambda: [torch.randn(3, 4), torch.randn(3, 4)],
        set(),
    ),
    "complex numbers and real ones": (
        lambda x, y: torch.view_as_real(-(torch.complex(x, y) * y)[1].reshape(2, 2)),
        lambda: [torch.randn(3, 4), torch.randn(3, 4)],
        set(),
    ),
    "parts of complex numbers": (
        lambda x, y: torch.complex(x, y).real * 3 + torch.complex(x, x * y).imag,
        lambda: [torch.randn(3, 4), torch.randn(3, 4)],
        set(),
    ),
    **{
        f"solutions of triangles {how}": (solved(**options), systems(left, right), set())
        for how, left, right, options in (
            ("below", (2, 5, 5), (2, 5, 3), {"upper": False}),
            ("above", (8, 8), (3, 8, 2), {"upper": True}),
            ("from the right", (3, 3), (4, 3), {"upper": True, "left": False}),
            ("with ones", (2, 1, 7, 7), (3, 7, 4), {"upper": False, "unitriangular": True}),
            ("of one element", (1, 1), (1, 2), {"upper": False}),
        )
    },
    "diagonal": (torch.diagonal, lambda: [torch.randn(3, 5)], set()),
    "diagonal above": (
        lambda x: x.diagonal(2, 2, 0),
        lambda: [torch.randn(3, 2, 4)],
        set(),
    ),
    "diagonal below": (lambda x: x.diagonal(-1), lambda: [torch.randn(5, 3)], set()),
    "gradients with strides of 0": (
        lambda x, w: (x * w).sum(),
        lambda: [torch.randn(3, 4), torch.randn(())],
        set(),
    ),
    "results with strides of 0": (
        lambda x: torch.meshgrid(x[0], x[1], indexing="ij")[0],
        lambda: [torch.randn(2, 4)],
        set(),
    ),
    "adaptive averages of equal cells": (
        lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
        lambda: [torch.randn(2, 3, 4, 9)],
        {"AvgPool2d", "AvgPool2dBackward"},
    ),
    "adaptive averages of other cells": (
        lambda x: F.adaptive_avg_pool2d(x, (3, 7)),
        lambda: [torch.randn(2, 3, 5, 4)],
        {"BatchMatMul"},
    ),
    "adaptive averages without a batch": (
        lambda x: F.adaptive_avg_pool2d(x, (2, None)),
        lambda: [torch.randn(3, 5, 4)],
        {"BatchMatMul"},
    ),
    "adaptive averages of rows": (
        lambda x: F.adaptive_avg_pool1d(x, 5),
        lambda: [torch.randn(2, 3, 7)],
        {"Mm"},
    ),
    "adaptive maxima": (
        lambda x: F.adaptive_max_pool2d(x, (2, 3)),
        lambda: [torch.randn(2, 3, 4, 9)],
        {"MaxPool2dWithIndices", "MaxPool2dWithIndicesBackward"},
    ),
    "prod": (torch.prod, lambda: [positive(3, 4)], {"ProdDim"}),
    "prod of none": (torch.prod, lambda: [torch.tensor(2.5)], set()),
    "prod with zeros": (torch.prod, lambda: [with_zeros(3, 4)], {"ProdDim"}),
    "prod of a view": (lambda x: torch.prod(x.t()), lambda: [positive(3, 4)], {"ProdDim"}),
    "prod of an axis": (lambda x: x.prod(1), lambda: [with_zeros(3, 4)], {"ProdDim"}),
    "prod that keeps": (lambda x: x.prod(-2, keepdim=True), lambda: [positive(3, 4)], {"ProdDim"}),
    "prod of integers": (lambda x: x.int().prod(1) + x[:, 0], lambda: [3 * positive(3, 4)], {"ProdDim"}),
    "topk in any order": (
        lambda x: x.topk(2, 0, sorted=False)[0].sum(0), lambda: [positive(4, 3)], {"Topk"}
    ),
    "cumprod": (lambda x: x.cumprod(0), lambda: [positive(3, 4)], {"Cumprod"}),
    "cumprod with zeros": (lambda x: x.cumprod(-1), lambda: [with_zeros(3, 4)], {"Cumprod"}),
    "isnan": (torch.nan_to_num, lambda: [unusual(3, 4)], set()),
    "isinf": (lambda x: torch.isinf(x) + x * 0 + 1, lambda: [positive(3, 4)], set()),
    "infinities": (lambda x: torch.where(torch.isinf(x), 1, x), lambda: [unusual(3, 4)], set()),
    "nansum": (torch.nansum, lambda: [unusual(3, 4).clamp(-9, 9)], set()),
    "addmv": (torch.addmv, lambda: [positive(3), positive(3, 4), positive(4)], set()),
    "addmv scaled": (
        lambda x, y, z: torch.addmv(x, y, z, beta=2, alpha=3),
        lambda: [positive(3), positive(3, 4), positive(4)], set()
    ),
    "addbmm": (
        torch.addbmm, lambda: [positive(3, 5), positive(2, 3, 4), positive(2, 4, 5)], set()
    ),
    "clamp by tensors": (
        torch.clamp, lambda: [positive(3, 4), positive(4) / 2, 0.5 + positive(4) / 2], set()
    ),
    "prelu": (F.prelu, lambda: [torch.randn(2, 3, 4), torch.rand(3)], PRELU),
    "prelu of one slope": (F.prelu, lambda: [torch.randn(2, 3), torch.rand(1)], PRELU),
    "prelu of a vector": (F.prelu, lambda: [torch.randn(5), torch.rand(1)], PRELU),
    "prelu in bfloat16": (
        F.prelu, lambda: [torch.randn(2, 3).bfloat16(), torch.rand(3).bfloat16()], PRELU
    ),
    "prelu in float64": (
        F.prelu, lambda: [torch.randn(2, 3).double(), torch.rand(3).double()], set()
    ),
    "nearest of a size": (resized("nearest", size=(7, 3)), images, NEAREST),
    "nearest by a factor": (resized("nearest", scale_factor=(2, 1.7)), images, NEAREST),
    "nearest by a factor made anew": (
        resized("nearest", scale_factor=1.7, recompute_scale_factor=True), images, NEAREST
    ),
    "nearest in float16": (
        resized("nearest", size=(7, 9)), lambda: [torch.randn(1, 2, 3, 4).half()], NEAREST
    ),
    "nearest in float64": (
        resized("nearest", size=(7, 9)), lambda: [torch.randn(1, 2, 3, 4).double()], set()
    ),
    "nearest of images with channels last": (
        resized("nearest", size=(7, 9)), channels_last, NEAREST
    ),
    "bilinear of a size": (resized("bilinear", size=(7, 3)), images, BILINEAR),
    "bilinear with corners": (
        resized("bilinear", size=(7, 9), align_corners=True), images, BILINEAR
    ),
    "bilinear by a factor": (resized("bilinear", scale_factor=(2, 1.7)), images, BILINEAR),
    "bilinear in float64": (
        resized("bilinear", size=(7, 9)), lambda: [torch.randn(1, 2, 3, 4).double()], set()
    ),
    "bilinear of images with channels last": (
        resized("bilinear", size=(7, 9)), channels_last, BILINEAR
    ),
    "bicubic": (resized("bicubic", size=(7, 9)), images, set()),
    "bilinear with antialias": (
        resized("bilinear", size=(2, 3), antialias=True), images, set()
    ),
    "bilinear with antialias, larger": (
        resized("bilinear", scale_factor=(0.4, 1.7), antialias=True), images, set()
    ),
    "bilinear with antialias, corners": (
        resized("bilinear", size=(3, 2), antialias=True, align_corners=True), images, set()
    ),
    "bicubic with antialias": (
        resized("bicubic", size=(2, 7), antialias=True), images, set()
    ),
    "bicubic with antialias, one element": (
        resized("bicubic", size=(1, 1), antialias=True, align_corners=True), images, set()
    ),
    "celu": (lambda x: F.celu(x, 0.7), normal, {"Celu", "EluBackward"}),
    "threshold": (lambda x: F.threshold(x, 0.1, 20.0), normal, {"Threshold", "ThresholdBackward"}),
    "hardshrink": (F.hardshrink, normal, {"Hardshrink", "HardshrinkBackward"}),
    "softshrink": (
        lambda x: F.softshrink(x, 0.3), normal, {"Softshrink", "SoftshrinkBackward"}
    ),
    "logit": (torch.logit, lambda: [positive(3, 4)], {"Logit", "LogitGrad"}),
    "logit within limits": (
        lambda x: torch.logit(x, 0.3), lambda: [positive(3, 4)], {"Logit", "LogitGrad"}
    ),
    "frac": (torch.frac, normal, {"Frac"}),
    "nan_to_num": (torch.nan_to_num, lambda: [unusual(3, 4)], {"NanToNum"}),
    "nan_to_num in bfloat16": (
        lambda x: torch.nan_to_num(x, 2, 3), lambda: [unusual(3, 4).bfloat16()], {"NanToNum"}
    ),
    "isposinf": (
        lambda x: torch.where(torch.isposinf(x), 1, x), lambda: [unusual(3, 4)], {"IsPosInf"}
    ),
    "isneginf": (
        lambda x: torch.isneginf(x).logical_not() * x, normal, {"IsNegInf"}
    ),
    "soft_margin_loss": (soft_margin("mean"), normal, SOFT_MARGIN),
    "soft_margin_loss summed": (soft_margin("sum"), normal, SOFT_MARGIN),
    "soft_margin_loss of each": (soft_margin("none"), normal, SOFT_MARGIN),
    **{
        f"{name} in float64": (f, lambda: [positive(3, 4).double()], set())
        for name, f in {
            "hardshrink": F.hardshrink, "softshrink": F.softshrink, "logit": torch.logit,
            "frac": torch.frac, "nan_to_num": torch.nan_to_num,
        }.items()
    },
    "sums of bags": (bags("sum"), table, BAG),
    "sums of bags by frequency": (bags("sum", scale_grad_by_freq=True), table, BAG),
    "sums of bags with padding": (bags("sum", padding_idx=2), table, BAG),
    "sums of bags and an end": (
        bags("sum", starts=STARTS_AND_END, include_last_offset=True), table, BAG
    ),
    "sums of bags by int32": (bags("sum", ROWS.int(), STARTS.int()), table, BAG),
    "sums of bags with factors": (bags("sum"), table_and_factors, BAG),
    "sums of bags with factors and padding": (
        bags("sum", padding_idx=2), table_and_factors, BAG
    ),
    "sums of bags in bfloat16": (bags("sum"), lambda: [torch.randn(6, 3).bfloat16()], BAG),
    "means of bags": (bags("mean"), table, BAG),
    "means of bags with padding": (bags("mean", padding_idx=-4), table, BAG),
    "means of bags and an end": (
        bags("mean", starts=STARTS_AND_END, include_last_offset=True, padding_idx=5), table, BAG
    ),
    "means of bags by frequency": (bags("mean", scale_grad_by_freq=True), table, BAG),
    "means of rows": (bags("mean", ROWS[:6].reshape(2, 3), None), table, BAG),
    "maxima of bags": (bags("max"), table, MAX_BAG),
    "maxima of bags with padding": (bags("max", padding_idx=0), table, MAX_BAG),
    "maxima of bags and an end": (
        bags("max", ROWS.int(), STARTS_AND_END, include_last_offset=True), table, MAX_BAG
    ),
    "maxima of bags of padding": (bags("max", ROWS * 0 + 1, padding_idx=1), table, MAX_BAG),
    "bags of nothing": (bags("mean", ROWS[:0], STARTS * 0), table, set()),
}  # fmt: skip


def test_each_operator_serves_a_node_or_has_a_reason_not_to() -> None:
    path = pathlib.Path(opserve.__file__).parents[1] / "tools/unused_operators.py"
    spec = importlib.util.spec_from_file_location("unused_operators", path)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    used, reasons = tool.used(), tool.unused()

    listed = [name for names in reasons.values() for name in names]
    assert sorted(listed) == sorted(OPERATORS.keys() - used)  # each once
    # A name that is used by now, or is no operator, has no place in the list.
    for reason, names in tool.REASONS.items():
        for one in names.split():
            assert "*" in one or one in reasons[reason], one


@pytest.mark.parametrize("name", CASES)
def test_a_function_and_its_gradients_are_torchs(
    backend: opserve.torch.Backend, name: str
) -> None:
    if "by frequency" in name and is_torch_2_4:
        pytest.skip("torch 2.4 divides gradients of bags by the counts of other rows")
    if "imaginary" in name and is_torch_2_4:
        pytest.skip("torch 2.4 has no gradient of it in its graphs")
    f, make, operators = CASES[name]
    inputs = [one.requires_grad_() for one in make()]

    seen, expected = torch.compile(f, backend=backend)(*inputs), f(*inputs)

    torch.testing.assert_close(seen, expected, equal_nan=True)
    weights = torch.randn(expected.shape, dtype=expected.dtype)
    gradients = torch.autograd.grad((seen * weights).sum(), inputs)
    others = torch.autograd.grad((expected * weights).sum(), inputs)
    torch.testing.assert_close(gradients, others)
    invoked = {
        one.operator
        for plan in backend.plans
        for step in plan.steps
        for one in step.program.invocations  # type: ignore[union-attr]
    }
    assert operators <= invoked


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_have_equal_bits_each_time(backend: opserve.torch.Backend, mode: str) -> None:
    rows = torch.randint(50, (4096,))
    run = torch.compile(bags(mode, rows, torch.arange(0, 4096, 32)), backend=backend)
    weight = torch.randn(50, 40, requires_grad=True)

    def once() -> tuple[Tensor, Tensor]:
        result = run(weight)
        [gradient] = torch.autograd.grad((result * result).sum(), [weight])
        return result.detach().clone(), gradient.clone()

    first, gradient = once()
    for _ in range(3):
        again, other = once()
        assert torch.equal(again, first) and torch.equal(other, gradient)


@pytest.mark.parametrize("name", ["_embedding_bag", "_embedding_bag_forward_only"])
@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_all_results_of_a_node_of_bags_are_torchs(
    backend: opserve.torch.Backend, mode: int, padding: int, name: str
) -> None:
    node = getattr(torch.ops.aten, name)

    def f(weight: Tensor) -> Any:
        return node(weight, ROWS, STARTS, False, mode, False, None, False, padding)

    weight = torch.randn(6, 3)
    seen, expected = torch.compile(f, backend=backend)(weight), f(weight)

    for one, other in zip(seen, expected):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other)


def test_bags_of_float64_are_computed_here(client: opserve.Client) -> None:
    backend = opserve.torch.backend(client)
    weight = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)

    with pytest.warns(opserve.torch.LocalNodesWarning, match="_embedding_bag"):
        seen = torch.compile(bags("mean"), backend=backend)(weight)

    expected = bags("mean")(weight)
    torch.testing.assert_close(seen, expected)
    node = "_embedding_bag_dense_backward" if is_torch_2_4 else "_embedding_bag_backward"
    with pytest.warns(opserve.torch.LocalNodesWarning, match=node):
        gradients = [torch.autograd.grad(one.sum(), [weight])[0] for one in (seen, expected)]
    torch.testing.assert_close(*gradients)


def test_norms_in_float64_are_computed_here(client: opserve.Client) -> None:
    def f(x: Tensor) -> Tensor:
        return torch.linalg.vector_norm(x, dtype=torch.float64)

    x = torch.randn(3, 4)
    with pytest.warns(opserve.torch.LocalNodesWarning, match="linalg_vector_norm"):
        seen = torch.compile(f, backend=opserve.torch.backend(client))(x)
    torch.testing.assert_close(seen, f(x))


def test_the_recommender_has_its_bags_whole(backend: opserve.torch.Backend) -> None:
    case = MODELS["towers"]
    model = case.make()
    *inputs, clicks = case.batch(0)
    told = opserve.torch.explain(model, *inputs)
    torch._dynamo.reset()

    case.loss(torch.compile(model, backend=backend), *inputs, clicks).backward()

    assert not told.unsupported
    assert [(graph.name, len(graph.programs)) for graph in told.graphs] == [
        ("forward", 1), ("backward", 1)
    ]  # fmt: skip
    plans = [
        collections.Counter(one.operator for one in plan.steps[0].program.invocations)
        for plan in backend.plans
    ]
    [forward] = [plan for plan in plans if plan["EmbeddingBag"]]
    [backward] = [plan for plan in plans if plan is not forward]
    assert forward["EmbeddingBag"] == 2 and forward["Embedding"] == 0
    assert backward["EmbeddingDenseBackward"] == 2
