"""Where the daemon is and how it is reached."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import pathlib
from typing import Any, Optional

import grpc

# Requests go in turn to the daemons that are connected and say that they serve.
_BALANCING = '{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":""}}'

_INT_MAX = 2**31 - 1  # as a time: never


@dataclasses.dataclass(frozen=True)
class Tls:
    """The authorities a connection trusts, and its own certificate; files in PEM form.

    They are read when the client is made: one for which certificates were renewed is to be
    made anew.

    Attributes:
        ca_file: authorities that may have signed the daemon's certificate; None: the system's.
        cert_file, key_file: the client's own, for daemons that ask for one; both or neither.
        server_name: the name in the daemon's certificate, if not the target's.
    """

    ca_file: Optional[str] = None
    cert_file: Optional[str] = None
    key_file: Optional[str] = None
    server_name: Optional[str] = None

    def credentials(self) -> Any:
        """As gRPC wants them. ValueError: one of certificate and key without the other."""
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("tls: cert_file and key_file go together; one is missing")
        return grpc.ssl_channel_credentials(
            *(
                pathlib.Path(path).read_bytes() if path is not None else None
                for path in (self.ca_file, self.key_file, self.cert_file)
            )
        )


@dataclasses.dataclass(frozen=True)
class Keepalive:
    """How a client notices that a daemon is gone without a word (lost power, a cut link).

    Then calls fail with UnavailableError, and calls that may be repeated go to another
    daemon. The defaults together are less than the default timeout of a call.

    Attributes:
        time: seconds for which nothing may come from a daemon that has calls of this client
            before it is asked whether it is there; math.inf: never asked.
        timeout: seconds it has to answer, and sent bytes to arrive; then the connection
            counts as broken.
    """

    time: float = 10.0
    timeout: float = 10.0

    def __post_init__(self) -> None:
        for name, value in (("time", self.time), ("timeout", self.timeout)):
            if not value >= 0.001:
                raise ValueError(
                    f"keepalive: {name} is {value}; expected at least 0.001 seconds"
                )

    def channel_arguments(self) -> list[tuple[str, Any]]:
        """As gRPC wants them."""
        return [
            ("grpc.keepalive_time_ms", _milliseconds(self.time)),
            ("grpc.keepalive_timeout_ms", _milliseconds(self.timeout)),
            # However long a call runs: gRPC would ask twice and then no more. (The daemon bears
            # any number.)
            ("grpc.http2.max_pings_without_data", 0),
        ]


@dataclasses.dataclass(frozen=True)
class Target:
    """A daemon, or several between which calls go round.

    Attributes:
        uri: as gRPC takes it.
        is_list: whether it has several addresses.
        is_balanced: whether calls go round the daemons.
        is_local: whether nothing of a connection leaves this machine.
        socket_path: of one daemon's Unix socket, or None.
        authority: the daemon's name if gRPC cannot tell it from the URI.
    """

    uri: str
    is_list: bool = False
    is_balanced: bool = False
    is_local: bool = False
    socket_path: Optional[str] = None
    authority: Optional[str] = None


def default_target() -> str:
    """OPSERVE_TARGET, or the Unix socket on which `opserved` serves this user."""
    target = os.environ.get("OPSERVE_TARGET")
    if target:
        return target
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    directory = f"{runtime}/opserve" if runtime else f"/tmp/opserve-{os.getuid()}"
    return f"unix:{directory}/opserve.sock"


def parse_target(text: str, balance: bool = True) -> Target:
    """`text` is unix:PATH, HOST:PORT, dns:///HOST:PORT or a list of addresses with commas.

    Without `balance`, calls go to the first address that can be reached, until it is lost.

    ValueError: it is none of these.
    """
    parts = text.split(",")
    for part in parts:
        scheme, separator, rest = part.partition("://")
        if separator and scheme not in ("unix", "dns"):
            raise ValueError(f'target "{text}": "{part}" is a URL; expected {rest}')
    if all(part.startswith("unix:") for part in parts):
        paths = [part[len("unix:") :] for part in parts]
        paths = [path[2:] if path.startswith("//") else path for path in paths]
        if not all(paths):
            raise ValueError(f'target "{text}": no socket path')
        if len(paths) == 1:
            return Target(text, is_local=True, socket_path=paths[0])
        uri = "unix:" + ",".join(paths)
        return Target(uri, is_list=True, is_balanced=balance, is_local=True)
    if len(parts) == 1:
        is_dns = text.startswith("dns:///")
        host = _host(text, text[len("dns:///") :] if is_dns else text)
        return Target(text, is_balanced=is_dns and balance, is_local=_is_loopback(host))
    hosts = [_host(text, part) for part in parts]
    versions = {_version(host) for host in hosts}
    if len(versions) != 1 or versions == {None}:
        raise ValueError(
            f'target "{text}": a list has addresses of one kind, each unix:PATH, IPV4:PORT or '
            "[IPV6]:PORT. For a name with several addresses: dns:///HOST:PORT"
        )
    return Target(
        f"ipv{versions.pop()}:{text}",
        is_list=True,
        is_balanced=balance,
        is_local=all(map(_is_loopback, hosts)),
        authority=parts[0],
    )


def channel_arguments(
    target: Target, tls: Optional[Tls], token: Optional[str], keepalive: Keepalive
) -> tuple[str, Any, list[tuple[str, Any]]]:
    """URI, credentials (None: plaintext) and options of a channel.

    ValueError: the options cannot be met; the token is in no message.
    """
    if token is not None:
        if not all("!" <= character <= "~" for character in token):
            raise ValueError("the token has a character that is not printable ASCII")
        if tls is None and not target.is_local:
            raise ValueError(
                "without TLS, a token is sent to Unix sockets and loopback addresses only, "
                f"since everyone on the way to {target.uri} could read it"
            )
    options: list[tuple[str, Any]] = [
        # gRPC's own retries keep a copy of each message and know nothing of budgets.
        ("grpc.enable_retries", 0),
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        # gRPC would wait a second, later two minutes, to try a restarted daemon again.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
        # A connection of its own for each client.
        ("grpc.use_local_subchannel_pool", 1),
        *keepalive.channel_arguments(),
    ]
    if target.is_local:
        options.append(("grpc.enable_http_proxy", 0))
    if target.is_balanced:
        options.append(("grpc.service_config", _BALANCING))
    if tls is not None and tls.server_name is not None:
        options.append(("grpc.ssl_target_name_override", tls.server_name))
    elif target.authority is not None:
        if tls is not None:
            raise ValueError(
                f"TLS to a list of addresses ({target.uri}) needs tls.server_name, the name "
                "that their certificates have"
            )
        options.append(("grpc.default_authority", target.authority))
    return target.uri, tls.credentials() if tls is not None else None, options


def _milliseconds(seconds: float) -> int:
    return int(min(seconds * 1000, _INT_MAX))


def _host(text: str, address: str) -> str:
    host, colon, port = address.rpartition(":")
    if not host or not colon or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise ValueError(
            f'target "{text}" is neither unix:PATH nor HOST:PORT nor dns:///HOST:PORT'
        )
    return host


def _address(host: str) -> Any:
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        return None


def _version(host: str) -> Optional[int]:
    address = _address(host)
    return address.version if address is not None else None


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and bool(address.is_loopback))
