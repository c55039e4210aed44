"""triage.store.glossary."""

from __future__ import annotations

import pytest

from triage.catalog.load import load
from triage.store import glossary


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("the graphics card vanished", ["GPU", "device", "lost", "fallen", "off", "the", "bus"]),
        ("Workers cannot read the saved model", ["checkpoint", "rank"]),
        ("cardinality of a discard pile", []),
        ("", []),
    ],
)
def test_words_of_the_field(text: str, terms: list[str]) -> None:
    """Whole words of a person give the words of the field, each once."""
    assert glossary.field_words(text) == terms


@pytest.mark.parametrize(
    ("identifier", "text", "distance"),
    [
        ("cuda.out-of-memory", "anything", 0.0),
        ("rocm.gpu-hang", "the card hangs", 1.0),
        ("rocm.gpu-hang", "an AMD card hangs", 0.0),
        ("gpu.amdgpu-reset", "the card was reset", 1.0),
        ("npu.acl-507045", "the ascend card stopped", 1.5),
        ("npu.acl-507045", "what is code 507045 of CANN", 0.0),
        ("gpu.xid-44", "what does Xid 44 mean", 0.0),
    ],
)
def test_distance_from_the_subject(identifier: str, text: str, distance: float) -> None:
    """A signature of a platform that the text does not name is away from its subject."""
    item = next(item for item in load().signatures if item.id == identifier)
    assert glossary.subject_distance(item, text) == distance


def test_every_domain_of_the_glossary_is_in_the_catalog() -> None:
    """No entry outlives its domain."""
    assert set(glossary._SUBJECTS) <= {item.domain for item in load().signatures}
