"""The element types that dtypes of numpy and torch mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

import numpy as np
import numpy.typing as npt

from opserve._data_type import NAMES, NUMPY, DataType

_BY_NUMPY = {dtype: number for number, dtype in NUMPY.items()}
_BY_NAME = {name: number for number, name in NAMES.items()}


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
    named: Optional[DataType] = _BY_NAME.get(str(dtype).rpartition(".")[2])
    if named is not None:  # also "torch.float32"
        return named
    return from_numpy(dtype)  # type: ignore[arg-type]


def from_names(names: Iterable[str]) -> tuple[DataType, ...]:
    """The element types of these names."""
    return tuple(_BY_NAME[name] for name in names)


def expected_dtypes() -> str:
    """For messages."""
    *others, last = NAMES.values()
    return f"{', '.join(others)} or {last}"
