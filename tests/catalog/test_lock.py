"""The record of what was promised: revisions, fingerprints, ids."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.catalog.factories import GLOO, parse_signature, shipped, to_evidence, write
from triage.catalog import lock, signature_files
from triage.catalog.check import check_files
from triage.catalog.model import Catalog, Signature


def signature(text: str = GLOO) -> Signature:
    result, problems = parse_signature(text, "gloo/peer-closed.yaml")
    assert result is not None, problems
    return result


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A catalog with one signature, recorded."""
    root = shipped(tmp_path / "shipped")
    write(root)
    (root / lock.LOCK).write_text(lock.format_lock([signature()], {}), encoding="utf-8")
    return root


def errors(base: Path, text: str = GLOO) -> list[str]:
    write(base, text=text)
    result = check_files(to_evidence=to_evidence, shipped=base)
    return [f"{problem.message}; {problem.hint}" for problem in result if problem.severity == "error"]


CHANGED = GLOO.replace("during shutdown", "during teardown")
RAISED = GLOO.replace("revision: 1", "revision: 2")


def test_a_change_needs_a_new_revision(base: Path) -> None:
    """The error for a changed `match` says which revision to write."""
    assert errors(base) == []
    (error,) = errors(base, CHANGED)
    assert error.startswith("`match` changed, but the revision is still 1")
    assert "set `revision: 2`, then run `make docs`" in error


def test_a_revision_without_a_change_is_refused(base: Path) -> None:
    """A higher revision without a change would make stored findings look outdated."""
    (error,) = errors(base, RAISED)
    assert error.startswith("the revision is higher, but `match` is the same")


def test_a_change_with_its_revision_is_recorded(base: Path) -> None:
    """A change with a new revision is valid after it is recorded; then the old file is an error."""
    both = CHANGED.replace("revision: 1", "revision: 2")
    assert [error.split(";")[0] for error in errors(base, both)] == ["`revision` differs from lock.tsv"]
    (base / lock.LOCK).write_text(lock.format_lock([signature(both)], lock.read_lock(base)), encoding="utf-8")
    assert errors(base, both) == []
    assert [error.split(";")[0] for error in errors(base)] == ["the revision was already 2"]


@pytest.mark.parametrize("text", [CHANGED, RAISED])
def test_half_a_change_is_not_recorded(base: Path, text: str) -> None:
    """`make docs` refuses it too."""
    with pytest.raises(ValueError, match="must change together"):
        lock.format_lock([signature(text)], lock.read_lock(base))


def test_a_changed_edge_is_reported(base: Path) -> None:
    """Edges need no revision, but the lock file must be updated."""
    messages = [error.split(";")[0] for error in errors(base, GLOO + "leads_to: [{signature: gloo.other}]\n")]
    assert "`leads_to` differs from lock.tsv" in messages


def test_ids_are_never_used_again(base: Path) -> None:
    """A removed id must be retired with a reason, and then nobody may use it."""
    (base / "gloo" / "peer-closed.yaml").unlink()
    result = check_files(to_evidence=to_evidence, shipped=base)
    assert [problem.message for problem in result] == ["gloo.peer-closed is recorded here, but its file is missing"]
    (base / lock.RETIRED).write_text("gloo.peer-closed\tsplit into three\n", encoding="utf-8")
    assert check_files(to_evidence=to_evidence, shipped=base) == []
    assert [error.split(";")[0] for error in errors(base)] == ["the id gloo.peer-closed was retired: split into three"]


def test_a_lock_file_is_optional(tmp_path: Path) -> None:
    """A contributor's directory needs none; a new id beside a lock file is information."""
    base = shipped(tmp_path / "shipped")
    assert errors(base) == []
    (base / lock.LOCK).write_text("a.b\t1\t0\t0\n", encoding="utf-8")
    (base / lock.RETIRED).write_text("a.b\tnever was\n", encoding="utf-8")
    assert [problem.message for problem in check_files(to_evidence=to_evidence, shipped=base)] == [
        "gloo.peer-closed is new here"
    ]


def test_the_shipped_lock_file_is_current(catalog: Catalog) -> None:
    """signatures/lock.tsv has every shipped signature as it is (`make docs` writes it)."""
    base = signature_files.find_shipped_directory()
    known = lock.read_lock(base)
    assert {signature.id: lock.make_entry(signature) for signature in catalog.signatures} == {
        name: of for name, of in known.items() if name not in lock.read_retired(base)
    }


def test_rows_of_a_table_share_its_revision(tmp_path: Path) -> None:
    """A table gets a new revision with a new row, so the other rows have it without a new `match`."""
    rows = [replace(signature(), table="gloo.peer", revision=revision) for revision in (1, 2)]
    recorded = {rows[0].id: lock.make_entry(rows[0])}
    messages = [message for _, _, message, _ in lock.check_signature(rows[1], recorded, {})]
    assert messages == ["`revision` differs from lock.tsv"]
    assert "gloo.peer-closed\t2\t" in lock.format_lock([rows[1]], recorded)
    with pytest.raises(ValueError, match="must change together"):
        lock.format_lock([rows[0]], {rows[1].id: lock.make_entry(rows[1])})
