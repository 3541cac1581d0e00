"""Element types: the wire's numbers beside numpy's dtypes."""

from __future__ import annotations

import enum
from typing import Any, Optional

import ml_dtypes
import numpy as np
import numpy.typing as npt

BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)


class DataType(enum.IntEnum):
    """Element types of the wire, by their numbers there."""

    FLOAT = 1
    FLOAT16 = 2
    BF16 = 3
    DOUBLE = 4

    @property
    def itemsize(self) -> int:
        return _NUMPY[self].itemsize

    @property
    def numpy(self) -> np.dtype[Any]:
        return _NUMPY[self]


_NUMPY: dict[DataType, np.dtype[Any]] = {
    DataType.FLOAT: np.dtype(np.float32),
    DataType.FLOAT16: np.dtype(np.float16),
    DataType.BF16: BFLOAT16,
    DataType.DOUBLE: np.dtype(np.float64),
}
_BY_NUMPY = {dtype: number for number, dtype in _NUMPY.items()}
_NAMES = {str(dtype): number for number, dtype in _NUMPY.items()}


def from_numpy(dtype: npt.DTypeLike) -> DataType:
    """TypeError: no operator has elements of this type."""
    found = _BY_NUMPY.get(np.dtype(dtype).newbyteorder("="))
    if found is None:
        raise TypeError(
            f"elements of dtype {np.dtype(dtype)}; expected {expected_dtypes()}"
        )
    return found


def from_any(dtype: object) -> DataType:
    """The element type that a numpy or torch dtype, or the name of one, means.

    TypeError: it is none of them.
    """
    if isinstance(dtype, DataType):
        return dtype
    named: Optional[DataType] = _NAMES.get(str(dtype).rpartition(".")[2])
    if named is not None:  # also "torch.float32"
        return named
    return from_numpy(dtype)  # type: ignore[arg-type]


def expected_dtypes() -> str:
    """For messages."""
    return "float32, float16, bfloat16 or float64"
