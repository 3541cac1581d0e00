"""Nodes of torch's that are taken apart because the pool has their parts only.

Attention is products and a softmax; bags of embeddings are embeddings and a sum over each bag.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Optional

import torch

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


_SUM, _MEAN = 0, 1  # modes of a bag


def _bags(indices: Tensor, offsets: Tensor, include_last: bool) -> tuple[Tensor, Tensor]:
    """The bag of each index, and how many indices each bag has."""
    if include_last:
        offsets = offsets[:-1]
    positions = torch.arange(indices.shape[0], device=indices.device)
    begun = (positions.unsqueeze(1) >= offsets.unsqueeze(0)).to(torch.int64)
    bags = begun.sum(1) - 1
    numbers = torch.arange(offsets.shape[0], device=indices.device)
    sizes = (bags.unsqueeze(1) == numbers.unsqueeze(0)).to(torch.int64).sum(0)
    return bags, sizes


def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Optional[Tensor] = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    if mode not in (_SUM, _MEAN) or padding_idx != -1 or scale_grad_by_freq:
        return NotImplemented
    bags, sizes = _bags(indices, offsets, include_last_offset)
    rows = aten.embedding(weight, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    sums = rows.new_zeros((sizes.shape[0], weight.shape[1])).index_add(0, bags, rows)
    if mode == _MEAN:
        sums = sums / sizes.clamp(min=1).unsqueeze(1).to(sums.dtype)
    return sums, bags, sizes, sizes


def _embedding_bag_backward(
    gradient: Tensor,
    indices: Tensor,
    bags: Tensor,
    sizes: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Optional[Tensor],
    padding_idx: int = -1,
) -> Tensor:
    if mode == _MEAN:
        gradient = gradient / sizes.clamp(min=1).unsqueeze(1).to(gradient.dtype)
    rows = aten.index_select(gradient, 0, bags)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    zeros = rows.new_zeros((num_weights, rows.shape[1]))
    return zeros.index_add(0, indices, rows)


def _embedding_bag_any_backward(
    gradient: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bags: Tensor,
    sizes: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Optional[Tensor],
    padding_idx: int = -1,
) -> Tensor:
    return _embedding_bag_backward(
        gradient,
        indices,
        bags,
        sizes,
        maximum_indices,
        num_weights,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        padding_idx,
    )


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


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.addmv.default: _addmv,
    aten.addbmm.default: _addbmm,
    aten.clamp.Tensor: _clamp,
    aten._scaled_dot_product_flash_attention_for_cpu.default: _attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _attention_backward,
    aten._embedding_bag.default: _embedding_bag,
    aten._embedding_bag_forward_only.default: _embedding_bag,
    aten._embedding_bag_backward.default: _embedding_bag_any_backward,
    aten._embedding_bag_dense_backward.default: _embedding_bag_backward,
    aten.native_batch_norm_backward.default: _batch_norm_backward,
}
