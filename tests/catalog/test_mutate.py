"""Every part of a signature is verified: without it, a check fails."""

from __future__ import annotations

from pathlib import Path

from tests.catalog.factories import GLOO, shipped, to_evidence, write
from triage.catalog import lock, mutate
from triage.catalog.check_context import default_reader, load_context

EVERY = 29  # of the mutants of the shipped catalog, one in so many; `make catalog-mutate` tries them all


def unverified(tmp_path: Path, text: str) -> list[str]:
    """The parts whose removal no check notices."""
    base = shipped(tmp_path / "shipped")
    write(base, text=text)
    case, _ = load_context((), base)
    (base / lock.LOCK).write_text(lock.format_lock(case.checked.values(), {}), encoding="utf-8")
    return [what for _, what in mutate.find_survivors(case, to_evidence)]


PROVED = GLOO.replace(
    "  match:\n    - {text",
    '  match:\n    - {text: "Read error [10.0.0.1]: Connection reset by peer"}\n    - {text',
).replace(
    "  no_match:\n",
    '  no_match:\n    - {text: "Read error [10.0.0.1]: Connection reset by peer during shutdown", why: normal}\n',
)


def test_a_clause_without_a_sample_survives(tmp_path: Path) -> None:
    """The two clauses that no sample needs are named, and nothing else."""
    assert unverified(tmp_path, PROVED) == []
    assert [what.split(":")[1].strip() for what in unverified(tmp_path, GLOO)] == ["any 1", "none 0"]


def test_every_part_has_a_mutant(tmp_path: Path) -> None:
    """Clauses, keys of leaves, leaves under `none` and edges, each once."""
    text = (
        PROVED.replace("  none:", "    - {kind: exit, component: x, text: abcd, not_text: e, fields: {f: g}}\n  none:")
        + "leads_to: [{signature: a.b}, {signature: c.d}]\n"
    )
    base = shipped(tmp_path / "shipped")
    write(base, text=text)
    case, _ = load_context((), base)
    result = [mutant.what for mutant in mutate.list_mutants(case.all_signatures["gloo.peer-closed"])]
    assert len(result) == len(set(result)) == 3 + 5 + 1 + 2


def test_a_removed_edge_is_noticed(tmp_path: Path) -> None:
    """The lock file shows it; without a lock file it is not noticed."""
    text = PROVED + "leads_to: [{signature: a.b}]\n"
    assert unverified(tmp_path, text) == []
    (tmp_path / "shipped" / lock.LOCK).unlink()
    case, _ = load_context((), tmp_path / "shipped")
    assert [what for _, what in mutate.find_survivors(case, to_evidence)] == ["leads_to: a.b"]


def test_shipped_parts_are_verified() -> None:
    """One in EVERY parts of the shipped signatures is removed, and each removal is noticed."""
    case, _ = load_context((), None)
    result = mutate.find_survivors(case, default_reader(), lambda number: number % EVERY == 0)
    assert [f"{signature.id}: {what}" for signature, what in result] == []
