"""Errors of connections: whether the call may have run, and the caller's remedies."""

from __future__ import annotations

from typing import Optional, Union

import grpc

from opserve._target import Target
from opserve.errors import OpserveError

# How gRPC's texts begin where a call found no connection on which to leave this process. All other
# texts mean that it may have arrived.
_NO_CONNECTION = (
    "failed to connect to all addresses",
    "connections to all backends failing",
    "empty address list",
    "DNS resolution failed",
    "errors resolving",
    "Name resolution failure",
)
# Reasons of a daemon that is leaving, or to which the call's tensors are coming.
_AWAY = ("draining", "tensor_moved", "tensor_arriving")
# Causes that no restart of a daemon has: TLS against plaintext, certificates, other servers.
_MISTAKES = (
    "handshake failed",
    "Verification Check failed",
    "http1.x",
    "Expected SETTINGS frame",
)
# Causes that a restart or a flood of connections has for a moment; of an address that never answered,
# they are likely to be mistakes: a server of another kind ends connections, a name or a permission is
# wrong.
_MISTAKES_AT_FIRST = (
    "Socket closed",
    "reset by peer",
    "Domain name not found",
    "Permission denied",
)

# In the outcome of a call that waited for the daemon before its last attempt.
AWAY_AT_FIRST = "at first it was away"

# How `explain` begins where the call may have run, and where it found no connection.
_LOST = "lost the connection to the daemon"
_UNREACHABLE = "cannot reach the daemon"

_START = (
    "start opserved there, or name another daemon: Client(target) or OPSERVE_TARGET"
)
# By a part of gRPC's text, in this order.
_REMEDIES = (
    (
        "WRONG_VERSION_NUMBER",
        "it does not speak TLS: leave tls= out, or name its TLS port",
    ),
    (
        "handshake failed",
        "check tls=: ca_file must have the authority that signed the daemon's certificate, and "
        "server_name the name in it",
    ),
    ("http1.x", "a server of another kind listens there: check the target"),
    (
        "Expected SETTINGS frame",
        "a server of another kind listens there: check the target",
    ),
    ("Permission denied", "this user may not use the socket: check its owner and mode"),
    ("resol", "check the name of the host"),
)


def has_not_run(error: OpserveError) -> bool:
    """Whether the daemon was away, so that the call has run nowhere and can wait for it.

    A daemon that drains refuses calls before it runs them, and so do those between which tensors
    are on their way.
    """
    if error.code is not grpc.StatusCode.UNAVAILABLE:
        return False
    return error.reason in _AWAY or (
        error.message.startswith(_NO_CONNECTION)
        and not any(mistake in error.message for mistake in _MISTAKES)
    )


def was_cut(error: OpserveError) -> bool:
    """Whether the connection broke under the call, which may have run; of an explained error."""
    return _is_of_connection(error, _LOST)


def was_unreachable(error: OpserveError) -> bool:
    """Whether the call found no connection; of an explained error."""
    return _is_of_connection(error, _UNREACHABLE)


def was_away_at_first(error: OpserveError) -> bool:
    """Whether the call's deadline passed after it had waited for the daemon; of its outcome.

    Its last attempt may have found a connection, or waited for one.
    """
    is_late = error.code is grpc.StatusCode.DEADLINE_EXCEEDED and not error.from_daemon
    return is_late and AWAY_AT_FIRST in error.message


def is_mistake(error: OpserveError) -> bool:
    """Whether it is of no use to try again: the target or the protocol is wrong."""
    return _is_of_connection(error, _NO_CONNECTION) and any(
        cause in error.message for cause in _MISTAKES
    )


def may_be_mistake(error: OpserveError) -> bool:
    """Whether an address that never answered is likely to be wrong, so that waiting is of no use.

    A daemon that makes room for other connections closes new ones, too, so a few attempts are of use.
    """
    return _is_of_connection(error, _NO_CONNECTION) and any(
        cause in error.message for cause in _MISTAKES_AT_FIRST
    )


def _is_of_connection(
    error: OpserveError, beginning: Union[str, tuple[str, ...]]
) -> bool:
    """Whether no daemon says so, but gRPC or this module, in a text that begins so."""
    return (
        error.code is grpc.StatusCode.UNAVAILABLE
        and not error.from_daemon
        and error.message.startswith(beginning)
    )


def explain(
    error: OpserveError, target: Target, uses_tls: bool, timeout: Optional[float]
) -> None:
    """Names the target in an error, and in its message where the daemon said nothing.

    `timeout` is that of the call, in seconds; None: it has none.
    """
    error.target = target.uri
    if error.from_daemon:
        return
    if error.code is grpc.StatusCode.DEADLINE_EXCEEDED:
        within = f" within the timeout of {timeout:g} s" if timeout is not None else ""
        error.message = f"no answer from the daemon at {target.uri}{within}"
    elif error.code is grpc.StatusCode.UNAVAILABLE:
        cause = error.message
        if not cause.startswith(_NO_CONNECTION):
            error.message = (
                f"{_LOST} at {target.uri} ({cause}); the call may have "
                "run: look whether the daemon was stopped"
            )
            return
        remedy = next((text for part, text in _REMEDIES if part in cause), _START)
        # A TLS port ends a connection that begins with anything else.
        is_ended = "Socket closed" in cause or "reset by peer" in cause
        if is_ended and uses_tls:
            remedy = "it may not speak TLS: leave tls= out, or name its TLS port"
        elif is_ended and not target.uri.startswith("unix:"):
            remedy = "it may expect TLS: Client(target, tls=opserve.Tls(...))"
        error.message = f"{_UNREACHABLE} at {target.uri} ({cause}); {remedy}"
