"""SFTP through fsspec and paramiko, with the host keys that ssh knows: fsspec alone trusts any server."""

from __future__ import annotations

from typing import Any

import paramiko
from fsspec.implementations.sftp import SFTPFileSystem

CONNECT_SECONDS = 30.0


class UnknownHostKeyError(paramiko.SSHException):  # type: ignore[misc]
    """The key of the server is not in `known_hosts`."""


class _RefuseUnknownKey(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:
        raise UnknownHostKeyError("the host key is not in ~/.ssh/known_hosts")


class KnownHostsSftp(SFTPFileSystem):  # type: ignore[misc]
    """Files of a server whose key is in `~/.ssh/known_hosts`. Connects when it is made; raises errors of paramiko."""

    def _connect(self) -> None:
        self.client = paramiko.SSHClient()
        self.client.set_missing_host_key_policy(_RefuseUnknownKey())
        self.client.load_system_host_keys()
        times = dict.fromkeys(("timeout", "banner_timeout", "auth_timeout", "channel_timeout"), CONNECT_SECONDS)
        self.client.connect(self.host, **times, **self.ssh_kwargs)
        self.ftp = self.client.open_sftp()
        self.ftp.get_channel().settimeout(CONNECT_SECONDS)  # else a server that went away is waited for without end

    @property
    def is_connected(self) -> bool:
        """Whether the connection still stands."""
        transport: Any = self.client.get_transport()
        return transport is not None and transport.is_active() and not self.ftp.get_channel().closed


def open_sftp(root: str) -> tuple[KnownHostsSftp, str]:
    """Return the file system of an ssh:// or sftp:// address, and the name in it."""
    options = SFTPFileSystem._get_kwargs_from_urls(root)
    options["skip_instance_cache"] = True
    return KnownHostsSftp(**options), SFTPFileSystem._strip_protocol(root)
