"""An answer of a session that comes in parts."""

from __future__ import annotations

import numpy as np

from opserve import _frame


class AnswerParts:
    """The parts of an ExecuteResponse, in their order."""

    def __init__(self, first: _frame.Buffer) -> None:
        """
        Args:
            first: part, which is still to be added.
        """
        # Most answers have one large payload, and the first part says how large it is: each part
        # is copied to its place as it comes. To keep them until the end would take as much memory
        # again, which the C library then gives back and asks for with each request.
        self._start = memoryview(np.empty(_frame.size_with_payload(first), np.uint8))
        self._filled = 0
        self._rest: list[_frame.Buffer] = []

    def add(self, part: _frame.Buffer) -> None:
        end = self._filled + len(part)
        if self._rest or end > len(self._start):
            self._rest.append(part)
            return
        self._start[self._filled : end] = part
        self._filled = end

    def end(self, last: _frame.Buffer) -> _frame.Buffer:
        """The whole answer, of which this is the rest."""
        self.add(last)
        whole = self._start[: self._filled].toreadonly()
        return b"".join((whole, *self._rest)) if self._rest else whole
