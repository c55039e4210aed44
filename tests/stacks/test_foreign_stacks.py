"""Crashes in further forms: the type and the function that the answer names, and what a live process shows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import triage
from tests.shared_catalog import OPTIONS, share_catalog
from tests.stacks.foreign_stacks import FOREIGN_FORMS, foreign_stacks
from tests.stacks.later_stacks import LATER_FORMS
from tests.stacks.made_stacks import FORMS
from tests.stacks.test_made_stacks import answer
from triage.stacks.names import normalise_function
from triage.stacks.parser import parse_stacks


def frame_names(text: str) -> set[str]:
    """Return the last part of the name of each frame in a text."""
    frames = (frame for stacks in parse_stacks(text) for thread in stacks.threads for frame in thread.frames)
    return {normalise_function(frame.function).rsplit("::", 1)[-1].rsplit(".", 1)[-1] for frame in frames}


def test_the_forms_are_others() -> None:
    """More than forty forms that the other corpora do not have, in two texts each, half of them set aside."""
    names = {form for form, *_ in FOREIGN_FORMS}
    assert len(names) == len(FOREIGN_FORMS) > 40
    assert names.isdisjoint(form for form, *_ in (*FORMS, *LATER_FORMS))
    assert sum(is_set_aside for is_set_aside, _ in foreign_stacks()) == len(FOREIGN_FORMS)


def test_type_and_function_are_right(tmp_path: Path) -> None:
    """Type and function are right in nearly all texts, and in most of those set aside; no number is a rank."""
    right: Counter[tuple[bool, str]] = Counter()
    wrong = []
    path = tmp_path / "job.log"
    with share_catalog():
        for is_set_aside, one in foreign_stacks():
            path.write_text(one.text, encoding="utf-8")
            diagnosis = triage.ingest(path, options=OPTIONS)
            assert not [state.rank for state in diagnosis.ranks if state.rank is not None], one.form
            answered, function = answer(one.text, diagnosis)
            if one.types:
                type_right, point_right = any(term in answered for term in one.types), function == one.point
            else:  # of a live process its frames are read, and no cause is claimed
                root = diagnosis.root_cause
                type_right, point_right = root is None or root.confidence < 0.5, one.point in frame_names(one.text)
            right.update({(is_set_aside, "texts"): 1, (is_set_aside, "type"): type_right})
            right[is_set_aside, "point"] += point_right
            if not is_set_aside and not (type_right and point_right):
                wrong.append((one.form, one.subject, one.types, one.point, answered, function))
    for half, least_types, least_points in ((False, 0.95, 0.95), (True, 0.85, 0.7)):
        assert right[half, "type"] >= least_types * right[half, "texts"], wrong
        assert right[half, "point"] >= least_points * right[half, "texts"], wrong
