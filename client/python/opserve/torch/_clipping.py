"""Clipping of gradients by their norm, on the pool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Union

import torch

from opserve import _tensors
from opserve.prepared import PreparedProgram
from opserve.program import Keep, Program
from opserve.torch._pool_tensor import (
    Contents,
    PoolTensor,
    inputs_of,
    name_of,
    signature_of,
    sum_of,
)

Tensor = torch.Tensor


@torch.no_grad()
def clip_grad_norm_(
    parameters: Union[Tensor, Iterable[Tensor]],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """As torch.nn.utils.clip_grad_norm_; gradients that are on the pool stay there.

    Only the norm travels, if all gradients are there; else torch's function does it here.

    RuntimeError: the norm is not finite, and `error_if_nonfinite`; no gradient has changed.
    """
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    gradients = [one.grad for one in given if one.grad is not None]
    tensors = [one.contents for one in gradients if isinstance(one, PoolTensor)]
    if not gradients or len(tensors) < len(gradients) or not _are_together(tensors):
        total: Tensor = torch.nn.utils.clip_grad_norm_(
            given, max_norm, norm_type, error_if_nonfinite
        )
        return total
    residents = tensors[0].residents
    signature = tuple(signature_of(one) for one in tensors)
    run, invocation = residents.programs.get(
        ("clip", float(norm_type), *signature), lambda: _prepare(tensors, norm_type)
    )
    inputs = [term for one in tensors for term in one.on_pool()]
    limit = {invocation: {"other": float(max_norm)}}
    norm, *kept = residents.run(run, inputs, limit)
    terms = [residents.hold(one) for one in kept]
    total = norm.reshape(())
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"the norm of order {float(norm_type)} of the gradients is {total.item()}; expected "
            "a finite one, as error_if_nonfinite=True says"
        )
    for contents, term in zip(tensors, terms):
        contents.replace(term)
    return total


def _are_together(tensors: Sequence[Contents]) -> bool:
    residents = tensors[0].residents
    floats = (torch.float32, torch.float16, torch.bfloat16)
    return all(
        one.terms and one.residents is residents and one.dtype in floats for one in tensors
    )


def _prepare(tensors: Sequence[Contents], order: float) -> tuple[PreparedProgram, int]:
    """The program, and its invocation that takes the largest norm as the attribute `other`."""
    residents = tensors[0].residents
    program = Program()
    program.make_result = _tensors.maker_like(torch.empty(0))
    gradients = [sum_of(program, inputs_of(program, one)) for one in tensors]
    norms: list[Any] = []
    for dtype in dict.fromkeys(one.dtype for one in tensors):
        chosen = [i for i, one in enumerate(tensors) if one.dtype == dtype]
        of_these = program.foreach_norm([gradients[i] for i in chosen], scalar=float(order))
        for number in range(len(chosen)):
            norm: Any = of_these[number]
            if dtype != torch.float32:
                norm = program.cast(norm, dtype="float32")
            norms.append(norm)
    [total] = [program.foreach_norm([program.stack(norms, dim=0)], scalar=float(order))[0]]
    inverse = program.reciprocal(program.adds(total, other=1e-6, alpha=1.0))
    factor = program.muls(inverse, other=1.0)
    invocation = len(program.invocations) - 1
    factor = program.clamp_max(factor, clip_value_max=1.0)
    factors = {torch.float32: factor}
    results: list[Any] = [total]
    for contents, gradient in zip(tensors, gradients):
        dtype = contents.dtype
        if dtype not in factors:
            factors[dtype] = program.cast(factor, dtype=name_of(dtype))
        clipped = program.mul(gradient, factors[dtype])
        results.append(Keep(clipped, residents.lease))
    return residents.programs.client.prepare(program, results), invocation
