"""The record of what was promised: revisions, fingerprints, ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.helpers import GLOO, shipped, to_evidence, write
from triage.catalog import files, lock, read
from triage.catalog.check import check
from triage.catalog.model import Catalog, Signature


def signature(text: str = GLOO) -> Signature:
    found, problems = read.parse(text, "gloo/peer-closed.yaml")
    assert found is not None, problems
    return found


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A catalog with one signature, recorded."""
    root = shipped(tmp_path / "shipped")
    write(root)
    (root / lock.LOCK).write_text(lock.text([signature()], {}), encoding="utf-8")
    return root


def errors(base: Path, text: str = GLOO) -> list[str]:
    write(base, text=text)
    found = check(to_evidence=to_evidence, shipped=base)
    return [f"{problem.message}; {problem.hint}" for problem in found if problem.severity == "error"]


CHANGED = GLOO.replace("during shutdown", "during teardown")
RAISED = GLOO.replace("revision: 1", "revision: 2")


def test_a_silent_change_of_match_is_refused(base: Path) -> None:
    """`match` changes, the revision does not: an error that says which revision to write."""
    assert errors(base) == []
    (said,) = errors(base, CHANGED)
    assert said.startswith("`match` is not that of revision 1")
    assert "set `revision: 2`, then run `make docs`" in said


def test_a_revision_without_a_change_is_refused(base: Path) -> None:
    """A number that is raised for nothing would make stored findings look old."""
    (said,) = errors(base, RAISED)
    assert said.startswith("the revision is raised, but `match` is the same")


def test_a_change_with_its_revision_is_recorded(base: Path) -> None:
    """Raised and changed is right once it stands in the record; then the first text is the wrong one."""
    both = CHANGED.replace("revision: 1", "revision: 2")
    assert [said.split(";")[0] for said in errors(base, both)] == ["`revision` is not what lock.tsv has recorded"]
    (base / lock.LOCK).write_text(lock.text([signature(both)], lock.read(base)), encoding="utf-8")
    assert errors(base, both) == []
    assert [said.split(";")[0] for said in errors(base)] == ["the revision was 2 already"]


@pytest.mark.parametrize("text", [CHANGED, RAISED])
def test_nobody_records_half_a_change(base: Path, text: str) -> None:
    """What `make docs` runs refuses it too."""
    with pytest.raises(ValueError, match="change together"):
        lock.text([signature(text)], lock.read(base))


def test_an_edge_does_not_go_unseen(base: Path) -> None:
    """Edges need no revision, but the record has to follow."""
    assert [said.split(";")[0] for said in errors(base, GLOO + "leads_to: [{signature: gloo.other}]\n")] == [
        "`leads_to` is not what lock.tsv has recorded"
    ]


def test_ids_are_never_used_again(base: Path) -> None:
    """An id that is gone must be retired with a reason, and then nobody may use it."""
    (base / "gloo" / "peer-closed.yaml").unlink()
    found = check(to_evidence=to_evidence, shipped=base)
    assert [problem.message for problem in found] == ["gloo.peer-closed was promised and is gone"]
    (base / lock.RETIRED).write_text("gloo.peer-closed\tsplit into three\n", encoding="utf-8")
    assert check(to_evidence=to_evidence, shipped=base) == []
    assert [said.split(";")[0] for said in errors(base)] == ["the id gloo.peer-closed was retired: split into three"]


def test_a_directory_without_a_record_promises_nothing(tmp_path: Path) -> None:
    """A contributor's own directory needs none; a new id beside a record is information."""
    base = shipped(tmp_path / "shipped")
    assert errors(base) == []
    (base / lock.LOCK).write_text("a.b\t1\t0\t0\n", encoding="utf-8")
    (base / lock.RETIRED).write_text("a.b\tnever was\n", encoding="utf-8")
    assert [problem.message for problem in check(to_evidence=to_evidence, shipped=base)] == [
        "gloo.peer-closed is new here"
    ]


def test_the_shipped_record_is_whole(catalog: Catalog) -> None:
    """signatures/lock.tsv knows every shipped signature as it is (`make docs` writes it)."""
    base = files.shipped_directory()
    known = lock.read(base)
    assert {signature.id: lock.entry(signature) for signature in catalog.signatures} == {
        name: of for name, of in known.items() if name not in lock.retired(base)
    }
