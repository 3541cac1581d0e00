"""Calls and fork().

gRPC has threads, which a forked child does not have. It can stop them before a fork and start
them anew on both sides, if GRPC_ENABLE_FORK_SUPPORT is set before it is loaded and no call is
in progress. So this package sets it, and holds fork() up until the calls of its clients have
ended, up to ten seconds. A client makes a new connection in a child.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LONGEST_WAIT = 10.0
_VARIABLE = "GRPC_ENABLE_FORK_SUPPORT"
_OFF = ("", "0", "false", "no", "off")


def _prepare() -> bool:
    if "grpc" not in sys.modules:
        os.environ.setdefault(_VARIABLE, "1")
    return os.environ.get(_VARIABLE, "").lower() not in _OFF


_is_supported = _prepare()
_lock = threading.Condition()
_calls = 0  # in progress; guarded by _lock
_is_forking = False  # guarded by _lock
_generation = 0  # forks between this process and the one that loaded the package


def generation() -> int:
    """Changes when this process is a forked child."""
    return _generation


def check_usable(made_in: int) -> None:
    """RuntimeError: what was made in generation `made_in` cannot be replaced here."""
    if made_in != _generation and not _is_supported:
        raise RuntimeError(
            "this process was forked after gRPC had been loaded without fork support, so calls "
            "would hang: import opserve before grpc, or start processes by spawn"
        )


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
            _lock.notify_all()


def _before() -> None:
    global _is_forking
    _lock.acquire()
    _is_forking = True
    _lock.wait_for(lambda: _calls == 0, _LONGEST_WAIT)


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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
