"""The numbers of steps that an optimizer has done, as its state has them: tensors of one element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_NAME = "step"


class StepCounts:
    """Counts for several parameters at once.

    Each has a tensor of its own, a view of one that has them all: to read that, or to add to it,
    takes as long as for one parameter. A state may get another tensor from elsewhere, as when it
    is loaded; its number is taken over then.
    """

    def __init__(self) -> None:
        self._all = torch.empty(0)
        self._numbers = _numbers_of(self._all)
        self._each: list[torch.Tensor] = []

    def read(self, states: Sequence[dict[str, Any]]) -> list[float]:
        """The steps that were done, by parameter."""
        if self._has(states):
            return self._numbers.tolist()  # type: ignore[return-value]  # of floats
        return [float(state.get(_NAME, 0)) for state in states]

    def add(self, states: Sequence[dict[str, Any]]) -> None:
        """Counts a step for each parameter."""
        if not self._has(states):
            self._all = torch.tensor(self.read(states), dtype=torch.float32)
            self._numbers = _numbers_of(self._all)
            self._each = list(self._all.unbind())
            for state, count in zip(states, self._each):
                state[_NAME] = count
        numbers = self._numbers
        for place in range(len(numbers)):
            numbers[place] += 1

    def lower(self, state: dict[str, Any], count: float) -> None:
        """Steps of one parameter have failed: at most so many are done."""
        if float(state.get(_NAME, 0)) > count:
            state[_NAME] = torch.tensor(count, dtype=torch.float32)

    def _has(self, states: Sequence[dict[str, Any]]) -> bool:
        """Whether these are the parameters of the last time, with the tensors that they got."""
        each = self._each
        if len(states) != len(each):
            return False
        return all(state.get(_NAME) is count for state, count in zip(states, each))


def _numbers_of(counts: torch.Tensor) -> memoryview:
    """Their memory: for torch or numpy, adding to a few numbers takes longer."""
    return memoryview(counts.numpy())
