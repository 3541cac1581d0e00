"""Shared memory for results without a place chosen by the caller.

Each result has a region of its own, which is used again after the result has gone.
"""

from __future__ import annotations

import collections
import threading
import weakref
from collections.abc import Callable
from typing import Any, Optional

import numpy.typing as npt

from opserve import _process, errors
from opserve.shared_memory import SharedRegion

_LEAST_BYTES = 64 << 10
# Regions without a result beyond this are given up.
_MOST_FREE_BYTES = 256 << 20
_MOST_FREE_REGIONS = 32


class SharedResults:
    """Of one client. Thread-safe."""

    def __init__(self, create_region: Callable[[int], SharedRegion]) -> None:
        self._create_region = create_region
        self._lock = threading.Lock()
        self._free: list[SharedRegion] = []  # the oldest first; guarded by _lock
        # Regions of freed results. It is filled when results are freed, which can be at any
        # time, under any lock: so without one.
        self._returned: collections.deque[SharedRegion] = collections.deque()
        _process.watch(self)

    def _after_fork_in_child(self) -> None:
        self._lock = threading.Lock()  # a thread that the child lacks may have it

    def empty(self, size: int) -> Optional[SharedResult]:
        """`size` bytes for a result, at least 1. None: there is no room, or no daemon."""
        region = self._take(size)
        if region is None:
            try:
                region = self._create_region(max(_LEAST_BYTES, _power_of_two(size)))
            except errors.OpserveError:
                return None
        return SharedResult(region, size, self._returned)

    def _take(self, size: int) -> Optional[SharedRegion]:
        """A region that is free and not too large, or None."""
        given_up = []
        with self._lock:
            while self._returned:
                self._free.append(self._returned.popleft())
            fitting = (
                region
                for region in self._free
                if size <= region.size <= max(_LEAST_BYTES, _power_of_two(size))
            )
            taken = next(fitting, None)
            if taken is not None:
                self._free.remove(taken)
            free = sum(region.size for region in self._free)
            while len(self._free) > _MOST_FREE_REGIONS or free > _MOST_FREE_BYTES:
                given_up.append(self._free.pop(0))
                free -= given_up[-1].size
        for region in given_up:
            region.close()
        if taken is not None and not taken.is_shared:
            taken.close()
            return self._take(size)
        return taken


class SharedResult:
    """Memory of a result, in `array`; its region is free when that has gone."""

    def __init__(
        self,
        region: SharedRegion,
        size: int,
        returned: collections.deque[SharedRegion],
    ) -> None:
        self._region = region
        self.array: npt.NDArray[Any] = region.bytes[:size]
        self._finalizer = weakref.finalize(self.array, returned.append, region)
        self._finalizer.atexit = False

    def abandon(self) -> None:
        """The call failed, and may still write: the memory is not to be used again."""
        if self._finalizer.detach() is not None:
            self._region.close()


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()
