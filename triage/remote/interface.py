"""Common types: an object, what reading cost, what may be read, and the error for addresses."""

from __future__ import annotations

from dataclasses import dataclass

from triage.base.errors import InputError

CELL = 1 << 18
"""Bytes of the pieces in which objects are read and cached; that of the scan's saved cells."""
RUN = 1 << 23
"""Bytes of one request where an object is read from its beginning to its end."""


class AddressError(InputError):
    """An address cannot be read (exit status 2)."""


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """An object below the address `root`: its own address, its name in the file system, size in bytes, version.

    `version` differs when the content differs: the ETag, else the time of the last change. `mtime` is in seconds since
    1970. An object that is only served as a whole has `has_ranges` False.
    """

    address: str
    root: str
    place: str
    size: int
    version: str
    mtime: float | None = None
    has_ranges: bool = True


@dataclass(frozen=True, slots=True)
class RemoteRules:
    """How addresses are read in this process.

    `internal_hosts` None: http reaches any host and follows redirects, for a user who could do so without triage.
    Otherwise it follows no redirect, and only these hosts may have addresses that are not public. `cache_bytes` limits
    the temporary file.
    """

    internal_hosts: tuple[str, ...] | None = None
    cache_bytes: int = 4 << 30
