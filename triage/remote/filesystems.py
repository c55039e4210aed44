"""Make the file systems of fsspec that read addresses, with credentials from the usual places of each service."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import weakref
from contextlib import suppress
from functools import partial
from types import MethodType
from typing import Any, NamedTuple

from triage.base.addresses import READERS, displayed_address, scheme_of
from triage.remote.interface import AddressError, RemoteRules
from triage.remote.transfer import explain_failure

_TIMEOUT = 30  # seconds without an answer until a request is repeated


class FileSystemPlace(NamedTuple):
    """A file system of fsspec and a name in it."""

    fs: Any
    name: str


PACKAGES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
    "hdfs": "pyarrow",
    "webhdfs": "requests",
    "ssh": "paramiko",
    "sftp": "paramiko",
    "https": "aiohttp",
    "http": "aiohttp",
}
"""The package that reads the addresses of each scheme, besides fsspec."""


class FileSystems:
    """One file system per host or bucket; those that cannot be shared by threads are made once for each."""

    def __init__(self, rules: RemoteRules) -> None:
        self._rules = rules
        self._lock = threading.Lock()
        self._shared: dict[tuple[int, str], FileSystemPlace] = {}
        self._own = threading.local()

    def open(self, root: str) -> FileSystemPlace:
        """Return the file system that reads `root`. Raises AddressError if a package is missing."""
        key = os.getpid(), root  # a forked process makes its own
        own = self._of_this_thread()
        place = self._shared.get(key) or own.get(key)
        if place is None or not getattr(place.fs, "is_connected", True):
            with self._lock:
                place = self._shared.get(key) or _make(root, self._rules)
                (self._shared if getattr(place.fs, "async_impl", False) else own)[key] = place
        return place

    def stop(self) -> None:
        """Close the connections and end the threads of fsspec, so that this process may fork; `open` begins anew."""
        with self._lock:
            places, self._shared, self._own = list(self._shared.values()), {}, threading.local()
        _stop_loop([place.fs for place in places])

    def _of_this_thread(self) -> dict[tuple[int, str], FileSystemPlace]:
        places: dict[tuple[int, str], FileSystemPlace] | None = getattr(self._own, "places", None)
        if places is None:
            places = self._own.places = {}
        return places


def _make(root: str, rules: RemoteRules) -> FileSystemPlace:
    scheme = scheme_of(root)
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        hint = f"pip install 'triage-kb[remote]'{_also(scheme)}"
        raise AddressError(f"{scheme}:// addresses need the package fsspec", hint=hint) from None
    try:
        if scheme in ("ssh", "sftp"):
            from triage.remote.ssh import open_sftp

            fs, name = open_sftp(root)
        else:
            fs, name = url_to_fs(root, **_options(root, rules))
    except ImportError as error:
        package = PACKAGES[scheme]
        missing = getattr(error, "name", None)
        shown = package if missing in (None, package) or scheme != "hdfs" else f"{package} ({missing})"
        raise AddressError(
            f"{scheme}:// addresses need the package {shown}",
            hint=f"pip install {package}",
            path=displayed_address(root),
        ) from None
    except Exception as error:  # a file system that connects at once, or looks for credentials, has its own errors
        number, reason, _ = explain_failure(error)
        raise _connect_error(root, number, reason) from error
    if scheme in ("s3", "s3a"):
        fs.retries = 1
    elif scheme in ("gs", "gcs"):
        request = getattr(type(fs)._request, "__wrapped__", None)
        if request is not None:
            fs._request = MethodType(request, fs)  # without gcsfs's own attempts, which take half a minute
    elif scheme == "webhdfs":
        fs.session.hooks["response"].append(partial(_check_data_node, fs.url))
    return FileSystemPlace(fs, name)


def _check_data_node(name_node: str, response: Any, **_: Any) -> None:
    """Raise the error that a data node answered: fsspec takes it for the content of the file."""
    if not response.url.startswith(name_node):
        response.raise_for_status()


def _connect_error(root: str, number: int, reason: str) -> AddressError:
    """Return the error for a service that refused, or for which there are no credentials."""
    hint = (
        "give triage credentials that may list and read there, and for ssh a known host key; docs/remote.md names both"
    )
    if number in (errno.ECONNREFUSED, errno.ETIMEDOUT, errno.EHOSTUNREACH):
        hint = "check the address, and that this machine reaches the service"
    return AddressError(f"the service cannot be used: {reason}", hint=hint, path=displayed_address(root))


def _stop_loop(systems: list[Any]) -> None:
    """Stop the event loop of fsspec and its thread. What cannot be stopped stays, and nothing forks beside it."""
    from fsspec import asyn

    loop, thread = asyn.loop[0], asyn.iothread[0]
    if loop is None or thread is None or not loop.is_running():
        return
    for fs in systems:
        opened = getattr(fs, "_s3", None) or getattr(fs, "_session", None)
        if opened is not None and hasattr(fs, "close_session"):
            with suppress(Exception):  # a connection that does not close ends with the process
                fs.close_session(loop, opened)
    _run_finalizers(systems)
    with suppress(Exception):
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result(_TIMEOUT)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(_TIMEOUT)
    if not thread.is_alive():
        loop.close()
    asyn.reset_lock()


def _run_finalizers(systems: list[Any]) -> None:
    """Run now what the file systems would do at the end of the process: without their loop that fails, with a trace."""
    for finalizer in list(getattr(weakref.finalize, "_registry", ())):
        alive = finalizer.peek()
        if alive is not None and any(alive[0] is fs for fs in systems):
            with suppress(Exception):  # a connection that does not close ends with the process
                finalizer()


def _also(scheme: str) -> str:
    return "" if PACKAGES[scheme] in ("s3fs", "aiohttp") else f" {PACKAGES[scheme]}"


def _options(root: str, rules: RemoteRules) -> dict[str, Any]:
    """Return options of the file system: no caches and no retries of its own, since `Transfer` counts and repeats."""
    scheme = scheme_of(root)
    options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
    if scheme in ("s3", "s3a"):
        options["config_kwargs"] = {
            "max_pool_connections": 2 * READERS,
            "connect_timeout": _TIMEOUT,
            "read_timeout": _TIMEOUT,
            "retries": {"total_max_attempts": 1},
        }
    elif scheme in ("http", "https"):
        from triage.remote.guarded_http import http_options

        options |= http_options(root, rules, _TIMEOUT)
    elif scheme in ("gs", "gcs"):
        # Else gcsfs asks another service what kind of bucket it is, before each request where it gets no answer.
        os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    elif scheme in ("abfs", "abfss", "az"):
        options["max_concurrency"] = 1
    return options
