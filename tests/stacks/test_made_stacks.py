"""Crashes of forty forms through what `triage ingest` does: the type and the function that the answer names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import triage
from tests.shared_catalog import OPTIONS, share_catalog
from tests.stacks.made_stacks import FORMS, MadeStack, made_stacks
from triage.clusters.fingerprint import fingerprint
from triage.model import Diagnosis, Evidence
from triage.stacks.parser import parse_stacks
from triage.stacks.signature import reduce_stacks

_LAST_NAME = re.compile(r"(\w+?)(?:::\{(?:\{closure\}|lambda)\}|_)?$")
# Codes that name a function, where no frame of a crash was read.
_FUNCTIONS = ("sanitizer", "undefined-in", "valgrind", "jvm", "goroutine", "asserted-in", "asserted-in-function")


def answer(text: str, diagnosis: Diagnosis) -> tuple[str, str]:
    """Return what root and stacks say of the type of a crash, in lower case, and the function that the failure is made
    equal by; where that is a sentence alone, the crash point of the stacks in the text (`triage stacks`).
    """
    crash = next((one for one in map(reduce_stacks, parse_stacks(text)) if one.frames), None)
    kind, point = (crash.kind, crash.frames[0]) if crash is not None else ("", "")
    if diagnosis.root_cause is None or not diagnosis.root_cause.evidence:
        return kind, _last_name(point)
    fact = diagnosis.root_cause.evidence[0]
    print_ = fingerprint(fact)
    answered = (fact.fields.get("crash_kind", ""), kind, print_.headline, fact.text.split("\n")[0])
    return " ".join(answered).lower(), _last_name(_function(fact, print_.guard) or point)


def _function(fact: Evidence, guard: str) -> str:
    codes = dict(part.split("=", 1) for part in guard.split("|") if "=" in part)
    named = next((codes[name] for name in _FUNCTIONS if name in codes), "")
    return named or fact.fields.get("frame", "") or fact.fields.get("function", "")


def _last_name(function: str) -> str:
    match = _LAST_NAME.search(function)
    return match[1] if match else ""


def judge(directory: Path) -> Iterator[tuple[MadeStack, bool, bool, tuple[str, str]]]:
    """Yield each text with whether type and function are right, and the answer."""
    with share_catalog():
        for one in made_stacks():
            path = directory / "job.log"
            path.write_text(one.text, encoding="utf-8")
            answered, function = answer(one.text, triage.ingest(path, options=OPTIONS))
            yield one, any(term in answered for term in one.types), function == one.point, (answered, function)


def test_there_are_enough_texts() -> None:
    """At least 300 texts in 40 forms, about half of them set aside."""
    texts = list(made_stacks())
    assert len(FORMS) == len({form for form, *_ in FORMS}) >= 40
    assert len({one.text for one in texts}) == len(texts) >= 300
    assert 0.4 < sum(one.is_set_aside for one in texts) / len(texts) < 0.6


@pytest.mark.slow
def test_type_and_function_are_right(tmp_path: Path) -> None:
    """Of each half, the type of at least 95 % and the function of at least 90 % is right."""
    right: Counter[tuple[bool, str]] = Counter()
    wrong = []
    for one, type_right, point_right, answered in judge(tmp_path):
        right.update({(one.is_set_aside, "texts"): 1, (one.is_set_aside, "type"): type_right})
        right[one.is_set_aside, "point"] += point_right
        if not one.is_set_aside and not (type_right and point_right):
            wrong.append((one.form, one.subject, one.types, one.point, *answered))
    for half in (False, True):
        assert right[half, "type"] >= 0.95 * right[half, "texts"], wrong
        assert right[half, "point"] >= 0.9 * right[half, "texts"], wrong
