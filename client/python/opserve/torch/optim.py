"""Optimizers that keep parameters, gradients and state on the pool.

    run = torch.compile(model, backend="opserve")
    optimizer = opserve.torch.optim.AdamW(model.parameters(), lr=1e-3)

They take the options of torch.optim's and have their state_dict, in both directions; learning rate
schedulers and gradient scalers of torch's work with them. A step is one program, for all
parameters. Gradients of the compiled model stay on the pool, and parameters come home when they
are read here: by a function of torch, or by copying, printing or saving them. Memory that
other tensors share with a parameter (`detach()`, `state_dict()`) is brought home by each
step, as long as there are such tensors. Code that reads the memory by its address (`data_ptr()`
that was taken before, an extension in C++) needs refresh().


A gradient that is read is downloaded; one that is changed here, or was made here, is sent with the
step.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Container, Sequence
from typing import Any, Optional, Union

import torch
from torch.optim import optimizer as _torchs

from opserve.torch import _optimizer_steps as steps
from opserve.torch._backend import Backend, default, unclaimed
from opserve.torch._clipping import clip_grad_norm_
from opserve.torch._pool_parameter import adopt, is_adopted
from opserve.torch._pool_tensor import Contents, PoolTensor
from opserve.torch._residency import Residents, bring_home
from opserve.torch._step_counts import StepCounts

__all__ = ["SGD", "Adam", "AdamW", "clip_grad_norm_"]

Tensor = torch.Tensor

# Options of torch's that have no meaning on the pool and would be believed to have one.
_REFUSED = ("capturable", "differentiable", "fused")


class PoolOptimizer(torch.optim.Optimizer):
    """The part that optimizers of torch get from the pool."""

    _rule: steps.Rule
    _pool: Optional[Backend] = None

    def __init__(
        self, params: Any, *args: Any, backend: Optional[Backend] = None, **options: Any
    ) -> None:
        """
        Args:
            params, args, options: as torch's optimizer of this name has them.
            backend: of the model; None: the one whose graphs use the parameters first, and if the
                first step comes before, that of torch.compile(model, backend="opserve").
        """
        self._pool = backend
        self._counts = StepCounts()
        super().__init__(params, *args, **options)
        if backend is None:
            unclaimed.add(self)
        else:
            backend.optimizers.add(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._counts = StepCounts()  # there is none if it was unpickled

    def _patch_step_function(self) -> None:
        """Of torch's constructor: wraps step() for hooks and the profiler."""
        kind: Any = type(self)
        before = kind.step
        super()._patch_step_function()
        if kind.step is not before:
            kind.step = _wrapped_if_watched(kind.step)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for name in _REFUSED:
            if group.get(name):
                raise ValueError(f"{name}={group[name]}; steps on the pool have no such kind")
        for parameter in group["params"]:
            if parameter.dtype not in self._rule.dtypes:
                expected = ", ".join(map(str, self._rule.dtypes))
                raise TypeError(
                    f"a parameter {list(parameter.shape)} is {parameter.dtype}; the pool's "
                    f"{type(self).__name__} has {expected}"
                )
            if parameter.device.type != "cpu":
                raise ValueError(
                    f"a parameter {list(parameter.shape)} is on {parameter.device}; expected "
                    "cpu: the pool has a copy of its own"
                )
            adopt(parameter)

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Changes the parameters that have a gradient, on the pool."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
            self._step(self._backend().residents())
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As torch's."""
        with torch._C.DisableTorchFunctionSubclass():  # which costs more than the rest
            if not set_to_none:
                super().zero_grad(set_to_none)
                return
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.grad = None

    def refresh(self) -> None:
        """Downloads the parameters' newest elements now, and not when they are read."""
        for group in self.param_groups:
            for parameter in group["params"]:
                with torch._C.DisableTorchFunctionSubclass():
                    bring_home(parameter)

    def facts(self) -> tuple[int, int, int, int]:
        """Of a step of all parameters that need gradients, but the first.

        Invocations, bytes that are sent, bytes of the state, and those of its results, which need
        memory until the step is done.
        """
        items, states = [], []
        state_bytes = result_bytes = 0
        for group in self.param_groups:
            names = self._rule.state_names(group)
            for one in group["params"]:
                if one.requires_grad:
                    items.append(steps.Item(one, one, group, {}))
                    states.append(names)
                    state_bytes += len(names) * one.nbytes
                    result_bytes += 0 if self._rule.in_place else (1 + len(names)) * one.nbytes
        built = steps.build(self._rule, items, states, 0)
        return len(built.program.invocations), 4 * len(items), state_bytes, result_bytes

    def state_dict(self) -> dict[str, Any]:
        """As torch's, of copies: a later step does not change them."""
        packed: dict[str, Any] = super().state_dict()
        packed["state"] = {
            key: {name: _copy(value) for name, value in values.items()}
            for key, values in packed["state"].items()
        }
        return packed

    def claim(self, backend: Backend, parameters: Container[int]) -> None:
        """Takes a backend whose graph uses one of these parameters (ids), if there was none."""
        used = (one for group in self.param_groups for one in group["params"])
        if self._pool is None and any(id(one) in parameters for one in used):
            self._take(backend)

    def _take(self, backend: Backend) -> None:
        self._pool = backend
        unclaimed.discard(self)
        backend.optimizers.add(self)

    def _backend(self) -> Backend:
        if self._pool is None:
            self._take(default())
        assert self._pool is not None
        self._pool.optimizers.add(self)  # if it was unpickled
        return self._pool

    def _step(self, residents: Residents) -> None:
        items = []
        for group in self.param_groups:
            names = self._rule.state_names(group)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    adopt(parameter)  # if it was unpickled
                    items.append(self._item(residents, group, parameter, names))
        if not items:
            return
        states = [item.known for item in items]
        done = self._counts.read(states)
        for item, count in zip(items, done):
            item.steps = count
        program = steps.prepare(self._rule, items, residents)
        # Neither gradients nor a model are to live until the pool has taken the step.
        this = weakref.ref(self)
        parameters = [weakref.ref(item.parameter) for item in items]
        steps.run(program, items, residents, lambda: _undo(this, parameters, done))
        if self._rule.counts_steps:
            self._counts.add(states)
        for item in items:
            self._note(item)
        residents.flush()
        if residents.checkpoints is not None:
            residents.checkpoints.step_done(residents)

    def _item(
        self,
        residents: Residents,
        group: dict[str, Any],
        parameter: Tensor,
        names: Sequence[str],
    ) -> steps.Item:
        grad = parameter.grad
        assert grad is not None
        gradient: Union[Tensor, Contents] = grad
        if grad.is_sparse:
            raise RuntimeError(
                f"the gradient of a parameter {list(parameter.shape)} is sparse; the pool's "
                f"{type(self).__name__} takes dense ones"
            )
        if isinstance(gradient, PoolTensor):
            contents = gradient.contents
            is_there = contents.terms and contents.residents is residents
            gradient = contents if is_there else contents.read()
        known = self.state[parameter]
        state = {}
        for name in names:
            if known.get(name) is not None:
                known[name] = _on_pool(residents, known[name], name)
                state[name] = known[name].contents
        return steps.Item(parameter, gradient, group, state, known)

    def _note(self, item: steps.Item) -> None:
        """Writes the state of a parameter after a step."""
        known = item.known
        for name, contents in item.state.items():
            if name not in known or known[name] is None:
                known[name] = PoolTensor(contents)
        if not is_adopted(item.parameter):
            bring_home(item.parameter)


