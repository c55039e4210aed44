"""Failed tests, from the summary and the sections of pytest. Fields: those of an exception, and `test`."""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re
from triage.evidence.python import make_exception
from triage.model.evidence import Block, Evidence
from triage.records.pytests import FAILED, PLACE
from triage.records.tracebacks import is_exception

_TYPED = lazy_re(r"(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.DOTALL)


def extract(block: Block) -> list[Evidence]:
    """Return the failure of the test that the block is about."""
    if block.form != "pytest":
        return []
    named = next((match for line in reversed(block.lines) if (match := FAILED.match(line))), None)
    if named is None:
        return []
    lines = (line[1:].removeprefix("   ").removeprefix("    ") for line in block.lines if re.match(r"E(?: |$)", line))
    reason = "\n".join(map(str.rstrip, lines)).strip() or (named["message"] or "").strip()
    place = next((match for line in block.lines if (match := PLACE.match(line))), None)
    where = {"file": place["file"], "line": place["line"]} if place else {"file": named["test"].partition("::")[0]}
    where |= {"code": block.lines[0][1:].strip()} if block.lines[0].startswith(">") else {}
    kind, message = _type_and_message(reason)
    return [make_exception(block, reason or named[0], kind, {"message": message, "test": named["test"], **where})]


def _type_and_message(reason: str) -> tuple[str, str]:
    typed = _TYPED.match(reason)
    if typed is not None and (is_exception(reason.split("\n", 1)[0]) or typed["type"] == "Failed"):
        return typed["type"].rpartition(".")[2], (typed["message"] or "").strip()
    return ("AssertionError" if reason.startswith("assert") else "Failed"), reason
