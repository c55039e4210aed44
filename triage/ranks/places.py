"""What stands for the host of a line: a name, a run directory of torchrun, or the source of the line.

And the places of many lines: what lines of one source state alike is looked up once, however many of them there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from triage.base.lazy_dataclass import replace
from triage.base.lazy_re import lazy_re
from triage.model.details import RankBasis
from triage.model.evidence import Origin

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


def place_each(
    place: Callable[[str, Origin], tuple[Origin, RankBasis]], stated: Iterable[tuple[str, Origin]]
) -> Iterator[tuple[Origin, RankBasis]]:
    """Yield what `place` (of a job map that does not change meanwhile) returns for each source and origin."""
    known: dict[tuple[object, ...], tuple[Origin, Origin, RankBasis]] = {}
    for source, origin in stated:
        # All but the time, which decides nothing.
        key = (source, origin.rank, origin.local_rank, origin.host, origin.pid, origin.stream, origin.attempt)
        if key not in known:
            known[key] = (origin, *place(source, origin))
        first, placed, basis = known[key]
        if placed is first:
            yield origin, basis
        else:
            yield (placed if origin.time == placed.time else replace(placed, time=origin.time)), basis
