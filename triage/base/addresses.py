"""Addresses of object stores and servers beside paths: which text is one, how it is shown, what several share.

An address may hold a password or a signature (`user:password@`, a presigned query). `displayed_address` is what
reports, warnings and stores get; only what opens the object gets the address itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

SCHEMES = (
    "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "hdfs", "webhdfs", "ssh", "sftp", "https", "http",
)  # fmt: skip
"""The schemes of addresses that can be read."""
READERS = 12
"""Threads that read at a time where requests wait for a network."""
_USERS_SHOWN = ("ssh", "sftp", "hdfs", "webhdfs")
_CONTAINERS = ("abfs", "abfss", "az")  # `abfs://container@account/…`


def scheme_of(path: str) -> str:
    """Return the scheme of `scheme://…` in lower case; empty if the path has none."""
    scheme, separator, _ = path.partition("://")
    is_scheme = separator and scheme.isascii() and scheme.replace("+", "").isalnum()
    return scheme.lower() if is_scheme else ""


def is_address(path: str) -> bool:
    """Whether the path is an address that can be read."""
    return "://" in path and scheme_of(path) in SCHEMES


def displayed_address(path: str) -> str:
    """Return an address without password, signature and other secrets; a path stays as it is."""
    scheme = scheme_of(path)
    if not scheme:
        return path
    host, slash, rest = path.partition("://")[2].partition("/")
    user, at, host = host.rpartition("@")
    name, has_password, _ = user.partition(":")
    is_shown = at and (scheme in _USERS_SHOWN or (scheme in _CONTAINERS and not has_password))
    if scheme in ("http", "https"):
        host, rest = host.partition("?")[0], rest.partition("#")[0]
    return f"{scheme}://{f'{name}@' if is_shown else ''}{host}{slash}{rest.partition('?')[0] if '=' in rest else rest}"


def has_secret(path: str) -> bool:
    """Whether an address holds something that is not shown, such as a password or a presigned query."""
    return bool(scheme_of(path)) and displayed_address(path) != scheme_of(path) + path[path.index("://") :]


def common_path(paths: Sequence[str]) -> str:
    """Return the longest path above all of `paths`; empty if an address is among other paths."""
    roots = {path[: path.index("://") + 3] if is_address(path) else "" for path in paths}
    if len(roots) != 1:
        return ""
    root = roots.pop()
    return root + os.path.commonpath([path.removeprefix(root) for path in paths])
