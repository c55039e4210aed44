from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from triage.catalog import check
from triage.catalog.problems import Problem
from triage.render import problems

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
def mine(tmp_path: Path) -> Path:
    """A directory with one signature."""
    path = tmp_path / "mine" / "my" / "cursed.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(SIGNATURE)
    return tmp_path / "mine"


def test_list_shows_id_role_title(command: Command, mine: Path) -> None:
    """A signature with its title, and the file of one that does not ship."""
    status, out, err = command("catalog", "list", "--catalog", mine, "--domain", "my")
    assert (status, err) == (0, "")
    assert out.split() == ["my.cursed", "cause", "The", "number", "is", "cursed", "from", f"{mine}/my/cursed.yaml"]


def test_list_as_json(command: Command, mine: Path) -> None:
    """A list of objects."""
    out = command("catalog", "list", "--catalog", mine, "--domain", "my", "--format", "json")[1]
    assert [item["id"] for item in json.loads(out)] == ["my.cursed"]


def test_show_says_what_it_means(command: Command, mine: Path) -> None:
    """Meaning, action, pattern and file of one signature."""
    out = command("catalog", "show", "my.cursed", "--catalog", mine)[1]
    assert out.startswith("my.cursed  The number is cursed\n")
    for part in ("Somebody took the wrong number.", "Take another number", "any of: text the number", "cursed.yaml"):
        assert "".join(part.split()) in "".join(out.split())


def test_show_as_json(command: Command, mine: Path) -> None:
    """The whole signature."""
    document = json.loads(command("catalog", "show", "my.cursed", "--catalog", mine, "--format", "json")[1])
    assert document["match"]["parts"][0]["text"] == r"the number (?P<number>\d+) is cursed"


def test_an_unknown_id_is_answered_with_a_near_one(command: Command, mine: Path) -> None:
    """A typo is met with the id that was meant."""
    status, _, err = command("catalog", "show", "my.cursd", "--catalog", mine)
    assert status == 2
    assert "did you mean my.cursed" in err


@pytest.mark.parametrize(("found", "status"), [(PROBLEMS, 1), (PROBLEMS[1:], 0), ([], 0)])
def test_check_fails_only_on_errors(
    command: Command, mine: Path, monkeypatch: pytest.MonkeyPatch, found: list[Problem], status: int
) -> None:
    """Warnings alone are 0."""
    monkeypatch.setattr(check, "check", lambda paths: found)
    result = command("catalog", "check", mine)
    assert result[0] == status
    assert result[1]


def test_check_of_a_real_file(command: Command, mine: Path) -> None:
    """A file with an unknown key is an error with its place."""
    path = mine / "my" / "cursed.yaml"
    path.write_text(SIGNATURE.replace("impact:", "inpact:"))
    status, out, _ = command("catalog", "check", mine)
    assert status == 1
    assert "cursed.yaml:" in out
    assert "inpact" in out


def test_check_as_text() -> None:
    """Place, severity, message, hint, sum."""
    assert (
        problems.as_text(PROBLEMS)
        == "a.yaml:3:5: error: no such key\n  try: remove it\nb,c.yaml: warning: 50% of: it\n1 error, 1 warning\n"
    )
    assert problems.as_text([]) == "no problems found\n"


def test_check_as_annotations() -> None:
    """Nothing in a message or a path can end the command it stands in."""
    assert problems.as_github(PROBLEMS) == (
        "::error file=a.yaml,line=3,col=5::no such key (remove it)\n::warning file=b%2Cc.yaml::50%25%0Aof: it\n"
    )


def test_check_as_json() -> None:
    """A list of objects."""
    assert json.loads(problems.as_json(PROBLEMS))[0]["line"] == 3


def test_schema_is_draft_seven(command: Command, tmp_path: Path) -> None:
    """To standard output or to a file, the same."""
    out = command("catalog", "schema")[1]
    assert json.loads(out)["$schema"].startswith("http://json-schema.org/draft-07/")
    command("catalog", "schema", "-o", tmp_path / "s.json")
    assert (tmp_path / "s.json").read_text() == out


def test_the_shipped_schema_is_this_one(command: Command) -> None:
    """signatures/schema.json is what the command writes."""
    shipped = Path(__file__).parents[2] / "signatures" / "schema.json"
    assert json.loads(shipped.read_text()) == json.loads(command("catalog", "schema")[1])
