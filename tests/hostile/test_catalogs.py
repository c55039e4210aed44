"""Hostile contributed signatures are refused with a remark, or cost little; the signatures beside them are used."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.catalog.factories import evidence
from tests.hostile.catalogs import CASES, HEAD, CatalogCase, signature
from triage.base.errors import CatalogError
from triage.catalog.load import load
from triage.catalog.match import Matcher

GOOD = signature("no more tokens in the shard").replace(b"own.hostile", b"own.good")
SECONDS = 5.0
TEXT = "no more tokens in the shard"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_hostile_signature_is_refused_or_harmless(case: CatalogCase, tmp_path: Path) -> None:
    """The remark names what is wrong; the other signature of the directory matches; nothing takes seconds."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "good.yaml").write_bytes(GOOD)
    (own / "hostile.yaml").write_bytes(case.content)
    started = time.thread_time()
    catalog = load((own,), tmp_path / "cache", strict=False, shipped=own)
    remarks = [note.message for note in catalog.warnings if "hostile.yaml" in str(note.source)]
    assert bool(remarks) is bool(case.refused)
    assert any(re.search(case.refused, remark) for remark in remarks) or not case.refused
    matches = Matcher(catalog).evaluate([evidence(TEXT), evidence("abcd " + "x" * 100_000), evidence("a" * 100_000)])
    assert "own.good" in matches
    assert time.thread_time() - started < SECONDS
    assert not Path("/tmp/triage-was-here").exists()


def test_a_catalog_that_a_user_names_must_be_whole(tmp_path: Path) -> None:
    """With `--catalog` a file that cannot be used is an error, not a missing signature."""
    (tmp_path / "bad.yaml").write_text(HEAD + "match: {text: ''}\n")
    with pytest.raises(CatalogError, match=r"bad\.yaml"):
        load((tmp_path,), tmp_path / "cache")
