"""Sentences that say how a rank was found where no prefix of its lines names it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from triage.base.rank_ranges import format_ranks
from triage.diagnose.phrases import capitalise
from triage.model import Evidence, RankBasis

# In the order of the ladder: the first are the most direct.
REASONS: Mapping[RankBasis, str] = MappingProxyType(
    {
        "stated": "the text names it",
        "pid": "pid {pid} belongs to it",
        "device": "it uses this device",
        "file name": "the file is named after it",
        "same file": "other lines of the file name it",
        "local rank": "local rank {local_rank}{host} belongs to it",
        "exit status": "the line names no rank; only this rank ended in that way",
        "only rank on its host": "the line names no rank; only this rank ran on its host",
        "ranks of its pod": "the line names no rank; it ran in the pod whose status the line shows",
        "another pid": "the files know it by another pid, as in a container; only it was killed on that host",
        "every rank": "the same traceback stands there once for each rank, and each of them failed or was stopped",
    }
)
_FEW = 3


def describe_rank_bases(facts: Iterable[Evidence]) -> Iterator[str]:
    """Yield a sentence for each way in which ranks were found that no line of theirs names, the most direct first."""
    facts = [fact for fact in facts if fact.origin.rank is not None]
    own = {fact.origin.rank for fact in facts if not fact.rank_basis}
    ranks: dict[tuple[RankBasis, str], set[int]] = defaultdict(set)
    for fact in facts:
        if fact.origin.rank is not None and fact.rank_basis and fact.origin.rank not in own:
            ranks[(fact.rank_basis, _reason(fact))].add(fact.origin.rank)
    for basis in REASONS:
        placed = sorted((min(of), reason, of) for (one, reason), of in ranks.items() if one == basis)
        for _, reason, of in placed[:_FEW]:
            yield f"{capitalise(format_ranks(of))}: {reason}"


def _reason(fact: Evidence) -> str:
    origin = fact.origin
    reason = REASONS[fact.rank_basis]
    if fact.rank_basis == "pid" and origin.pid is None:
        return "a pid in the text belongs to it"
    if fact.rank_basis == "local rank" and origin.local_rank is None:
        return "its local rank belongs to it"
    return reason.format(pid=origin.pid, local_rank=origin.local_rank, host=f" on {origin.host}" if origin.host else "")
