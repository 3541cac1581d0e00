"""Operators of the catalogue that no ATen node needs, with the reasons; ATEN.md lists them.

A test compares them with the operators that opserve.torch invokes.
"""

from __future__ import annotations

import ast
import fnmatch
import pathlib

import opserve.torch
from opserve._operators import OPERATORS
from opserve.torch import _lowerings

_TORCH = pathlib.Path(opserve.torch.__file__).parent

# Names, or patterns of names, by reason.
REASONS: dict[str, str] = {
    "Graphs have no nodes that work in place: AOTAutograd turns them into others": "Inplace*",
    "Optimizers of opserve.torch.optim invoke operators of single tensors, or write their rules out": (
        "Foreach* ApplyAdamWV2 ApplyFusedEmaAdam FusedAdamw FusedSgd AmpUpdateScale"
    ),
    "A scalar operand is a tensor of one element, so that the form for tensors serves": (
        "*Scalar FloorDivides DivMods Rsub Rsubs RemainderScalarTensor RemainderTensorScalar"
    ),
    "Another operator, which is used, gives the same": (
        "ClampMax ClampMin ClampMaxTensor ClampMinTensor ClampTensor CumsumV2 Gelu GeluBackward "
        "HardswishBackwardV2 LayerNormWithImplMode FastLayerNorm LogSigmoid Matmul Gemm Addbmm Addmv Ger "
        "Max Min MeanV2 Norm Prod Std StdMeanCorrection Var Sum ReduceNansum DropoutBackward GatherV2 "
        "GatherNd ScatterNdUpdate NllLoss2d NllLoss2dBackward BinaryCrossEntropyWithLogitsBackward "
        "UpsampleNearest2d"
    ),
    "Views cost nothing and need no operator": "Expand Slice SplitTensor SplitWithSize",
    "torch takes the function apart into nodes that other operators serve": (
        "Selu SeluBackward IsFinite Linspace Eye OneHot Renorm RmsNorm RmsNormGrad KlDiv "
        "MultilabelMarginLoss UnfoldGrad"
    ),
    "ATen has no such node": (
        "AddLayerNorm AddLayerNormGrad AddRmsNorm DeepNorm DeepNormGrad CrossEntropyLossGrad Swish "
        "SwishBackward FastGelu FastGeluBackward GeGlu GeGluBackward SwiGlu SwiGluGrad ScaledMaskedSoftmax "
        "ScaledMaskedSoftmaxBackward SoftmaxCrossEntropyWithLogits BinaryCrossEntropyWithLogitsTargetBackward"
    ),
    "Batch norm over several processes is no node of one process": (
        "BatchNormElemt BatchNormElemtBackward BatchNormReduceBackward BatchNormStats"
    ),
}  # fmt: skip


def used() -> set[str]:
    """Operators that opserve.torch names, as a whole or by a part that its lowerings complete."""
    found: set[str] = set()
    for path in _TORCH.rglob("*.py"):
        found |= {
            node.value
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
    for lowering in _lowerings.LOWERINGS.values():
        for cell in getattr(lowering, "__closure__", None) or ():
            part = cell.cell_contents
            if isinstance(part, str):
                found |= {part, f"{part}Tensor", f"Bitwise{part}Tensor"}
    return found & OPERATORS.keys()


def unused() -> dict[str, list[str]]:
    """The others, by the first reason that fits; one without a reason is missing."""
    left = OPERATORS.keys() - used()
    found = {}
    for reason, patterns in REASONS.items():
        names = {
            name for name in left if any(fnmatch.fnmatchcase(name, one) for one in patterns.split())
        }
        found[reason] = sorted(names)
        left -= names
    return found
