"""Options of the file system for http: in a service it must not become a way into the operator's network."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from triage.base.addresses import READERS
from triage.remote.interface import RemoteRules


class RefusedHostError(OSError):
    """A host has an address that is not public."""


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet: not loopback, private, link-local or metadata."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(ip, "ipv4_mapped", None) or getattr(ip, "sixtofour", None)
    return ip.is_global and not ip.is_multicast and (mapped is None or is_public(str(mapped)))


def http_options(root: str, rules: RemoteRules, timeout: float) -> dict[str, Any]:
    """Return options for the file system of fsspec that reads `root`."""
    options: dict[str, Any] = {
        "encoded": True,  # the signature of a presigned address counts each character
        "get_client": _open_client,
        "client_kwargs": {"timeout_seconds": timeout, "guarded": False},
    }
    if rules.internal_hosts is not None:
        options["allow_redirects"] = False  # what an address leads to was not allowed
        host = (urlsplit(root).hostname or "").lower()
        options["client_kwargs"]["guarded"] = host not in {name.lower() for name in rules.internal_hosts}
    return options


async def _open_client(*, timeout_seconds: float, guarded: bool, **options: Any) -> Any:
    """Return a session of aiohttp; the address is checked where the connection is made, after the name is resolved."""
    import aiohttp

    options.pop("loop", None)
    factory: Mapping[str, Any] = {"socket_factory": _public_socket} if guarded else {}
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=2 * READERS, **factory),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=timeout_seconds, sock_read=timeout_seconds),
        headers={"Accept-Encoding": "identity"},  # ranges count the bytes of the object
        **options,
    )


def _public_socket(address: Any) -> socket.socket:
    """Return a socket for an address (family, type, protocol, name, (IP address, port, …)) if it is public."""
    family, kind, protocol, _, place = address
    if not is_public(str(place[0])):
        raise RefusedHostError(errno.EACCES, "the host has an address that is not public")
    opened = socket.socket(family, kind, protocol)
    opened.setblocking(False)
    return opened
