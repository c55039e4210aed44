"""The headline of an unknown failure: the most telling line of the rank that ended first.

A wrapper that quotes an inner error gives its place to that error, and a bare status to the last lines beside it. An
exception without a message, such as that of a bare `assert`, is shown with the line of code that raised it.
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.clusters.headline import extract_headline
from triage.clusters.rules import load_rules
from triage.diagnose.graph import is_status_ending
from triage.diagnose.phrases import capitalise
from triage.evidence.exception_chains import WRAPPER_TYPES
from triage.model import EndingDetail, Evidence, ExceptionDetail, ExitDetail

_LONGEST = 200
_BARE_TYPE = lazy_re(r"[\w.]{1,120}:?$")
_SILENT_KINDS = frozenset(("exit", "crash", "core", "fatal-python"))
_SHOWN = 60  # characters of an inner error that the first line must hold, to be the headline itself


def choose_headline(facts: Sequence[Evidence]) -> str:
    """Return one line for the facts of one unknown failure."""
    exits = [fact for fact in facts if fact.kind == "exit"]
    if exits and all(fact.kind in ("exit", "ending") for fact in facts):
        return describe_exits(exits)
    fact = min(facts, key=_telling_order)
    first = fact.text.strip().split("\n", 1)[0]
    if (code := fact.fields.get("code")) and isinstance(fact.detail, ExceptionDetail) and _BARE_TYPE.match(first):
        return f"{first.rstrip(':')} at: {code.strip()}"[:_LONGEST]
    inner = extract_headline(fact, load_rules())
    is_wrapped = bool(inner.trail) and bool(inner.text) and inner.text[:_SHOWN] not in first
    return (_line_with(fact.text, inner.text) if is_wrapped else first)[:_LONGEST]


def describe_exits(exits: Sequence[Evidence]) -> str:
    """Return how processes ended, as a sentence about their ranks: `Rank 3 ended with exit code 74`."""
    ranks = sorted({fact.origin.rank for fact in exits if fact.origin.rank is not None})
    details = [fact.detail for fact in exits if isinstance(fact.detail, ExitDetail)]
    signal = next((detail.signal for detail in details if detail.signal), "")
    code = next((detail.exit_code for detail in details if detail.exit_code is not None), None)
    how = f"was ended by {signal}" if signal else f"ended with exit code {code}" if code is not None else "ended"
    if len(ranks) > 1:
        how = how.replace("was ended", "were ended")
    return capitalise(f"{format_ranks(ranks) if ranks else 'a process'} {how}")


def has_no_message(fact: Evidence) -> bool:
    """Whether a fact says that a process ended, but not why."""
    return fact.kind in _SILENT_KINDS or is_status_ending(fact)


def _telling_order(fact: Evidence) -> tuple[object, ...]:
    """Order facts: those with a message first, then strong forms, then the earliest."""
    detail = fact.detail
    is_wrapper = isinstance(detail, ExceptionDetail) and detail.type in WRAPPER_TYPES
    is_weak = isinstance(detail, EndingDetail) and detail.strength != "strong"
    is_message = fact.kind != "exit" and not is_status_ending(fact)
    only_stack = fact.kind in _SILENT_KINDS
    return (not is_message, is_wrapper, only_stack, is_weak, fact.origin.time is None, fact.origin.time or 0.0)


def _line_with(text: str, inner: str) -> str:
    """Return the whole line of `text` that holds the inner error, with its type."""
    start = inner[:_SHOWN]
    return next((line.strip() for line in text.split("\n") if start in line), inner)
