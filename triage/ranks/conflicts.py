"""Warnings about identity: contradictions between the files of a job, missing ranks, and clocks that are apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from triage.base.rank_ranges import format_ranks
from triage.model.evidence import Warning
from triage.ranks.identity import UNKNOWN_HOST_OF, JobMap

_MOST = 5


def find_conflicts(job: JobMap) -> list[Warning]:
    """Return one warning for each kind of contradiction, missing ranks and differing clocks, in a fixed order."""
    kinds: tuple[tuple[str, str, Iterator[str]], ...] = (
        (
            "identity-conflict",
            "the files contradict each other, so these ranks are not used: ",
            itertools.chain(_ranks_of_pids(job), _ranks_of_local_ranks(job)),
        ),
        ("identity-conflict", "file name and lines name different ranks, and the lines decide: ", _ranks_of_files(job)),
        ("identity-conflict", "", _names_beyond_world(job)),
        ("identity-conflict", "", _contradicted_texts(job)),
        ("identity-conflict", "", _world_sizes(job)),
        ("identity-unknown", "", _hostless_files(job)),
        ("missing-ranks", "", _missing_ranks(job)),
        ("clock-skew", "", _clock_skews(job)),
    )
    return [
        Warning(code, None, introduction + _join(items))
        for code, introduction, messages in kinds
        if (items := list(messages))
    ]


def _ranks_of_pids(job: JobMap) -> Iterator[str]:
    """One process has one rank. The same pid on two hosts is two processes."""
    for pid, ranks in sorted(job.by_pid.items()):
        hosts = {rank: job.hosts.get(rank, set()) for rank in ranks}
        if any(
            not hosts[one] or not hosts[other] or hosts[one] & hosts[other]
            for one, other in itertools.combinations(ranks, 2)
        ):
            yield f"process {pid} is {format_ranks(ranks)}"


def _ranks_of_local_ranks(job: JobMap) -> Iterator[str]:
    for (place, local), ranks in sorted(job.by_local.items()):
        if len(ranks) > 1 and not place.startswith(UNKNOWN_HOST_OF):
            yield f"local rank {local} of {place.rstrip('/')} is {format_ranks(ranks)}"


def _ranks_of_files(job: JobMap) -> Iterator[str]:
    for source, ranks in sorted(job.by_source.items()):
        stated = job.sources[source].rank
        stated = job.names.doubtful.get(source, stated)
        if stated is not None and ranks and stated not in ranks:
            yield f"the lines of {source} are {format_ranks(ranks)}"


def _names_beyond_world(job: JobMap) -> Iterator[str]:
    for source, rank in sorted(job.names.doubtful.items()):
        if not job.by_source.get(source):
            yield f"{source} is named after rank {rank}, which no line knows, so its name is not used"


def _contradicted_texts(job: JobMap) -> Iterator[str]:
    for source, stated, mapped, basis in sorted(job.contradictions):
        yield f"a text in {source} names rank {stated}, but its {basis} says rank {mapped}; the text decides"


def _world_sizes(job: JobMap) -> Iterator[str]:
    if job.sizes and job.ranks and max(job.ranks) >= max(job.sizes):
        yield f"rank {max(job.ranks)} exists, but the largest stated world size is {max(job.sizes)}"


def _hostless_files(job: JobMap) -> Iterator[str]:
    if files := job.count_hostless_files():
        yield f"{files} files have the same local ranks and name no host, so these ranks are unknown"


def _missing_ranks(job: JobMap) -> Iterator[str]:
    """Missing ranks are reported only if more than one rank is known."""
    missing = job.missing_ranks()
    if missing and len(job.ranks) > 1:
        yield f"no line or file name mentions {format_ranks(missing)} of {job.world_size()} ranks: add the missing logs"


def _clock_skews(job: JobMap) -> Iterator[str]:
    reference = job.clocks.reference
    for host, clock in sorted(job.clocks.by_host.items()):
        if job.clocks.seconds_ahead(host):
            sense = "ahead of" if clock.ahead > 0 else "behind"
            half_hours = round(clock.ahead / 1800) * 1800
            is_zone = abs(clock.ahead) > 1700 and abs(clock.ahead - half_hours) <= clock.uncertainty
            yield (
                f"the clock of {host} is {abs(clock.ahead):.0f} s {sense} {reference}"
                + (" (another time zone)" if is_zone else "")
                + f" (± {clock.uncertainty:.0f} s, from {clock.events} common event{'s' * (clock.events != 1)});"
                + f" times are shown by the clock of {reference}"
            )


def _join(items: list[str]) -> str:
    more = len(items) - _MOST
    return "; ".join(items[:_MOST]) + (f"; and {more} more" if more > 0 else "")
