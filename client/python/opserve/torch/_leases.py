"""The thread of a backend that renews leases, and releases what gone graphs have left."""

from __future__ import annotations

import enum
import math
import queue
import threading
import time
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Optional

from opserve import errors
from opserve.client import Client
from opserve.resident import ResidentTensor
from opserve.torch._pipeline import BATCH

if TYPE_CHECKING:
    from opserve.torch._residency import Residents

# Seconds after the end of a graph or of a parameter, in which the rest of the model ends, too.
_RELEASE_DELAY = 1.0

# Of the time between renewals: after a failed one, the next comes sooner.
_PART_AFTER_FAILURE = 0.1


class Message(enum.Enum):
    """For the thread. None, which a closed client sends, is STOP."""

    STOP = enum.auto()
    GRAPH_GONE = enum.auto()
    TENSOR_GONE = enum.auto()  # one of this process that was uploaded


# Finalizers may put messages at any moment: the queue's put() is reentrant, an Event's set() is not.
Messages = queue.SimpleQueue[Optional[Message]]


def start(residents: Residents, client: Client, messages: Messages, period: float) -> None:
    """Starts the thread, which ends with `residents` or when the client is closed.

    Args:
        period: between renewals, in seconds.
    """
    client._put_when_closed(messages)
    threading.Thread(
        target=_run,
        args=(weakref.ref(residents), messages, period),
        name="opserve-leases",
        daemon=True,
    ).start()


def renew(
    client: Client,
    tensors: Sequence[ResidentTensor],
    lease: float,
    lost: Optional[list[ResidentTensor]] = None,
) -> bool:
    """Renews the lease of each tensor that is there.

    Args:
        lost: takes those that are not there any more.

    Returns:
        False: a call failed for another reason than a tensor that is lost or released.

    Raises:
        ClosedError: the client is closed.
    """
    remaining = [tensors[start : start + BATCH] for start in range(0, len(tensors), BATCH)]
    is_complete = True
    while remaining:
        some = remaining.pop()
        try:
            client.renew(some, lease)
        except (errors.NotFoundError, errors.TensorLostError):
            # One is lost, or was released meanwhile, and the daemon has renewed none: the others
            # are asked for in halves. The next program that uses a lost one says so.
            middle = len(some) // 2
            if middle > 0:
                remaining += [some[:middle], some[middle:]]
            elif lost is not None:
                lost += some
        except errors.ClosedError:
            raise
        except errors.OpserveError:
            is_complete = False
    return is_complete


def _run(residents: weakref.ref[Residents], messages: Messages, period: float) -> None:
    renew_at = time.monotonic() + period
    release_at = math.inf
    has_lost_graph = False
    while True:
        seconds = min(renew_at, release_at) - time.monotonic()
        try:
            message = messages.get(timeout=max(seconds, 0))
        except queue.Empty:
            pass
        else:
            if message is None or message is Message.STOP:
                return
            has_lost_graph = has_lost_graph or message is Message.GRAPH_GONE
            release_at = min(release_at, time.monotonic() + _RELEASE_DELAY)
            continue
        owner = residents()
        if owner is None:
            return
        try:
            if time.monotonic() >= release_at:
                owner.release_unneeded(has_lost_graph)
                release_at, has_lost_graph = math.inf, False
            if time.monotonic() >= renew_at:
                # A failure that lasts must not outlast the leases.
                part = 1.0 if owner.renew() else _PART_AFTER_FAILURE
                renew_at = time.monotonic() + part * period
        except errors.ClosedError:
            return
        except errors.OpserveError:
            release_at = math.inf  # the leases of what was to be released end
        del owner
