"""Programs of a kind, each prepared once for each combination of shapes."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Hashable
from typing import TypeVar

from opserve.client import Client

T = TypeVar("T")

# Programs of optimizers and gradients, of which a training needs a handful.
_MOST_PROGRAMS = 64


class Programs:
    """Keeps the programs that were used last. Thread-safe."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._lock = threading.Lock()
        # Guarded by _lock.
        self._programs: collections.OrderedDict[Hashable, object] = (
            collections.OrderedDict()
        )

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The program of this key, which `make` makes if there is none yet."""
        with self._lock:
            found = self._programs.get(key)
            if found is not None:
                self._programs.move_to_end(key)
                return found  # type: ignore[return-value]
        made = make()
        with self._lock:
            self._programs[key] = made
            if len(self._programs) > _MOST_PROGRAMS:
                self._programs.popitem(last=False)
        return made

    def clear(self) -> None:
        """Forgets all; the daemon does so when nothing else has them and the client tells it."""
        with self._lock:
            programs = list(self._programs.values())
            self._programs.clear()
        del programs  # not under the lock: this may end many objects
