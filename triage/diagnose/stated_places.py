"""Place facts by the ranks, local ranks and devices that their texts name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from triage.base.lazy_re import lazy_re
from triage.model import Evidence, RankBasis
from triage.ranks.identity import JobMap
from triage.ranks.stated_ranks import StatedRanks, read_stated_ranks

_LONGEST = 4000
# What may state a rank in its text. The others have their own fields for it.
_STATING = frozenset(("exception", "message", "ending", "terminate", "fatal-python", "crash"))
# Process groups number their own members, so what maps know of the writer is more direct than such a tag.
_GROUP_TAG = lazy_re(r"Watchdog|watchdog|ProcessGroup|WorkNCCL|WorkHCCL|\[PG |collective|NCCL|HCCL")
# A world of more ranks has several nodes, mostly.
_LARGEST_NODE = 8


def with_origin(fact: Evidence, **parts: str | float | None) -> Evidence:
    """Return the fact with these parts of its origin replaced."""
    return dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, **parts))  # type: ignore[arg-type]


def own_text(fact: Evidence) -> str:
    """Return what the fact itself says. Behind the line of an ending are lines around it, maybe of other writers."""
    return fact.text.partition("\n")[0] if fact.kind == "ending" else fact.text[:_LONGEST]


def by_stated_tag(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """A text that begins with its writer's own tag, such as `[Rank 7] loss is NaN`, is of that rank."""
    return [placed for fact in facts for placed in _of_tag(fact, job)]


def by_stated_rank(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """A text that names the ranks it is about, such as `failed on ranks dict_keys([9])`, is about each of them."""
    return [placed for fact in facts for placed in _of_stated_ranks(fact, job, _read(fact, job))]


def _read(fact: Evidence, job: JobMap) -> StatedRanks:
    """Return what a fact without a rank states, if these can be ranks of the job."""
    if fact.origin.rank is not None or fact.kind not in _STATING:
        return StatedRanks()
    stated = read_stated_ranks(own_text(fact))
    world = max(job.sizes, default=0)
    return StatedRanks() if world and stated.numbers and stated.numbers[-1] >= world else stated


def _of_tag(fact: Evidence, job: JobMap) -> Sequence[Evidence]:
    stated = _read(fact, job)
    if not stated.is_tag or _GROUP_TAG.search(own_text(fact)):
        return (fact,)
    mapped, basis = job.place(fact.source, fact.origin)
    if mapped.rank is not None and mapped.rank not in stated.numbers:
        job.contradictions.add((fact.source, stated.numbers[0], mapped.rank, basis))
    return _of_stated_ranks(fact, job, stated)


def _of_stated_ranks(fact: Evidence, job: JobMap, stated: StatedRanks) -> Sequence[Evidence]:
    """Return one fact for each rank that the text names."""
    if not stated.numbers:
        return (fact,)
    if stated.part == "rank":
        basis: RankBasis = "stated"
        return [
            dataclasses.replace(
                with_origin(fact, rank=rank, host=job.host_of(rank) or fact.origin.host), rank_basis=basis
            )
            for rank in stated.numbers
        ]
    if fact.origin.local_rank is not None or len(stated.numbers) > 1:
        return (fact,)
    if stated.part == "device":  # device 0 is that of every process that chose none
        return (_at_local_rank(fact, stated.numbers[0], job, is_device=True) if stated.numbers[0] else fact,)
    return (_at_local_rank(fact, stated.numbers[0], job, is_device=False),)


def _at_local_rank(fact: Evidence, local: int, job: JobMap, *, is_device: bool) -> Evidence:
    """Return the fact with this local rank, and its rank where the host, or a world of one node, gives it."""
    place, basis = job.place(fact.source, dataclasses.replace(fact.origin, local_rank=local))
    is_convention = basis == "local rank" and not job.knows_local_ranks()
    if place.rank is None or (is_convention and (job.world_size() or 1) > _LARGEST_NODE):
        return fact if is_device else with_origin(fact, local_rank=local)
    return dataclasses.replace(fact, origin=place, rank_basis="device" if is_device else basis)
