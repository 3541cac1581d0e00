"""Tensors that stay on the pool until they are read here: gradients, and state of optimizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import torch
from torch._dynamo import decorators as _dynamo
from torch.utils._pytree import tree_leaves, tree_map_only

from opserve import _dtypes, _tensors
from opserve.prepared import PreparedProgram
from opserve.program import InputOf, Keep, OutputOf, Program
from opserve.resident import ResidentTensor
from opserve.torch._batch import Pending
from opserve.torch._entries import Term
from opserve.torch._residency import Residents

Tensor = torch.Tensor
_aten = torch.ops.aten
_HERE = torch.device("cpu")


class Contents:
    """The elements of a tensor: on the pool, here, or both; or a result that comes here.

    Attributes:
        terms: tensors on the pool (Residents.hold), of which it is the sum; none: the elements are
            here only.
    """

    def __init__(
        self,
        residents: Residents,
        terms: Sequence[Term],
        shape: Sequence[int],
        dtype: torch.dtype,
        pending: Optional[Pending] = None,
    ) -> None:
        """
        Args:
            pending: without terms: the result.
        """
        self.residents = residents
        self.terms = list(terms)
        self.shape = tuple(shape)
        self.dtype = dtype
        self._pending = pending
        self._here: Optional[Tensor] = None

    def on_pool(self) -> list[Union[ResidentTensor, Pending]]:
        """Those that the terms stand for."""
        return [term.entry.tensor() for term in self.terms]

    @torch.compiler.disable
    def read(self) -> Tensor:
        """The elements as a tensor of this process, which is not to be changed."""
        if self._here is None and self._pending is not None:
            self._here = self.residents.value(self._pending)
        if self._here is None:
            if len(self.terms) > 1:
                settle([self])
            [resident] = self.on_pool()
            array = self.residents.fetch(resident)
            data = memoryview(array.reshape(-1).view("u1"))
            make = _tensors.maker_like(torch.empty(0))
            self._here = make(_dtypes.from_any(name_of(self.dtype)), self.shape, data)
        return self._here

    def take(self) -> Tensor:
        """As read(); from now on the elements are here only, where they may change."""
        here = self.read()
        self.terms = []
        return here

    def fill(self, here: Tensor) -> None:
        """The elements are those of a tensor of this process, and here only."""
        self.terms, self._here = [], here

    def replace(self, term: Term) -> None:
        """The elements are those of another tensor on the pool."""
        self.terms, self._here = [term], None

    def assign(self, other: Contents) -> None:
        """Takes over the elements of another tensor on the pool."""
        self.residents, self.terms = other.residents, list(other.terms)
        self._here = None

    def was_changed(self) -> None:
        """A program has changed the elements on the pool."""
        self._here = None

    def add(self, other: Contents) -> bool:
        """Adds another tensor, if both are on this pool; the sum is computed later."""
        if not self.terms or not other.terms or self.residents is not other.residents:
            return False
        self.terms += other.terms
        self._here = None
        self.residents.sums.add(self)
        return True


class PoolTensor(torch.Tensor):
    """Is downloaded when a function of torch reads it; copies and pickles are ordinary tensors."""

    contents: Contents

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    # These two are called for each gradient, and take less time if only they are not compiled, and
    # not all that they call: their callees are not compiled, either. (With recursive=False,
    # torch.compiler.disable puts a function before each, which takes longer than they do.)
    @staticmethod
    @_dynamo.skip
    def __new__(cls, contents: Contents) -> PoolTensor:
        made: PoolTensor = torch.Tensor._make_wrapper_subclass(
            cls, contents.shape, dtype=contents.dtype, device=_HERE
        )
        made.contents = contents
        return made

    @classmethod
    @_dynamo.skip
    def __torch_dispatch__(
        cls,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Optional[Mapping[str, Any]] = None,
    ) -> Any:
        if func is _aten.detach.default:
            return PoolTensor(args[0].contents)
        if func is _aten.ones_like.default:  # the gradient that autograd begins with
            return torch.ones(args[0].shape, dtype=args[0].dtype)
        if func is _aten._local_scalar_dense.default:
            return args[0].contents.read().item()
        return cls._dispatch(func, args, kwargs)

    @classmethod
    @torch.compiler.disable  # else it would be compiled where it is called between two graphs
    def _dispatch(
        cls, func: Any, args: Sequence[Any], kwargs: Optional[Mapping[str, Any]]
    ) -> Any:
        if func is _aten.add_.Tensor and not kwargs:
            one, other = args
            both = isinstance(one, PoolTensor) and isinstance(other, PoolTensor)
            if both and one.shape == other.shape and one.contents.add(other.contents):
                return one
        # As autograd copies a gradient that something else refers to: it stays on the pool.
        if func is _aten.new_empty_strided.default:
            copied = _empty_like(*args, **(kwargs or {}))
            if copied is not None:
                return copied
        if func is _aten.copy_.default and all(isinstance(one, PoolTensor) for one in args[:2]):
            one, other = args[0].contents, args[1].contents
            if other.terms and (one.shape, one.dtype) == (other.shape, other.dtype):
                one.assign(other)
                return args[0]
        if func is _aten._amp_foreach_non_finite_check_and_unscale_.default:
            if unscale(*args):
                return None
        return _run_here(func, args, dict(kwargs or {}))

    def numpy(self, *, force: bool = False) -> Any:
        return self.contents.take().numpy(force=force)

    def tolist(self) -> Any:
        return self.contents.read().tolist()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.contents.take().__array__(*args, **kwargs)

    def __repr__(self, **_: Any) -> str:
        return repr(self.contents.read())

    def __format__(self, form: str) -> str:
        return format(self.contents.read(), form)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) not in memo:
            memo[id(self)] = self.contents.read().clone()
        copied: Tensor = memo[id(self)]
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.contents.read().clone().__reduce_ex__(protocol)


def _empty_like(
    tensor: PoolTensor,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: Optional[torch.dtype] = None,
    **_: Any,
) -> Optional[PoolTensor]:
    """A tensor to copy `tensor` to; None: it is not for that."""
    contents = tensor.contents
    if tuple(size) != contents.shape or dtype not in (None, contents.dtype):
        return None
    made = Contents(contents.residents, [], contents.shape, contents.dtype)
    made.fill(torch.empty_strided(size, stride, dtype=contents.dtype))
    return PoolTensor(made)


def _run_here(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a function with downloaded tensors; those that it changes or shows stay here."""
    schema = func._schema
    named = dict(zip((one.name for one in schema.arguments), args)) | kwargs
    changed = [
        tensor
        for one in schema.arguments
        if one.alias_info is not None
        for tensor in tree_leaves(named.get(one.name))
        if isinstance(tensor, PoolTensor)
    ]
    originals = {id(one.contents.take()): one for one in changed}

    def here(tensor: PoolTensor) -> Tensor:
        return tensor.contents.read()

    result = func(
        *tree_map_only(PoolTensor, here, list(args)),
        **tree_map_only(PoolTensor, here, kwargs),
    )
    return tree_map_only(Tensor, lambda one: originals.get(id(one), one), result)


