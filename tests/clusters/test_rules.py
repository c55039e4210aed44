"""The rules are data: each holds to its own example, and a damaged file is named with its line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from triage.base.errors import CatalogError
from triage.clusters.fingerprint import masked
from triage.clusters.rules import FILE, read, rules

DATA = tomllib.loads(FILE.read_text(encoding="utf-8"))


def entries(kind: str) -> list[object]:
    return [
        pytest.param(entry, rule, id=entry["id"])
        for entry, rule in zip(DATA[kind], getattr(rules(), f"{kind}s"), strict=True)
    ]


@pytest.mark.parametrize(("entry", "rule"), entries("unwrap"))
def test_an_unwrap_rule_gives_what_its_example_says(entry: dict[str, str], rule: object) -> None:
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


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry["id"]) for entry in DATA["mask"]])
def test_a_mask_gives_what_its_example_says(entry: dict[str, str]) -> None:
    """The example becomes what stands beside it, under all masks together."""
    assert masked(entry["example"], rules()) == entry["becomes"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("version = 1\n[[unwrap]]\nid = 'x'\npattern = '('\n", 3),
        ("version = 1\n[[unwrap]]\nid = 'y'\n", 3),
        ("version =\n", None),
    ],
)
def test_a_damaged_rule_is_named(tmp_path: Path, text: str, line: int | None) -> None:
    """What cannot be used says which rule it is and where."""
    path = tmp_path / "rules.toml"
    path.write_text(text.replace("'x'", '"x"').replace("'y'", '"y"'))
    with pytest.raises(CatalogError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert caught.value.line == line
