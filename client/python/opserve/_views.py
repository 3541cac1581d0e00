"""Tensors in this process's memory as the wire sees them."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from typing import NoReturn

from opserve._data_type import DataType


@dataclasses.dataclass(frozen=True)
class TensorView:
    """A view of memory: strides in elements, none negative.

    Attributes:
        address: of the first element.
        owner: keeps the memory.
    """

    address: int
    dtype: DataType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    owner: object = dataclasses.field(repr=False, default=None)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a view of this process's memory cannot be pickled or copied")

    @property
    def is_contiguous(self) -> bool:
        """Row-major without gaps; strides of axes that have one entry do not matter."""
        wanted = contiguous_strides(self.shape)
        return 0 in self.shape or all(
            size == 1 or stride == expected
            for size, stride, expected in zip(self.shape, self.strides, wanted)
        )

    @property
    def element_bytes(self) -> int:
        """Of all elements, each for itself."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def span_bytes(self) -> int:
        """From the first element that the view addresses to the end of the last."""
        if 0 in self.shape:
            return 0
        last = sum((size - 1) * step for size, step in zip(self.shape, self.strides))
        return (last + 1) * self.dtype.itemsize


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of a row-major tensor, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


# A ctypes array would need a type for each size, which takes longer than small copies do.
_view_of_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_view_of_memory.restype = ctypes.py_object
_view_of_memory.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]

_WRITABLE = 0x200  # PyBUF_WRITE


def memory(address: int, size: int) -> memoryview:
    """`size` bytes at `address`, writable; the caller keeps their owner alive."""
    if size == 0:
        return memoryview(b"")
    return _view_of_memory(address, size, _WRITABLE)  # type: ignore[no-any-return]
