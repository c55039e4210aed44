"""Tests that failed, as pytest's summary and sections tell them. Fields: those of an exception, and `test`."""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re
from triage.evidence.interface import evidence
from triage.model.evidence import Block, Evidence
from triage.ranks.pytests import FAILED, PLACE
from triage.ranks.tracebacks import is_exception

_TYPED = lazy_re(r"(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.DOTALL)


def read(block: Block) -> list[Evidence]:
    if block.form != "pytest":
        return []
    named = next((match for line in reversed(block.lines) if (match := FAILED.match(line))), None)
    if named is None:
        return []
    reason = "\n".join(
        line[1:].removeprefix("   ").removeprefix("    ").rstrip()
        for line in block.lines
        if re.match(r"E(?: |$)", line)
    ).strip()
    said = reason or (named["said"] or "").strip()
    place = next((match for line in block.lines if (match := PLACE.match(line))), None)
    where = {"file": place["file"], "line": place["line"]} if place else {"file": named["test"].partition("::")[0]}
    where |= {"code": block.lines[0][1:].strip()} if block.lines[0].startswith(">") else {}
    return [
        evidence(
            block, "exception", "Python", said or named[0], **_kind(said), chain="final", test=named["test"], **where
        )
    ]


def _kind(said: str) -> dict[str, str]:
    first = said.split("\n", 1)[0]
    typed = _TYPED.match(said)
    if typed is not None and (is_exception(first) or typed["type"] == "Failed"):
        return {"type": typed["type"].rpartition(".")[2], "message": (typed["message"] or "").strip()}
    if said.startswith("assert"):
        return {"type": "AssertionError", "message": said}
    return {"type": "Failed", "message": said}
