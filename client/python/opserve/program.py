"""Programs: several invocations in one call, where outputs feed inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn, Optional, Union

import numpy as np

from opserve import _attributes, _dtypes, _outputs, _tensors
from opserve._data_type import DataType
from opserve._operator import OperatorInfo, Parameters
from opserve._operators import OPERATORS, Operators
from opserve._views import TensorView, contiguous_strides
from opserve.resident import ResidentTensor

# The daemon's bound on a literal.
MAX_LITERAL_BYTES = 4096


@dataclasses.dataclass(frozen=True, eq=False)
class OutputOf:
    """The output of an invocation of a program: an input of later ones, or a result."""

    program: Program = dataclasses.field(repr=False)
    invocation: int
    output: str


@dataclasses.dataclass(frozen=True, eq=False)
class OutputList:
    """An output that is a list: `outputs[2]` is the third of its tensors.

    How many there are is known when the program has run.
    """

    program: Program = dataclasses.field(repr=False)
    invocation: int
    output: str

    def __getitem__(self, index: int) -> OutputOf:
        if index < 0:
            raise IndexError("how many tensors there are is not known yet")
        return OutputOf(self.program, self.invocation, f"{self.output}.{index}")

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "how many tensors there are is not known yet; take each by its number"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class InputOf:
    """An input of a program that is given each time it runs: a tensor, or a resident one."""

    program: Program = dataclasses.field(repr=False)
    number: int
    data_type: DataType
    shape: tuple[int, ...]

    @property
    def T(self) -> View:
        """The input with its two axes exchanged. ValueError: it does not have two."""
        rows, columns = self.shape
        return View(self, self.data_type, (columns, rows), (1, columns))


@dataclasses.dataclass(frozen=True, eq=False)
class Literal:
    """Elements that are part of the program: those of `data`, looked at with `strides`."""

    data: bytes = dataclasses.field(repr=False)
    data_type: DataType
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class View:
    """Elements of a contiguous tensor of the daemon's, looked at in another shape and order.

    Attributes:
        strides: in elements; none negative, 0 repeats an element.
        offset: of the first element, in elements.
    """

    base: Union[OutputOf, InputOf, ResidentTensor]
    data_type: DataType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


Input = Union[TensorView, ResidentTensor, OutputOf, InputOf, Literal, View]


@dataclasses.dataclass(frozen=True, eq=False)
class Keep:
    """A result that stays on the device: the response has a ResidentTensor."""

    output: OutputOf
    lease: float = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Replace:
    """A result that becomes the content of a resident tensor of its dtype and shape.

    Attributes:
        version: that the tensor must have; None: any.
    """

    output: OutputOf
    tensor: Union[ResidentTensor, InputOf]
    version: Optional[int] = None


Result = Union[OutputOf, Keep, Replace]


@dataclasses.dataclass(frozen=True)
class Invocation:
    """One call of one operator, as the wire sees it.

    Attributes:
        inputs: a list of tensors is a tuple.
        attributes: messages AttributeValue.
        info: None: the operator is not in the table of this package.
    """

    operator: str
    inputs: Mapping[str, Union[Input, tuple[Input, ...]]]
    attributes: Mapping[str, Any]
    wishes: _outputs.Wishes
    info: Optional[OperatorInfo]


class Program(Operators[Any]):
    """Invocations in order, each with the methods that a Client has for operators.

        program = Program()
        gradient = program.kl_div_backward(g, log_q, p, reduction="batchmean")
        program.log_softmax_backward(gradient, log_q)
        [logits_gradient] = client.execute(program).results

    The outputs of an invocation never leave the device unless asked for as results. A
    program can be run any number of times: tensors are sent with their contents then. Results
    are of the kind of the first tensor. Not thread-safe while it is built.
    """

    def __init__(self) -> None:
        self.invocations: list[Invocation] = []
        self.inputs: list[InputOf] = []
        self.make_result: _tensors.Maker = _tensors.make_numpy
        self._has_tensor = False

    def __repr__(self) -> str:
        operators = [invocation.operator for invocation in self.invocations]
        more = f", ... ({len(operators)} in all)" if len(operators) > 8 else ""
        return f"<opserve.Program {', '.join(operators[:8]) or 'without invocations'}{more}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Program refers to tensors in this process's memory and cannot be pickled or "
            "copied: build it in each process"
        )

    def input(self, dtype: object, shape: Sequence[int]) -> InputOf:
        """An input that is given each time the program runs, in the order of these calls.

        Only prepared programs (Client.prepare) have them.
        """
        given = InputOf(self, len(self.inputs), _dtypes.from_any(dtype), tuple(shape))
        self.inputs.append(given)
        return given

    def literal(self, values: object, dtype: object = None) -> Literal:
        """A small tensor as part of the program. ValueError: more than 4096 bytes."""
        wanted = None if dtype is None else _dtypes.from_any(dtype).numpy
        array = np.asarray(values, wanted, order="C")
        if array.nbytes > MAX_LITERAL_BYTES:
            raise ValueError(
                f"a literal of {array.nbytes} bytes; at most {MAX_LITERAL_BYTES} are allowed"
            )
        shape = array.shape
        return Literal(
            array.tobytes(),
            _dtypes.from_numpy(array.dtype),
            shape,
            contiguous_strides(shape),
        )

    def full(self, shape: Sequence[int], value: object, dtype: object) -> Literal:
        """A tensor of equal elements; it takes no memory."""
        one = self.literal(value, dtype)
        return Literal(one.data, one.data_type, tuple(shape), (0,) * len(shape))

    def view(
        self,
        base: Union[OutputOf, InputOf, ResidentTensor],
        dtype: object,
        shape: Sequence[int],
        strides: Optional[Sequence[int]] = None,
        offset: int = 0,
    ) -> View:
        """Elements of `base`, which are of `dtype`, in another shape and order: see View."""
        shape = tuple(shape)
        steps = contiguous_strides(shape) if strides is None else tuple(strides)
        return View(base, _dtypes.from_any(dtype), shape, steps, offset)

    def keep(self, output: OutputOf, lease: float = 0) -> Keep:
        """As a result: it stays on the device, for `lease` seconds (0: the daemon's default)."""
        return Keep(output, lease)

    def replace(
        self,
        tensor: Union[ResidentTensor, InputOf],
        output: OutputOf,
        version: Optional[int] = None,
    ) -> Replace:
        """As a result: it becomes the content of `tensor`, if the run succeeds."""
        return Replace(output, tensor, version)

    def invoke(
        self,
        operator: str,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        parameters: Optional[Parameters] = None,
    ) -> Any:
        """Adds an invocation of an operator by its name in the catalogue.

        Inputs and attributes that are None are left out. A list or tuple is an input that is a
        list. Gives the operator's output (OutputOf), or a named tuple of several, in which those
        that are not computed are None; an output that is a list is an OutputList.

        TypeError, ValueError: an input or attribute, named in the message, is nothing that can
        be sent.
        """
        info = OPERATORS.get(operator)
        given = {name: value for name, value in inputs.items() if value is not None}
        numbers = [name for name, value in given.items() if _begins_with_number(value)]
        views = {
            name: self._input(operator, name, value, info)
            for name, value in given.items()
            if name not in numbers
        }
        if numbers:  # they take the dtype of the first tensor
            like = next(filter(None, map(_dtype_of, views.values())), None)
            for name in numbers:
                views[name] = self._input(operator, name, given[name], info, like)
        values = {
            name: _encode_attribute(operator, name, value, info)
            for name, value in attributes.items()
            if value is not None
        }
        wishes = _outputs.wishes(info, parameters or Parameters())
        self.invocations.append(Invocation(operator, views, values, wishes, info))
        number = len(self.invocations) - 1
        if info is None:
            return OutputOf(self, number, "")
        computed = _outputs.computed(info, wishes.requests)

        def output_of(name: str, is_list: bool) -> Any:
            if is_list:
                return OutputList(self, number, name)
            return OutputOf(self, number, name) if name in computed else None

        return _outputs.arrange(info, output_of)

    def set_attribute(self, invocation: int, name: str, value: object) -> None:
        """Changes an attribute of an invocation. TypeError, ValueError: as of invoke()."""
        one = self.invocations[invocation]
        encoded = _encode_attribute(one.operator, name, value, one.info)
        attributes = {**one.attributes, name: encoded}
        self.invocations[invocation] = dataclasses.replace(one, attributes=attributes)

    def _call_operator(
        self,
        operator: str,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        parameters: Parameters,
    ) -> Any:
        if parameters.timeout is not None:
            raise ValueError("a program has one timeout, that of execute()")
        return self.invoke(operator, inputs, attributes, parameters)

    def _input(
        self,
        operator: str,
        name: str,
        value: Any,
        info: Optional[OperatorInfo],
        like: Optional[DataType] = None,
    ) -> Union[Input, tuple[Input, ...]]:
        accepted: Collection[DataType] = tuple(DataType)
        is_list = isinstance(value, (list, tuple))
        if info is not None:
            if name in info.lists and not is_list:
                raise TypeError(
                    f"{operator}: {name} is a {type(value).__name__}; expected a list of tensors"
                )
            is_list = name in info.lists
            accepted = _dtypes.from_names(info.inputs.get(name, ()))
        if not is_list:
            return self._tensor(operator, name, value, like, accepted)
        return tuple(
            self._tensor(operator, f"{name}[{number}]", element, like, accepted)
            for number, element in enumerate(value)
        )

    def _tensor(
        self,
        operator: str,
        name: str,
        value: Any,
        like: Optional[DataType],
        accepted: Collection[DataType],
    ) -> Input:
        base = value.base if isinstance(value, View) else value
        if isinstance(base, (OutputOf, InputOf)) and base.program is not self:
            kind = "output" if isinstance(base, OutputOf) else "input"
            raise ValueError(f"{operator}: {name} is the {kind} of another program")
        if isinstance(value, (OutputOf, InputOf, View, Literal, ResidentTensor)):
            return value
        try:
            view = _tensors.view_of(value, like, accepted)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{operator}: {name} is {error}") from None
        if not self._has_tensor and not _tensors.are_numbers(value):
            self.make_result = _tensors.maker_like(value)
            self._has_tensor = True
        return view


def _begins_with_number(value: Any) -> bool:
    """Whether an input is a number, or a list that begins with one."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return _tensors.are_numbers(value)


def _dtype_of(value: Union[Input, tuple[Input, ...]]) -> Optional[DataType]:
    """That of an input, or of the first of a list; None: not known before the program runs."""
    if isinstance(value, tuple):
        return next(filter(None, map(_dtype_of, value)), None)
    if isinstance(value, OutputOf):
        return None
    return value.dtype if isinstance(value, TensorView) else value.data_type


def _encode_attribute(
    operator: str, name: str, value: object, info: Optional[OperatorInfo]
) -> Any:
    kind = info.attributes.get(name) if info is not None else None
    try:
        return _attributes.encode(kind, value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{operator}: {name} is {error}") from None


@dataclasses.dataclass(frozen=True)
class Response:
    """The results of a program.

    Attributes:
        results: in the order asked for; of the kind of the program's first tensor, or `out`.
        receipt: the call's costs and device (Receipt of operator_service.proto), if
            it was asked for.
        outputs: unless results were chosen, those of the last invocation as a call of its
            operator gives them: one as it is, several as a named tuple, in which those that
            were not computed are None; an output that is a list is a list.
    """

    results: Sequence[Any]
    receipt: Optional[Any] = None
    outputs: Any = None
