"""A program under construction, and the values of its nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Optional, Union

import torch

from opserve import _tensors
from opserve._operator import Parameters
from opserve._operators import OPERATORS
from opserve.program import InputOf, Literal, OutputOf, Program

Tensor = torch.Tensor


class Unsupported(Exception):
    """The pool has nothing for a node; the message names the lack."""


@dataclasses.dataclass(frozen=True, eq=False)
class Value:
    """A tensor of a program while it is built.

    Attributes:
        source: the owner of its elements.
        meta: shape, dtype, strides and offset in the source's storage, as a meta tensor.
        source_shape: of the source itself.
    """

    source: Union[InputOf, OutputOf, Literal]
    meta: Tensor
    source_shape: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.meta.shape)

    @property
    def dtype(self) -> torch.dtype:
        return self.meta.dtype

    @property
    def is_whole(self) -> bool:
        """Whether it shows all of the source's elements in their order."""
        return (
            self.meta.storage_offset() == 0
            and self.meta.is_contiguous()
            and self.meta.untyped_storage().nbytes()
            == self.meta.numel() * self.meta.itemsize
        )


def _value_of(source: Any, meta: Tensor) -> Value:
    return Value(source, meta_like(meta), tuple(meta.shape))


def _part_of(literal: Literal, meta: Tensor) -> Literal:
    """As `meta` shows it: elements before the first and after the last of these are left out."""
    steps = zip(meta.shape, meta.stride())
    count = 1 + sum((length - 1) * step for length, step in steps) if meta.numel() else 0
    begin = meta.storage_offset() * meta.itemsize
    data = literal.data[begin : begin + count * meta.itemsize]
    return Literal(data, literal.data_type, tuple(meta.shape), tuple(meta.stride()))


def meta_like(meta: Tensor) -> Tensor:
    """A contiguous meta tensor of its own storage."""
    return torch.empty(meta.shape, dtype=meta.dtype, device="meta")


