"""Differentiable functions of torch.nn.functional whose backward pass runs on a pool of NPUs.

    import opserve.torch as F

    loss = F.kl_div(F.log_softmax(logits, -1), target, reduction="batchmean")
    loss.backward()

`kl_div`, `l1_loss` and `log_softmax` have the signatures of torch.nn.functional. Forward
passes are computed here, by torch; backward passes by the daemon, without a copy of the
tensors but those of the transport. The gradient of a loss of a log_softmax takes one
call: a program of both backward operators.

The functions of this module use a client of their own, connected to the default target; for
another one, or to compute here when the pool cannot:

    F = opserve.torch.Functions(opserve.Client("unix:/run/opserve.sock"), fallback="local")

Thread-safe. Workers of a DataLoader may be forked at any time, but cannot compute gradients with
a client of their parent.

Gradients of gradients (`create_graph=True`: Hessians, gradient penalties) are right: the first
gradient comes from the pool, and its derivatives are computed here, by torch. The transforms of
torch.func cannot be followed into a daemon: inside them a gradient of these functions is a
NotImplementedError, or computed here with fallback="local". So are batched gradients
(`is_grads_batched=True`).

Where gradients differ from torch's, within what both leave open: that of kl_div with respect
to a plain target is 0 where the target is 0, and NaN compares as equal in l1_loss. Sums are
taken in float32. float64 is only for kl_div with respect to its input: the other operators do
not have it, and a TypeError says so in the forward pass.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

import torch
import torch.nn.functional as functional

from opserve import _process, errors
from opserve._operators import OPERATORS
from opserve.client import Client
from opserve.program import OutputOf, Program
from opserve.torch._caller import level_of_caller

Tensor = torch.Tensor

# What another daemon, or another time, might do better; then computing here helps.
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
            fallback: "local": what the pool cannot compute (it cannot be reached, is full, is
                too slow, has a fault, or lacks an operator for the dtype) is computed here by
                torch; a FallbackWarning says so once. None: it is an error.
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
        needed = {"KlDivBackward": input, "KlDivTargetBackward": target}
        loss: Tensor
        if self._is_for_pool(needed, (input, target)):
            loss = _KlDiv.apply(input, target, self, reduction, log_target)
        else:
            loss = functional.kl_div(
                input, target, reduction=reduction, log_target=log_target
            )
        return loss

    def l1_loss(
        self,
        input: Tensor,
        target: Tensor,
        size_average: Optional[bool] = None,
        reduce: Optional[bool] = None,
        reduction: str = "mean",
    ) -> Tensor:
        """As torch.nn.functional.l1_loss."""
        reduction = _reduction(size_average, reduce, reduction)
        if input.shape != target.shape:
            warnings.warn(  # begins as torch's does, so that filters know it
                f"Using a target size ({list(target.shape)}) that is different to the input size "
                f"({list(input.shape)}): they are broadcast",
                stacklevel=level_of_caller(),
            )
        either = input if input.requires_grad else target
        loss: Tensor
        if self._is_for_pool({"L1LossBackward": either}, (input, target)):
            loss = _L1Loss.apply(input, target, self, reduction)
        else:
            loss = _l1_loss(input, target, reduction)
        return loss

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
        output: Tensor
        if self._is_for_pool({"LogSoftmaxBackward": input}, (input,)):
            output = _LogSoftmax.apply(input, self, dim)
        else:
            output = functional.log_softmax(input, dim)
        return output

    def _is_for_pool(
        self, needed: Mapping[str, Tensor], tensors: Sequence[Tensor]
    ) -> bool:
        """Whether a gradient will be asked for that the pool computes.

        `needed`: the operators, each with the tensor that may want its gradient. TypeError: an
        operator does not take the dtypes of `tensors`, and there is no fallback.
        """
        if not torch.is_grad_enabled():
            return False
        wanted = [name for name, tensor in needed.items() if tensor.requires_grad]
        if wanted and _is_transformed():
            why = "a transform of torch.func cannot be followed into the pool"
            self._fall_back(why, NotImplementedError)
            return False
        for name in wanted:
            accepted = {
                dtype for one in OPERATORS[name].inputs.values() for dtype in one
            }
            for tensor in tensors:
                dtype = str(tensor.dtype).rpartition(".")[2]
                if dtype in accepted:
                    continue
                why = f"{name} takes {', '.join(sorted(accepted))}, not {dtype}"
                self._fall_back(why, TypeError)
                return False
        return bool(wanted)

    def _gradients(
        self,
        program: Program,
        results: Sequence[OutputOf],
        compute_here: Callable[[], Sequence[Tensor]],
    ) -> Sequence[Tensor]:
        """Results of a program, or what `compute_here` gives if the pool cannot run it."""
        try:
            client = self._connect()
            waits = self._fallback is None  # else torch is there
            return client.execute(program, results, wait_for_daemon=waits).results
        except _POOL_FAILURES as error:
            if self._fallback is None:
                raise
            self._count_fallback(str(error))
            return compute_here()

    def _can_send(self, gradient: Tensor) -> bool:
        """Whether a gradient that arrives in a backward pass is one tensor, and not a batch.

        NotImplementedError: it is a batch, and there is no fallback.
        """
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


@dataclasses.dataclass(frozen=True)
class _Ready:
    """The gradient of a log_softmax that was computed together with that of its loss.

    It is right if what arrives at the log_softmax is the very gradient that left the loss,
    neither added to another nor changed by a hook.
    """

    arriving: Tensor
    version: int
    gradient: Tensor

    @classmethod
    def of(cls, arriving: Tensor, gradient: Tensor) -> _Ready:
        # Without its history, which may lead to the node that keeps this.
        return cls(arriving.detach(), arriving._version, gradient)

    def is_for(self, arriving: Tensor) -> bool:
        return (
            arriving.data_ptr() == self.arriving.data_ptr()
            and arriving.shape == self.arriving.shape
            and arriving.stride() == self.arriving.stride()
            and arriving._version == self.version
        )


class _LogSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, functions: Functions, dim: int) -> Tensor:
        output = functional.log_softmax(input, dim)
        ctx.save_for_backward(output)
        ctx.functions = functions
        ctx.dim = dim
        ctx.ready = None
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Optional[Tensor], ...]:
        ready, ctx.ready = ctx.ready, None
        inputs = (grad_output, *ctx.saved_tensors)
        formula: Formula = functools.partial(_log_softmax_gradients, dim=ctx.dim)

        def compute() -> Sequence[Tensor]:
            if ready is not None and ready.is_for(grad_output):
                return [ready.gradient]
            program = Program()
            last = program.log_softmax_backward(*inputs, dim=ctx.dim)
            return ctx.functions._gradients(program, [last], lambda: formula(*inputs))

        [gradient] = _differentiable(ctx.functions, formula, inputs, compute)
        return gradient, None, None


class _KlDiv(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        target: Tensor,
        functions: Functions,
        reduction: str,
        log_target: bool,
    ) -> Tensor:
        ctx.save_for_backward(input, target)
        ctx.functions = functions
        ctx.arguments = {"reduction": reduction, "log_target": log_target}
        return functional.kl_div(input, target, **ctx.arguments)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Optional[Tensor], ...]:
        input, target = ctx.saved_tensors
        wants_input, wants_target = wanted = ctx.needs_input_grad[:2]
        formula: Formula = functools.partial(
            _kl_div_gradients, wanted=wanted, **ctx.arguments
        )

        def compute() -> Sequence[Tensor]:
            arguments = dict(ctx.arguments)
            factor = grad_output
            if arguments["reduction"] == "batchmean":
                # torch divides by input's first extent, the operator by that of the broadcast.
                batch = torch.broadcast_shapes(input.shape, target.shape)[0]
                if input.shape[0] != batch:
                    arguments["reduction"] = "sum"
                    factor = grad_output / input.shape[0]
            program = Program()
            results = []
            softmax = _softmax_before(input, ctx.functions) if wants_input else None
            if wants_input:
                # Its values do not matter: one element stands for all, unless they are sent anyway.
                is_sent = softmax is not None or target.numel() < input.numel()
                stand_in = input if is_sent else input.new_zeros(()).expand(input.shape)
                results.append(
                    program.kl_div_backward(factor, stand_in, target, **arguments)
                )
            if softmax is not None:
                results.append(
                    program.log_softmax_backward(results[0], input, dim=softmax.dim)
                )
            if wants_target:
                results.append(
                    program.kl_div_target_backward(factor, input, target, **arguments)
                )

            def compute_here() -> Sequence[Tensor]:
                gradients = formula(grad_output, input, target)
                if softmax is not None:
                    further = _log_softmax_gradients(gradients[0], input, softmax.dim)
                    gradients[1:1] = further
                return gradients

            gradients = list(ctx.functions._gradients(program, results, compute_here))
            if softmax is not None:
                further = gradients.pop(1)
                softmax.ready = _Ready.of(gradients[0], further)
            return gradients

        gradients = iter(
            _differentiable(
                ctx.functions, formula, (grad_output, input, target), compute
            )
        )
        of_input = next(gradients) if wants_input else None
        of_target = next(gradients) if wants_target else None
        return of_input, of_target, None, None, None


class _L1Loss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, input: Tensor, target: Tensor, functions: Functions, reduction: str
    ) -> Tensor:
        ctx.save_for_backward(input, target)
        ctx.functions = functions
        ctx.reduction = reduction
        return _l1_loss(input, target, reduction)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Optional[Tensor], ...]:
        input, target = ctx.saved_tensors
        wants_input, wants_target = wanted = ctx.needs_input_grad[:2]
        formula: Formula = functools.partial(
            _l1_loss_gradients, wanted=wanted, reduction=ctx.reduction
        )

        def compute() -> Sequence[Tensor]:
            program = Program()
            # That of the broadcast shape, from which both gradients follow.
            whole = program.l1_loss_backward(
                grad_output, input, target, reduction=ctx.reduction
            )
            results = [whole]
            shape = torch.broadcast_shapes(input.shape, target.shape)
            is_plain = input.shape == shape and input.dtype == target.dtype
            softmax = None
            if wants_input and is_plain:
                softmax = _softmax_before(input, ctx.functions)
            if softmax is not None:
                results.append(
                    program.log_softmax_backward(whole, input, dim=softmax.dim)
                )

            def compute_here() -> Sequence[Tensor]:
                gradients = [_l1_loss_slope(grad_output, input, target, ctx.reduction)]
                if softmax is not None:
                    gradients += _log_softmax_gradients(
                        gradients[0].to(input.dtype), input, softmax.dim
                    )
                return gradients

            gradients = ctx.functions._gradients(program, results, compute_here)
            gradient = gradients[0]
            wanted_ones = []
            if wants_input:
                wanted_ones.append(gradient.sum_to_size(input.shape).to(input.dtype))
            if wants_target:
                wanted_ones.append(-gradient.sum_to_size(target.shape).to(target.dtype))
            if softmax is not None:
                softmax.ready = _Ready.of(wanted_ones[0], gradients[1])
            return wanted_ones

        gradients = iter(
            _differentiable(
                ctx.functions, formula, (grad_output, input, target), compute
            )
        )
        of_input = next(gradients) if wants_input else None
        of_target = next(gradients) if wants_target else None
        return of_input, of_target, None, None


def _softmax_before(input: Tensor, functions: Functions) -> Optional[Any]:
    """The log_softmax of these functions that made `input`, as its autograd node, or None."""
    node = input.grad_fn
    if isinstance(node, _LogSoftmax._backward_cls) and node.functions is functions:
        return node
    return None


# Gradients as the operators define them, of differentiable functions of torch: for what the pool
# cannot compute, and for the derivatives of what it has computed.
Formula = Callable[..., "list[Tensor]"]


def _log_softmax_gradients(
    grad_output: Tensor, output: Tensor, dim: int
) -> list[Tensor]:
    gradient = _wide(grad_output)
    total = gradient.sum(dim, keepdim=True) if output.dim() else gradient
    return [(gradient - _wide(output).exp() * total).to(output.dtype)]


def _kl_div_gradients(
    grad_output: Tensor,
    input: Tensor,
    target: Tensor,
    wanted: Sequence[bool],
    reduction: str,
    log_target: bool,
) -> list[Tensor]:
    part = _part_of_each(grad_output, input, target, reduction)
    x, t = _wide(input), _wide(target)
    gradients = []
    if wanted[0]:
        slope = -t.exp() if log_target else -t
        gradients.append((part * slope).sum_to_size(input.shape).to(input.dtype))
    if wanted[1]:
        if log_target:
            slope = t.exp() * (t - x + 1)
        else:
            # The logarithm of 0 is not even computed: its derivative would be 0 * inf, a NaN.
            is_zero = t == 0
            slope = t.masked_fill(is_zero, 1).log() - x + 1
            slope = slope.masked_fill(is_zero, 0)
        gradients.append((part * slope).sum_to_size(target.shape).to(target.dtype))
    return gradients


def _l1_loss_gradients(
    grad_output: Tensor,
    input: Tensor,
    target: Tensor,
    wanted: Sequence[bool],
    reduction: str,
) -> list[Tensor]:
    whole = _l1_loss_slope(grad_output, input, target, reduction)
    gradients = []
    if wanted[0]:
        gradients.append(whole.sum_to_size(input.shape).to(input.dtype))
    if wanted[1]:
        gradients.append(-whole.sum_to_size(target.shape).to(target.dtype))
    return gradients


def _l1_loss_slope(
    grad_output: Tensor, input: Tensor, target: Tensor, reduction: str
) -> Tensor:
    part = _part_of_each(grad_output, input, target, reduction)
    sign = (input > target).to(part.dtype) - (input < target).to(part.dtype)
    slope: Tensor = part * sign
    return slope


def _part_of_each(
    grad_output: Tensor, input: Tensor, target: Tensor, reduction: str
) -> Tensor:
    """The gradient that each element of the loss has before its reduction."""
    shape = torch.broadcast_shapes(input.shape, target.shape)
    gradient: Tensor = _wide(grad_output)
    if reduction == "mean":
        gradient = gradient / shape.numel()
    elif reduction == "batchmean":
        gradient = gradient / input.shape[0]
    return gradient.expand(shape)


def _wide(tensor: Tensor) -> Tensor:
    """In float32 at least, so that there is one rounding to a half type."""
    is_half = tensor.dtype in (torch.float16, torch.bfloat16)
    return tensor.float() if is_half else tensor


def _differentiable(
    functions: Functions,
    formula: Formula,
    inputs: Sequence[Tensor],
    compute: Callable[[], Sequence[Tensor]],
) -> Sequence[Tensor]:
    """Gradients as `compute` gives them, by way of the pool, with derivatives like `formula`'s.

    `inputs`: of `formula`; the first is the gradient that arrives.
    """
    if not functions._can_send(inputs[0]):
        return formula(*inputs)
    with torch.no_grad():
        gradients = compute()
    # Outside create_graph=True, nothing is recorded.
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
        gradients = _Gradients.apply(formula, gradients, *inputs)
    return gradients


class _Gradients(torch.autograd.Function):
    """Gradients that are known already; their own derivatives are those of a formula."""

    @staticmethod
    def forward(
        ctx: Any, formula: Formula, gradients: Sequence[Tensor], *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.save_for_backward(*inputs)
        ctx.formula = formula
        return tuple(gradients)

    @staticmethod
    def backward(ctx: Any, *arriving: Tensor) -> tuple[Optional[Tensor], ...]:
        with torch.enable_grad():
            # Views of their own, since one input may be a function of another: only what leads
            # directly to each counts here; autograd goes through the rest by itself.
            inputs = [tensor.view_as(tensor) for tensor in ctx.saved_tensors]
            pairs = [
                (output, gradient)
                for output, gradient in zip(ctx.formula(*inputs), arriving)
                if output.requires_grad
            ]
        wanted = [tensor for tensor in inputs if tensor.requires_grad]
        found = [torch.zeros_like(tensor) for tensor in wanted]
        if pairs:
            outputs, gradients = zip(*pairs)
            computed = torch.autograd.grad(
                outputs,
                wanted,
                gradients,
                create_graph=torch.is_grad_enabled(),
                allow_unused=True,
            )
            found = [
                zero if gradient is None else gradient
                for zero, gradient in zip(found, computed)
            ]
        each = iter(found)
        return (None, None, *(next(each) if t.requires_grad else None for t in inputs))


def _l1_loss(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    """As torch's, without its warning of shapes that differ, which would name this line."""
    first, second = torch.broadcast_tensors(input, target)
    return functional.l1_loss(first, second, reduction=reduction)


def _is_transformed() -> bool:
    """Whether a transform of torch.func (in older versions functorch) is at work."""
    return bool(torch._C._are_functorch_transforms_active())


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
kl_div = default.kl_div
l1_loss = default.l1_loss
log_softmax = default.log_softmax
