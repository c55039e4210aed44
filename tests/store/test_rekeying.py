"""New rules for fingerprints: the kept examples get new keys, ids stay, and what no longer fits is told instead of done
in silence.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from tests.store.making import unknown
from triage.clusters import Assignment, fingerprint
from triage.clusters.engine import ByRules
from triage.clusters.rules import Rules, rules
from triage.model.diagnosis import Finding, Fingerprint
from triage.model.evidence import Evidence
from triage.store import Store, care

OLD = rules()


def newer() -> Rules:
    """The rules of the next version: colours are masked, and a page that was evicted says from where."""
    words = re.compile(OLD.masks.pattern.replace("(?P<m0>", r"(?P<m99>\b(?:red|blue)\b)|(?P<m0>", 1), re.IGNORECASE)
    return dataclasses.replace(
        OLD, version=OLD.version + 1, masks=words, replacements={**OLD.replacements, "m99": "<colour>"}
    )


class Newer:
    """The rules of the next version as an engine; it also tells evictions on node 1 from others."""

    version = OLD.version + 1

    def fingerprint(self, finding: Finding) -> Fingerprint | None:
        def one(fact: Evidence) -> Fingerprint:
            found = fingerprint(fact, newer())
            return dataclasses.replace(found, key=found.key + "-hot") if "page 7" in fact.text else found

        return one(finding.evidence[0])

    def place(
        self, new: Fingerprint, known: Sequence[tuple[str, Fingerprint]], apart: Collection[frozenset[str]]
    ) -> Assignment:
        return ByRules().place(new, known, apart)


TEXTS = (
    ("SinkError: lane red lost its lease", "u-aaaaaa"),
    ("SinkError: lane blue lost its lease", "u-bbbbbb"),
    ("CacheError: page 4 was evicted", "u-cccccc"),
    ("CacheError: page 7 was evicted", "u-cccccc"),
    ("exitcode 1", "u-dddddd"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that older rules filled: two clusters that will collide, one that will part, one without a headline."""
    with Store.open(tmp_path / "triage.db") as store:
        for number, (text, cluster) in enumerate(TEXTS):
            store.incidents.add(unknown(f"job {number}", text, cluster))
        assert len(store.clusters.listed()) == 4
    return tmp_path / "triage.db"


def test_ids_stay_and_what_no_longer_fits_is_told(path: Path) -> None:
    """Nothing is merged or parted; a collision and a divergence are told with what to do, until somebody did it."""
    with Store.open(path, engine=Newer()) as store:
        before = [(cluster.id, cluster.incidents) for cluster in store.clusters.listed()]
        dry = store.clusters.rekey(actor="ann", dry_run=True)
        assert store.clusters.rekey(actor="ann", dry_run=True) == dry
        done = store.clusters.rekey(actor="ann")
        assert dataclasses.replace(done, version=0) == dataclasses.replace(dry, version=0)
        assert (done.before, done.version, done.added) == (OLD.version, OLD.version + 1, 4)
        assert len(done.collisions) == len(done.divergences) == 1
        assert "u-aaaaaa u-bbbbbb" in done.collisions[0]
        assert "split u-cccccc --key" in done.divergences[0]
        assert [(cluster.id, cluster.incidents) for cluster in store.clusters.listed()] == before
        assert care.check(store.connections) == []
        again = store.clusters.rekey(actor="ann")
        assert (again.added, again.collisions, again.divergences) == (0, done.collisions, done.divergences)
        store.moves.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
        store.moves.split("u-cccccc", [done.divergences[0].split("--key ")[1].split("`")[0]], actor="ann")
        solved = store.clusters.rekey(actor="ann")
        assert (solved.collisions, solved.divergences) == ((), ())


def test_a_rejected_collision_is_not_told_again(path: Path) -> None:
    """What a person keeps apart stays apart under new rules, and is not proposed."""
    with Store.open(path) as store:
        store.moves.reject("u-aaaaaa", "u-bbbbbb", actor="ann")
    with Store.open(path, engine=Newer()) as store:
        assert store.clusters.rekey(actor="ann").collisions == ()


def test_the_first_ingest_with_new_rules_keys_again(path: Path) -> None:
    """A failure that is known is not taken for new because the rules have changed, and the log says what was done."""
    with Store.open(path, engine=Newer()) as store:
        stored = store.incidents.add(unknown("later", "SinkError: lane red lost its lease", "u-123456"))
        assert stored.diagnosis.unknown[0].cluster == "u-aaaaaa"
        green = store.incidents.add(unknown("odd", "SinkError: lane blue lost its lease", "u-234567"))
        assert green.diagnosis.unknown[0].cluster == "u-aaaaaa"  # the older of the two that collide, as the log tells
        (entry,) = [entry for entry in store.audit.listed() if entry.action == "rekey"]
        assert entry.actor == "triage"
        assert len(store.clusters.listed()) == 4
        assert [len(facts) for _, _, facts in store.clusters.exemplars("u-aaaaaa")] == [1, 1, 1]
