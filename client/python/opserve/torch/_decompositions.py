"""Nodes of torch's that are taken apart because the pool has their parts only.

Attention is products and a softmax; the gradient of bags of embeddings is that of embeddings, with the
gradient of its bag for each index.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Optional

import torch

from opserve.torch import (
    _adaptive_pooling,
    _distances,
    _drawn,
    _order,
    _prefixes,
    _resizing,
    _sampling,
    _scattered,
    _special,
    _triangular,
    _volume_pooling,
)
from opserve.torch._whole_functions import DTYPES

Tensor = torch.Tensor
aten = torch.ops.aten


def _batch_norm_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Optional[Tensor],
    running_mean: Optional[Tensor],
    running_var: Optional[Tensor],
    save_mean: Optional[Tensor],
    save_invstd: Optional[Tensor],
    train: bool,
    eps: float,
    output_mask: list[bool],
) -> Any:
    """In training running statistics play no part: the backward pass need not keep them."""
    if not train or (running_mean is None and running_var is None):
        return NotImplemented
    return aten.native_batch_norm_backward.default(
        gradient, x, weight, None, None, save_mean, save_invstd, train, eps, output_mask
    )


def _grouped(shared: Tensor, query: Tensor) -> Tensor:
    """Keys or values that several heads of the query share, one for each."""
    groups = query.shape[-3] // shared.shape[-3]
    return shared if groups == 1 else shared.repeat_interleave(groups, -3)


def _summed(gradient: Tensor, shared: Tensor) -> Tensor:
    """The gradient of _grouped with respect to `shared`."""
    heads = shared.shape[-3]
    if gradient.shape[-3] == heads:
        return gradient
    return gradient.unflatten(-3, (heads, -1)).sum(-3)


def _scores(
    query: Tensor, key: Tensor, mask: Optional[Tensor], is_causal: bool, scale: float
) -> Tensor:
    scores = torch.matmul(query, key.transpose(-2, -1)) * scale
    if is_causal:
        shape = (query.shape[-2], key.shape[-2])
        allowed = torch.ones(shape, dtype=torch.bool, device=query.device).tril()
        scores = torch.where(allowed, scores, float("-inf"))
    if mask is not None:
        scores = scores + mask
    return scores


def _scale(query: Tensor, scale: Optional[float]) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Optional[Tensor] = None,
    scale: Optional[float] = None,
) -> tuple[Tensor, Tensor]:
    """The result, and the logarithm of each row's sum, of which the backward pass is made."""
    if dropout_p != 0:
        return NotImplemented
    key, value = _grouped(key, query), _grouped(value, query)
    scores = _scores(query, key, attn_mask, is_causal, _scale(query, scale))
    largest = torch.amax(scores, -1, keepdim=True)
    weights = torch.exp(scores - largest)
    total = torch.sum(weights, -1, keepdim=True)
    output = torch.matmul(weights / total, value)
    return output, (torch.log(total) + largest).squeeze(-1)


def _attention_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Optional[Tensor] = None,
    scale: Optional[float] = None,
) -> tuple[Tensor, Tensor, Tensor]:
    factor = _scale(query, scale)
    shared = key
    key, value = _grouped(key, query), _grouped(value, query)
    scores = _scores(query, key, attn_mask, is_causal, factor)
    weights = torch.exp(scores - logsumexp.unsqueeze(-1))
    of_value = torch.matmul(weights.transpose(-2, -1), gradient)
    of_weights = torch.matmul(gradient, value.transpose(-2, -1))
    row = torch.sum(gradient * output, -1, keepdim=True)
    of_scores = weights * (of_weights - row) * factor
    of_key = torch.matmul(of_scores.transpose(-2, -1), query)
    return torch.matmul(of_scores, key), _summed(of_key, shared), _summed(of_value, shared)


_MEAN, _MAX = 1, 2  # modes of a bag, beside 0, a sum


def _bag_of_each(indices: Tensor, offsets: Tensor, bags: Tensor) -> Tensor:
    """The bag of each index: torch's fast way of sums leaves it to the backward pass."""
    if bags.shape[0] == indices.shape[0]:
        return bags
    offsets = offsets.to(torch.int64)
    counts = offsets.new_zeros((indices.shape[0] + 1,))
    return counts.scatter_add(0, offsets, torch.ones_like(offsets)).cumsum(0)[:-1] - 1


