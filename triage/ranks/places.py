"""What stands for the host of a line: a name, a run directory of torchrun, or the source of the line."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re

# Before the name of a source, in place of a host: the unknown host of its lines.
UNKNOWN_HOST_OF = "\0"
RUN_DIRECTORY = lazy_re(r"(?P<run>.*?)/?attempt_\d+/\d+/")


def short_host(host: str) -> str:
    """Return the host without its domain, as NCCL writes it; an IP address unchanged."""
    return host if is_address(host) else host.split(".", 1)[0]


def is_address(host: str) -> bool:
    """Whether it is an IP address, not a name."""
    return (host[:1].isdigit() and "." in host) or ":" in host


def host_keys(source: str, host: str | None) -> tuple[str, ...]:
    """Return what stands for the host of a line: its name, its run directory, or its source if neither is known."""
    run = RUN_DIRECTORY.match(source)
    names = (*((short_host(host),) if host is not None else ()), *((f"{run['run']}/",) if run else ()))
    return names or (UNKNOWN_HOST_OF + source,)
