"""Functions of tensors that are drawn at random: constants, views, changes in place, operators."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch
from torch.nn import functional as F

Tensor = torch.Tensor
Function = Callable[..., Tensor]

_MOST_ELEMENTS = 5000
_DTYPES = (torch.float32, torch.float32, torch.int64, torch.int32, torch.bool)

_OF_BOOLS: list[Function] = [torch.logical_not, Tensor.float, Tensor.long]
_OF_INTEGERS: list[Function] = [
    torch.neg,
    torch.abs,
    Tensor.float,
    lambda x: x * 2 + 1,
    lambda x: x % 3,
    lambda x: x // 2,
    lambda x: x > 0,
]
_OF_FLOATS: list[Function] = [
    torch.neg,
    torch.relu,
    torch.sin,
    torch.sigmoid,
    torch.abs,
    torch.tanh,
    torch.round,
    torch.square,
    torch.clone,
    Tensor.contiguous,
    lambda x: x * 2,
    lambda x: 1 - x,
    lambda x: x.clamp(-1, 1),
    lambda x: x > 0,
]
_OF_TWO_BOOLS: list[Function] = [torch.logical_and, torch.logical_or, torch.logical_xor]
_OF_ONE_BOOL: list[Function] = [torch.add, torch.mul]
_OF_TWO: list[Function] = [
    torch.add,
    torch.sub,
    torch.mul,
    torch.maximum,
    torch.minimum,
    torch.eq,
    torch.le,
    lambda x, y: torch.where(x > 0, x, y),
    lambda x, y: x + 2 * y,
]


class Drawn:
    """A function whose steps each make a tensor of the inputs and of those before.

    Attributes:
        inputs: for a call.
    """

    def __init__(self, seed: int, steps: int = 14) -> None:
        self._random = random.Random(seed)
        torch.manual_seed(seed)
        self.inputs = [torch.randn(self._shape(1, 3, 5)) for _ in range(self._random.randint(1, 3))]
        self._seen = [one.clone() for one in self.inputs]  # what the steps made, for their shapes
        self._steps: list[tuple[str, Function, tuple[int, ...]]] = []
        kinds = [self._constant, self._view, self._view, self._view, self._unary, self._binary]
        kinds += [self._binary, self._reduction, self._joined, self._indexed, self._changed]
        kinds += [self._product]
        while len(self._steps) < steps:
            self._random.choice(kinds)()
        some = self._random.sample(range(len(self._seen)), self._random.randint(1, 4))
        self._results = [*some, len(self._seen) - 1]

    def __call__(self, *inputs: Tensor) -> list[Tensor]:
        made = list(inputs)
        for _, function, at in self._steps:
            made.append(function(*(made[i] for i in at)))
        return [made[i] for i in self._results]

    def __str__(self) -> str:
        lines = [f"inputs: {[list(one.shape) for one in self.inputs]}"]
        for number, (name, _, at) in enumerate(self._steps, len(self.inputs)):
            made = self._seen[number]
            lines.append(f"{number}: {name} of {at}, {made.dtype} {list(made.shape)}")
        return "\n".join([*lines, f"results: {self._results}"])

    def _shape(self, least: int, most: int, length: int) -> list[int]:
        axes = self._random.randint(least, most)
        return [self._random.randint(1, length) for _ in range(axes)]

    def _add(self, name: str, function: Function, *at: int) -> None:
        made = function(*(self._seen[i] for i in at))
        if made.numel() <= _MOST_ELEMENTS:
            self._steps.append((name, function, at))
            self._seen.append(made)

    def _pick(self, fits: Callable[[Tensor], bool]) -> Optional[int]:
        those = [i for i, one in enumerate(self._seen) if fits(one)]
        return self._random.choice(those) if those else None

    def _constant(self) -> None:
        count = self._random.choice([1, 2, 3, 4, 6, 8, 12, 24])
        dtype = self._random.choice(_DTYPES)
        start = self._random.randint(-3, 3)
        numbers = [self._random.randint(-5, 5) for _ in range(count)]
        shape = self._shape(0, 3, 4)
        name, function = self._random.choice(
            [
                ("arange", lambda: torch.arange(count).to(dtype)),
                ("arange from a float", lambda: torch.arange(float(start), start + count)),
                ("tensor", lambda: torch.tensor(numbers, dtype=dtype)),
                ("full", lambda: torch.full(shape, start, dtype=dtype)),
                ("eye", lambda: torch.eye(count % 6 + 1)),
                ("linspace", lambda: torch.linspace(0, 1, count)),
            ]
        )
        self._add(name, function)

    def _view(self) -> None:
        i = self._pick(lambda one: 0 < one.numel() and 0 < one.dim() < 4)
        if i is None:
            return
        x = self._seen[i]
        axis, other = self._random.randrange(x.dim()), self._random.randrange(x.dim())
        length = x.shape[axis]
        begin, step = self._random.randrange(length), self._random.randint(1, 3)
        rest = self._random.randint(1, length - begin)
        count = self._random.choice([n for n in range(1, x.numel() + 1) if x.numel() % n == 0])
        part = (slice(None),) * axis + (slice(begin, None, step),)
        views: list[tuple[str, Function]] = [
            ("narrow", lambda x: x.narrow(axis, begin, rest)),
            ("select", lambda x: x.select(axis, begin)),
            ("transpose", lambda x: x.transpose(axis, other)),
            ("unsqueeze", lambda x: x.unsqueeze(axis)),
            ("expand", lambda x: x.expand(step, *x.shape)),
            ("reshape", lambda x: x.reshape(count, -1)),
            ("part", lambda x: x[part]),
            ("flip", lambda x: x.flip(axis)),
            ("unfold", lambda x: x.unfold(axis, rest, step)),
            ("chunk", lambda x: x.chunk(2, axis)[-1]),
            ("flatten", lambda x: x.flatten()),
        ]
        if axis != other:
            views.append(("diagonal", lambda x: x.diagonal(0, axis, other)))
        self._add(*self._random.choice(views), i)

    def _unary(self) -> None:
        i = self._random.randrange(len(self._seen))
        x = self._seen[i]
        functions = _OF_FLOATS if x.is_floating_point() else _OF_INTEGERS
        functions = _OF_BOOLS if x.dtype == torch.bool else functions
        self._add("unary", self._random.choice(functions), i)

    def _binary(self) -> None:
        i = self._random.randrange(len(self._seen))
        x = self._seen[i]

        def fits(y: Tensor) -> bool:
            pairs = zip(reversed(x.shape), reversed(y.shape))
            return all(one == other or 1 in (one, other) for one, other in pairs)

        j = self._pick(fits)
        assert j is not None  # x itself fits
        bools = (x.dtype, self._seen[j].dtype).count(torch.bool)
        functions = (_OF_TWO, _OF_ONE_BOOL, _OF_TWO_BOOLS)[bools]
        self._add("binary", self._random.choice(functions), i, j)

    def _reduction(self) -> None:
        i = self._numbers()
        if i is None:
            return
        axis = self._random.randrange(self._seen[i].dim())
        keeps = self._random.random() < 0.5
        functions: list[Function] = [
            lambda x: x.sum(),
            lambda x: x.sum(axis, keeps),
            lambda x: x.amax(axis, keeps),
            lambda x: x.any(axis),
            lambda x: x.cumsum(axis),
            lambda x: x.sort(axis)[0],
            lambda x: x.topk(1, axis)[0],
        ]
        if self._seen[i].is_floating_point():
            functions += [
                lambda x: x.mean(axis, keeps),
                lambda x: x.softmax(axis),
                lambda x: x.cummax(axis)[0],
                lambda x: x.var(axis, unbiased=False),
            ]
        self._add("reduction", self._random.choice(functions), i)

    def _numbers(self) -> Optional[int]:
        return self._pick(lambda one: one.dim() > 0 < one.numel() and one.dtype != torch.bool)

    def _joined(self) -> None:
        i = self._pick(lambda one: one.dim() > 0)
        if i is None:
            return
        x = self._seen[i]
        axis = self._random.randrange(x.dim())

        def fits(y: Tensor) -> bool:
            others = [list(one.shape) for one in (x, y)]
            return y.dim() == x.dim() and others[0][:axis] + others[0][axis + 1 :] == (
                others[1][:axis] + others[1][axis + 1 :]
            )

        j = self._pick(fits)
        assert j is not None  # x itself fits
        self._add("cat", lambda x, y: torch.cat([x, y], axis), i, j)

    def _indexed(self) -> None:
        i = self._pick(lambda one: one.dim() > 0 < one.numel())
        if i is None:
            return
        axis = self._random.randrange(self._seen[i].dim())
        length = self._seen[i].shape[axis]
        functions: list[tuple[str, Function, list[int]]] = [
            ("roll", lambda x: x.roll(1, axis), []),
            ("pad", lambda x: F.pad(x, (1, 0)), []),
            ("repeat", lambda x: x.repeat_interleave(2, axis), []),
        ]
        j = self._pick(lambda one: one.dtype == torch.int64 and one.dim() == 1 and one.numel() > 0)
        if j is not None:
            functions += [
                ("index_select", lambda x, k: x.index_select(axis, k % length), [j]),
                ("index", lambda x, k: x[k % x.shape[0]], [j]),
            ]
        name, function, others = self._random.choice(functions)
        self._add(name, function, i, *others)

    def _changed(self) -> None:
        i = self._numbers()
        if i is None:
            return
        axis = self._random.randrange(self._seen[i].dim())
        place = self._random.randrange(self._seen[i].shape[axis])

        def part(x: Tensor) -> Tensor:
            copy = x.clone()
            copy.select(axis, place).mul_(2)
            return copy

        def beginning(x: Tensor) -> Tensor:
            copy = x.clone()
            copy.narrow(axis, 0, place + 1).fill_(1)
            return copy

        def view(x: Tensor) -> Tensor:
            copy = x.clone()
            view = copy.select(axis, place)
            copy.add_(1)
            return view * 2

        self._add("change", self._random.choice([part, beginning, view]), i)

    def _product(self) -> None:
        i = self._pick(lambda one: one.dim() == 2 and one.is_floating_point())
        if i is None:
            return
        width = self._seen[i].shape[1]
        j = self._pick(
            lambda one: one.dim() == 2 and one.is_floating_point() and one.shape[0] == width
        )
        if j is None:
            self._add("product with itself", lambda x: x @ x.t(), i)
        else:
            self._add("product", torch.mm, i, j)


def total(results: Sequence[Tensor]) -> Any:
    """A number that depends on each element of the results that have gradients."""
    parts = [one for one in results if one.requires_grad]
    return sum(number * one.sum() for number, one in enumerate(parts, 1)) if parts else None
