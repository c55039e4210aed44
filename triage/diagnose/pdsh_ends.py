"""What pdsh's lines of an end with 255 mean: ssh ends so when it cannot log in, and when the program itself did."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.model import Evidence
from triage.ranks.identity import short_host

_SSH_END = lazy_re(r"\bpdsh@[\w.-]+: (?P<node>[\w.-]+): ssh exited with exit code 255\b")
_PROGRAM_END = lazy_re(r"\bexits with return code = 255\b")
_LONGEST_LINE = 4000


def without_program_ends(facts: list[Evidence]) -> list[Evidence]:
    """Return the facts without pdsh's lines of nodes whose launcher says that a program ended with 255: ssh worked."""
    ended = {
        short_host(fact.origin.host) if fact.origin.host else None
        for fact in facts
        if fact.kind == "exit" and _PROGRAM_END.search(fact.text[:_LONGEST_LINE])
    }
    return [fact for fact in facts if not _is_of_program(fact, ended)] if ended else facts


def _is_of_program(fact: Evidence, ended: set[str | None]) -> bool:
    match = _SSH_END.search(fact.text[:_LONGEST_LINE]) if fact.kind == "message" else None
    return match is not None and (None in ended or short_host(match["node"]) in ended)
