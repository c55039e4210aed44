"""How sure: by the kind of evidence, by the independent voices that say the same, and less for rivals.

The score that these give together is set by hand. What it is worth was counted, on jobs with a known truth and on
damaged copies of them, and
the share that was right is what is told: see calibration.txt, and docs/reasoning.md, "Confidence".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.diagnose.calibration import calibrated
from triage.diagnose.candidates import Candidate
from triage.diagnose.graph import tier
from triage.diagnose.say import say_ranks
from triage.model.evidence import Evidence

LEAST, MOST = 0.1, 0.95
# High confidence, which begins at 0.8, is for what at least two of independent origin say: of a single voice all above
# the first is told as up
# to the second.
SINGLE, ALONE = 0.7, 0.79
# A line that states a cause; what may be one, or was measured; a conclusion from silence; a stop from outside.
_BASE = {1: 0.8, 2: 0.65, 3: 0.55, 4: 0.6}
_VOICE, _RIVAL, _UNPLACED, _UNKNOWN, _AGAINST = 0.05, 0.15, 0.05, 0.1, 0.1
_WORDS = frozenset(("exception", "message", "terminate", "fatal-python"))


def confidence(
    root: Candidate,
    others: Sequence[Candidate],
    candidates: Sequence[Candidate],
    asked: Iterable[tuple[str, Sequence[Evidence]]] = (),
) -> float:
    """Between 0.1 and 0.95; the reasons are added to the root's `why`."""
    level = tier(root) or 1
    value = _BASE[level] - (_UNKNOWN if root.signature is None else 0.0)
    if root.inferred:
        root.why.append("concluded from the ranks together, no line states it")
    voices = _voices(root, candidates)
    if len(voices) > 1:
        root.why.append(f"said independently by {', '.join(voices)}")
    value += _VOICE * min(3, len(voices) - 1) if voices else 0.0
    value -= _RIVAL * min(2, sum(tier(other) == level for other in others))
    value -= 0.0 if root.ranks else _UNPLACED
    for rule, inferences in asked:
        named = {fact.origin.rank for fact in inferences if fact.origin.rank is not None}
        if root.inferred and named and root.ranks and not named & set(root.ranks):
            value -= _AGAINST
            root.why.append(
                f"{rule} would name {say_ranks(named)} instead ({inferences[0].text}), which is weaker evidence"
            )
    share = calibrated(round(max(LEAST, min(MOST, value)), 2))
    if len(voices) < 2 and share > SINGLE:
        if share > ALONE:
            root.why.append("nothing of another origin confirms it, so the confidence is not high")
        share = min(ALONE, SINGLE + (share - SINGLE) * (ALONE - SINGLE) / (MOST - SINGLE))
    return round(max(LEAST, min(MOST, share)), 2)


def _voices(root: Candidate, candidates: Sequence[Candidate]) -> list[str]:
    """Who says it, each of another origin: the rank itself, its launcher, the kernel, the scheduler, a dump, the other
    ranks.
    """
    ranks, hosts = set(root.ranks), set(root.hosts)
    lines = {
        (fact.source, fact.offset) for fact in root.facts if fact.kind in _WORDS
    }  # what is concluded from one of them is no voice beside it
    told: set[str] = set()
    for candidate in candidates:
        near = candidate is root or root.id in candidate.explained_by or candidate.id in root.explained_by
        if not near or candidate.role == "noise":
            continue
        for fact in candidate.facts:
            if candidate is root and fact.kind == "inference" and (fact.source, fact.offset) in lines:
                continue
            mine = fact.origin.rank in ranks if fact.origin.rank is not None else candidate is root
            if fact.kind not in _WORDS:
                told.update(_voice(fact, mine, bool(hosts) and fact.origin.host in hosts))
            elif mine or fact.origin.rank is not None:
                told.add("the rank itself" if mine else "the other ranks")
    return sorted(told)


def _voice(fact: Evidence, mine: bool, here: bool) -> Iterable[str]:
    if fact.kind in ("kernel", "scheduler"):
        return (f"the {fact.kind}",) if mine or here else ()
    if fact.kind == "exit":
        return ("the launcher",) if mine and fact.fields.get("by") != "agent" else ()
    if fact.kind == "inference":
        return (
            ("a dump or numbers",)
            if mine and fact.fields.get("ground") == "measured"
            else ("the other ranks",)
            if mine
            else ()
        )
    return ()
