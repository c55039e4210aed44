"""A job that died is never called clean, whatever printed its last lines, and the telling line is quoted."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.effort import choose_some
from tests.endings.conftest import Diagnose
from tests.endings.corpus import Ending, load_endings
from tests.endings.json_forms import JSON_FORMS
from tests.endings.variants import PREFIXES, choose_json_forms, make_variants
from triage.model.diagnosis import Diagnosis

ENDINGS = load_endings()
FEWEST_ENDINGS, FEWEST_RUNTIMES = 150, 25
OTHER_VARIANTS = 2  # of eight, for each ending; thorough tests try all
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def find_fault(ending: Ending, diagnosis: Diagnosis, variant: str) -> str:
    """Return what is wrong with the diagnosis of a job with this ending; empty if nothing is.

    In a record of level error every ending is a failure. Elsewhere one without any sign of failing is shown among the
    unusual last lines.
    """
    verdict = diagnosis.verdict
    if ending.inconclusive and not variant.startswith("JSON"):
        if verdict != "inconclusive" or diagnosis.inconclusive is None:
            return f"{verdict}, not inconclusive"
        shown = [*diagnosis.inconclusive.unusual_lines, *diagnosis.inconclusive.last_lines]
        return "" if _is_quoted(ending, [line.text for line in shown]) else "not among the last lines"
    if verdict not in ("known", "unknown") or diagnosis.root_cause is None:
        return verdict
    root = diagnosis.root_cause
    return "" if _is_quoted(ending, [root.title, *(fact.text for fact in root.evidence)]) else f"quoted: {root.title}"


def _is_quoted(ending: Ending, texts: list[str]) -> bool:
    return _plain(ending.telling) in _plain(" ".join(texts))


def _plain(text: str) -> str:
    """Return a text without colours, each run of white space as one blank."""
    return " ".join(_COLOUR.sub("", text).split())


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
def test_an_ending_is_a_failure(ending: Ending, diagnose: Diagnose) -> None:
    """Alone, behind steps, behind five prefixes and in JSON, the telling words are quoted in the root cause."""
    alone, *others = make_variants(ending)
    faults = {
        variant: fault
        for variant, text in [alone, *choose_some(others, OTHER_VARIANTS, ending.name)]
        if (fault := find_fault(ending, diagnose({"train.log": text}), variant))
    }
    assert faults == {}


def test_endings_are_many() -> None:
    """At least 150 endings of 25 runtimes; names are unique, and each telling part stands in one line of its text."""
    assert len(ENDINGS) >= FEWEST_ENDINGS
    assert len({ending.runtime for ending in ENDINGS}) >= FEWEST_RUNTIMES
    assert len({ending.name for ending in ENDINGS}) == len(ENDINGS)
    assert [one.name for one in ENDINGS if not any(one.telling in line for line in one.text.splitlines())] == []


def test_few_endings_are_inconclusive() -> None:
    """At most one ending of fifty carries no sign of failing, and each such one has a reason."""
    without = [ending for ending in ENDINGS if ending.inconclusive]
    assert len(without) * 50 <= len(ENDINGS)
    assert all(len(ending.inconclusive.split()) >= 3 for ending in without)


def test_variants_are_spread() -> None:
    """Each ending has five prefixes and two JSON forms; each of the eighteen JSON forms is used by many endings."""
    assert len(PREFIXES) == 5
    assert len(JSON_FORMS) == 18
    uses = Counter(name for ending in ENDINGS for name in choose_json_forms(ending.name))
    assert set(uses) == set(JSON_FORMS)
    assert min(uses.values()) >= len(ENDINGS) // len(JSON_FORMS)
    assert all(len(set(choose_json_forms(ending.name))) == 2 for ending in ENDINGS)
