"""The calls that are timed: a representative one for each operator, of FLOAT where the operator takes it.

CALLS has (shapes by input, attributes, domains by input) of the operators whose inputs differ in shape; all others
have inputs of PLAIN and the attributes that must be given.
"""

import math

import numpy as np

PLAIN = [512, 512]
COUNT = math.prod(PLAIN)
ROWS = [1024, 256]
LIST = [[128, 256]] * 8
IMAGES = [8, 32, 32, 32]
MATRIX = [256, 256]
BATCH = [4, 128, 128]


def below(limit):
    return lambda shape, random: random.integers(0, limit, shape)


def apart(shape, random):
    """Indices that differ along axis 1."""
    return np.argsort(random.random(shape), axis=1)


def order(shape, random):
    """Each index once."""
    return random.permutation(shape[0]).reshape(shape)


def any_bytes(shape, random):
    return random.integers(0, 256, shape)


def constant(value):
    return lambda shape, random: np.full(shape, value)


def same(shape, *names):
    return {name: shape for name in names}


# Outputs that functions leave as they are: dtype and shape.
UNWRITTEN = {
    "buffer": ("FLOAT", PLAIN),
    "mask_out": ("UINT8", [COUNT // 8]),
    "zloss_out": ("FLOAT", [1]),
    "lse_for_zloss_out": ("FLOAT", [1024]),
}
CALLS = {}


def define(names, shapes, attributes=None, domains=None):
    for name in names.split():
        CALLS[name] = (shapes, attributes or {}, domains or {})


# Arithmetic whose speed depends on its numbers: no NaN, and no power with a kernel of its own.
_base = {"self": (0.1, 5), "exponent": (-2, 2)}
define("PowTensorTensor InplacePowTensorTensor", same(PLAIN, "self", "exponent"), {}, _base)
define("PowTensorScalar InplacePowTensorScalar", same(PLAIN, "self"), {"exponent": 1.7}, _base)
define("PowScalarTensor", same(PLAIN, "exponent"), {"self": 1.7}, _base)
define("DivMod InplaceDivMod", same(PLAIN, "self", "other"), {"mode": 2}, {"other": (0.5, 3)})
define("DivMods InplaceDivMods", same(PLAIN, "self"), {"mode": 2, "other": 1.7})
define("FloorDivide FmodTensor RemainderTensorTensor", same(PLAIN, "self", "other"), {}, {"other": (0.5, 3)})
define("Clamp", same(PLAIN, "self"), {"clip_value_min": -1.0, "clip_value_max": 2.0})
define("Swish", same(PLAIN, "self"), {"beta": 1.5})
define("SwishBackward", same(PLAIN, "grad_output", "self"), {"beta": 1.5})
define("NanToNum", same(PLAIN, "self"), {"nan": 0.5, "posinf": 2.0, "neginf": -2.0})
# By tanh; the error function is that of Gelu and GeluBackward.
define("GeluV2", same(PLAIN, "x"), {"approximate": 1})
define("GeluBackwardV2", same(PLAIN, "grad_output", "self"), {"approximate": "tanh"})
define("Prelu", {"self": PLAIN, "weight": [512]})
define("PreluBackward", {**same(PLAIN, "self", "grad_output"), "weight": [512]})
_gated = {"self": [512, 1024]}
define("Glu GeGlu", _gated, {"dim": -1})
define("GluBackward", {**_gated, "grad_out": PLAIN}, {"dim": -1})
define("GeGluBackward", {**_gated, **same(PLAIN, "grad_output", "gelu")}, {"dim": -1})
define("SwiGlu", {"x": [512, 1024]}, {"dim": -1})
define("SwiGluGrad", {"x": [512, 1024], "y_grad": PLAIN}, {"dim": -1})
# Copies, fills, sequences and masks.
define("Cast", same(PLAIN, "self"), {"dtype": "FLOAT16"})
define("InplaceMaskedFillTensor", {**same(PLAIN, "self", "mask"), "value": []})
define("InplaceMaskedScatter", {**same(PLAIN, "self", "mask"), "source": [COUNT]})
define("InplaceFillTensor", {"self": PLAIN, "value": []})
define("Tril InplaceTril Triu InplaceTriu", same(PLAIN, "self"), {"diagonal": 0})
define("Arange", {}, {"start": 0.0, "end": float(COUNT), "step": 1.0})
define("Eye", {}, {"n": 512, "m": 512})
define("Linspace", {}, {"start": 0.0, "end": 1.0, "steps": COUNT})
define("DropoutDoMask", {"self": PLAIN, "mask": [COUNT // 8]}, {"prob": 0.5}, {"mask": any_bytes})
define("DropoutBackward", {"grad_output": PLAIN, "mask": [COUNT // 8]}, {"scale": 2.0}, {"mask": any_bytes})
define("DropoutGenMask", {}, {"shape": PLAIN, "prob": 0.5, "seed": 7})
define("Dropout", {"input": PLAIN}, {"p": 0.5, "train": True, "seed": 7, "offset": 0})
# Lists of tensors.
define("ForeachAddScalar ForeachMulScalar ForeachDivScalar", {"x": LIST, "scalar": [1]})
define("ForeachAddScalarV2 ForeachMulScalarV2", {"x": LIST, "scalar": [1]})
define("ForeachPowScalar", {"x": LIST, "scalar": [1]}, {}, {"x": (0.1, 5), "scalar": (1.2, 1.8)})
define("ForeachAddScalarList ForeachMulScalarList", {"x": LIST}, {"scalars": [1.5, 2.0] * 4})
define("ForeachAddList", {**same(LIST, "x1", "x2"), "alpha": [1]})
define("ForeachAddListV2", {**same(LIST, "x1", "x2"), "alpha": [1]})
define("ForeachMulList ForeachMaximumList ForeachLerpScalar", same(LIST, "x1", "x2"))
define(
    "ForeachAddcmulScalar ForeachAddcmulScalarV2 ForeachAddcdivScalar ForeachAddcdivScalarV2",
    {**same(LIST, "x1", "x2", "x3"), "scalar": [1]},
)
define("ForeachAddcdivScalarList", {**same(LIST, "x1", "x2", "x3"), "scalars": [8]})
define("ForeachSqrt ForeachNeg ForeachReciprocal ForeachNorm ForeachCopy ForeachZeroInplace", {"x": LIST})
define("Sum", {"tensors": [PLAIN] * 4})
define(
    "ForeachNonFiniteCheckAndUnscale",
    {"scaled_grads": LIST, **same([1], "found_inf", "inv_scale")},
    {},
    {"found_inf": constant(0.0), "inv_scale": constant(1.0)},
)
define(
    "AmpUpdateScale",
    same([1], "current_scale", "growth_tracker", "found_inf"),
    {"growth_interval": 2000},
    {"current_scale": constant(65536.0), "growth_tracker": constant(0), "found_inf": constant(0.0)},
)
# Optimizers.
_step = {"step": constant(3)}
define("ApplyAdamWV2", {**same(PLAIN, "var", "m", "v", "grad"), "step": [1]}, {"lr": 0.125}, _step)
define(
    "ApplyFusedEmaAdam",
    {**same(PLAIN, "grad", "var", "m", "v", "s"), "step": [1]},
    {"lr": 0.125, "mode": 1, "weight_decay": 0.25},
    _step,
)
define(
    "FusedAdamw",
    {**same(LIST, "params", "grads", "exp_avgs", "exp_avg_sqs"), "state_steps": [[1]] * 8},
    {"lr": 0.125},
    {"state_steps": constant(3.0)},
)
define(
    "FusedSgd",
    same(LIST, "params", "grads", "momentum_buffers"),
    {"lr": 0.125, "momentum": 0.5, "weight_decay": 0.25},
)
define("Renorm", same(PLAIN, "self"), {"dim": 0, "max_norm": 2.5, "p": 2})
# Indices.
_indices = {"index": below(1024), "indices": below(1024)}
define("Embedding", {"weight": ROWS, "indices": [1024]}, {}, _indices)
define(
    "EmbeddingBag",
    {"weight": ROWS, "indices": [4096], "offsets": [1024]},
    {"mode": 1},  # torch's sums tell no bags
    {**_indices, "offsets": lambda shape, random: 4 * np.arange(shape[0])},
)
define("EmbeddingDenseBackward", {"grad": ROWS, "indices": [1024]}, {"num_weights": 1024}, _indices)
define("Gather", same(PLAIN, "self", "index"), {"dim": 1}, {"index": below(512)})
define("GatherV2 IndexSelect", {"self": ROWS, "index": [1024]}, {"dim": 0}, _indices)
define("GatherNd", {"self": PLAIN, "indices": [COUNT, 2]}, {}, {"indices": below(512)})
define("Index", {"self": ROWS, "indices": [[1024]]}, {}, _indices)
define("IndexAdd", {**same(ROWS, "self", "source"), "index": [1024]}, {"dim": 0}, _indices)
define("IndexPutImpl", {**same(ROWS, "self", "values"), "indices": [[1024]]}, {}, {"indices": order})
_scattered = {"index": apart, "self": (-4, 4), "src": (-2, 2)}
define("Scatter InplaceScatter", same(PLAIN, "self", "index", "src"), {"dim": 1, "reduce": 0}, _scattered)
define(
    "ScatterValue InplaceScatterValue", same(PLAIN, "self", "index"), {"dim": 1, "reduce": 0, "value": 1.5}, _scattered
)
define("ScatterAdd", same(PLAIN, "self", "index", "src"), {"dim": 1}, {"index": below(512)})
define("ScatterNdUpdate", {**same(ROWS, "self", "updates"), "indices": [1024, 1]}, {}, {"indices": order})
define("UnfoldGrad", {"grad_out": [512, 255, 4]}, {"input_sizes": PLAIN, "dim": 1, "size": 4, "step": 2})
define(
    "InplaceScatterUpdate",
    {"data": [16, 128, 128], "indices": [16], "updates": [16, 32, 128]},
    {"axis": -2},
    {"indices": below(97)},
)
# Losses of classes.
_nll = {"self": ROWS, "target": [1024], "weight": [256]}
_classes = {"target": below(256), "weight": (0.1, 2), "total_weight": (1, 5)}
define("NllLoss", _nll, {}, _classes)
define("NllLossBackward", {**_nll, "grad_output": [1], "total_weight": [1]}, {}, _classes)
_images = {"self": [4, 64, 32, 32], "target": [4, 32, 32], "weight": [64]}
_pixels = {**_classes, "target": below(64)}
define("NllLoss2d", _images, {}, _pixels)
define("NllLoss2dBackward", {**_images, "grad_output": [1], "total_weight": [1]}, {}, _pixels)
define("CrossEntropyLoss", {"input": ROWS, "target": [1024], "weight": [256]}, {}, _classes)
define("CrossEntropyLossGrad", {"grad_loss": [1], "log_prob": ROWS, "target": [1024], "weight": [256]}, {}, _classes)
define("SoftmaxCrossEntropyWithLogits", same(ROWS, "features", "labels"))
define(
    "MultilabelMarginLoss",
    same([64, 128], "self", "target"),
    {},
    {"target": lambda shape, random: np.where(np.arange(shape[1]) < 32, np.argsort(random.random(shape), axis=1), -1)},
)
# Products of matrices.
define("Matmul Mm", same(MATRIX, "self", "mat2"))
define("BatchMatMul", same(BATCH, "self", "mat2"))
define("Addmm InplaceAddmm", same(MATRIX, "self", "mat1", "mat2"))
define("Baddbmm InplaceBaddbmm", same(BATCH, "self", "batch1", "batch2"))
define("Addbmm", {"self": BATCH[1:], **same(BATCH, "batch1", "batch2")})
define("Mv", {"self": PLAIN, "vec": [512]})
define("Addmv", {"self": [512], "mat": PLAIN, "vec": [512]})
define("Dot", same([COUNT], "self", "tensor"))
define("Ger", same([512], "self", "vec2"))
define("Gemm", same(MATRIX, "a", "b", "c"), {"alpha": 2.0, "beta": 0.5, "trans_a": 0, "trans_b": 0})
# Windows.
_convolution = {
    "stride": [1, 1],
    "padding": [1, 1],
    "dilation": [1, 1],
    "transposed": False,
    "output_padding": [0, 0],
    "groups": 1,
}
_filters = {"input": [4, 16, 32, 32], "weight": [32, 16, 3, 3]}
define("Convolution", {**_filters, "bias": [32]}, _convolution)
define("ConvolutionBackward", {**_filters, "grad_output": [4, 32, 32, 32]}, {**_convolution, "bias_sizes": [32]})
_large, _small = [4, 16, 64, 64], [4, 16, 32, 32]
define("AvgPool2d", {"self": _large}, {"kernel_size": [2, 2], "strides": [2, 2], "paddings": [0, 0]})
_windows = {"kernel_size": [2, 2], "stride": [2, 2], "padding": [0, 0]}
define("AvgPool2dBackward", {"self": _large, "grad_output": _small}, _windows)
_windows = {**_windows, "dilation": [1, 1]}
define("MaxPool2dWithIndices", {"self": _large}, _windows)


def places(shape, random):
    """The greatest elements of windows of 2 x 2."""
    rows = 2 * np.arange(shape[2])[:, None] + random.integers(0, 2, shape)
    columns = 2 * np.arange(shape[3]) + random.integers(0, 2, shape)
    return rows * 2 * shape[3] + columns


define(
    "MaxPool2dWithIndicesBackward",
    {"self": _large, **same(_small, "grad_output", "indices")},
    _windows,
    {"indices": places},
)
define("UpsampleNearest2d UpsampleNearest2dV2 UpsampleBilinear2d", {"self": _small}, {"output_size": _large[2:]})
define(
    "UpsampleNearest2dBackward UpsampleBilinear2dBackward",
    {"grad_out": _large},
    {"output_size": _large[2:], "input_size": _small},
)
# Normalisation.
_rows = same([512], "weight", "bias", "gamma", "beta")
_factors = same([512, 1], "mean", "rstd")
_positive = {"rstd": (0.2, 2), "invstd": (0.2, 2), "save_invstd": (0.2, 2), "running_var": (0.2, 3)}


def rows(names, whole, *more, **attributes):
    shapes = {**same(PLAIN, *whole), **{n: {**_rows, **_factors}[n] for n in more}}
    define(names, shapes, attributes, _positive)


rows("LayerNorm LayerNormWithImplMode FastLayerNorm", ["input"], "weight", "bias", normalized_shape=[512])
rows("LayerNormBackward", ["grad_out", "input"], "mean", "rstd", "weight", "bias", normalized_shape=[512])
rows("RmsNorm", ["x"], "gamma")
rows("RmsNormGrad", ["dy", "x"], "rstd", "gamma")
rows("AddRmsNorm", ["x1", "x2"], "gamma")
define("AddLayerNorm", {**same(PLAIN, "x1", "x2"), **same([512], "gamma", "beta", "bias")})
rows("AddLayerNormGrad", ["dy", "x1", "x2", "dsum"], "rstd", "mean", "gamma")
rows("DeepNorm", ["x", "gx"], "beta", "gamma", alpha=0.25)
rows("DeepNormGrad", ["dy", "x", "gx"], "gamma", "mean", "rstd", alpha=0.25)
_groups = {"n": 8, "c": 32, "hxw": 1024, "group": 8}
define("GroupNorm", {"self": IMAGES, **same([32], "gamma", "beta")}, _groups)
define(
    "GroupNormBackward",
    {**same(IMAGES, "grad_out", "input"), **same([8, 8], "mean", "rstd"), "gamma": [32]},
    _groups,
    _positive,
)


def channels(names, images, *each, **attributes):
    define(names, {**same(IMAGES, *images), **same([32], *each)}, attributes, _positive)


channels("BatchNorm", ["input"], "weight", "bias", "running_mean", "running_var", training=True)
channels(
    "BatchNormBackward",
    ["grad_out", "input"],
    *("weight", "running_mean", "running_var", "save_mean", "save_invstd"),
    training=True,
)
channels("BatchNormStats", ["input"])
channels("BatchNormElemt", ["input"], "weight", "bias", "mean", "invstd")
channels("BatchNormReduceBackward", ["grad_out", "input"], "mean", "invstd", "weight")
define(
    "BatchNormElemtBackward",
    {
        **same(IMAGES, "grad_out", "input"),
        **same([32], "mean", "invstd", "weight", "sum_dy", "sum_dy_xmu"),
        "counter": [2],
    },
    {},
    {**_positive, "counter": constant(4096)},
)
# Softmax.
define("LogSoftmaxBackward SoftmaxBackward", same(PLAIN, "grad_output", "output"), {"dim": 1})
define("Softmax LogSoftmax", same(PLAIN, "self"), {"dim": 1})
_heads = [4, 4, 128, 128]
define("ScaledMaskedSoftmax", same(_heads, "x", "mask"), {"scale": 0.5, "fixed_triu_mask": False})
define("ScaledMaskedSoftmaxBackward", same(_heads, "grad_output", "y", "mask"), {"scale": 0.5, "fix_triu_mask": False})
# Reductions, running sums and order.
define("ReduceSum LinalgVectorNorm", same(PLAIN, "self"), {"dims": [1]})
define(
    "ReduceNansum Mean MeanV2 Amax Amin Var VarCorrection VarMean Std StdMeanCorrection All Any LogSumExp",
    same(PLAIN, "self"),
    {"dim": [1]},
)
define("Norm", same(PLAIN, "self"), {"dim": [1], "p_scalar": 2.0})
define("Max Min", same(PLAIN, "self"))
define("MaxDim MinDim ArgMax ArgMin Cumsum CumsumV2", same(PLAIN, "self"), {"dim": 1})
_near_one = {"self": (0.95, 1.05), "input": (0.95, 1.05)}
define("Prod", same(PLAIN, "self"), {}, {"self": (0.9999, 1.0001)})
define("ProdDim", same(PLAIN, "self"), {"dim": 1}, _near_one)
define("Cumprod", same(PLAIN, "input"), {"dim": 1}, _near_one)
define("Topk", same(PLAIN, "self"), {"dim": 1, "k": 8, "largest": True})
define("Sort", same(PLAIN, "self"), {"dim": 1, "stable": True, "descending": False})
# Shapes.
define("Slice", same(PLAIN, "self"), {"dim": 1, "start": 0, "end": 512, "step": 2})
define("Permute", same(PLAIN, "self"), {"dims": [1, 0]})
define("Cat Stack", {"tensors": [[128, 512]] * 4}, {"dim": 0})
define("SplitTensor", same(PLAIN, "self"), {"split_sections": 128, "dim": 0})
define("SplitWithSize", same(PLAIN, "self"), {"split_size": [128] * 4, "dim": 0})
define("Expand", {"self": [512, 1]}, {"size": PLAIN})
define("Repeat", {"self": MATRIX}, {"repeats": [2, 2]})
define("Flip", same(PLAIN, "self"), {"dims": [1]})
define("Roll", {"x": PLAIN}, {"shifts": [1], "dims": [0]})
define("ConstantPadNd", same(PLAIN, "self"), {"pad": [1, 1, 1, 1]})
define("OneHot", {"self": [1024], **same([1], "on_value", "off_value")}, {"num_classes": 256}, {"self": below(256)})
