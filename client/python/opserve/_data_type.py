"""Element types: the wire's numbers beside numpy's dtypes and DLPack's.

Written by tools/generate_protocol.py from proto/dtypes/table.inc; not to be edited.
"""

from __future__ import annotations

import enum
from typing import Any

import ml_dtypes
import numpy as np


class DataType(enum.IntEnum):
    """Element types of the wire, by their numbers there."""

    FLOAT = 1
    FLOAT16 = 2
    BF16 = 3
    DOUBLE = 4
    INT8 = 5
    UINT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    BOOL = 10

    @property
    def itemsize(self) -> int:
        return NUMPY[self].itemsize

    @property
    def numpy(self) -> np.dtype[Any]:
        return NUMPY[self]


# In numpy, ml_dtypes and torch.
NAMES = {
    DataType.FLOAT: "float32",
    DataType.FLOAT16: "float16",
    DataType.BF16: "bfloat16",
    DataType.DOUBLE: "float64",
    DataType.INT8: "int8",
    DataType.UINT8: "uint8",
    DataType.INT16: "int16",
    DataType.INT32: "int32",
    DataType.INT64: "int64",
    DataType.BOOL: "bool",
}
# Types that numpy lacks are those of ml_dtypes.
NUMPY: dict[DataType, np.dtype[Any]] = {
    dtype: np.dtype(getattr(ml_dtypes, name, name)) for dtype, name in NAMES.items()
}
# By code and bits.
DLPACK = {
    (2, 32): DataType.FLOAT,
    (2, 16): DataType.FLOAT16,
    (4, 16): DataType.BF16,
    (2, 64): DataType.DOUBLE,
    (0, 8): DataType.INT8,
    (1, 8): DataType.UINT8,
    (0, 16): DataType.INT16,
    (0, 32): DataType.INT32,
    (0, 64): DataType.INT64,
    (6, 8): DataType.BOOL,
}