def _embedding_bag_dense_backward(
    gradient: Tensor,
    indices: Tensor,
    bags: Tensor,
    sizes: Tensor,
    max_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Optional[Tensor],
    padding_idx: int = -1,
) -> Any:
    if gradient.dtype == torch.float64:
        return NotImplemented  # no more than the forward pass
    if mode == _MAX:
        rows = torch.where((sizes > 0).unsqueeze(1), gradient, 0)
        zeros = gradient.new_zeros((num_weights, gradient.shape[1]))
        return zeros.scatter_add(0, max_indices.to(torch.int64), rows)
    if mode == _MEAN:
        divisors = sizes.clamp(min=1).unsqueeze(1).to(torch.float32)  # halves lack most numbers
        gradient = (gradient / divisors).to(gradient.dtype)
    rows = aten.index_select(gradient, 0, bags)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    return aten.embedding_dense_backward(
        rows, indices, num_weights, padding_idx, scale_grad_by_freq
    )


def _embedding_bag_backward(
    gradient: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bags: Tensor,
    sizes: Tensor,
    max_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Optional[Tensor],
    padding_idx: int = -1,
) -> Any:
    if sparse:
        return NotImplemented
    return _embedding_bag_dense_backward(
        gradient,
        indices,
        _bag_of_each(indices, offsets, bags),
        sizes,
        max_indices,
        num_weights,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        padding_idx,
    )


