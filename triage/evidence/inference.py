"""Facts that no line states: inferred from a dump, a stack, an environment, or from the ranks together.

Any module may add them to its other facts. Signatures match them by `fields: {rule: …}`, and the causal graph treats
them like any other fact, except that an inference from absence weighs less than a line that states a cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from triage.base.lazy_re import lazy_re
from triage.model import Basis, Evidence, InferenceDetail, Origin

# What signatures and docs/signatures.md call each basis in the field `ground`.
_GROUNDS: dict[Basis, str] = {"measured": "measured", "absence": "silence"}
BLOCKED = "blocked-in-collective"
"""Rule of an inference that names ranks which wait, not those for which they wait."""
HUNG = "hung"
"""Rule of an inference that says where each rank of a job that hangs stands, but not why it hangs."""
DIFFERS = "ranks-differ"
"""Rule of an inference that says in what ranks differ, and nothing shows which of them is at fault."""
_STALLED = frozenset(
    (
        BLOCKED,
        "blocked-in-dataloader",
        "compile-skew",
        "divergent-call",
        "extra-collective",
        "group-order",
        HUNG,
        "lagging-rank",
        "late-entry",
        "missed-barrier",
        "never-joined",
        "one-rank-diverged",
        "outside-collectives",
        "p2p-mismatch",
        "process-unreachable",
        "rank-absent",
        "rank-conditional",
        "stale-build-lock",
        "stuck-in-collective",
        "thread-deadlock",
        "uneven-steps",
        "watchdog-starved",
        "wrong-group",
    )
)
"""Rules that name ranks which wait, or for which others wait."""
_SILENT = frozenset(("log-stopped", "left-first"))
"""Rules that name ranks whose logs stop before those of the others."""

LASTING = "lasting"
"""Field of an inference that still holds when the job ends: a good end of the job does not make up for it."""

_ONE_SIDED = lazy_re(r"(?i)_?(?:broadcast|reduce$|gather|scatter)")
_SENTENCE_STARTS = ("rank ", "ranks ", "all ", "at ", "the ", "no ", "one ", "only ", "each ", "every ", "several ")


class Conclusion(NamedTuple):
    """A rule, the ranks that it names, the sentence, the line it rests on, and which other story the lines allow."""

    rule: str
    ranks: Iterable[int]
    text: str
    fact: Evidence
    uncertainty: str = ""


def make_inferences(
    rule: str,
    ranks: Iterable[int],
    text: str,
    evidence: Evidence,
    *,
    basis: Basis = "measured",
    component: str = "triage",
    waiting: Sequence[int] = (),
    uncertainty: str = "",
    **fields: str,
) -> list[Evidence]:
    """Return one inference for each rank it names (one without a rank if it names none).

    `rule` is the name that signatures match, `text` the sentence with which a reader can check it against the files.
    `evidence` is what it rests on: its place is shown, and its time and attempt are taken. `waiting` are ranks that
    waited for those it names. `uncertainty` says which other explanation is possible; empty: none.
    """
    named: list[int | None] = [*sorted(set(ranks))]
    parts = {"rule": rule, "ranks": ",".join(map(str, named)), "ground": _GROUNDS[basis], **fields}
    state: Literal["", "stalled", "silent"] = "stalled" if rule in _STALLED else "silent" if rule in _SILENT else ""
    if waiting:
        parts["waiting"] = ",".join(map(str, waiting))
    return [
        Evidence(
            kind="inference",
            component=component,
            text=_sentence(text),
            origin=Origin(rank=rank, time=evidence.origin.time, attempt=evidence.origin.attempt),
            source=evidence.source,
            offset=evidence.offset,
            end=evidence.end,
            fields=parts,
            excerpt=evidence.excerpt,
            detail=InferenceDetail(rule, basis, evidence.kind, tuple(waiting), state, uncertainty),
        )
        for rank in named or [None]
    ]


def may_end_early(op: str) -> bool:
    """Return whether an operation (`broadcast`, `BROADCAST`) may end on some ranks while others wait for one."""
    return _ONE_SIDED.match(op) is not None


def _sentence(text: str) -> str:
    """Return the text with a capital, unless it begins with a name such as `grad_norm`."""
    return text[0].upper() + text[1:] if text.startswith(_SENTENCE_STARTS) else text
