"""Values of attributes as the wire has them."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Optional

import numpy as np

from opserve import _dtypes, _wire
from opserve._data_type import DataType


def encode(kind: Optional[str], value: object) -> Any:
    """The message AttributeValue of an attribute of this kind (OperatorInfo.attributes).

    None: the kind is not known, and told from the value. TypeError: it is no such value; the
    message tells the expected kind.
    """
    message = _wire.AttributeValue()
    _ENCODERS[kind or _kind_of(value)](message, value)
    return message


def _kind_of(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, DataType):
        return "dtype"
    if isinstance(value, (str, numbers.Integral)):
        return "int"
    if _is_number(value):
        return "float"
    if isinstance(value, (list, tuple, np.ndarray)):
        kinds = {_kind_of(element) for element in value}
        if kinds == {"bool"}:
            return "bools"
        return "ints" if kinds <= {"int"} else "floats"
    return "dtype"


def _encode_int(message: Any, value: object) -> None:
    if isinstance(value, str):
        message.name = value
    else:
        message.int64_value = _integer(value)


def _encode_bool(message: Any, value: object) -> None:
    message.bool_value = _flag(value)


def _encode_float(message: Any, value: object) -> None:
    message.double_value = _number(value)


def _encode_text(message: Any, value: object) -> None:
    if not isinstance(value, str):
        raise _unexpected(value, "a string")
    message.text_value = value


def _encode_dtype(message: Any, value: object) -> None:
    try:
        message.dtype_value = _dtypes.from_any(value)
    except TypeError:
        expected = f"a dtype: {_dtypes.expected_dtypes()}"
        raise _unexpected(value, expected) from None


def _encode_scalar(message: Any, value: object) -> None:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)):
        message.bool_value = bool(value)
    elif isinstance(value, np.generic):
        dtype = _dtypes.from_numpy(value.dtype)
        message.scalar_value.dtype = dtype
        if isinstance(value, np.integer):
            message.scalar_value.int64_value = int(value)
        else:
            message.scalar_value.double_value = float(value)  # type: ignore[arg-type]
    elif isinstance(value, numbers.Integral):
        message.int64_value = int(value)
    else:
        message.double_value = _number(value)


def _encode_ints(message: Any, value: object) -> None:
    message.int64_list.SetInParent()
    message.int64_list.values.extend(map(_integer, _elements(value)))


def _encode_bools(message: Any, value: object) -> None:
    message.bool_list.SetInParent()
    message.bool_list.values.extend(map(_flag, _elements(value)))


def _encode_floats(message: Any, value: object) -> None:
    message.double_list.SetInParent()
    message.double_list.values.extend(map(_number, _elements(value)))


_ENCODERS = {
    "int": _encode_int,
    "bool": _encode_bool,
    "float": _encode_float,
    "text": _encode_text,
    "dtype": _encode_dtype,
    "scalar": _encode_scalar,
    "ints": _encode_ints,
    "bools": _encode_bools,
    "floats": _encode_floats,
}


def _elements(value: object) -> Iterable[object]:
    """Those of a list; a single one is a list of it."""
    if isinstance(value, np.ndarray):
        return list(value.reshape(-1))
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return value
    return [value]


def _integer(value: object) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise _unexpected(value, "an integer") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{number}; expected an integer of 64 bits")
    return number


def _flag(value: object) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise _unexpected(value, "True or False")
    return bool(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (numbers.Real, np.generic)) and not isinstance(
        value, (np.complexfloating, np.character, np.void)
    )


def _number(value: object) -> float:
    if not _is_number(value):
        raise _unexpected(value, "a number")
    return float(value)  # type: ignore[arg-type]


def _unexpected(value: object, expected: str) -> TypeError:
    shown = repr(value) if len(repr(value)) <= 40 else f"a {type(value).__name__}"
    return TypeError(f"{shown}; expected {expected}")