def _per_sample_weights_backward(
    gradient: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bags: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Any:
    if gradient.dtype == torch.float64:
        return NotImplemented
    rows = aten.index_select(gradient, 0, _bag_of_each(indices, offsets, bags))
    products = (rows * aten.embedding(weight, indices)).sum(1)
    return products if padding_idx < 0 else torch.where(indices == padding_idx, 0, products)


def _add_scaled(x: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product.expand(torch.broadcast_shapes(x.shape, product.shape)).clone()
    return (x if beta == 1 else x * beta) + product


def _addmv(x: Tensor, matrix: Tensor, vector: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    return _add_scaled(x, torch.mv(matrix, vector), beta, alpha)


def _addbmm(x: Tensor, left: Tensor, right: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    return _add_scaled(x, torch.bmm(left, right).sum(0), beta, alpha)


def _clamp(x: Tensor, low: Optional[Tensor] = None, high: Optional[Tensor] = None) -> Tensor:
    x = x if low is None else torch.maximum(x, low)
    return x if high is None else torch.minimum(x, high)


def _hypot(x: Tensor, y: Tensor) -> Any:
    if torch.float64 in (x.dtype, y.dtype):
        return NotImplemented
    greater, less = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    # No square of a number that is large.
    longer = greater * torch.sqrt(1 + (less / greater).square())
    return torch.where((greater == 0) | greater.isinf() | less.isinf(), greater, longer)


def _copysign(x: Tensor, y: Tensor) -> Any:
    if not x.is_floating_point() or not y.is_floating_point():
        return NotImplemented
    # Zero has a sign, too.
    is_negative = (y < 0) | (torch.reciprocal(y) < 0)
    return torch.where(is_negative, -x.abs(), x.abs())


def _embedding_renorm(x: Tensor, indices: Tensor, most: float, norm_type: float) -> Any:
    """The table with rows that are used and too long made shorter."""
    if x.dtype == torch.float64:
        return NotImplemented
    norms = torch.linalg.vector_norm(x, norm_type, 1, dtype=torch.float32)
    indices = indices.reshape(-1).to(torch.int64)
    uses = torch.zeros_like(norms, dtype=torch.int64)
    uses = uses.scatter_add(0, indices, torch.ones_like(indices))
    factors = torch.where((uses > 0) & (norms > most), most / (norms + 1e-7), 1.0)
    return (x * factors.unsqueeze(1)).to(x.dtype)


def _weight_norm_backward(
    gradient: Tensor, direction: Tensor, length: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """Of direction * (length / norms); a norm for each position of `dim`, the first axis or the last."""
    axes = [axis for axis in range(direction.dim()) if axis != dim]
    norms = norms.to(torch.promote_types(norms.dtype, torch.float32)).reshape(length.shape)
    along = (gradient * direction).sum(axes, keepdim=True) / norms
    of_direction = (gradient - direction * (along / norms)) * (length / norms)
    return of_direction.to(direction.dtype), along.to(length.dtype)


def _replication_pad_backward(gradient: Tensor, x: Tensor, padding: list[int]) -> Tensor:
    """Each element of the result is some element of x: the one at its place, or the nearest."""
    for i, before in enumerate(padding[::2]):
        axis = x.dim() - 1 - i
        places = torch.arange(gradient.shape[axis], device=x.device) - before
        nearest = places.clamp(0, x.shape[axis] - 1)
        shape = [*gradient.shape[:axis], x.shape[axis], *gradient.shape[axis + 1 :]]
        gradient = gradient.new_zeros(shape).index_add(axis, nearest, gradient)
    return gradient


def _trilinear(
    x: Tensor,
    y: Tensor,
    z: Tensor,
    new_of_x: list[int],
    new_of_y: list[int],
    new_of_z: list[int],
    summed: list[int],
    unrolled: int = 1,
) -> Tensor:
    """The sum of products of three tensors, each of which gets new axes first."""
    factors = []
    for factor, axes in ((x, new_of_x), (y, new_of_y), (z, new_of_z)):
        for axis in sorted(axes):
            factor = factor.unsqueeze(axis)
        factors.append(factor)
    return (factors[0] * factors[1] * factors[2]).sum(summed)


def _diagonal_scatter(
    x: Tensor, diagonal: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    matrices = x.movedim((dim1, dim2), (-2, -1))
    rows = torch.arange(matrices.shape[-2], device=x.device).unsqueeze(1)
    columns = torch.arange(matrices.shape[-1], device=x.device)
    # An element of the diagonal for each row, or for each column: the others are not used.
    axis = -1 if offset >= 0 else -2
    count = matrices.shape[-2 if offset >= 0 else -1]
    elements = torch.constant_pad_nd(diagonal, [0, count - diagonal.shape[-1]])
    changed = torch.where(columns - rows == offset, elements.unsqueeze(axis), matrices)
    return changed.movedim((-2, -1), (dim1, dim2))


def _shrink_backward(gradient: Tensor, x: Tensor, width: float) -> Any:
    if x.dtype in DTYPES:
        return NotImplemented
    return torch.where((x >= -width) & (x <= width), 0, gradient)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.addmv.default: _addmv,
    aten.addbmm.default: _addbmm,
    aten.clamp.Tensor: _clamp,
    aten.hypot.default: _hypot,
    aten.copysign.Tensor: _copysign,
    aten.embedding_renorm.default: _embedding_renorm,
    aten.hardshrink_backward.default: _shrink_backward,
    aten.softshrink_backward.default: _shrink_backward,
    aten._scaled_dot_product_flash_attention_for_cpu.default: _attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _attention_backward,
    aten._embedding_bag_backward.default: _embedding_bag_backward,
    aten._embedding_bag_dense_backward.default: _embedding_bag_dense_backward,
    aten._embedding_bag_per_sample_weights_backward.default: _per_sample_weights_backward,
    aten.native_batch_norm_backward.default: _batch_norm_backward,
    aten._weight_norm_interface_backward.default: _weight_norm_backward,
    aten._trilinear.default: _trilinear,
    aten.diagonal_scatter.default: _diagonal_scatter,
    aten.replication_pad1d_backward.default: _replication_pad_backward,
    aten.replication_pad2d_backward.default: _replication_pad_backward,
    aten.replication_pad3d_backward.default: _replication_pad_backward,
    **_adaptive_pooling.DECOMPOSITIONS,
    **_distances.DECOMPOSITIONS,
    **_drawn.DECOMPOSITIONS,
    **_order.DECOMPOSITIONS,
    **_prefixes.DECOMPOSITIONS,
    **_resizing.DECOMPOSITIONS,
    **_sampling.DECOMPOSITIONS,
    **_scattered.DECOMPOSITIONS,
    **_special.DECOMPOSITIONS,
    **_triangular.DECOMPOSITIONS,
    **_volume_pooling.DECOMPOSITIONS,
}

# Of these the pool has operators for the dtypes of trainings only; of others, torch's rules hold.
WHOLE_IN_TRAININGS = (
    aten.celu.default,
    aten.hardshrink.default,
    aten.logit.default,
    aten.logit_backward.default,
    aten.nan_to_num.default,
    aten.soft_margin_loss.default,
    aten.soft_margin_loss_backward.default,
    aten.softshrink.default,
    aten.threshold.default,
)


def of_other_dtypes(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule for a function whose first argument has none of the dtypes of trainings."""

    def decompose(x: Tensor, *args: Any, **options: Any) -> Any:
        return NotImplemented if x.dtype in DTYPES else rule(x, *args, **options)

    return decompose
