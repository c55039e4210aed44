"""Every clause is proved: take one away, and a check fails."""

from __future__ import annotations

from pathlib import Path

from tests.catalog.helpers import GLOO, shipped, to_evidence, write
from triage.catalog import lock, mutate
from triage.catalog.case import ingest_evidence, prepare

EVERY = 29  # of the mutants of the shipped catalog, one in so many; `make catalog-mutate` tries them all


def left(tmp_path: Path, text: str) -> list[str]:
    """The parts whose loss nobody notices."""
    base = shipped(tmp_path / "shipped")
    write(base, text=text)
    case, _ = prepare((), base)
    (base / lock.LOCK).write_text(lock.text(case.checked.values(), {}), encoding="utf-8")
    return [what for _, what in mutate.survivors(case, to_evidence)]


PROVED = GLOO.replace(
    "  match:\n    - {text",
    '  match:\n    - {text: "Read error [10.0.0.1]: Connection reset by peer"}\n    - {text',
).replace(
    "  no_match:\n",
    '  no_match:\n    - {text: "Read error [10.0.0.1]: Connection reset by peer during shutdown", why: normal}\n',
)


def test_a_clause_without_a_sample_survives(tmp_path: Path) -> None:
    """The two clauses that no sample shows are named, and nothing else."""
    assert left(tmp_path, PROVED) == []
    assert [what.split(":")[1].strip() for what in left(tmp_path, GLOO)] == ["any 1", "none 0"]


def test_every_part_has_a_mutant(tmp_path: Path) -> None:
    """Clauses, keys of leaves, leaves under `none` and edges, each once."""
    text = (
        PROVED.replace("  none:", "    - {kind: exit, component: x, text: abcd, not_text: e, fields: {f: g}}\n  none:")
        + "leads_to: [{signature: a.b}, {signature: c.d}]\n"
    )
    base = shipped(tmp_path / "shipped")
    write(base, text=text)
    case, _ = prepare((), base)
    found = [mutant.what for mutant in mutate.mutants(case.whole["gloo.peer-closed"])]
    assert len(found) == len(set(found)) == 3 + 5 + 1 + 2


def test_an_edge_that_is_gone_is_noticed(tmp_path: Path) -> None:
    """By the record of the catalog; without a record it is not."""
    text = PROVED + "leads_to: [{signature: a.b}]\n"
    assert left(tmp_path, text) == []
    (tmp_path / "shipped" / lock.LOCK).unlink()
    case, _ = prepare((), tmp_path / "shipped")
    assert [what for _, what in mutate.survivors(case, to_evidence)] == ["leads_to: a.b"]


def test_some_parts_of_the_shipped_catalog() -> None:
    """One in EVERY parts of the shipped signatures is taken away, and each is missed."""
    case, _ = prepare((), None)
    found = mutate.survivors(case, ingest_evidence(), lambda number: number % EVERY == 0)
    assert [f"{signature.id}: {what}" for signature, what in found] == []
