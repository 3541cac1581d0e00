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
}
