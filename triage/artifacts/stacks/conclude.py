"""Facts of kind `stack` of one job → what follows from them together, once it is known who is which rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from triage.artifacts.stacks.board import assemble
from triage.artifacts.stacks.model import Process, State
from triage.artifacts.stacks.states import HELPERS
from triage.evidence.inference import inferred
from triage.model import Evidence, Origin

Complete = Callable[[str, Origin], Origin]


def conclude(facts: Iterable[Evidence], complete: Complete) -> list[Evidence]:
    """The conclusions, each for every rank it names, standing in the dump of that rank."""
    stacks = sorted((fact for fact in facts if fact.kind == "stack"), key=lambda fact: (fact.source, fact.fields.get("pid", "")))
    told = []
    dumps: dict[int, Evidence] = {}
    for fact in stacks:
        origin = fact.origin if fact.fields["state"] in HELPERS else complete(fact.source, fact.origin)
        process = Process(fact.source, fact.component, origin.pid, (), rank=origin.rank, host=origin.host)
        state = State(*(fact.fields[name] for name in ("state", "words", "op", "place", "detail")))
        told.append((process, state, tuple(fact.fields["stack"].split("\n")) if fact.fields["stack"] else ()))
        if origin.rank is not None:
            dumps.setdefault(origin.rank, fact)
    found: list[Evidence] = []
    for conclusion in assemble(told).conclusions:
        basis = [dumps[rank] for rank in conclusion.ranks if rank in dumps]
        for fact in inferred(conclusion.rule, conclusion.ranks, conclusion.text, basis[0], seen_in="stacks"):
            own = dumps.get(fact.origin.rank if fact.origin.rank is not None else -1, basis[0])
            found.append(replace(fact, source=own.source, offset=own.offset, end=own.end, excerpt=own.excerpt))
    return found
