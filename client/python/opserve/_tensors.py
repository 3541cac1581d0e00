"""Tensors of the caller: numpy arrays, torch tensors and whatever speaks DLPack.

None of these libraries but numpy is imported here: who passes a torch tensor has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Optional, Protocol, Union, runtime_checkable

import numpy as np
import numpy.typing as npt

from opserve import _dlpack, _dtypes
from opserve._data_type import NAMES, DataType
from opserve._views import TensorView, memory

# Makes a tensor of some library: of this dtype and shape, from these contiguous elements.
Maker = Callable[[DataType, "tuple[int, ...]", memoryview], Any]


@runtime_checkable
class SupportsDLPack(Protocol):
    """What torch.Tensor, jax.Array and others are to this package."""

    def __dlpack__(self, *, stream: Any = None) -> Any:
        ...

    def __dlpack_device__(self) -> "tuple[int, int]":
        ...


Array = Union["npt.NDArray[Any]", SupportsDLPack]


def view_of(tensor: object) -> TensorView:
    """What `tensor` shows, without a copy where the wire can say how its elements lie.

    Copied are numpy arrays that lie backwards, in another byte order, or at distances that are
    no multiple of an element. TypeError, ValueError: it is nothing that can be sent.
    """
    if isinstance(tensor, (np.ndarray, np.generic)):
        return _view_of_numpy(np.asarray(tensor))
    if _is_torch(tensor):
        return _view_of_torch(tensor)
    if isinstance(tensor, SupportsDLPack):
        return _dlpack.view_of(tensor)
    raise TypeError(
        f"a {type(tensor).__name__}; expected a numpy array, a torch tensor, an object with "
        "__dlpack__, a resident tensor or the output of an invocation"
    )


def maker_like(tensor: object) -> Maker:
    """Makes tensors of the library of `tensor`; numpy's if that cannot be told."""
    if _is_torch(tensor):
        return _make_torch
    namespace: Any = getattr(tensor, "__array_namespace__", None)
    if namespace is not None and not isinstance(tensor, (np.ndarray, np.generic)):
        from_dlpack: Any = getattr(namespace(), "from_dlpack", None)
        if from_dlpack is not None:
            return lambda dtype, shape, data: from_dlpack(
                make_numpy(dtype, shape, data)
            )
    return make_numpy


def make_numpy(dtype: DataType, shape: tuple[int, ...], data: memoryview) -> Any:
    """A numpy array of its own memory."""
    array = np.empty(shape, dtype.numpy)
    copy_bytes(array.ctypes.data, data)
    return array


def destination_view(tensor: object) -> TensorView:
    """What a result can be written to. ValueError: it is read-only or not contiguous."""
    view = view_of(tensor)
    is_read_only = isinstance(tensor, np.ndarray) and not tensor.flags.writeable
    is_copy = isinstance(tensor, np.ndarray) and view.address != tensor.ctypes.data
    if is_read_only or is_copy or not view.is_contiguous:
        raise ValueError(
            "out must be writable and contiguous, in the machine's byte order"
        )
    return view


def copy_bytes(address: int, data: memoryview) -> None:
    """Copies `data` to `address`; other threads run meanwhile."""
    if len(data) != 0:
        to = np.frombuffer(memory(address, len(data)), np.uint8)
        np.copyto(to, np.frombuffer(data, np.uint8))


def _view_of_numpy(array: npt.NDArray[Any]) -> TensorView:
    dtype = _dtypes.from_numpy(array.dtype)
    size = array.itemsize
    if not array.dtype.isnative or any(s < 0 or s % size for s in array.strides):
        array = np.ascontiguousarray(array, dtype=dtype.numpy).reshape(array.shape)
    address: int = array.__array_interface__["data"][0]
    strides = tuple(step // size for step in array.strides)
    return TensorView(address, dtype, array.shape, strides, owner=array)


def _torch() -> Optional[Any]:
    return sys.modules.get("torch")


def _is_torch(tensor: object) -> bool:
    torch = _torch()
    return torch is not None and isinstance(tensor, torch.Tensor)


def _view_of_torch(tensor: Any) -> TensorView:
    if tensor.device.type != "cpu":
        raise ValueError(f"a torch tensor on {tensor.device}; expected one of the CPU")
    if tensor.layout is not _torch().strided:  # type: ignore[union-attr]
        raise ValueError(
            f"a torch tensor of layout {tensor.layout}; expected torch.strided"
        )
    tensor = tensor.detach().resolve_neg()
    dtype = _TORCH_DTYPES.get(str(tensor.dtype))
    if dtype is None:
        raise TypeError(
            f"a torch tensor of {tensor.dtype}; expected {_dtypes.expected_dtypes()}"
        )
    return TensorView(
        tensor.data_ptr(), dtype, tuple(tensor.shape), tensor.stride(), owner=tensor
    )


def _make_torch(dtype: DataType, shape: tuple[int, ...], data: memoryview) -> Any:
    torch = _torch()
    tensor = torch.empty(shape, dtype=getattr(torch, NAMES[dtype]))  # type: ignore[union-attr]
    copy_bytes(tensor.data_ptr(), data)
    return tensor


_TORCH_DTYPES = {f"torch.{name}": dtype for dtype, name in NAMES.items()}


def contiguous(view: TensorView) -> TensorView:
    """A copy of `view` without gaps."""
    elements = np.frombuffer(memory(view.address, view.span_bytes), view.dtype.numpy)
    steps = [step * view.dtype.itemsize for step in view.strides]
    strided = np.lib.stride_tricks.as_strided(elements, view.shape, steps)
    return _view_of_numpy(np.array(strided, order="C"))