class SGD(PoolOptimizer, torch.optim.SGD):
    """torch.optim.SGD on the pool; see the module."""

    _rule = steps.SgdRule()


class Adam(PoolOptimizer, torch.optim.Adam):
    """torch.optim.Adam on the pool; see the module. Parameters of float32, float16 or bfloat16."""

    _rule = steps.AdamRule(is_decoupled=False)


class AdamW(PoolOptimizer, torch.optim.AdamW):
    """torch.optim.AdamW on the pool; see the module. Parameters as those of Adam."""

    _rule = steps.AdamRule(is_decoupled=True)


def _wrapped_if_watched(wrapped: Any) -> Any:
    """A step without torch's wrapper, 50 us of a small model's step, where nothing needs it."""
    plain = wrapped.__wrapped__

    @functools.wraps(plain)
    def step(self: PoolOptimizer, *args: Any, **kwargs: Any) -> Any:
        is_watched = (
            self._optimizer_step_pre_hooks
            or self._optimizer_step_post_hooks
            or _torchs._global_optimizer_pre_hooks
            or _torchs._global_optimizer_post_hooks
            or torch._C._autograd._profiler_enabled()
        )
        return (wrapped if is_watched else plain)(self, *args, **kwargs)

    step.hooked = True  # type: ignore[attr-defined]
    return step


def _copy(value: Any) -> Any:
    if isinstance(value, PoolTensor):
        return value.contents.read().clone()
    return value.clone() if isinstance(value, Tensor) else value


def _on_pool(residents: Residents, value: Tensor, name: str) -> PoolTensor:
    """A tensor of a state, which is sent if the pool has it not."""
    if isinstance(value, PoolTensor):
        if value.contents.terms and value.contents.residents is residents:
            return value
        value = value.contents.read()
    term = residents.hold(residents.send(value.contiguous()), state=name)
    return PoolTensor(Contents(residents, [term], value.shape, value.dtype))


def _undo(
    optimizer: weakref.ref[PoolOptimizer],
    parameters: Sequence[weakref.ref[Tensor]],
    done: Sequence[float],
) -> None:
    """A step has failed, or has not run after another one that failed.

    Args:
        done: the steps that were done before, by parameter.
    """
    owner = optimizer()
    if owner is None:
        return
    for place, count in zip(parameters, done):
        parameter = place()
        if parameter is not None:
            owner._counts.lower(owner.state[parameter], count)
