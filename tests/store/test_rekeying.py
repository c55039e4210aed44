"""triage.store.rekeying: stored examples get new keys, ids stay, and conflicts are reported."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence

import pytest

from tests.store.conftest import Place
from tests.store.factories import unknown_diagnosis
from triage.clusters import Assignment, fingerprint
from triage.clusters.rule_engine import RuleEngine
from triage.clusters.rules import Rules, load_rules
from triage.model.diagnosis import Finding, Fingerprint
from triage.model.evidence import Evidence
from triage.store import Store, maintenance

OLD = load_rules()


def newer_rules() -> Rules:
    """Return the rules of the next version."""
    new_masks = re.compile(OLD.masks.pattern.replace("(?P<m0>", r"(?P<m99>\b(?:red|blue)\b)|(?P<m0>", 1), re.IGNORECASE)
    return dataclasses.replace(
        OLD, version=OLD.version + 1, masks=new_masks, replacements={**OLD.replacements, "m99": "<colour>"}
    )


class NewerEngine:
    """The rules of the next version as an engine."""

    version = OLD.version + 1

    def fingerprint(self, finding: Finding) -> Fingerprint | None:
        def one(fact: Evidence) -> Fingerprint:
            original = fingerprint(fact, newer_rules())
            return dataclasses.replace(original, key=original.key + "-hot") if "page 7" in fact.text else original

        return one(finding.evidence[0])

    def place(
        self,
        new: Fingerprint,
        known: Sequence[tuple[str, Fingerprint]],
        apart: Collection[frozenset[str]],
        moved: Mapping[str, str],
    ) -> Assignment:
        return RuleEngine().place(new, known, apart, moved)


TEXTS = (
    ("SinkError: lane red lost its lease", "u-aaaaaa"),
    ("SinkError: lane blue lost its lease", "u-bbbbbb"),
    ("CacheError: page 4 was evicted", "u-cccccc"),
    ("CacheError: page 7 was evicted", "u-cccccc"),
    ("exitcode 1", "u-dddddd"),
)


@pytest.fixture
def path(place: Place) -> str:
    """A store by older rules: two clusters that will collide, one that diverges, one without a headline."""
    with Store.open(place("triage")) as store:
        for number, (text, cluster) in enumerate(TEXTS):
            store.incidents.add(unknown_diagnosis(f"job {number}", text, cluster))
        assert len(store.clusters.list_clusters()) == 4
    return place("triage")


def test_ids_stay_and_conflicts_are_reported(path: str) -> None:
    """Collisions and divergences are reported, with what to do, until a person resolves them."""
    with Store.open(path, engine=NewerEngine()) as store:
        before = [(cluster.id, cluster.incidents) for cluster in store.clusters.list_clusters()]
        dry = store.clusters.rekey(actor="ann", dry_run=True)
        assert store.clusters.rekey(actor="ann", dry_run=True) == dry
        done = store.clusters.rekey(actor="ann")
        assert dataclasses.replace(done, version=0) == dataclasses.replace(dry, version=0)
        assert (done.before, done.version, done.added) == (OLD.version, OLD.version + 1, 4)
        assert len(done.collisions) == len(done.divergences) == 1
        assert "u-aaaaaa u-bbbbbb" in done.collisions[0]
        assert "split u-cccccc --key" in done.divergences[0]
        assert [(cluster.id, cluster.incidents) for cluster in store.clusters.list_clusters()] == before
        assert maintenance.check_store(store.connections) == []
        again = store.clusters.rekey(actor="ann")
        assert (again.added, again.collisions, again.divergences) == (0, done.collisions, done.divergences)
        store.cluster_actions.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
        store.cluster_actions.split("u-cccccc", [done.divergences[0].split("--key ")[1].split("`")[0]], actor="ann")
        solved = store.clusters.rekey(actor="ann")
        assert (solved.collisions, solved.divergences) == ((), ())


def test_new_keys_remember_who_merged_the_old_ones(path: str) -> None:
    """What a person decided teaches later failures under new rules too; what the program decided says so."""
    with Store.open(path) as store:
        store.cluster_actions.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
    with Store.open(path, engine=NewerEngine()) as store:
        store.clusters.rekey(actor="bob")
        reasons = store.clusters.list_reasons("u-aaaaaa").values()
        assert any(why.startswith("merged by ann; new key of ") for why in reasons)
        assert all("ann" not in why for why in store.clusters.list_reasons("u-cccccc").values())


def test_a_rejected_collision_is_not_reported_again(path: str) -> None:
    """Clusters that a person separated stay separate under new rules."""
    with Store.open(path) as store:
        store.cluster_actions.reject("u-aaaaaa", "u-bbbbbb", actor="ann")
    with Store.open(path, engine=NewerEngine()) as store:
        assert store.clusters.rekey(actor="ann").collisions == ()


def test_the_first_ingest_with_new_rules_rekeys(path: str) -> None:
    """A known failure stays known after a change of the rules, and the log has the rekeying."""
    with Store.open(path, engine=NewerEngine()) as store:
        stored = store.incidents.add(unknown_diagnosis("later", "SinkError: lane red lost its lease", "u-123456"))
        assert stored.diagnosis.unknown[0].cluster == "u-aaaaaa"
        green = store.incidents.add(unknown_diagnosis("odd", "SinkError: lane blue lost its lease", "u-234567"))
        assert green.diagnosis.unknown[0].cluster == "u-aaaaaa"  # the older of the two that collide, as the log tells
        (entry,) = [entry for entry in store.audit.list_entries() if entry.action == "rekey"]
        assert entry.actor == "triage"
        assert len(store.clusters.list_clusters()) == 4
        assert [len(facts) for _, _, facts in store.clusters.list_exemplars("u-aaaaaa")] == [1, 1, 1]


NEW_UNWRAPS = {"glibc-assertion", "linker"}
ASSERTIONS = tuple(
    f"{program}: {directory}pager.cc:6{number}: void Pager::Evict(Page{blank}*): Assertion `pins == 0' failed."
    for number, (program, directory, blank) in enumerate((("job", "", ""), ("python", "/build/", " ")))
)
UNCHANGED = (
    "ValueError: cannot place 7 experts on 3 ranks",
    "SinkError: lane red lost its lease",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/a.bin'",
    "panic: send on closed channel",
)


class OlderEngine(RuleEngine):
    """The rules of the version before this one."""

    version = OLD.version - 1

    def fingerprint(self, finding: Finding) -> Fingerprint | None:
        unwraps = tuple(rule for rule in OLD.unwraps if rule.id not in NEW_UNWRAPS)
        return fingerprint(
            finding.evidence[0], dataclasses.replace(OLD, version=self.version, unwraps=unwraps, wordings=())
        )


def test_a_store_of_the_version_before_gets_the_keys_of_this_one(place: Place) -> None:
    """Each example has a key of this version, no failure leaves its cluster, and only what the rules join collides."""
    texts = [*ASSERTIONS, *UNCHANGED]
    with Store.open(place("older"), engine=OlderEngine()) as store:
        for number, text in enumerate(texts):
            store.incidents.add(unknown_diagnosis(f"job {number}", text, f"u-{number:06x}"))
        before = {cluster.id for cluster in store.clusters.list_clusters()}
        assert len(before) == len(texts)
    with Store.open(place("older")) as store:
        again = store.incidents.add(unknown_diagnosis("again", UNCHANGED[0], "u-aaaaaa"))
        assert again.diagnosis.unknown[0].cluster == "u-000002"
        assert {cluster.id for cluster in store.clusters.list_clusters()} == before
        for number, text in enumerate(texts):
            stored = store.incidents.add(unknown_diagnosis(f"later {number}", text, "u-bbbbbb"))
            expected = 0 if text in ASSERTIONS else number
            assert stored.diagnosis.unknown[0].cluster == f"u-{expected:06x}"
        (collision,) = store.clusters.rekey(actor="ann", dry_run=True).collisions
        assert "u-000000 u-000001" in collision
        newest = {cluster for key, cluster in store.clusters.list_keys() if key.version == OLD.version}
        assert newest == before - {"u-000001"}  # a key that two clusters share is the older one's
