"""Any sequence of actions on a store gives what the same actions give on a plain model of dictionaries."""

from __future__ import annotations

import dataclasses
import itertools
import math
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.effort import is_thorough
from tests.store.conftest import Place
from tests.store.factories import NOW, clean_diagnosis, inconclusive_diagnosis, known_diagnosis, unknown_diagnosis
from triage.base.errors import NotFoundError, OptionError
from triage.model.diagnosis import Diagnosis
from triage.store import Store, maintenance, stats_cache, transfer
from triage.store.search import Filter

JOBS = ("alpha", "bravo", "charlie", "delta", "echo")
SIGNATURES = ("cuda.out-of-memory", "host.sigkill")
# Unknown failures that have no word in common, so that only people merge their clusters.
UNKNOWN = {
    "ValueError: shard checksum differs": "u-aaaaaa",
    "KeyError: optimizer momentum missing": "u-bbbbbb",
    "ConnectionError: mirror answered nothing": "u-cccccc",
    "ZeroDivisionError: warmup schedule empty": "u-dddddd",
}
CAUSES = (*SIGNATURES, *UNKNOWN, "clean", "inconclusive")
ACTOR = "ann"
VERDICTS = ("known", "unknown", "inconclusive", "clean")


def make_diagnosis(job: str, cause: str) -> Diagnosis:
    """Return the diagnosis of a job with this cause."""
    if cause in SIGNATURES:
        return known_diagnosis(job, cause)
    if cause in UNKNOWN:
        return unknown_diagnosis(job, cause, UNKNOWN[cause])
    return clean_diagnosis(job) if cause == "clean" else inconclusive_diagnosis(job)


def find_verdict(cause: str) -> str:
    """Return the verdict of a cause."""
    return "known" if cause in SIGNATURES else "unknown" if cause in UNKNOWN else cause


@dataclass
class ModelIncident:
    """What the store must know about a job."""

    cause: str
    ingests: int = 1
    feedback: list[tuple[str, str]] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class ModelCluster:
    """What the store must know about a cluster. `age` orders clusters by their creation."""

    age: tuple[int, int]
    state: str = "open"
    name: str | None = None
    redirect: str | None = None


@dataclass
class ModelAction:
    """An action that can be undone: its audit entry, the clusters and failures before, the cluster it made."""

    entry: int
    clusters: dict[str, ModelCluster]
    failures: dict[str, str]
    made: str | None = None

    @property
    def touched(self) -> set[str]:
        """The clusters that it depends on."""
        return {*self.clusters, *([self.made] if self.made else [])}


