"""Tensors of the caller: numpy arrays, torch tensors, whatever speaks DLPack, and numbers.

None of these libraries but numpy is imported here: a caller with a torch tensor has
imported torch already.
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
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
    """The interface of torch.Tensor, jax.Array and others that this package uses."""

    def __dlpack__(self, *, stream: Any = None) -> Any: ...

    def __dlpack_device__(self) -> "tuple[int, int]": ...


Array = Union["npt.NDArray[Any]", SupportsDLPack]

# In bytes: copied at once, holding up other threads for less than they would take to go on.
_SMALL_COPY = 4 << 10

_FLOATING = (DataType.FLOAT, DataType.FLOAT16, DataType.BF16, DataType.DOUBLE)
# Of numbers without a dtype of their own, by numpy's kind of them.
_DEFAULTS = {
    "b": DataType.BOOL,
    "i": DataType.INT64,
    "u": DataType.INT64,
    "f": DataType.FLOAT,
}


def view_of(
    tensor: object,
    like: Optional[DataType] = None,
    accepted: Collection[DataType] = tuple(DataType),
) -> TensorView:
    """A view of `tensor`, without a copy where the wire can say how its elements lie.

    Copied are numpy arrays that lie backwards, in another byte order, or at distances that are
    no multiple of an element, and numbers. TypeError, ValueError: it is nothing that can be sent.

    Args:
        like: a dtype that numbers get if it is accepted and holds them.
        accepted: the dtypes that numbers may get.
    """
    if isinstance(tensor, (np.ndarray, np.generic)):
        return _view_of_numpy(np.asarray(tensor))
    if _is_torch(tensor):
        return _view_of_torch(tensor)
    if isinstance(tensor, SupportsDLPack):
        return _dlpack.view_of(tensor)
    if are_numbers(tensor):
        return _view_of_numbers(tensor, like, accepted)
    raise TypeError(
        f"a {type(tensor).__name__}; expected a numpy array, a torch tensor, an object with "
        "__dlpack__, a number, a nested list of numbers, a resident tensor or the output of an "
        "invocation"
    )


def are_numbers(value: object) -> bool:
    """Whether it is a number of Python's or a list: a tensor that has no dtype of its own."""
    return isinstance(value, (bool, int, float, list, tuple)) and not isinstance(
        value, np.generic
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
    if not data:
        return np.empty(shape, dtype.numpy)
    return np.frombuffer(data, dtype.numpy).reshape(shape).copy()


def destination_view(tensor: object) -> TensorView:
    """A view that a result can be written to.

    TypeError: it is no tensor. ValueError: it is read-only or not contiguous.
    """
    if are_numbers(tensor) or isinstance(tensor, np.generic):
        raise TypeError(
            f"out is a {type(tensor).__name__}; expected a tensor to write to"
        )
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
    if len(data) <= _SMALL_COPY:
        ctypes.memmove(address, bytes(data), len(data))
    else:
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


def _view_of_numbers(
    value: object, like: Optional[DataType], accepted: Collection[DataType]
) -> TensorView:
    first = next(_elements(value), 0.0)
    if not isinstance(first, (bool, int, float, np.generic, np.ndarray)):
        raise TypeError(
            f"a list with a {type(first).__name__}; expected numbers or numpy arrays"
        )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error"
        )  # older numpy warns of lists that differ in length
        try:
            array = np.asarray(value)
        except (ValueError, Warning):
            raise ValueError(
                "a nested list whose lists differ in length; expected equal lengths"
            ) from None
    kind = array.dtype.kind
    if kind not in _DEFAULTS or isinstance(first, (np.generic, np.ndarray)):
        return _view_of_numpy(array)
    # Truth values are numbers only where nothing else is accepted.
    wished = (_DEFAULTS[kind], like) if kind == "b" else (like, _DEFAULTS[kind])
    for dtype in (*wished, *DataType):
        if dtype is not None and dtype in accepted and _can_hold(dtype, array):
            return _view_of_numpy(array.astype(dtype.numpy))
    return _view_of_numpy(array)


def _elements(value: object) -> Iterator[object]:
    """The numbers of nested lists."""
    if isinstance(value, (list, tuple)):
        for element in value:
            yield from _elements(element)
    else:
        yield value


def _can_hold(dtype: DataType, array: npt.NDArray[Any]) -> bool:
    """Whether numbers of Python's are in the range of `dtype`."""
    if array.dtype.kind == "b":
        return True
    if dtype in _FLOATING:
        with np.errstate(over="ignore"):
            cast = array.astype(dtype.numpy)
        return bool((np.isinf(cast) == np.isinf(array)).all())
    if array.dtype.kind == "f" or dtype == DataType.BOOL:
        return False
    bounds = np.iinfo(dtype.numpy)
    least, most = int(array.min(initial=0)), int(array.max(initial=0))
    return bounds.min <= least and most <= bounds.max


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
    if tensor._is_zerotensor():  # zeros without memory, as automatic derivatives make them
        tensor = tensor.clone()
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


def bytes_of(tensor: object) -> bytes:
    """A copy of the elements, contiguous."""
    if is_plain_torch(tensor):
        return ctypes.string_at(tensor.data_ptr(), tensor.nbytes)  # type: ignore[attr-defined]
    view = view_of(tensor)
    if not view.is_contiguous:
        view = contiguous(view)
    return bytes(memory(view.address, view.span_bytes))


def is_plain_torch(tensor: Any) -> bool:
    """Whether it is a torch tensor whose memory holds its elements in order."""
    torch = _torch()
    return (
        torch is not None
        and type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.is_cpu
        and tensor.layout is torch.strided
        and tensor.is_contiguous()
        and not (tensor.is_neg() or tensor.is_conj() or tensor._is_zerotensor())
    )
