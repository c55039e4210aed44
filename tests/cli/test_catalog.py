from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from triage.catalog import check
from triage.catalog.problems import Problem
from triage.render import catalog_problems

Command = Callable[..., tuple[int, str, str]]
PROBLEMS = [
    Problem("error", "a.yaml", 3, 5, "no such key", "remove it"),
    Problem("warning", "b,c.yaml", None, None, "50%\nof: it"),
]
SIGNATURE = """\
id: my.cursed
revision: 1
title: The number is cursed
status: experimental
role: cause
severity: fatal
match:
  any:
    - text: 'the number (?P<number>\\d+) is cursed'
meaning: Somebody took the wrong number.
impact: The rank ends.
remediation:
  action: fix-code
  summary: Take another number than {number}.
  steps: ["sed -i s/7/8/ train.py"]
falsepositives: []
references: []
samples:
  match: [{text: "the number 7 is cursed", captures: {number: "7"}}]
  no_match: [{text: "the number is cursed", why: "no number"}]
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with one signature."""
    path = tmp_path / "mine" / "my" / "cursed.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(SIGNATURE)
    return tmp_path / "mine"


def test_list_shows_id_role_title(command: Command, directory: Path) -> None:
    """The file is shown for signatures that are not shipped."""
    status, out, err = command("catalog", "list", "--catalog", directory, "--domain", "my")
    assert (status, err) == (0, "")
    assert out.split() == ["my.cursed", "cause", "The", "number", "is", "cursed", "from", f"{directory}/my/cursed.yaml"]


def test_list_as_json(command: Command, directory: Path) -> None:
    """JSON is a list of objects."""
    out = command("catalog", "list", "--catalog", directory, "--domain", "my", "--format", "json")[1]
    assert [item["id"] for item in json.loads(out)] == ["my.cursed"]


def test_show_has_meaning_and_pattern(command: Command, directory: Path) -> None:
    """The text has meaning, action, pattern and file of a signature."""
    out = command("catalog", "show", "my.cursed", "--catalog", directory)[1]
    assert out.startswith("my.cursed  The number is cursed\n")
    for part in ("Somebody took the wrong number.", "Take another number", "any of: text the number", "cursed.yaml"):
        assert "".join(part.split()) in "".join(out.split())


def test_show_as_json(command: Command, directory: Path) -> None:
    """JSON has the whole signature."""
    document = json.loads(command("catalog", "show", "my.cursed", "--catalog", directory, "--format", "json")[1])
    assert document["match"]["parts"][0]["text"] == r"the number (?P<number>\d+) is cursed"


def test_an_unknown_id_gets_a_suggestion(command: Command, directory: Path) -> None:
    """The error suggests a similar id."""
    status, _, err = command("catalog", "show", "my.cursd", "--catalog", directory)
    assert status == 2
    assert "did you mean my.cursed" in err


@pytest.mark.parametrize(("problems", "status"), [(PROBLEMS, 1), (PROBLEMS[1:], 0), ([], 0)])
def test_check_fails_only_on_errors(
    command: Command, directory: Path, monkeypatch: pytest.MonkeyPatch, problems: list[Problem], status: int
) -> None:
    """With warnings only the exit status is 0."""
    monkeypatch.setattr(check, "check_files", lambda paths: problems)
    result = command("catalog", "check", directory)
    assert result[0] == status
    assert result[1]


def test_check_of_a_real_file(command: Command, directory: Path) -> None:
    """An unknown key is an error with file and line."""
    path = directory / "my" / "cursed.yaml"
    path.write_text(SIGNATURE.replace("impact:", "inpact:"))
    status, out, _ = command("catalog", "check", directory)
    assert status == 1
    assert "cursed.yaml:" in out
    assert "inpact" in out


def test_check_as_text() -> None:
    """The text has place, severity, message, hint and totals."""
    assert (
        catalog_problems.as_text(PROBLEMS)
        == "a.yaml:3:5: error: no such key\n  try: remove it\nb,c.yaml: warning: 50% of: it\n1 error, 1 warning\n"
    )
    assert catalog_problems.as_text([]) == "no problems found\n"


def test_check_as_annotations() -> None:
    """Messages and paths are escaped for workflow commands."""
    assert catalog_problems.as_github(PROBLEMS) == (
        "::error file=a.yaml,line=3,col=5::no such key (remove it)\n::warning file=b%2Cc.yaml::50%25%0Aof: it\n"
    )


def test_check_as_json() -> None:
    """JSON is a list of objects with lines."""
    assert json.loads(catalog_problems.as_json(PROBLEMS))[0]["line"] == 3


def test_schema_is_draft_seven(command: Command, tmp_path: Path) -> None:
    """Standard output and a file get the same schema."""
    out = command("catalog", "schema")[1]
    assert json.loads(out)["$schema"].startswith("http://json-schema.org/draft-07/")
    command("catalog", "schema", "-o", tmp_path / "s.json")
    assert (tmp_path / "s.json").read_text() == out


def test_the_shipped_schema_is_this_one(command: Command) -> None:
    """signatures/schema.json equals the output of the command."""
    shipped = Path(__file__).parents[2] / "signatures" / "schema.json"
    assert json.loads(shipped.read_text()) == json.loads(command("catalog", "schema")[1])
