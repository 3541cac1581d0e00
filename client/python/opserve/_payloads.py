"""How tensors share the payloads of a message.

Views of one memory are sent as one payload, as they lie, unless that would be more bytes than
each for itself: a matrix and its transpose are one payload, so is a broadcast tensor's single
element; of every tenth column only these columns are sent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Optional

from opserve._frame import Buffer
from opserve._tensors import contiguous
from opserve._views import TensorView, memory


@dataclasses.dataclass(frozen=True)
class Placed:
    """Where a view's elements are: payload, strides (None: contiguous) and offset in elements."""

    payload: int
    strides: Optional[tuple[int, ...]]
    offset: int


class Payloads:
    """The payloads of one message: each view of `views` has its place in `places`."""

    def __init__(self, views: Sequence[TensorView]) -> None:
        self.buffers: list[Buffer] = []
        self.places: list[Placed] = [Placed(0, None, 0)] * len(views)
        self._copies: list[object] = []
        self._known: dict[tuple[Any, ...], int] = {}
        for group in _overlapping(views):
            members = [views[index] for index in group]
            start = min(view.address for view in members)
            end = max(view.address + view.span_bytes for view in members)
            if len(members) > 1 and _share_is_smaller(members, end - start):
                payload = self._add(memory(start, end - start))
                for index, view in zip(group, members):
                    offset = (view.address - start) // view.dtype.itemsize
                    self.places[index] = Placed(payload, view.strides, offset)
                continue
            for index, view in zip(group, members):
                self.places[index] = self._place_alone(view)

    def _place_alone(self, view: TensorView) -> Placed:
        key = (view.address, view.dtype, view.shape, view.strides)
        is_strided = not view.is_contiguous and view.span_bytes <= view.element_bytes
        if key not in self._known:
            is_as_it_lies = is_strided or view.is_contiguous
            lying = view if is_as_it_lies else contiguous(view)
            self._copies.append(lying.owner)
            self._known[key] = self._add(memory(lying.address, lying.span_bytes))
        return Placed(self._known[key], view.strides if is_strided else None, 0)

    def _add(self, buffer: Buffer) -> int:
        self.buffers.append(buffer)
        return len(self.buffers) - 1


def _overlapping(views: Sequence[TensorView]) -> list[list[int]]:
    """Positions in `views`, those with memory in common together.

    Tensors without axes stay alone: they have no strides to say that a payload is not theirs
    only.
    """
    groups: list[list[int]] = []
    end = -1
    for index in sorted(range(len(views)), key=lambda index: views[index].address):
        view = views[index]
        size = view.span_bytes
        if not view.shape or size == 0:
            groups.insert(0, [index])
        elif view.address < end and groups and _fits(views[groups[-1][0]], view):
            groups[-1].append(index)
        else:
            groups.append([index])
        if view.shape:
            end = max(end, view.address + size)
    return groups


def _fits(first: TensorView, view: TensorView) -> bool:
    distance = view.address - first.address
    return bool(first.shape) and distance % view.dtype.itemsize == 0


def _share_is_smaller(views: Sequence[TensorView], span: int) -> bool:
    distinct = {
        (view.address, view.dtype, view.shape, view.strides): view for view in views
    }
    return span <= sum(
        min(view.span_bytes, view.element_bytes) for view in distinct.values()
    )
