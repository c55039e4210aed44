"""Each rule works on its own example, and errors name the file and the line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from triage.base.errors import CatalogError
from triage.clusters.fingerprint import mask_variables
from triage.clusters.rules import FILE, load_rules, read_rules

DATA = tomllib.loads(FILE.read_text(encoding="utf-8"))


def entries(kind: str) -> list[object]:
    """Return the rules of one kind with their entries in the file."""
    return [
        pytest.param(entry, rule, id=entry["id"])
        for entry, rule in zip(DATA[kind], getattr(load_rules(), f"{kind}s"), strict=True)
    ]


@pytest.mark.parametrize(("entry", "rule"), entries("unwrap"))
def test_an_unwrap_rule_gives_the_inner_text_of_its_example(entry: dict[str, str], rule: object) -> None:
    """The inner failure of the example comes out as it is written beside it."""
    match = rule.pattern.search(entry["example"])  # type: ignore[attr-defined]
    assert match is not None
    assert match["inner"].strip() == entry["becomes"]


@pytest.mark.parametrize(("entry", "rule"), entries("code"))
def test_a_code_rule_finds_its_code(entry: dict[str, str], rule: object) -> None:
    """The value that carries the cause is lifted out of the example."""
    match = rule.pattern.search(entry["example"])  # type: ignore[attr-defined]
    assert match is not None
    assert match["value"] == entry["gives"]


@pytest.mark.parametrize(("entry", "rule"), entries("footer"))
def test_a_footer_rule_knows_its_line(entry: dict[str, str], rule: object) -> None:
    """The boilerplate of the example is recognised."""
    assert rule.pattern.search(entry["example"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry["id"]) for entry in DATA["wording"]])
def test_a_wording_gives_the_result_of_its_example(entry: dict[str, str]) -> None:
    """The sentence of another release becomes the common one."""
    assert re.sub(entry["pattern"], entry["replacement"], entry["example"]) == entry["becomes"]


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry["id"]) for entry in DATA["mask"]])
def test_a_mask_gives_the_result_of_its_example(entry: dict[str, str]) -> None:
    """The example becomes what stands beside it, under all masks together."""
    assert mask_variables(entry["example"], load_rules()) == entry["becomes"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("version = 1\n[[unwrap]]\nid = 'x'\npattern = '('\n", 3),
        ("version = 1\n[[unwrap]]\nid = 'y'\n", 3),
        ("version =\n", None),
    ],
)
def test_the_error_of_a_damaged_rule_names_its_line(tmp_path: Path, text: str, line: int | None) -> None:
    """The error names the file and the line of the rule."""
    path = tmp_path / "rules.toml"
    path.write_text(text.replace("'x'", '"x"').replace("'y'", '"y"'))
    with pytest.raises(CatalogError) as caught:
        read_rules(path)
    assert str(path) in str(caught.value)
    assert caught.value.line == line
