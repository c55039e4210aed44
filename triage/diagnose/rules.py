"""Reasoning across ranks. RULES is the ordered list; each looks at all facts and findings and says what follows, as evidence of kind `inference`.

The rules only speak when the files hold no cause of their own: a rank that raised is better evidence than any silence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from triage.diagnose import sequences
from triage.evidence.inference import Ground, inferred
from triage.model import Evidence

_CLIENTS = re.compile(r"(\d+)/(\d+) clients joined")
_STORE_KEY = re.compile(r"keys: /\S*?/(\d+)//cpu//\d+/(\d+)\b")


@dataclass(frozen=True, slots=True)
class Scene:
    """What the rules look at: facts, by what they tell (`tells` of a signature) the indices of facts, the ranks known and the world size."""

    facts: Sequence[Evidence]
    matched: Mapping[str, Sequence[int]]
    ranks: frozenset[int]
    world_size: int | None
    failed: frozenset[int]
    finished: frozenset[int] = frozenset()
    one_host: bool = False

    def evidence_of(self, *tells: str) -> list[Evidence]:
        indices = sorted({index for told in tells for index in self.matched.get(told, ())})
        return [self.facts[index] for index in indices]


Rule = Callable[[Scene], list[Evidence]]


def never_joined(scene: Scene) -> list[Evidence]:
    """Some ranks timed out in a collective, the others show no error of their own: they are the ones waited for."""
    waiting = _ranks(scene.evidence_of("waiting"))
    absent = _everybody(scene) - waiting - _ranks(scene.evidence_of("peer-lost")) - scene.failed
    if not waiting or not absent or len(absent) > max(1, len(waiting)):
        return []
    text = f"{_say(waiting)} timed out waiting in a collective; {_say(absent)} printed no error and did not join it"
    return _infer("never-joined", absent, scene.evidence_of("waiting")[0], text)


def left_first(scene: Scene) -> list[Evidence]:
    """Everybody complains of a lost peer except a few: those are the peers that were lost."""
    lost = _ranks(scene.evidence_of("peer-lost"))
    absent = _everybody(scene) - lost - _ranks(scene.evidence_of("waiting")) - scene.failed
    if not lost or not absent or len(absent) > max(1, len(lost)) or scene.evidence_of("waiting"):
        return []
    text = f"{_say(lost)} lost the connection to a peer; {_say(absent)} reported no lost connection, so it went first"
    return _infer("left-first", absent, scene.evidence_of("peer-lost")[0], text)


def divergent_call(scene: Scene) -> list[Evidence]:
    """Every rank waits, but not in the same call: the few that wait elsewhere took another way through the program."""
    stuck = scene.evidence_of("waiting", "peer-lost") if scene.evidence_of("waiting") else []
    waiting = list(
        {fact.origin.rank: fact for fact in reversed(stuck) if fact.origin.rank is not None and fact.fields.get("line")}.values()
    )
    if len(waiting) < 3 or _ranks(waiting) != _everybody(scene):
        return []
    places = Counter((fact.fields.get("op", ""), fact.fields["file"], fact.fields["line"]) for fact in waiting)
    (usual, most), *others = places.most_common()
    if not others or most * 2 <= len(waiting):
        return []
    odd = [fact for fact in waiting if (fact.fields.get("op", ""), fact.fields["file"], fact.fields["line"]) != usual]
    here, there = _call(odd[0]), _call(next(fact for fact in waiting if fact not in odd))
    text = f"all ranks wait, but {_say(_ranks(odd))} in {here} while the others are in {there}"
    return _infer("divergent-call", _ranks(odd), odd[0], text)


def left_early(scene: Scene) -> list[Evidence]:
    """Some ranks were done while others still waited for them: they say so, or the launcher's table of failed processes leaves them out."""
    stuck = scene.evidence_of("waiting", "peer-lost")
    listed = {
        fact.origin.rank for fact in scene.facts if fact.kind == "exit" and fact.fields.get("exitcode") and fact.origin.rank is not None
    }
    unlisted = _everybody(scene) - listed if len(listed) > 1 and scene.one_host else set()
    left = (set(scene.finished) | unlisted) - _ranks(stuck) - scene.failed
    if not stuck or not left or not _ranks(stuck) - left - scene.finished:
        return []
    how = "said that they were done" if left <= scene.finished else "ended without an error, for the launcher lists no failure of theirs,"
    text = f"{_say(left)} {how} while {_say(_ranks(stuck))} still expected them in a collective"
    return _infer("left-early", left, stuck[0], text)


def rank_absent(scene: Scene) -> list[Evidence]:
    """The store counts fewer clients than the world has ranks, or is asked for the address of a rank that left no trace."""
    seen = _everybody(scene, known_only=True)
    for fact in scene.facts:
        clients = _CLIENTS.search(fact.text)
        if clients and int(clients[1]) < int(clients[2]):
            absent = set(range(int(clients[2]))) - seen if len(seen) == int(clients[1]) else set()
            text = f"{clients[1]} of {clients[2]} ranks reached the store" + (
                f"; no file of this job is by {_say(absent)}" if absent else ""
            )
            return _infer("rank-absent", absent, fact, text)
    asked = {int(match[2]): fact for fact in scene.facts if (match := _STORE_KEY.search(fact.text))}
    if len(asked) == 1:
        rank, fact = next(iter(asked.items()))
        if rank not in seen and rank not in scene.failed:
            return _infer(
                "rank-absent",
                {rank},
                fact,
                f"every process waits for the address of rank {rank}, and none that left a trace here is rank {rank}",
            )
    return []


def numbers(scene: Scene) -> list[Evidence]:
    """The watchdogs print how far each rank had come: somebody is ahead, behind, or all are at the same place."""
    found = sequences.conclude(scene.facts, frozenset(_everybody(scene)))
    return _infer(found.rule, set(found.ranks), found.basis, f"{_say(set(found.ranks))} {found.text}", "measured") if found else []


# In this order; the first that speaks is heard. An absent rank explains more than a divergent call, and a wait more than a lost connection.
RULES: tuple[Rule, ...] = (rank_absent, left_early, never_joined, numbers, divergent_call, left_first)


def infer(scene: Scene) -> list[Evidence]:
    """What the first applicable rule says."""
    for rule in RULES:
        found = rule(scene)
        if found:
            return found
    return []


def _everybody(scene: Scene, *, known_only: bool = False) -> set[int]:
    if known_only or scene.world_size is None or scene.world_size > 1 << 20:
        return set(scene.ranks)
    return set(scene.ranks) | set(range(scene.world_size))


def _ranks(facts: Sequence[Evidence]) -> set[int]:
    return {fact.origin.rank for fact in facts if fact.origin.rank is not None}


def _call(fact: Evidence) -> str:
    return f"{fact.fields.get('op') or 'a call'} at {fact.fields['file'].rsplit('/', 1)[-1]}:{fact.fields['line']}"


def _say(ranks: set[int]) -> str:
    return say_ranks(sorted(ranks))


def say_ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0-2, 5`."""
    if not ranks:
        return "no known rank"
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and rank == parts[-1][-1] + 1:
            parts[-1][1:] = [rank]
        else:
            parts.append([rank])
    text = ", ".join("-".join(map(str, part)) if len(part) > 1 and part[1] > part[0] + 1 else ", ".join(map(str, part)) for part in parts)
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"


def _infer(rule: str, ranks: set[int], basis: Evidence, text: str, ground: Ground = "silence") -> list[Evidence]:
    return inferred(rule, ranks, text, basis, ground=ground)
