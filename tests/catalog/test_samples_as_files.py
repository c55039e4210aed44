"""Samples of several lines, as the only file of a job: their blocks are read as the samples are."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from tests.shared_catalog import OPTIONS
from triage.catalog.load import load
from triage.catalog.model import Sample

# Python ignores the exception, so that no process ends by it.
_IGNORED = "Exception ignored in: "
SAMPLES = [
    pytest.param(signature.id, sample, id=f"{signature.id}-{number}")
    for signature in load().signatures
    for number, sample in enumerate(signature.samples_match)
    if sample.kind is None and "\n" in sample.text.strip() and not sample.text.startswith(_IGNORED)
]


@pytest.mark.parametrize(("name", "sample"), SAMPLES)
def test_a_sample_of_several_lines_is_found_in_a_file(name: str, sample: Sample, tmp_path: Path) -> None:
    """The whole diagnosis finds the signature with the captures that the sample states."""
    (tmp_path / "train.log").write_text(f"{sample.text}\n")
    diagnosis = triage.ingest(tmp_path, options=OPTIONS)
    root = (diagnosis.root_cause,) if diagnosis.root_cause else ()
    captures_of_it = [one.captures for one in (*root, *diagnosis.findings) if one.signature == name]
    assert any(dict(sample.captures).items() <= captures.items() for captures in captures_of_it)
