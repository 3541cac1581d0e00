"""Shared by the generated methods of operators."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Optional, TypeVar, Union

import numpy as np

R = TypeVar("R")

# A number with a dtype: numpy's scalars have one of their own; int is int64, float is float64.
Scalar = Union[bool, int, float, "np.generic"]


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Parameters of every operator's method beside inputs and attributes.

    Attributes:
        out: a writable, contiguous tensor of the result's shape and dtype: the result is
            written there and `out` returned. In a shared region, the device writes it. Where
            there are several outputs: a tuple with one for each, or a dict by their names; those
            without are None, or left out.
        dtype: of the result, where the operator has a choice; where there are several outputs,
            of the first, or a dict by their names.
        timeout: in seconds, for all attempts; None: the client's.
        outputs: of the outputs that may be left out, the names of those to compute; None: all.
    """

    out: Any = None
    dtype: Any = None
    timeout: Optional[float] = None
    outputs: Optional[Sequence[str]] = None


@dataclasses.dataclass(frozen=True)
class OutputInfo:
    """An output as the catalogue lists it.

    Attributes:
        is_list: it is a list of tensors.
        is_masked: it may be left out (Parameters.outputs).
        is_dtype_fixed: its dtype follows from the inputs, and cannot be asked for.
    """

    name: str
    is_list: bool = False
    is_masked: bool = False
    is_dtype_fixed: bool = False


@dataclasses.dataclass(frozen=True)
class OperatorInfo:
    """An operator as the catalogue lists it.

    Attributes:
        inputs: dtypes accepted, by input, as numpy names them.
        attributes: the kind of each: "int", "bool", "float", "text", "dtype", "scalar", or a list:
            "ints", "bools", "floats".
        lists: inputs that are lists of tensors.
    """

    name: str
    method: str
    inputs: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, str]
    outputs: tuple[OutputInfo, ...]
    lists: tuple[str, ...] = ()

    @property
    def output(self) -> str:
        """The name of the first output."""
        return self.outputs[0].name

    @property
    def gives_one_tensor(self) -> bool:
        return len(self.outputs) == 1 and not self.outputs[0].is_list

    @property
    def masked(self) -> tuple[str, ...]:
        """The names of outputs that may be left out."""
        return tuple(output.name for output in self.outputs if output.is_masked)


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

    def op(
        client,
        name: str,
        /,
        inputs: Optional[Mapping[str, Any]] = None,
        attributes: Optional[Mapping[str, Any]] = None,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
        outputs: Optional[Sequence[str]] = None,
    ) -> R:
        """Calls an operator by its name, also one that has no method of its own: those of
        operator packs, and of daemons that are newer than this package.

        Args:
            name: as `opserve ops` lists it, such as "WeightedSum".
            inputs: tensors by the names of inputs; of those that are None, nothing is sent.
            attributes: values by the names of attributes.
            out, dtype, timeout, outputs: as for every operator, see Parameters.

        Returns:
            The operator's results, as its own method would give them; of an operator without a
            method always as the daemon gives them, see Response.outputs.
        """
        return client._call_operator(
            name, inputs or {}, attributes or {}, Parameters(out, dtype, timeout, outputs)
        )
