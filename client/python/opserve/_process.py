"""Keeps connections to the process that made them.

gRPC has threads and locks of its own. A child that is forked after they were started has the
locks without the threads, so that even a deadline does not end a call there. A forked child
therefore leaves everything of gRPC as it is: it makes no call, and frees nothing.

gRPC's own support of forks is switched off, see _grpc_settings.py.
"""

from __future__ import annotations

import ctypes
import gc
import os
import weakref
from typing import Protocol

REFUSAL = (
    "this process was forked from one that had connected to a daemon, and a connection does not "
    "survive a fork: make a client in a child that is started by spawn or forkserver "
    '(multiprocessing.get_context("spawn"), DataLoader(..., multiprocessing_context="spawn")), '
    "or fork before the first call"
)


class Watched(Protocol):
    """An object with something to keep in a forked child."""

    def _after_fork_in_child(self) -> None: ...


_is_connected = False  # whether this process or an ancestor has made a connection
_is_forked = False  # whether an ancestor has
_watched: weakref.WeakSet[Watched] = weakref.WeakSet()


def is_forked() -> bool:
    """Whether this process was forked from one that had connected to a daemon."""
    return _is_forked


def begin_connection() -> None:
    """To be called before any connection is made, and only if is_forked() is false."""
    global _is_connected
    _is_connected = True


def watch(watched: Watched) -> None:
    """Calls `watched._after_fork_in_child()` in forked children, as long as it lives."""
    _watched.add(watched)


def keep_for_ever(value: object) -> None:
    """Lets `value` never be freed, not even when the interpreter ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


def _after_fork_in_child() -> None:
    global _is_forked
    if _is_connected:
        _is_forked = True
        gc.freeze()  # the collector would free objects left by calls of the parent
    for watched in list(_watched):
        watched._after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)
