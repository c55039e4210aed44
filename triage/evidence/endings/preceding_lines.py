"""What a program wrote before a line that says only that it ends.

`[agent] budget is spent`, `[agent] stopping`; or a message, and then MPI's notice that the program called MPI_Abort.
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.base.lazy_re import lazy_re
from triage.evidence.endings.classification import UNLIKE, LineForm
from triage.evidence.endings.failure_terms import only_closes, warns
from triage.evidence.endings.interface import HINT, LEVEL_ERROR, LEVEL_FATAL, LONGEST_LINE, STATEMENT
from triage.records.activity import PROGRESS

# `[agent] …`, `[RT][ERROR] …`, `agentd[82]: …`, `agent: …`.
_WRITER = lazy_re(r"\[[A-Za-z][\w./-]{1,60}\]|(?!\w*(?:Error|Exception|Warning):)[\w./-]{2,200}(?=\[\d{1,8}\]:|: )")
# MPICH and Intel MPI. Open MPI writes its notice in a box, without the prefix of the rank.
_ABORTS = lazy_re(r"^(?:Abort\(\d+\) on node \d+ \(rank \d+ in comm \w+\): )?application called MPI_Abort\(")
_TERM = lazy_re(r"[^\W\d_]{2,}")
_LEAST_TERMS = 3
_BEFORE_END = LineForm("line before the end", "any", "weak", STATEMENT)


def find_reason(
    texts: Sequence[str], forms: Sequence[LineForm], levels: Sequence[str], chosen: int
) -> tuple[int, LineForm]:
    """Return the line that says why, of the same program right before a chosen line that does not; else that one."""
    form, writer, before = forms[chosen], _writer(texts[chosen]), chosen - 1
    if writer and form.weight == LEVEL_FATAL:
        return _first_error(texts, forms, chosen)
    closes = bool(writer) and form.weight == HINT and only_closes(texts[chosen])
    if before < 0 or not (closes or _ABORTS.search(texts[chosen][:LONGEST_LINE])):
        return chosen, form
    if (closes and _writer(texts[before]) != writer) or not _is_statement(texts[before], levels[before]):
        return chosen, form
    return before, forms[before] if forms[before] is not UNLIKE else _BEFORE_END


def _first_error(texts: Sequence[str], forms: Sequence[LineForm], chosen: int) -> tuple[int, LineForm]:
    """Return the first of the errors that a program logged right before a fatal line."""
    writer, first = _writer(texts[chosen]), chosen
    while first and forms[first - 1].weight == LEVEL_ERROR and _writer(texts[first - 1]) == writer:
        first -= 1
    return first, forms[chosen]


def _is_statement(text: str, level: str) -> bool:
    is_usual = level == "low" or warns(text) or PROGRESS.search(text[:LONGEST_LINE]) is not None
    return not is_usual and len(_TERM.findall(text[:LONGEST_LINE])) >= _LEAST_TERMS


def _writer(text: str) -> str:
    match = _WRITER.match(text)
    return match[0] if match else ""
