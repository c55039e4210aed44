from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from tests.catalog.factories import parse_signature
from triage.base.errors import OptionError
from triage.catalog import read
from triage.catalog.check import check_files
from triage.catalog.schema import MAX_TITLE
from triage.catalog.skeleton import PLACEHOLDER, format_skeleton, write_skeleton
from triage.model.diagnosis import Role


@pytest.mark.parametrize("role", get_args(Role))
def test_a_skeleton_can_be_read(tmp_path: Path, role: Role) -> None:
    """For each role the file is valid and has the requested id and role."""
    path = write_skeleton("my.mode", tmp_path, (), role=role)
    signature, problems = read.read_signature(path)
    assert problems == []
    assert signature is not None
    assert (signature.id, signature.role, signature.title) == ("my.mode", role, PLACEHOLDER)
    assert (signature.match is None) == (role == "guide")


def test_check_reports_what_a_skeleton_lacks(tmp_path: Path) -> None:
    """The title, the pattern, the summary and the samples that are still missing are errors, each at its line."""
    path = write_skeleton("my.mode", tmp_path, ())
    errors = [problem for problem in check_files([path]) if problem.severity == "error"]
    assert [problem.message for problem in errors] == [
        "the title is still that of `triage catalog new`",
        "the pattern is still that of `triage catalog new`: put the words of the message here",
        "remediation.summary is missing",
        "samples.match is missing",
    ]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [lines[(problem.line or 0) - 1].split(":")[0] for problem in errors] == [
        "title",
        "match",
        "remediation",
        "samples",
    ]


def test_the_modeline_names_the_schema(tmp_path: Path) -> None:
    """The first line names an existing schema; an older schema is not overwritten."""
    path = write_skeleton("my.mode", tmp_path, ())
    place = path.read_text(encoding="utf-8").splitlines()[0].partition("$schema=")[2]
    schema = (path.parent / place).resolve()
    assert schema == (tmp_path / "schema.json").resolve()
    schema.write_text("{}", encoding="utf-8")
    write_skeleton("my.other", tmp_path, ())
    assert schema.read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize(
    "identifier", ["", "my", "My.mode", "my.mode.more", "my mode.x", "../my.mode", "my.mode\n", "my/x.mode", "-a.b"]
)
def test_a_malformed_id_is_refused(tmp_path: Path, identifier: str) -> None:
    """Nothing is written, least of all outside the directory."""
    with pytest.raises(OptionError):
        write_skeleton(identifier, tmp_path / "signatures", ())
    assert list(tmp_path.iterdir()) == []


def test_a_used_id_is_refused(tmp_path: Path) -> None:
    """An id of the catalog, or of an existing file, is refused; the file stays as it is."""
    with pytest.raises(OptionError, match="already used"):
        write_skeleton("my.mode", tmp_path, {"my.mode"})
    path = tmp_path / "my" / "mode.yaml"
    path.parent.mkdir()
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(OptionError, match="already exists"):
        write_skeleton("my.mode", tmp_path, ())
    assert path.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "title", ["plain", "It: is", "# no", "'", '"', "yes", "- a", "{x}", "a\\b", "1e3", "Größe", "ends with:", "a #b"]
)
def test_any_title_survives(title: str) -> None:
    """YAML returns the title unchanged."""
    signature, problems = parse_signature(format_skeleton("my.mode", Path("x.yaml"), title), "x.yaml")
    assert problems == []
    assert signature is not None
    assert signature.title == title


@pytest.mark.parametrize("title", ["", " ", "two\nlines", "x" * (MAX_TITLE + 1), "\x1b[2J"])
def test_an_invalid_title_is_refused(tmp_path: Path, title: str) -> None:
    """An empty title, one of several lines, a long one, or one with control characters."""
    with pytest.raises(OptionError):
        write_skeleton("my.mode", tmp_path, (), title=title)


def test_an_unwritable_directory_is_an_error(tmp_path: Path) -> None:
    """A file stands where the directory should be."""
    (tmp_path / "signatures").write_text("", encoding="utf-8")
    with pytest.raises(OptionError) as caught:
        write_skeleton("my.mode", tmp_path / "signatures", ())
    assert caught.value.hint
