"""Calls and fork().

gRPC has threads, which a forked child does not have. It can stop them before a fork and start
them anew on both sides, if GRPC_ENABLE_FORK_SUPPORT is set before it is loaded and no call is
in progress. So this package sets it, and holds fork() up until the calls of its clients have
ended, up to ten seconds, and gRPC's threads have had time to come to rest: it would leave out
its part while one of them works. gRPC 1.51 ends a child if a connection was just being tried
again: clients that have none drop theirs before, and wait until gRPC has forgotten it.

That makes forks safe while no other thread calls. gRPC promises nothing about those that do:
under constant load of other threads about one child in a hundred was seen to hang.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_LONGEST_WAIT = 10.0
_RESTING_TIME = 0.05
_FORGETTING_TIME = 0.25
_VARIABLE = "GRPC_ENABLE_FORK_SUPPORT"
_OFF = ("", "0", "false", "no", "off")


class Forked(Protocol):
    """What has something to do when this process forks."""

    def _before_fork(self) -> None:
        ...

    def _after_fork_in_child(self) -> None:
        ...


def _prepare() -> bool:
    if "grpc" not in sys.modules:
        os.environ.setdefault(_VARIABLE, "1")
    return os.environ.get(_VARIABLE, "").lower() not in _OFF


_is_supported = _prepare()
_lock = threading.Condition()
_calls = 0  # in progress; guarded by _lock
_is_forking = False  # guarded by _lock
_generation = 0  # forks between this process and the one that loaded the package
_at_rest_at = (
    0.0  # when gRPC has done all that the last call or dropped connection needs
)
_watching: weakref.WeakSet[Forked] = weakref.WeakSet()


def generation() -> int:
    """Changes when this process is a forked child."""
    return _generation


def watch(what: Forked) -> None:
    """Lets `what` know of forks as long as it lives."""
    _watching.add(what)


def note_dropped_connection() -> None:
    """A channel was closed that had no connection."""
    _expect_work(_FORGETTING_TIME)


def check_usable() -> None:
    """RuntimeError: calls cannot be made in this process."""
    if _generation != 0 and not _is_supported:
        raise RuntimeError(
            "this process was forked after gRPC had been loaded without fork support, so calls "
            "would hang: import opserve before grpc, or start processes by spawn"
        )


def _expect_work(seconds: float) -> None:
    global _at_rest_at
    _at_rest_at = max(_at_rest_at, time.monotonic() + seconds)


@contextmanager
def call() -> Iterator[None]:
    """Surrounds a call: it waits for a fork, a fork waits for it."""
    global _calls
    with _lock:
        while _is_forking:
            _lock.wait()
        _calls += 1
    try:
        yield
    finally:
        with _lock:
            _calls -= 1
            _expect_work(_RESTING_TIME)
            _lock.notify_all()


def _before() -> None:
    global _is_forking
    _lock.acquire()
    _is_forking = True
    _lock.wait_for(lambda: _calls == 0, _LONGEST_WAIT)
    for one in list(_watching):
        one._before_fork()
    time.sleep(max(0.0, _at_rest_at - time.monotonic()))


def _after_in_parent() -> None:
    global _is_forking
    _is_forking = False
    _lock.notify_all()
    _lock.release()


def _after_in_child() -> None:
    global _lock, _calls, _is_forking, _generation
    _lock = threading.Condition()
    _calls = 0
    _is_forking = False
    _generation += 1
    for one in list(_watching):
        one._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
