"""Facts of kind `stack` of one job → what follows from them together, once it is known who is which rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from triage.artifacts.interface import Facts
from triage.artifacts.stacks.board import Told, assemble
from triage.evidence.inference import inferred
from triage.model.evidence import Evidence, Origin, Warning
from triage.ranks.last import Word
from triage.stacks.live.model import PYTHON_TOOLS, Process, State
from triage.stacks.live.states import HELPERS

Complete = Callable[[str, Origin], Origin]
Words = Sequence[tuple[str, Word]]
"""The last words of each source."""


def conclude(read: Facts, others: Iterable[Evidence], complete: Complete, words: Words = ()) -> None:
    """Add to what artifacts say what follows from it and the other facts: each conclusion for every rank it names,
    standing in the dump of that
    rank, and what the board notes as a warning.
    """
    stacks = sorted(
        latest([*read.evidence, *others], complete, words),
        key=lambda fact: (fact.source, fact.offset, fact.fields.get("pid", "")),
    )
    told: list[Told] = []
    dumps: dict[int, Evidence] = {}
    for fact in stacks:
        told.append(told_of(fact, complete))
        rank = told[-1][0].rank
        if rank is not None and (
            rank not in dumps or (fact.component in PYTHON_TOOLS and dumps[rank].component not in PYTHON_TOOLS)
        ):
            dumps[rank] = fact
    board = assemble(told)
    for conclusion in board.conclusions:
        basis = [dumps[rank] for rank in conclusion.ranks if rank in dumps]
        for fact in inferred(conclusion.rule, conclusion.ranks, conclusion.text, basis[0], seen_in="stacks"):
            own = dumps.get(fact.origin.rank if fact.origin.rank is not None else -1, basis[0])
            read.evidence.append(replace(fact, source=own.source, offset=own.offset, end=own.end, excerpt=own.excerpt))
    read.warnings.extend(Warning("stacks", None, note) for note in board.notes)


def latest(facts: Iterable[Evidence], complete: Complete, words: Words) -> list[Evidence]:
    """The stacks of processes that stayed where they were: without those whose rank printed a step or its end behind
    its last dump.
    """
    told = [
        (fact, (fact.source, complete(fact.source, fact.origin).rank))
        for fact in facts
        if fact.kind == "stack" and "state" in fact.fields
    ]
    ends = {key: fact.end for fact, key in sorted(told, key=lambda each: each[0].end)}
    gone = {
        key
        for source, word in words
        if _moves(word) and word.offset >= ends.get(key := (source, complete(source, word.origin).rank), 1 << 62)
    }
    return [fact for fact, key in told if key not in gone]


def _moves(word: Word) -> bool:
    return word.finished or word.step is not None


def told_of(fact: Evidence, complete: Complete) -> Told:
    """What `board.assemble` wants to know of a fact. Helpers of a rank write into its log, and are no ranks."""
    fields = fact.fields
    origin = fact.origin
    pid = int(fields["pid"]) if fields.get("pid") else origin.pid
    if fields["state"] in HELPERS:
        origin = Origin(host=origin.host, pid=pid)
    else:
        origin = complete(fact.source, origin if origin.pid is not None or pid is None else replace(origin, pid=pid))
    age = int(fields["age"]) if fields.get("age") else None
    process = Process(fact.source, fact.component, origin.pid, (), rank=origin.rank, host=origin.host, age=age)
    state = State(*(fields.get(name, "") for name in ("state", "words", "op", "place", "detail")))
    return process, state, tuple(fields["stack"].split("\n")) if fields.get("stack") else ()