class StoreMachine(RuleBasedStateMachine):
    """Does each action on the store and on the model, and compares them after each step."""

    new_place: Callable[[], str]  # returns where another empty store is
    sequences = 0  # how many ended without a difference

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.store = self.open_new_store()
        self.incidents: dict[str, ModelIncident] = {}
        self.failures: dict[str, str] = {}  # the cluster of each unknown failure
        self.counts: Counter[str] = Counter()  # incidents of each unknown failure, also deleted ones
        self.clusters: dict[str, ModelCluster] = {}
        self.actions: list[ModelAction] = []

    def open_new_store(self) -> Store:
        return Store.open(type(self).new_place())

    def teardown(self) -> None:
        problems = maintenance.check_store(self.store.connections)
        self.store.close()
        assert problems == []
        type(self).sequences += 1

    # -- the model

    def resolve(self, cluster: str) -> str:
        """Return the cluster that an id means today."""
        redirect = self.clusters[cluster].redirect
        return cluster if redirect is None else self.resolve(redirect)

    def list_standing(self) -> list[str]:
        return sorted(name for name, cluster in self.clusters.items() if cluster.redirect is None)

    def list_failures(self, cluster: str) -> list[str]:
        return [failure for failure, owner in self.failures.items() if owner == cluster]

    def current_cause(self, incident: ModelIncident) -> str:
        """Return what the store names as the cause of an incident: a signature, a cluster or a verdict."""
        return self.failures.get(incident.cause, incident.cause)

    def find_id(self, job: str) -> str:
        return "i-" + make_diagnosis(job, "clean").job.id.removeprefix("j-")

    def remember(self, clusters: list[str], made: str | None = None) -> ModelAction:
        """Return the state before an action on these clusters; its entry is set afterwards."""
        before = {name: dataclasses.replace(self.clusters[name]) for name in clusters}
        owned = {failure: owner for failure, owner in self.failures.items() if owner in clusters}
        return ModelAction(0, before, owned, made)

    # -- actions on incidents

    @initialize(jobs=st.permutations(JOBS), count=st.integers(0, len(UNKNOWN)))
    def add_some(self, jobs: list[str], count: int) -> None:
        """Begin with some clusters, so that most sequences merge and split them."""
        for job, cause in zip(jobs, list(UNKNOWN)[:count], strict=False):
            self.add(job, cause)

    @rule(job=st.sampled_from(JOBS), cause=st.sampled_from(CAUSES))
    def add(self, job: str, cause: str) -> None:
        """Ingest a job: a new incident, the same again, or the same files with another diagnosis."""
        known = self.incidents.get(job)
        before = None if known is None else self.current_cause(known)
        self.now += 1
        result = self.store.incidents.add(make_diagnosis(job, cause), now=self.now)
        if cause in UNKNOWN and cause not in self.failures:
            self.failures[cause] = UNKNOWN[cause]
            self.clusters[UNKNOWN[cause]] = ModelCluster((0, len(self.clusters)))
        if known is None:
            known = self.incidents[job] = ModelIncident(cause)
            self.counts[cause] += 1
        else:
            known.ingests, known.cause = known.ingests + 1, cause
            if before != self.current_cause(known):
                known.changes.append((str(before), self.current_cause(known)))
        assert (result.id, result.is_new, result.ingests) == (self.find_id(job), before is None, known.ingests)
        root = result.diagnosis.root_cause
        assert (root.cluster if root else None) == self.failures.get(cause)

    @precondition(lambda self: self.incidents)
    @rule(data=st.data(), verdict=st.sampled_from(("agree", "wrong")), because=st.sampled_from(("", "seen it", "no")))
    def give_feedback(self, data: st.DataObject, verdict: str, because: str) -> None:
        """Agree or disagree with a diagnosis."""
        job = data.draw(st.sampled_from(sorted(self.incidents)))
        cause = self.current_cause(self.incidents[job])
        stored = self.store.feedback.add(self.find_id(job), verdict, actor=ACTOR, because=because)  # type: ignore[arg-type]
        assert stored.diagnosed == cause
        self.incidents[job].feedback.append((verdict, because))

    @precondition(lambda self: self.incidents)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Delete an incident; its cluster keeps the count."""
        job = data.draw(st.sampled_from(sorted(self.incidents)))
        self.store.incidents.remove([self.store.incidents.find_number(self.find_id(job))])
        del self.incidents[job]
        with pytest.raises(NotFoundError):
            self.store.incidents.get(self.find_id(job))

    # -- actions on clusters

    @precondition(lambda self: self.clusters)
    @rule(data=st.data(), name=st.sampled_from(("bad disk", "old driver", "wrong mirror")))
    def name_cluster(self, data: st.DataObject, name: str) -> None:
        """Name a cluster; a name that another one has is refused."""
        cluster = data.draw(st.sampled_from(self.list_standing()))
        if any(self.clusters[other].name == name for other in self.list_standing() if other != cluster):
            with pytest.raises(OptionError, match="another cluster"):
                self.store.cluster_actions.name(cluster, name, actor=ACTOR)
            return
        action = self.remember([cluster])
        action.entry = self.store.cluster_actions.name(cluster, name, actor=ACTOR)
        model = self.clusters[cluster]
        model.name, model.state = name, "named" if model.state == "open" else model.state
        self.actions.append(action)

    @precondition(lambda self: self.clusters)
    @rule(data=st.data(), is_ignored=st.booleans())
    def ignore_or_reopen(self, data: st.DataObject, is_ignored: bool) -> None:
        """Hide a cluster, or show it again."""
        cluster = data.draw(st.sampled_from(self.list_standing()))
        action, actions = self.remember([cluster]), self.store.cluster_actions
        action.entry = (actions.ignore if is_ignored else actions.reopen)(cluster, actor=ACTOR)
        model = self.clusters[cluster]
        model.state = "ignored" if is_ignored else "named" if model.name else "open"
        self.actions.append(action)

    @precondition(lambda self: len(self.list_standing()) > 1)
    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        """Merge two clusters: the older id stays."""
        pair = data.draw(st.permutations(self.list_standing()))[:2]
        action = self.remember(pair)
        action.entry, stays = self.store.cluster_actions.merge(pair, actor=ACTOR)
        oldest, other = sorted(pair, key=lambda name: self.clusters[name].age)
        assert stays == oldest
        model = self.clusters[oldest]
        model.name = model.name or self.clusters[other].name
        model.state = "named" if model.state == "open" and model.name else model.state
        self.clusters[other].redirect, self.clusters[other].state = oldest, "merged"
        self.failures.update(dict.fromkeys(self.list_failures(other), oldest))
        self.actions.append(action)

    @precondition(lambda self: any(len(self.list_failures(name)) > 1 for name in self.list_standing()))
    @rule(data=st.data())
    def split(self, data: st.DataObject) -> None:
        """Move one failure of a cluster into a new one."""
        cluster = data.draw(
            st.sampled_from([name for name in self.list_standing() if len(self.list_failures(name)) > 1])
        )
        failure = data.draw(st.sampled_from(self.list_failures(cluster)))
        key = self.find_key(cluster, failure)
        action = self.remember([cluster])
        action.entry, new = self.store.cluster_actions.split(cluster, [key], actor=ACTOR)
        assert new not in self.clusters
        action.made = new
        self.clusters[new] = ModelCluster((1, len(self.clusters)))
        self.failures[failure] = new
        self.actions.append(action)

    def find_key(self, cluster: str, failure: str) -> str:
        """Return the key that the store has for a failure: the one whose example has its text."""
        exemplars = self.store.clusters.list_exemplars(cluster)
        return next(key for key, _, facts in exemplars if any(fact.text == failure for fact in facts))

    @precondition(lambda self: self.actions)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        """Undo an action; one on which a later action depends is refused."""
        action = data.draw(st.sampled_from(self.actions))
        place = self.actions.index(action)
        if any(action.touched & later.touched for later in self.actions[place + 1 :]):
            with pytest.raises(OptionError, match="depends on entry"):
                self.store.cluster_actions.undo(action.entry, actor=ACTOR)
            return
        self.store.cluster_actions.undo(action.entry, actor=ACTOR)
        self.clusters.update(action.clusters)
        self.failures.update(action.failures)
        if action.made:
            into = next(iter(action.clusters))
            self.clusters[action.made].redirect, self.clusters[action.made].state = into, "merged"
        del self.actions[place]
        with pytest.raises(OptionError, match="already undone"):
            self.store.cluster_actions.undo(action.entry, actor=ACTOR)

    # -- the store as a whole

    @rule()
    def reopen(self) -> None:
        """Close the store and open it again, as the next process does."""
        path = self.store.connections.location
        self.store.close()
        self.store = Store.open(path, create=False)

    @rule()
    def move(self) -> None:
        """Export the store and go on with a new one that imported it; actions of the old one cannot be undone there."""
        lines = list(transfer.export_lines(self.store.connections))
        self.store.close()
        self.store = self.open_new_store()
        added = transfer.import_lines(self.store.connections, lines)
        assert added.get("incident", 0) == len(self.incidents)
        assert transfer.import_lines(self.store.connections, lines) == {}
        self.actions.clear()

    # -- what must hold

    @invariant()
    def incidents_are_equal(self) -> None:
        """Each incident is in the store, whole, with its feedback and history, and no other is."""
        listed = {item.id: item for item in self.store.search.list_incidents(limit=1000)}
        assert set(listed) == {self.find_id(job) for job in self.incidents}
        for job, model in self.incidents.items():
            stored = self.store.incidents.get(self.find_id(job))
            assert stored.incident == listed[self.find_id(job)]
            assert (stored.incident.verdict, stored.incident.ingests) == (find_verdict(model.cause), model.ingests)
            assert [(item.verdict, item.because) for item in stored.feedback] == model.feedback
            assert [(item.old, item.new) for item in stored.history] == model.changes
            assert stored.incident.cluster == self.failures.get(model.cause)
            expected = make_diagnosis(job, model.cause)
            assert (stored.diagnosis.job, stored.diagnosis.verdict) == (expected.job, expected.verdict)

    @invariant()
    def clusters_are_equal(self) -> None:
        """Each id means the same cluster, with its state, name, failures and count."""
        states = {name: self.clusters[name].state for name in self.list_standing()}
        listed = self.store.clusters.list_clusters(states=("open", "named", "ignored"), limit=100)
        assert {cluster.id: cluster.state for cluster in listed} == states
        for cluster in listed:
            failures = self.list_failures(cluster.id)
            assert len(cluster.keys) == len(failures)
            assert (cluster.name, cluster.incidents) == (
                self.clusters[cluster.id].name,
                sum(self.counts[failure] for failure in failures),
            )
        for name in self.clusters:
            assert self.store.clusters.find_id(name) == self.resolve(name)

    @invariant()
    def searches_agree(self) -> None:
        """Every filter, the full-text search and the statistics find the incidents of the model."""
        search, jobs = self.store.search, self.incidents
        verdicts = Counter(find_verdict(model.cause) for model in jobs.values())
        for verdict in VERDICTS:
            assert search.count_incidents(Filter(verdict=verdict)) == verdicts[verdict]
        for signature in SIGNATURES:
            assert search.count_incidents(Filter(signature=signature)) == self.count_cause({signature})
        for cluster in self.list_standing():
            expected = self.count_cause(set(self.list_failures(cluster)))
            assert search.count_incidents(Filter(cluster=cluster)) == expected
        for failure in UNKNOWN:
            hits = search.search_text(failure.split()[-2], some=False)
            assert len(hits) == self.count_cause({failure})
        wrong = sum(any(verdict == "wrong" for verdict, _ in model.feedback) for model in jobs.values())
        assert search.count_incidents(Filter(wrong=True)) == wrong
        stats = search.compute_stats()
        assert (stats.incidents, {row.name: row.count for row in stats.verdicts}) == (len(jobs), dict(verdicts))

    def count_cause(self, causes: set[str]) -> int:
        """Return how many incidents have one of these causes."""
        return sum(model.cause in causes for model in self.incidents.values())


def test_any_sequence_of_actions(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding, changing, merging, splitting, undoing, deleting, moving: the store is what the model is."""
    monkeypatch.setattr(stats_cache, "CHEAP", math.inf)  # on a busy machine statistics may be old
    template, numbers = Path(place("0")), itertools.count(1)
    Store.open(place("0")).close()

    def new_place() -> str:
        name = place(str(next(numbers)))
        if template.exists():
            shutil.copy(template, name)  # creating a file takes most of the time of a sequence
        return name

    monkeypatch.setattr(StoreMachine, "new_place", staticmethod(new_place), raising=False)
    monkeypatch.setattr(StoreMachine, "sequences", 0)
    sequences = 15 if is_thorough() or template.exists() else 5  # each takes seconds in PostgreSQL
    limits = settings(
        max_examples=sequences, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(StoreMachine, settings=limits)  # type: ignore[no-untyped-call]
    assert StoreMachine.sequences >= sequences
