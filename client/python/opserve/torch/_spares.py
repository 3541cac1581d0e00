"""Tensors on the pool whose memory stays for results of the next step."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Container, Sequence
from typing import Optional

from opserve.resident import ResidentTensor
from opserve.torch._fusion import Shape, bytes_of

# Of all: gradients of the step before.
MOST_BYTES = 64 << 20


class Spares:
    """Tensors that nothing needs any more, by shape, in the order of their handles.

    Results find the same tensors in each step, whatever the order in which those of the step before
    were given up: the daemon replays a captured run for the tensors it was captured for. Not
    thread-safe.
    """

    def __init__(self) -> None:
        self._by_shape: dict[Shape, list[ResidentTensor]] = {}
        self._bytes = 0

    def add(self, spare: ResidentTensor, shape: Shape) -> bool:
        """Keeps a tensor. False: there are enough."""
        size = bytes_of(shape)
        if self._bytes + size > MOST_BYTES:
            return False
        self._bytes += size
        bisect.insort(self._by_shape.setdefault(shape, []), spare, key=_handle)
        return True

    def take(
        self, shapes: Sequence[Optional[Shape]], excluded: Container[bytes]
    ) -> Optional[list[ResidentTensor]]:
        """A tensor of each shape; None: there are not enough, and nothing was taken.

        Args:
            excluded: handles of those that are not to be taken.
        """
        taken: list[ResidentTensor] = []
        for shape in shapes:
            there = self._by_shape.get(shape, []) if shape is not None else []
            place = 0
            while place < len(there) and there[place].handle in excluded:
                place += 1
            if place == len(there):
                break
            taken.append(there.pop(place))
        for one, shape in zip(taken, shapes):
            assert shape is not None
            self._bytes -= bytes_of(shape)
        if len(taken) == len(shapes):
            return taken
        for one, shape in zip(taken, shapes):
            assert shape is not None
            self.add(one, shape)
        return None

    def all(self) -> list[ResidentTensor]:
        return [one for many in self._by_shape.values() for one in many]

    def clear(self) -> None:
        self._by_shape.clear()
        self._bytes = 0


_handle = operator.attrgetter("handle")
