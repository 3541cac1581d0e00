"""What the generated methods of operators have in common."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, Generic, Optional, TypeVar

R = TypeVar("R")


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What every operator's method takes beside inputs and attributes.

    Attributes:
        out: a writable, contiguous tensor of the result's shape and dtype: the result is
            written there and `out` returned. In a shared region, the device writes it.
        dtype: of the result, where the operator has a choice.
        timeout: in seconds, for all attempts; None: the client's.
    """

    out: Any = None
    dtype: Any = None
    timeout: Optional[float] = None


@dataclasses.dataclass(frozen=True)
class OperatorInfo:
    """An operator as the catalogue lists it: dtypes accepted, by input, as numpy names them."""

    name: str
    method: str
    inputs: Mapping[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    output: str


class OperatorCalls(abc.ABC, Generic[R]):
    """Calls operators and gives R: a result, an awaitable, a future."""

    @abc.abstractmethod
    def _call_operator(
        self,
        operator: str,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        parameters: Parameters,
    ) -> R:
        ...