class Builder:
    """A program under construction, to which lowerings of nodes add.

    Attributes:
        node: that is being lowered; None: between two, copies for the plan are made.
        result: of this node in torch, as meta tensors.
        seeds: invocations of random operators.
        sizes: of the outputs of invocations, in bytes; by invocation, once for each output.
        nodes: that invocations serve, by invocation.
    """

    def __init__(self) -> None:
        self.program = Program()
        self.program.make_result = _tensors.maker_like(torch.empty(0))
        self.node: Any = None
        self.result: Any = None
        self.seeds: list[int] = []
        self.sizes: list[tuple[int, int]] = []
        self.nodes: dict[int, Optional[torch.fx.Node]] = {}

    def op(
        self,
        name: str,
        /,
        *,
        meta: Any = None,
        outputs: Optional[Sequence[str]] = None,
        **arguments: Any,
    ) -> Any:
        """Adds an invocation; arguments by their names in the catalogue, None left out.

        Args:
            meta: its result; None: the node's. One meta tensor, or one for each output, None for
                those that are not computed.
            outputs: those of the optional outputs that are wanted.
        """
        info = OPERATORS[name]
        inputs = {}
        attributes = {}
        for key, value in arguments.items():
            if value is None:
                continue
            if key in info.attributes:
                attributes[key] = value
            elif isinstance(value, (list, tuple)):
                inputs[key] = [self._wire(name, key, one) for one in value]
            else:
                inputs[key] = self._wire(name, key, value)
        given = self.program.invoke(
            name, inputs, attributes, Parameters(outputs=outputs)
        )
        self.nodes[self.last] = self.node
        wanted = self.result if meta is None else meta
        self.sizes += [
            (self.last, one.numel() * one.itemsize)
            for one in (wanted if isinstance(wanted, (tuple, list)) else (wanted,))
            if one is not None
        ]
        if not isinstance(wanted, (tuple, list)):
            return _value_of(given, wanted)
        # A list of tensors is one output.
        outs = given if isinstance(given, tuple) else [given[i] for i in range(len(wanted))]
        return tuple(
            None if one is None or out is None else _value_of(out, one)
            for out, one in zip(outs, wanted)
        )

    def drop_from(self, invocation: int) -> None:
        """Takes back the invocations from this one on."""
        del self.program.invocations[invocation:]
        self.sizes = [one for one in self.sizes if one[0] < invocation]
        self.seeds = [one for one in self.seeds if one < invocation]

    @property
    def last(self) -> int:
        """The number of the last invocation."""
        return len(self.program.invocations) - 1

    def full(self, value: Any, meta: Optional[Tensor] = None) -> Value:
        """Equal elements."""
        meta = self.result if meta is None else meta
        dtype = str(meta.dtype).rpartition(".")[2]
        literal = self.program.full(tuple(meta.shape), value, dtype)
        storage = torch.empty((), dtype=meta.dtype, device="meta")
        return Value(literal, storage.expand(meta.shape), ())

    def literal(self, tensor: Tensor) -> Value:
        """Elements that are part of each message of the program."""
        tensor = tensor.detach().contiguous()
        name = str(tensor.dtype).rpartition(".")[2]
        wide = tensor.to(torch.float32) if tensor.dtype == torch.bfloat16 else tensor
        return _value_of(self.program.literal(wide.numpy(), name), tensor)

    def cast(self, value: Value, dtype: torch.dtype) -> Value:
        if value.dtype == dtype:
            return value
        meta = torch.empty(value.shape, dtype=dtype, device="meta")
        name = str(dtype).rpartition(".")[2]
        return self.op("Cast", self=value, dtype=name, meta=meta)

    def copy(self, value: Value) -> Value:
        """The same elements, contiguous, with memory of their own."""
        if isinstance(value.source, Literal):
            zero = torch.zeros((), dtype=value.dtype).item()
            other = self.full(zero, torch.empty((), dtype=value.dtype, device="meta"))
            if value.dtype == torch.bool:
                return self.op("LogicalOr", self=value, other=other, meta=value.meta)
            return self.op("Add", self=value, other=other, meta=value.meta)
        axes = list(range(len(value.shape)))
        return self.op("Permute", self=value, dims=axes, meta=value.meta)

    def contiguous(self, value: Value) -> Value:
        """The value itself if its elements lie in their order without gaps from the start on."""
        return value if value.is_whole else self.copy(value)

    def view(self, function: Any, value: Value, *args: Any, **kwargs: Any) -> Any:
        """The result of a function of torch that makes views."""
        try:
            shown = function(value.meta, *args, **kwargs)
        except (RuntimeError, ValueError):  # the elements do not lie so that such a view is possible
            value = self.copy(value)
            shown = function(value.meta, *args, **kwargs)
        if isinstance(shown, (tuple, list)):
            return tuple(Value(value.source, one, value.source_shape) for one in shown)
        if shown.untyped_storage()._cdata != value.meta.untyped_storage()._cdata:
            raise Unsupported("it makes no view")
        return Value(value.source, shown, value.source_shape)

    def _wire(self, name: str, key: str, value: Any) -> Any:
        if not isinstance(value, Value):
            raise Unsupported(f"{name}: {key} is no tensor of the graph")
        source = value.source
        if isinstance(source, Literal):
            return _part_of(source, value.meta)
        if value.is_whole and value.shape == value.source_shape:
            return source
        if not value.shape and isinstance(source, InputOf):
            # An input that is sent alone and without axes has one element: the wire has no strides
            # to say that it is part of more.
            source = self.copy(
                Value(source, torch.empty(source.shape, dtype=value.dtype, device="meta"), source.shape)
            ).source
        dtype = str(value.dtype).rpartition(".")[2]
        return self.program.view(
            source, dtype, value.shape, value.meta.stride(), value.meta.storage_offset()
        )
