"""Names of what is lost with a device or daemon: parameters, optimizer state, saved activations."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Optional

import grpc

from opserve import _reachability, _wire, errors
from opserve.client import Client
from opserve.resident import ResidentTensor
from opserve.torch import _leases
from opserve.torch._entries import Entry

# States of a device that will be reset.
_RESET = [
    number
    for number, name in _wire.enum_names("DeviceStatus.State").items()
    if name in ("STATE_QUARANTINED", "STATE_FAILED")
]

# Names that an error has of parameters and buffers; it counts the others.
_MOST_NAMES = 5


class Naming:
    """A context that tells of an error before that leaves it."""

    __slots__ = ("_tell",)

    def __init__(self, tell: Callable[[errors.OpserveError], None]) -> None:
        self._tell = tell

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: Optional[BaseException], trace: object) -> None:
        if isinstance(error, errors.OpserveError):
            self._tell(error)


def lost_error(entries: Sequence[Entry]) -> errors.TensorLostError:
    """Of the next use of tensors that are known to be lost."""
    error = errors.TensorLostError(
        f"{_names(entries)} were made or changed on the pool and are lost with their device: "
        f"{_remedy(entries)}",
        code=grpc.StatusCode.FAILED_PRECONDITION,
    )
    error.reason = "tensor_lost"
    return error


def name_state(
    error: errors.OpserveError, client: Client, entries: Sequence[Entry], lease: float
) -> None:
    """Says in the first error of a lost device or daemon what is lost with it.

    Args:
        entries: of tensors that have their newest elements on the pool only.
    """
    if not entries:
        return
    is_away = _reachability.was_away_at_first(error)
    if is_away or isinstance(error, errors.UnavailableError):
        if not error.from_daemon:
            error.message += f"; {_names(entries)} have their newest values only there"
    elif error.acl_error != 0:
        lost = _lost(client, entries, lease)
        if lost:
            error.message += (
                f"; {_names(lost)} were made or changed on the pool and are lost with the device: "
                f"{_remedy(lost)}"
            )


def _lost(client: Client, entries: Sequence[Entry], lease: float) -> list[Entry]:
    """Those that the daemon has lost, or will lose when it resets their device."""
    lost: list[ResidentTensor] = []
    try:
        # Asked for first: a device that is reset meanwhile has lost its tensors afterwards.
        status = client.server_status()
        resets = {one.device for one in status.devices if one.state in _RESET}
        _leases.renew(client, [one.resident for one in entries], lease, lost)
    except errors.OpserveError:
        return []  # the error is not known well enough to say more
    handles = {one.handle for one in lost}
    return [
        one
        for one in entries
        if one.resident.handle in handles or one.resident.device in resets
    ]


def _remedy(entries: Sequence[Entry]) -> str:
    if all(one.forward for one in entries):
        return "run the forward pass again"
    return "load a checkpoint of the model and the optimizer"


def _names(entries: Sequence[Entry]) -> str:
    parts = []
    state = collections.Counter(one.state for one in entries if one.state)
    forwards = {one.forward for one in entries if one.forward}
    parameters = [one for one in entries if not one.state and not one.forward]
    if parameters:
        some = parameters[:_MOST_NAMES]
        named = ", ".join(f"{one.name} {list(one.resident.shape)}".lstrip() for one in some)
        more = ", ..." if len(parameters) > len(some) else ""
        parts.append(f"{len(parameters)} parameters and buffers ({named}{more})")
    if state:
        parts.append(f"optimizer state of {max(state.values())} parameters ({', '.join(state)})")
    if forwards:
        passes = "1 forward pass that has not had its backward pass"
        if len(forwards) > 1:
            passes = f"{len(forwards)} forward passes that have not had their backward passes"
        parts.append(f"saved activations of {passes}")
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]
