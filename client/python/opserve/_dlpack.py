"""Reads tensors of other libraries through the DLPack protocol.

numpy's own from_dlpack knows no bfloat16, which most gradients are in.
"""

from __future__ import annotations

import ctypes
from typing import Any

from opserve._data_type import DLPACK
from opserve._dtypes import expected_dtypes
from opserve._views import TensorView, contiguous_strides

_CPU_DEVICES = (1, 3, 11)  # kDLCPU, kDLCUDAHost, kDLROCMHost: memory that the CPU reads


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype_code", ctypes.c_uint8),
        ("dtype_bits", ctypes.c_uint8),
        ("dtype_lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def view_of(tensor: Any) -> TensorView:
    """The view that an object with `__dlpack__` offers.

    The capsule is not consumed: it keeps the memory as long as the view lives, and gives it
    back itself. TypeError: its elements have no such type on the wire. ValueError: they are
    not in memory that the CPU reads, or lie backwards.
    """
    device = tensor.__dlpack_device__()[0]
    if device not in _CPU_DEVICES:
        raise ValueError(f"a tensor on DLPack device {device}; expected one of the CPU")
    capsule = tensor.__dlpack__()
    content = ctypes.cast(
        _get_pointer(capsule, b"dltensor"), ctypes.POINTER(_Tensor)
    ).contents
    dtype = DLPACK.get((content.dtype_code, content.dtype_bits))
    if dtype is None or content.dtype_lanes != 1:
        raise TypeError(
            f"elements of DLPack type code {content.dtype_code} with {content.dtype_bits} "
            f"bits; expected {expected_dtypes()}"
        )
    shape = tuple(content.shape[: content.ndim]) if content.ndim else ()
    strides = (
        tuple(content.strides[: content.ndim])
        if content.ndim and content.strides
        else contiguous_strides(shape)
    )
    if min(strides, default=0) < 0:
        raise ValueError(f"a tensor with strides {strides}; none may be negative")
    address = (content.data or 0) + content.byte_offset
    return TensorView(address, dtype, shape, strides, owner=(tensor, capsule))
