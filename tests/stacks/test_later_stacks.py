"""Crashes in twenty forms that were written after the readers: the type and the function that the answer names."""

from __future__ import annotations

from pathlib import Path

import triage
from tests.shared_catalog import OPTIONS, share_catalog
from tests.stacks.later_stacks import LATER_FORMS, later_stacks
from tests.stacks.made_stacks import FORMS
from tests.stacks.test_made_stacks import answer


def test_the_forms_are_others() -> None:
    """Twenty forms that the first corpus does not have, in two texts each."""
    names = {form for form, *_ in LATER_FORMS}
    assert len(names) == 20
    assert names.isdisjoint(form for form, *_ in FORMS)
    assert len({one.text for one in later_stacks()}) == 40


def test_type_and_function_are_right(tmp_path: Path) -> None:
    """Every text gives the type and the function that a person reads in it."""
    wrong = []
    path = tmp_path / "job.log"
    with share_catalog():
        for one in later_stacks():
            path.write_text(one.text, encoding="utf-8")
            answered, function = answer(one.text, triage.ingest(path, options=OPTIONS))
            if function != one.point or not any(term in answered for term in one.types):
                wrong.append((one.form, one.subject.package, answered, function))
    assert not wrong
