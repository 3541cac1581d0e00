"""Forked processes.

gRPC has threads and locks of its own, which a process that was forked after they were started cannot
use. So such a process leaves gRPC alone: its calls go through a relay (_relay.py), a process
that it starts anew. Processes that are forked before the first call need none.

gRPC's own support of forks is of no use then, and does harm: it stops gRPC's threads in the parent
first, and a fork can wait for them for ever. It is switched off unless the user has set it; gRPC
before 1.57 cannot switch it off.
"""

from __future__ import annotations

import gc
import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """What has something to do in a forked child."""

    def _after_fork_in_child(self) -> None:
        ...


_generation = 0  # forks between this process and the one that loaded the package
_is_started = False  # whether gRPC was used here or in an ancestor
_needs_relay = False
_watching: weakref.WeakSet[Forked] = weakref.WeakSet()


def generation() -> int:
    """Changes when this process is a forked child."""
    return _generation


def needs_relay() -> bool:
    """Whether gRPC cannot be used in this process."""
    return _needs_relay


def start_grpc() -> None:
    """To be called before a channel is made. RuntimeError: gRPC cannot be used here."""
    global _is_started
    if _needs_relay:
        raise RuntimeError(
            "this process was forked after its parent had connected to a daemon: calls of a Client "
            "work, but transfers, streams and AsyncClient do not; start it by spawn for these"
        )
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # gRPC looks when it starts
    _is_started = True


def watch(what: Forked) -> None:
    """Lets `what` know in a forked child, as long as it lives."""
    _watching.add(what)


def _after_in_child() -> None:
    global _generation, _needs_relay
    _generation += 1
    _needs_relay = _is_started
    if _needs_relay:
        gc.freeze()  # what the parent left of gRPC is not to be collected here
    for one in list(_watching):
        one._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_in_child)
