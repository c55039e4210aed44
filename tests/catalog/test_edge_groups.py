from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.factories import GLOO, shipped, to_evidence, write
from triage.catalog.check import check_files
from triage.catalog.edge_groups import read_groups
from triage.catalog.load import load
from triage.catalog.model import CausalEdge
from triage.catalog.read import read_signature

GROUPS = """
groups:
  lost:
    - {signature: a.one}
    - {signature: a.two, scope: same-rank}
    - {signature: gloo.peer-closed}
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = shipped(tmp_path / "shipped", healthy="step 1 loss 2\n" * 5)
    (base / "groups.yaml").write_text(GROUPS)
    for name in ("a.one", "a.two"):
        write(
            base,
            name,
            GLOO.replace("gloo/transport", name).replace("Read error", name).replace("pair.cc", f"{name} pair.cc"),
        )
    return base


def edges(base: Path, leads_to: str) -> tuple[CausalEdge, ...]:
    signature, problems = read_signature(write(base, text=GLOO.replace("meaning: The", f"{leads_to}\nmeaning: The")))
    assert signature is not None, problems
    return signature.causal_edges


def errors(base: Path, leads_to: str = "leads_to: [{group: lost}]") -> list[str]:
    write(base, text=GLOO.replace("meaning: The", f"{leads_to}\nmeaning: The"))
    return [str(one) for one in check_files(to_evidence=to_evidence, shipped=base) if "samples" not in one.message]


def test_a_group_stands_for_an_edge_to_each_member(base: Path) -> None:
    """The use gives scope and window; a member's own scope is stronger, and nothing leads to itself."""
    assert edges(base, "leads_to: [{group: lost, scope: other-ranks, window: 90s}]") == (
        CausalEdge("a.one", "other-ranks", 90.0),
        CausalEdge("a.two", "same-rank", 90.0),
    )
    assert edges(base, "leads_to: [{group: lost}]")[0] == CausalEdge("a.one", "any-rank")


def test_an_edge_that_is_written_out_is_stronger(base: Path) -> None:
    """Where the file names a member itself, before or after the group, that edge is the only one."""
    written = CausalEdge("a.two", "other-ranks")
    assert edges(base, "leads_to: [{group: lost}, {signature: a.two, scope: other-ranks}]")[1:] == (written,)
    assert edges(base, "leads_to: [{signature: a.two, scope: other-ranks}, {group: lost}]")[0] == written


@pytest.mark.parametrize(
    ("leads_to", "expected"),
    [
        ("leads_to: [{group: gone}]", "no group is called gone (one of lost)"),
        ("leads_to: [{group: lost, signature: a.one}]", "give either `signature` or `group`"),
        ("leads_to: [{scope: any-rank}]", "give either `signature` or `group`"),
        ("leads_to: [{group: 'Lost ranks'}]", "does not have the right form"),
    ],
)
def test_a_wrong_use_is_an_error_at_its_line(base: Path, leads_to: str, expected: str) -> None:
    """An unknown group makes the file unusable, with the names of the known ones."""
    assert [expected in error for error in errors(base, leads_to) if "peer-closed.yaml:14:" in error] == [True]


def test_a_good_use_is_accepted(base: Path) -> None:
    """The groups of the directory are known to its files, and to the load of the catalog."""
    assert errors(base) == []
    loaded = {one.id: one for one in load(shipped=base, cache_dir=base / "cache").signatures}
    assert [edge.signature for edge in loaded["gloo.peer-closed"].causal_edges] == ["a.one", "a.two"]


def test_an_unknown_member_is_an_error_of_the_groups(base: Path) -> None:
    """It is reported once, where the group is defined."""
    (base / "groups.yaml").write_text(GROUPS + "    - {signature: a.three}\n")
    assert [error.split("/")[-1] for error in errors(base)] == [
        "groups.yaml:7:7: error: no signature has the id a.three (fix the id, or add the file)"
    ]


def test_cycles_through_a_group_are_found(base: Path) -> None:
    """A group's edges count for cycles as written ones do."""
    write(base, "a.one", GLOO.replace("meaning: The", "leads_to: [{group: lost}]\nmeaning: The"))
    assert any("explains itself: gloo.peer-closed -> a.one" in error for error in errors(base))


@pytest.mark.parametrize("text", ["groups: [x]", "groups:\n  a: {}\n", "group: {}", "groups:\n  A b: []\n", "", "\t:"])
def test_a_wrong_file_of_groups_is_an_error(tmp_path: Path, text: str) -> None:
    """What cannot be read defines no group, and the errors have a hint."""
    (tmp_path / "groups.yaml").write_text(text)
    groups, problems = read_groups(tmp_path / "groups.yaml")
    assert not groups
    assert problems
    assert read_groups(tmp_path / "none.yaml") == ({}, ())


def test_a_user_may_use_shipped_groups_and_define_more(tmp_path: Path) -> None:
    """A directory that is no complete catalog knows the shipped groups; its own of the same name replace them."""
    (tmp_path / "groups.yaml").write_text("groups:\n  mine:\n    - {signature: torch.collective-timeout}\n")
    loaded = edges(tmp_path, "leads_to: [{group: mine, scope: other-ranks}, {group: launcher-teardown}]")
    assert loaded[0] == CausalEdge("torch.collective-timeout", "other-ranks")
    assert CausalEdge("launch.child-failed", "any-rank") in loaded
