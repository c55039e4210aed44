"""What the files of a job say against each other of who is who, and which ranks nobody names: warnings for the report."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from triage.model.evidence import Warning
from triage.ranks.identity import FILE, JobMap

_MOST = 5


def remarks(job: JobMap) -> list[Warning]:
    """One warning a kind of contradiction, the ranks that are missing, and the clocks that are apart. In a fixed order."""
    told: tuple[tuple[str, str, Iterator[str]], ...] = (
        (
            "identity-conflict",
            "taken for no rank, because the files contradict each other: ",
            itertools.chain(_pids(job), _locals(job)),
        ),
        ("identity-conflict", "the lines are believed, not the name of their file: ", _files(job)),
        ("identity-conflict", "", _sizes(job)),
        ("identity-unknown", "", _scattered(job)),
        ("missing-ranks", "", _missing(job)),
        ("clock-skew", "", _clocks(job)),
    )
    return [Warning(code, None, before + _some(found)) for code, before, what in told if (found := list(what))]


def _pids(job: JobMap) -> Iterator[str]:
    """One process has one rank. The same pid on two hosts is two processes."""
    for pid, ranks in sorted(job.by_pid.items()):
        places = {rank: job.hosts.get(rank, set()) for rank in ranks}
        if any(
            not places[one] or not places[other] or places[one] & places[other]
            for one, other in itertools.combinations(ranks, 2)
        ):
            yield f"process {pid} is called {_ranks(ranks)}"


def _locals(job: JobMap) -> Iterator[str]:
    for (place, local), ranks in sorted(job.by_local.items()):
        if len(ranks) > 1 and not place.startswith(FILE):
            yield f"local rank {local} of {place.rstrip('/')} is called {_ranks(ranks)}"


def _files(job: JobMap) -> Iterator[str]:
    for source, ranks in sorted(job.by_source.items()):
        named = job.sources[source].rank if source in job.sources else None
        if named is not None and ranks and named not in ranks:
            yield f"{source} calls itself {_ranks(ranks)}"


def _sizes(job: JobMap) -> Iterator[str]:
    if job.sizes and job.ranks and max(job.ranks) >= max(job.sizes):
        yield f"rank {max(job.ranks)} is named, though the largest size of the world that is stated is {max(job.sizes)}"


def _scattered(job: JobMap) -> Iterator[str]:
    if files := job.scattered():
        yield f"{files} files have lines of the same local ranks and do not say of which host, so that these are taken for no ranks"


def _missing(job: JobMap) -> Iterator[str]:
    """Where more than one rank is told apart, the ranks that nothing tells of are worth a word."""
    missing = job.missing()
    if missing and len(job.ranks) > 1:
        yield f"of {job.world_size()} ranks nothing here names {_ranks(missing)}: if they have logs, give them too"


def _clocks(job: JobMap) -> Iterator[str]:
    for host, clock in sorted(job.clocks.by_host.items()):
        if job.clocks.ahead(host):
            sense = "ahead of" if clock.ahead > 0 else "behind"
            zone = abs(clock.ahead) > 1700 and abs(clock.ahead - round(clock.ahead / 1800) * 1800) <= clock.doubt
            yield (
                f"the stamps of {host} are {abs(clock.ahead):.0f} s {sense} those of {job.clocks.reference}"
                + (" (another time zone)" if zone else "")
                + f", give or take {clock.doubt:.0f} s, by {clock.events} events that both saw; times are told by {job.clocks.reference}"
            )


def _some(what: list[str]) -> str:
    more = len(what) - _MOST
    return "; ".join(what[:_MOST]) + (f"; and {more} more" if more > 0 else "")


def _ranks(ranks: Iterable[int]) -> str:
    """`rank 3`, `ranks 0-3, 7`."""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    text = ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 2 else ", ".join(map(str, part)) for part in parts)
    return ("rank " if len(parts) == 1 and len(parts[0]) == 1 else "ranks ") + text
