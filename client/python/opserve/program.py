"""Programs: several invocations in one call, where outputs feed inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from opserve import _dtypes, _tensors
from opserve._data_type import DataType
from opserve._operator import Parameters
from opserve._operators import OPERATORS, Operators
from opserve._views import TensorView
from opserve.resident import ResidentTensor

Attribute = Union[int, bool, float, str]


@dataclasses.dataclass(frozen=True, eq=False)
class OutputOf:
    """The output of an invocation of a program: an input of later ones, or a result."""

    program: Program
    invocation: int
    output: str


Input = Union[TensorView, ResidentTensor, OutputOf]


@dataclasses.dataclass(frozen=True)
class Invocation:
    """One call of one operator, with its inputs as the wire sees them."""

    operator: str
    inputs: Mapping[str, Input]
    attributes: Mapping[str, Attribute]
    output: str
    dtype: Optional[DataType]
    out: Any = None
    destination: Optional[TensorView] = None  # what `out` shows


class Program(Operators[OutputOf]):
    """Invocations in order, each with the methods that a Client has for operators.

        program = Program()
        gradient = program.kl_div_backward(g, log_q, p, reduction="batchmean")
        program.log_softmax_backward(gradient, log_q)
        [logits_gradient] = client.execute(program).results

    What an invocation gives never leaves the device unless it is asked for as a result. A
    program can be run any number of times: tensors are sent with what they hold then. Results
    are of the kind of the first tensor. Not thread-safe while it is built.
    """

    def __init__(self) -> None:
        self.invocations: list[Invocation] = []
        self.make_result: _tensors.Maker = _tensors.make_numpy
        self._has_tensor = False

    def invoke(
        self,
        operator: str,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Attribute],
        parameters: Optional[Parameters] = None,
    ) -> OutputOf:
        """Adds an invocation of an operator by its name in the catalogue.

        TypeError, ValueError: an input, named in the message, is nothing that can be sent.
        """
        parameters = parameters or Parameters()
        info = OPERATORS.get(operator)
        output = info.output if info is not None else ""
        views = {
            name: self._input(operator, name, value) for name, value in inputs.items()
        }
        dtype = None if parameters.dtype is None else _dtypes.from_any(parameters.dtype)
        destination = None
        if parameters.out is not None:
            destination = _tensors.destination_view(parameters.out)
            dtype = destination.dtype if dtype is None else dtype
        self.invocations.append(
            Invocation(
                operator, views, attributes, output, dtype, parameters.out, destination
            )
        )
        return OutputOf(self, len(self.invocations) - 1, output)

    def _call_operator(
        self,
        operator: str,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        parameters: Parameters,
    ) -> OutputOf:
        if parameters.timeout is not None:
            raise ValueError("a program has one timeout, that of execute()")
        return self.invoke(operator, inputs, attributes, parameters)

    def _input(self, operator: str, name: str, value: Any) -> Input:
        if isinstance(value, OutputOf):
            if value.program is not self:
                raise ValueError(f"{operator}: {name} is the output of another program")
            return value
        if isinstance(value, ResidentTensor):
            return value
        try:
            view = _tensors.view_of(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{operator}: {name} is {error}") from None
        if not self._has_tensor:
            self.make_result = _tensors.maker_like(value)
            self._has_tensor = True
        return view


@dataclasses.dataclass(frozen=True)
class Response:
    """What a program gave.

    Attributes:
        results: in the order asked for; of the kind of the program's first tensor, or `out`.
        receipt: what the call cost and where it ran (Receipt of operator_service.proto), if
            it was asked for.
    """

    results: Sequence[Any]
    receipt: Optional[Any] = None
