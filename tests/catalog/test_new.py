from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from triage.base.errors import OptionError
from triage.catalog import read
from triage.catalog.check import check
from triage.catalog.new import PLACEHOLDER, new, skeleton
from triage.catalog.schema import MAX_TITLE
from triage.model.diagnosis import Role


@pytest.mark.parametrize("role", get_args(Role))
def test_a_skeleton_can_be_read(tmp_path: Path, role: Role) -> None:
    """Whatever the role, the file obeys the schema and has the id and the role that were asked for."""
    path = new("my.mode", tmp_path, (), role=role)
    signature, problems = read.read(path)
    assert problems == []
    assert signature is not None
    assert (signature.id, signature.role, signature.title) == ("my.mode", role, PLACEHOLDER)
    assert (signature.match is None) == (role == "guide")


def test_check_says_what_a_skeleton_lacks(tmp_path: Path) -> None:
    """An unfilled skeleton cannot be merged: the action and the samples are missing, each at its line."""
    path = new("my.mode", tmp_path, ())
    errors = [problem for problem in check([path]) if problem.severity == "error"]
    assert [problem.message for problem in errors] == ["there is no remediation.summary", "there is no samples.match"]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [lines[(problem.line or 0) - 1].split(":")[0] for problem in errors] == ["remediation", "samples"]


def test_the_modeline_leads_to_a_schema(tmp_path: Path) -> None:
    """The first line names a file that is there; a schema that was there before is left alone."""
    path = new("my.mode", tmp_path, ())
    place = path.read_text(encoding="utf-8").splitlines()[0].partition("$schema=")[2]
    schema = (path.parent / place).resolve()
    assert schema == (tmp_path / "schema.json").resolve()
    schema.write_text("{}", encoding="utf-8")
    new("my.other", tmp_path, ())
    assert schema.read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize(
    "identifier", ["", "my", "My.mode", "my.mode.more", "my mode.x", "../my.mode", "my.mode\n", "my/x.mode", "-a.b"]
)
def test_a_malformed_id_is_refused(tmp_path: Path, identifier: str) -> None:
    """And nothing is written, least of all outside the directory."""
    with pytest.raises(OptionError):
        new(identifier, tmp_path / "signatures", ())
    assert list(tmp_path.iterdir()) == []


def test_a_taken_id_is_refused(tmp_path: Path) -> None:
    """By the catalog, or by a file at its place, which stays as it is."""
    with pytest.raises(OptionError, match="taken"):
        new("my.mode", tmp_path, {"my.mode"})
    path = tmp_path / "my" / "mode.yaml"
    path.parent.mkdir()
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(OptionError, match="there already"):
        new("my.mode", tmp_path, ())
    assert path.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "title", ["plain", "It: is", "# no", "'", '"', "yes", "- a", "{x}", "a\\b", "1e3", "Größe", "ends with:", "a #b"]
)
def test_any_title_survives(title: str) -> None:
    """YAML gives back what was asked for."""
    signature, problems = read.parse(skeleton("my.mode", Path("x.yaml"), title), "x.yaml")
    assert problems == []
    assert signature is not None
    assert signature.title == title


@pytest.mark.parametrize("title", ["", " ", "two\nlines", "x" * (MAX_TITLE + 1), "\x1b[2J"])
def test_a_title_that_is_none_is_refused(tmp_path: Path, title: str) -> None:
    """Empty, of several lines, too long, or with controls."""
    with pytest.raises(OptionError):
        new("my.mode", tmp_path, (), title=title)


def test_a_directory_that_cannot_be_made_is_an_error_with_a_hint(tmp_path: Path) -> None:
    """A file where the directory should be."""
    (tmp_path / "signatures").write_text("", encoding="utf-8")
    with pytest.raises(OptionError) as caught:
        new("my.mode", tmp_path / "signatures", ())
    assert caught.value.hint
