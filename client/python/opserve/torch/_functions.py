"""The functions of opserve.torch, bound to a client: see opserve.torch.

They share programs and their operators with torch.compile's backend, but neither its plans nor its
prepared programs. Plans come from torch's compiler, and the functions work with versions of torch
that have none. A prepared program has its results where they were at the preparation: here each
call has its own, in shared memory if an input lies there, and large tensors are not copied then.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch
import torch.nn.functional as functional

from opserve import _process, errors
from opserve._operators import OPERATORS
from opserve.client import Client
from opserve.program import Program
from opserve.torch import _autograd, _cross_entropy, _losses
from opserve.torch._autograd import not_compiled
from opserve.torch._caller import level_of_caller
from opserve.torch._gradients import (
    Call,
    Differentiable,
    Gradient,
    Place,
    PoolFunction,
    Ready,
    anywhere,
)
from opserve.torch._places import Places
from opserve.torch._softmax import Softmax

Tensor = torch.Tensor

# Errors that another daemon, or another time, might not give; then computing here helps.
_POOL_FAILURES = (
    errors.UnavailableError,
    errors.ResourceExhaustedError,
    errors.DeadlineExceededError,
    errors.InternalError,
    errors.UnimplementedError,
)


class FallbackWarning(UserWarning):
    """A backward pass was computed locally because the pool could not."""


class Functions:
    """The functions, bound to a client.

    Thread-safe, as the client is.
    """

    def __init__(
        self, client: Optional[Client] = None, *, fallback: Optional[str] = None
    ) -> None:
        """
        Args:
            client: None: one connected to the default target when first needed.
            fallback: "local": functions that the pool cannot compute (it cannot be reached, is
                full, is too slow, has a fault, or lacks an operator for the dtype) are computed
                here by torch; a FallbackWarning says so once. None: it is an error.
        """
        if fallback not in (None, "local"):
            raise ValueError(f'fallback is {fallback!r}; expected None or "local"')
        self._lock = threading.Lock()
        self._client = client  # guarded by _lock, as below
        self._fallbacks = 0
        self._fallback = fallback
        _process.watch(self)

    def _after_fork_in_child(self) -> None:
        self._lock = threading.Lock()  # a thread that the child lacks may have it

    @property
    def fallbacks(self) -> int:
        """Backward passes that were computed locally because the pool could not."""
        with self._lock:
            return self._fallbacks

    @not_compiled
    def kl_div(
        self,
        input: Tensor,
        target: Tensor,
        size_average: Optional[bool] = None,
        reduce: Optional[bool] = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> Tensor:
        """As torch.nn.functional.kl_div."""
        reduction = _reduction(size_average, reduce, reduction)
        return self._apply(_losses.KlDiv(reduction, log_target), input, target)

    @not_compiled
    def l1_loss(
        self,
        input: Tensor,
        target: Tensor,
        size_average: Optional[bool] = None,
        reduce: Optional[bool] = None,
        reduction: str = "mean",
        weight: Optional[Tensor] = None,
    ) -> Tensor:
        """As torch.nn.functional.l1_loss."""
        reduction = _reduction(size_average, reduce, reduction)
        return self._weighted_distance(
            _losses.L1Loss, input, target, weight, reduction
        )

    @not_compiled
    def mse_loss(
        self,
        input: Tensor,
        target: Tensor,
        size_average: Optional[bool] = None,
        reduce: Optional[bool] = None,
        reduction: str = "mean",
        weight: Optional[Tensor] = None,
    ) -> Tensor:
        """As torch.nn.functional.mse_loss."""
        reduction = _reduction(size_average, reduce, reduction)
        return self._weighted_distance(
            _losses.MseLoss, input, target, weight, reduction
        )

    @not_compiled
    def smooth_l1_loss(
        self,
        input: Tensor,
        target: Tensor,
        size_average: Optional[bool] = None,
        reduce: Optional[bool] = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> Tensor:
        """As torch.nn.functional.smooth_l1_loss."""
        reduction = _reduction(size_average, reduce, reduction)
        return self._distance(_losses.SmoothL1Loss(reduction, beta), input, target)

    @not_compiled
    def cross_entropy(
        self,
        input: Tensor,
        target: Tensor,
        weight: Optional[Tensor] = None,
        size_average: Optional[bool] = None,
        ignore_index: int = -100,
        reduce: Optional[bool] = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> Tensor:
        """As torch.nn.functional.cross_entropy."""
        reduction = _reduction(size_average, reduce, reduction)
        loss = _cross_entropy.CrossEntropy(reduction, ignore_index, label_smoothing)
        inputs = [input, target] if weight is None else [input, target, weight]
        if target.is_floating_point():
            axis = 1 if input.dim() > 1 else 0
            softmax = Softmax(axis, is_log=True)
            if not self._is_for_pool(softmax, [input]):
                return loss.value(*inputs)
            with torch.no_grad():
                loss.value(*inputs)  # which checks them
            log_p: Tensor = PoolFunction.apply(softmax, self, input)
            return _cross_entropy.of_probabilities(
                log_p, target, weight, reduction, label_smoothing
            )
        if weight is not None and weight.requires_grad:
            return loss.value(*inputs)  # torch has no gradient of the weight
        return self._apply(loss, *inputs)

    @not_compiled
    def softmax(
        self,
        input: Tensor,
        dim: Optional[int] = None,
        _stacklevel: int = 3,
        dtype: Optional[torch.dtype] = None,
    ) -> Tensor:
        """As torch.nn.functional.softmax."""
        if dim is None:
            dim = functional._get_softmax_dim("softmax", input.dim(), _stacklevel)
        if dtype is not None:
            input = input.to(dtype)
        return self._apply(Softmax(dim, is_log=False), input)

    @not_compiled
    def log_softmax(
        self,
        input: Tensor,
        dim: Optional[int] = None,
        _stacklevel: int = 3,
        dtype: Optional[torch.dtype] = None,
    ) -> Tensor:
        """As torch.nn.functional.log_softmax."""
        if dim is None:
            dim = functional._get_softmax_dim("log_softmax", input.dim(), _stacklevel)
        if dtype is not None:
            input = input.to(dtype)
        return self._apply(Softmax(dim, is_log=True), input)

    def _weighted_distance(
        self,
        kind: Callable[[str], _losses.Distance],
        input: Tensor,
        target: Tensor,
        weight: Optional[Tensor],
        reduction: str,
    ) -> Tensor:
        if weight is None:
            return self._distance(kind(reduction), input, target)
        loss = self._distance(kind("none"), input, target)
        return _weighted(loss, input, weight, reduction)

    def _distance(
        self, loss: _losses.Distance, input: Tensor, target: Tensor
    ) -> Tensor:
        """A loss of tensors that torch broadcasts and promotes."""
        if input.shape != target.shape:
            warnings.warn(  # begins as torch's does, so that filters know it
                f"Using a target size ({list(target.shape)}) that is different to the input size "
                f"({list(input.shape)}): they are broadcast",
                stacklevel=level_of_caller(),
            )
            input, target = torch.broadcast_tensors(input, target)
        dtype = torch.promote_types(input.dtype, target.dtype)
        return self._apply(loss, input.to(dtype), target.to(dtype))

    def _apply(self, function: Differentiable, *inputs: Tensor) -> Tensor:
        if self._is_for_pool(function, inputs):
            output: Tensor = PoolFunction.apply(function, self, *inputs)
            return output
        return function.value(*inputs)

    def _is_for_pool(self, function: Differentiable, inputs: Sequence[Tensor]) -> bool:
        """Whether a gradient will be asked for that the pool computes.

        TypeError: an operator does not take the dtypes of the inputs, and there is no fallback.
        """
        wanted = [_autograd.requires_grad(tensor) for tensor in inputs]
        if not torch.is_grad_enabled() or not any(wanted):
            return False
        if _autograd.is_transformed() and not _autograd.HAS_TRANSFORMS:
            why = "a transform of functorch cannot be followed into the pool"
            self._fall_back(why, NotImplementedError)
            return False
        for name in function.operators(wanted):
            accepted = {
                dtype for one in OPERATORS[name].inputs.values() for dtype in one
            }
            for tensor in inputs:
                dtype = str(tensor.dtype).rpartition(".")[2]
                if dtype in accepted or not tensor.is_floating_point():
                    continue
                why = f"{name} takes {', '.join(sorted(accepted))}, not {dtype}"
                self._fall_back(why, TypeError)
                return False
        return True

    def _compute(
        self, gradient: Gradient, softmax: Optional[Any], inputs: Sequence[Tensor]
    ) -> Sequence[Tensor]:
        """The results of a gradient from the pool, or from torch if the pool cannot run it.

        `softmax`: the autograd node that made the function's first input; its gradient comes in
        the same call.
        """
        further = None if softmax is None else softmax.function.gradient([True])
        try:
            client = self._connect()
            with Places(client, inputs) as places:
                call = Call(Program(), places.place, sends_input=softmax is not None)
                plan = gradient.plan(call, *inputs)
                results = list(plan.results)
                if further is not None and plan.of_input is not None:
                    results.append(further.invoke(call, plan.of_input, inputs[1]))
                computed = client.execute(
                    call.program,
                    results,
                    wait_for_daemon=self._fallback is None,  # else torch is there
                ).results
            found = list(plan.finish(computed[: len(plan.results)]))
            ahead = computed[len(plan.results) :]
        except _POOL_FAILURES as error:
            if self._fallback is None:
                raise
            self._count_fallback(str(error))
            found = list(gradient.formula(*inputs))
            ahead = []
            if further is not None and plan.of_input is not None:
                ahead = further.formula(found[0], inputs[1])
        if softmax is not None and ahead:
            softmax.ready = Ready.of(found[0], ahead[0])
        return found

    def _place_near(self, inputs: Sequence[Tensor]) -> Place:
        """Where results of torch go: into shared memory, if an input lies there."""
        with self._lock:
            client = self._client
        if client is None or _autograd.is_transformed():
            return anywhere
        return Places(client, inputs).place

    def _can_send(self, gradient: Tensor) -> bool:
        """Whether a gradient that arrives in a backward pass is one tensor, and not a batch.

        NotImplementedError: it is a batch, and there is no fallback.
        """
        if _autograd.is_transformed():
            return True  # vmap has batches, too, but the function sees its samples
        try:
            gradient.data_ptr()  # a batch of is_grads_batched=True has none
        except RuntimeError:
            why = "batched gradients cannot be sent to the pool"
            self._fall_back(why, NotImplementedError)
            return False
        return True

    def _fall_back(self, why: str, error: type[Exception]) -> None:
        """Counts a computation that only torch can do; without a fallback raises `error`."""
        if self._fallback is None:
            raise error(f'{why}; fallback="local" would compute it here')
        self._count_fallback(why)

    def _connect(self) -> Client:
        with self._lock:
            if self._client is None:
                self._client = Client()
            return self._client

    def _count_fallback(self, why: str) -> None:
        with self._lock:
            self._fallbacks += 1
            is_first = self._fallbacks == 1
        if is_first:
            warnings.warn(
                f"computing gradients locally: {why}",
                FallbackWarning,
                stacklevel=level_of_caller(),
            )


def _weighted(loss: Tensor, input: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """A loss that was not reduced, reduced with a weight of each element."""
    if weight.shape != input.shape:
        raise ValueError(
            f"weight has the shape {list(weight.shape)}; expected that of input, "
            f"{list(input.shape)}"
        )
    weighted = loss * weight
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return weighted.sum()
    if reduction == "mean":
        return weighted.sum() / weight.sum()
    raise ValueError(f'reduction is {reduction!r}; expected "none", "mean" or "sum"')


def _reduction(
    size_average: Optional[bool], reduce: Optional[bool], reduction: str
) -> str:
    if size_average is None and reduce is None:
        return reduction
    legacy: str = torch.nn._reduction.legacy_get_string(
        size_average, reduce, emit_warning=False
    )
    warnings.warn(
        f'size_average and reduce are deprecated: pass reduction="{legacy}"',
        stacklevel=level_of_caller(),
    )
    return legacy


default = Functions()