def sum_of(program: Program, terms: Sequence[InputOf]) -> Any:
    """Adds the sum of a tensor's terms to a program."""
    total: Any = terms[0]
    for term in terms[1:]:
        total = program.add(total, term)
    return total


def inputs_of(program: Program, contents: Contents) -> list[InputOf]:
    """An input for each term of a tensor."""
    dtype = name_of(contents.dtype)
    return [program.input(dtype, contents.shape) for _ in contents.terms]


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).rpartition(".")[2]


def signature_of(contents: Contents) -> tuple[Any, ...]:
    """Equal for tensors that one program serves."""
    return contents.shape, contents.dtype, len(contents.terms)


def settle(tensors: Sequence[Contents]) -> None:
    """Computes the sums that tensors of one pool stand for."""
    tensors = [one for one in tensors if len(one.terms) > 1]
    if not tensors:
        return
    # In one order, however they come: so their program is found again.
    tensors.sort(key=lambda one: (one.shape, str(one.dtype), len(one.terms)))
    residents = tensors[0].residents

    def make() -> PreparedProgram:
        program = Program()
        results = [
            Keep(sum_of(program, inputs_of(program, one)), residents.lease)
            for one in tensors
        ]
        return residents.programs.client.prepare(program, results)

    key = ("sum", *(signature_of(one) for one in tensors))
    run = residents.programs.get(key, make)
    inputs = [term for one in tensors for term in one.on_pool()]
    for one, kept in zip(tensors, residents.run(run, inputs)):
        one.replace(residents.hold(kept))


def unscale(scaled: Sequence[Tensor], found: Tensor, inverse: Tensor) -> bool:
    """A gradient scaler's work before a step, on the pool; False: it has not all tensors."""
    tensors = [one.contents for one in scaled if isinstance(one, PoolTensor)]
    residents = tensors[0].residents
    if len(tensors) < len(scaled) or any(
        not one.terms or one.residents is not residents for one in tensors
    ):
        return False

    def make() -> PreparedProgram:
        program = Program()
        program.make_result = _tensors.maker_like(torch.empty(0))
        flag, factor = (program.input("float32", (1,)) for _ in range(2))
        gradients = [sum_of(program, inputs_of(program, one)) for one in tensors]
        changed = program.foreach_non_finite_check_and_unscale(gradients, flag, factor)
        results: list[Any] = [changed.found_inf]
        for number in range(len(tensors)):
            output: OutputOf = changed.scaled_grads[number]
            results.append(Keep(output, residents.lease))
        return residents.programs.client.prepare(program, results)

    key = ("unscale", *(signature_of(one) for one in tensors))
    run = residents.programs.get(key, make)
    inputs = [term for one in tensors for term in one.on_pool()]
    given = [found.reshape(1), inverse.reshape(1), *inputs]
    flag, *kept = residents.run(run, given)
    found.copy_(flag.reshape(found.shape))
    for one, resident in zip(tensors, kept):
        one.replace(residents.hold(resident))
    return True
