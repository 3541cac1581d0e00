"""Names of the parameters and buffers that are lost with a device or daemon."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from opserve import _wire, errors
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

_REMEDY = "load a checkpoint of the model and the optimizer"


def lost_error(entries: Sequence[Entry]) -> errors.TensorLostError:
    """Of the next use of tensors that are known to be lost."""
    error = errors.TensorLostError(
        f"{_names(entries)} were changed on the pool and are lost with their device: {_REMEDY}",
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
    if isinstance(error, errors.UnavailableError):
        if not error.from_daemon:
            error.message += f"; {_names(entries)} have their newest values only there"
    elif error.acl_error != 0:
        lost = _lost(client, entries, lease)
        if lost:
            error.message += (
                f"; {_names(lost)} were changed on the pool and are lost with the device: {_REMEDY}"
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


def _names(entries: Sequence[Entry]) -> str:
    named = ", ".join(f"{one.name} {list(one.resident.shape)}".lstrip() for one in entries[:5])
    more = ", ..." if len(entries) > 5 else ""
    return f"{len(entries)} parameters and buffers ({named}{more})"
