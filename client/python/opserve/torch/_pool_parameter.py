"""Parameters and buffers whose newest elements, if the pool has them, come home when read."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional

import torch
from torch.utils._pytree import tree_leaves

from opserve.torch._residency import bring_home, expose, forget_newer

Tensor = torch.Tensor


def _torch_function(
    cls: type,
    func: Callable[..., Any],
    types: Sequence[type],
    args: Sequence[Any] = (),
    kwargs: Optional[Mapping[str, Any]] = None,
) -> Any:
    """Of both classes."""
    if torch.compiler.is_compiling() and _compiles_for_the_pool():
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))
    return _call(func, args, kwargs or {})


class PoolParameter(torch.nn.Parameter):
    """The class of a parameter that an optimizer of opserve.torch.optim changes on the pool.

    It is an ordinary tensor in memory. Each function of torch that reads or changes its elements
    first downloads them, if the pool has newer ones. Graphs that torch.compile makes for the pool
    take it as it is; those of other compilers leave such functions out and run them by themselves.
    Copies and pickles of it are ordinary parameters.
    """

    __torch_function__ = classmethod(_torch_function)

    def __repr__(self) -> str:
        return repr(torch.nn.Parameter(self.detach(), self.requires_grad))

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.nn.Parameter:
        if id(self) not in memo:
            memo[id(self)] = torch.nn.Parameter(
                self.detach().clone(memory_format=torch.preserve_format),
                self.requires_grad,
            )
        copied: torch.nn.Parameter = memo[id(self)]
        return copied


class PoolBuffer(torch.Tensor):
    """The class of a buffer that compiled graphs change on the pool; else as PoolParameter."""

    __torch_function__ = classmethod(_torch_function)

    def __repr__(self, **_: Any) -> str:
        return repr(self.detach())

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) not in memo:
            memo[id(self)] = self._plain(self.detach().clone())
        copied: Tensor = memo[id(self)]
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._plain(self.detach()).__reduce_ex__(protocol)

    def _plain(self, plain: Tensor) -> Tensor:
        """With the attributes of this one, such as those of torch.nn.Buffer."""
        plain.__dict__.update(self.__dict__)
        return plain


def adopt(tensor: Tensor) -> None:
    """From now on the pool may have newer elements of a parameter or buffer."""
    if type(tensor) is torch.nn.Parameter:
        tensor.__class__ = PoolParameter
    elif type(tensor) is Tensor:
        tensor.__class__ = PoolParameter if tensor.requires_grad else PoolBuffer


def is_adopted(tensor: Tensor) -> bool:
    return isinstance(tensor, (PoolParameter, PoolBuffer))


# Its detaches_arguments: whether torch is about to call a graph of this package.
_here = threading.local()


@contextlib.contextmanager
def detaching_arguments() -> Iterator[None]:
    """Arguments that AOTAutograd of torch 2.4 detaches stay on the pool, until the graph is called."""
    _here.detaches_arguments = True
    try:
        yield
    finally:
        _here.detaches_arguments = False


def arguments_are_detached() -> None:
    """A graph is called."""
    _here.detaches_arguments = False


@torch.compiler.disable
def _call(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        if func in _OVERWRITING:
            forget_newer(args[0])
        if func in _BLIND or (
            func is Tensor.detach and getattr(_here, "detaches_arguments", False)
        ):
            return func(*args, **kwargs)
        adopted = [one for one in tree_leaves((args, dict(kwargs))) if is_adopted(one)]
        for one in adopted:
            bring_home(one)
        if func in _EXPOSING:
            expose(args[0])
        result = func(*args, **kwargs)
        if func in _SILENT and _takes_statistics(func, args, kwargs):
            # The backward pass of this call asks for buffers of the version that they have now.
            for one in adopted:
                if isinstance(one, PoolBuffer):
                    expose(one)
        return result


@torch.compiler.assume_constant_result
def _compiles_for_the_pool() -> bool:
    """Whether the graph that is being made is for a backend of this package."""
    from opserve.torch._backend import Backend, compile_graph

    try:
        from torch._dynamo.symbolic_convert import InstructionTranslator

        compiler: Any = InstructionTranslator.current_tx().output.compiler_fn
    except (AttributeError, ImportError):
        return False
    while compiler is not None:
        if isinstance(compiler, Backend) or compiler is compile_graph:
            return True
        compiler = getattr(compiler, "_torchdynamo_orig_backend", None) or getattr(
            compiler, "compiler_fn", None
        )
    return False


def _getters(*names: str) -> set[Any]:
    return {getattr(Tensor, name).__get__ for name in names if hasattr(Tensor, name)}


# They write all elements of their first argument.
_OVERWRITING = {Tensor.copy_, Tensor.zero_, Tensor.fill_}

# Their results may write to the memory, and do not change the version then.
_EXPOSING = {
    Tensor.__array__,
    Tensor.__dlpack__,
    Tensor.data_ptr,
    Tensor.numpy,
    Tensor.untyped_storage,
} | _getters("data")

# They change running statistics, but not the versions of these.
_SILENT = {
    torch.batch_norm,
    torch.instance_norm,
    torch.native_batch_norm,
    torch.nn.functional.batch_norm,
    torch.nn.functional.instance_norm,
}


def _takes_statistics(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Whether a call of one of _SILENT takes its statistics from its input."""
    default = args[5] if len(args) > 5 else func is torch.nn.functional.instance_norm
    return bool(kwargs.get("training", kwargs.get("use_input_stats", default)))


# They look at no elements: all else is taken to read them.
_BLIND = {
    Tensor.__hash__,
    Tensor.__len__,
    Tensor._is_view,
    Tensor.dim,
    Tensor.element_size,
    Tensor.get_device,
    Tensor.is_complex,
    Tensor.is_contiguous,
    Tensor.is_conj,
    Tensor.is_floating_point,
    Tensor.is_inference,
    Tensor.is_neg,
    Tensor.ndimension,
    Tensor.nelement,
    Tensor.numel,
    Tensor.register_hook,
    Tensor.register_post_accumulate_grad_hook,
    Tensor.requires_grad_,
    Tensor.retain_grad,
    Tensor.size,
    Tensor.storage_offset,
    Tensor.stride,
    torch.is_complex,
    torch.is_floating_point,
    torch.numel,
} | {
    getattr(getattr(Tensor, name), function)
    for name in ("grad", "requires_grad")
    for function in ("__set__", "__delete__")
} | _getters(
    "_backward_hooks",
    "_base",
    "_grad",
    "_grad_fn",
    "_post_accumulate_grad_hooks",
    "_version",
    "device",
    "dtype",
    "grad",
    "grad_dtype",
    "grad_fn",
    "is_cpu",
    "is_cuda",
    "is_leaf",
    "is_meta",
    "is_mkldnn",
    "is_mps",
    "is_nested",
    "is_quantized",
    "is_sparse",
    "is_sparse_csr",
    "is_xla",
    "is_xpu",
    "itemsize",
    "layout",
    "name",
    "names",
    "nbytes",
    "ndim",
    "output_nr",
    "requires_grad",
    "retains_grad",
    "shape",
)
