"""triage.store.causes: the sums of incidents by cause follow every write, in each kind of database."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter, defaultdict
from typing import Any

import pytest

from tests.store.conftest import Place
from tests.store.factories import DAY, NOW, known_diagnosis, unknown_diagnosis
from triage.base.errors import NotFoundError
from triage.model import Diagnosis
from triage.store import Store, copying, maintenance, search, transfer
from triage.store.cause_work import WorkChange
from triage.store.causes import CauseFilter


def sums(store: Store) -> list[tuple[object, ...]]:
    """Return the sums in the tables, without the times at which incidents were stored."""
    tables = (
        "SELECT cause, incidents, first_at, last_at, jobs, hosts FROM cause_sum",
        "SELECT cause, day, incidents FROM cause_day",
        "SELECT cause, kind, name, incidents FROM cause_part",
    )
    return sorted((tuple(row) for sql in tables for row in store.connections.read(sql)), key=repr)


def counted_again(store: Store) -> list[tuple[object, ...]]:
    """Return the sums as the incidents alone give them."""
    rows = store.connections.read(
        "SELECT coalesce(i.signature, i.key) AS cause, i.at, i.hosts, j.name FROM incident i JOIN job j "
        "ON j.id = i.job WHERE coalesce(i.signature, i.key) IS NOT NULL"
    )

    by_cause = defaultdict(list)
    for row in rows:
        by_cause[row["cause"]].append(row)
    result: list[tuple[object, ...]] = []
    for cause, items in by_cause.items():
        times = [row["at"] for row in items]
        parts = Counter(("job", row["name"]) for row in items)
        parts.update(("host", host) for row in items for host in json.loads(row["hosts"]))
        kinds = Counter(kind for kind, _ in parts)
        result.append((cause, len(items), min(times), max(times), kinds["job"], kinds["host"]))
        result += [(cause, day, count) for day, count in Counter(int(at // DAY) for at in times).items()]
        result += [(cause, *part, count) for part, count in parts.items()]
    return sorted(result, key=repr)


def without_time(diagnosis: Diagnosis) -> Diagnosis:
    """Return a diagnosis whose files have no time."""
    root = diagnosis.root_cause
    assert root is not None
    root = dataclasses.replace(root, first_time=None)
    job = dataclasses.replace(diagnosis.job, last_time=None)
    return dataclasses.replace(diagnosis, job=job, root_cause=root, findings=(root,))


def fill(store: Store) -> None:
    """Store failures of two signatures and two clusters on four days."""
    for number in range(4):
        name, host = f"llama-{number}", f"node{number % 3}"
        store.incidents.add(known_diagnosis(name, host=host, at=NOW - number * DAY), now=NOW + number)
    store.incidents.add(known_diagnosis("kill", "host.sigkill", at=NOW - 20 * DAY), now=NOW)
    for number in range(2):
        store.incidents.add(unknown_diagnosis(f"shard-{number}", at=NOW - number * DAY), now=NOW)
    store.incidents.add(unknown_diagnosis("torn", "KeyError: 'weights' is gone", "u-bbbbbb"), now=NOW)


def test_causes_have_the_sums_of_their_incidents(store: Store) -> None:
    """A cause has its count, this week's count, first and last failure, hosts, jobs and days."""
    fill(store)
    page = store.causes.list_causes(now=NOW)
    assert page.total == 4
    cause = page.causes[0]
    assert (cause.id, cause.kind, cause.incidents, cause.recent) == ("cuda.out-of-memory", "signature", 4, 4)
    assert (cause.first_at, cause.last_at) == (NOW - 3 * DAY, NOW)
    assert (cause.host_count, cause.hosts, cause.jobs) == (3, ("node0", "node1", "node2"), 4)
    assert cause.days == (*(0,) * 24, 1, 1, 1, 1)
    assert [item.kind for item in page.causes[1:]] == ["cluster", "cluster", "signature"]
    assert page.causes[1].title == "ValueError: shard 7 is bad"
    assert sums(store) == counted_again(store)


@pytest.mark.parametrize(("days", "recent"), [(6, 1), (7, 0)])
def test_a_week_counts_failures_by_their_time(store: Store, days: int, recent: int) -> None:
    """A failure counts for this week by when it failed, not by when it was ingested."""
    store.incidents.add(known_diagnosis("a", at=NOW - days * DAY), now=NOW)
    assert store.causes.get("cuda.out-of-memory", now=NOW).recent == recent


def test_a_failure_without_a_time_has_the_one_of_its_ingest(store: Store) -> None:
    """Without a time in the files the failure has the time of its first ingest, also after a new diagnosis."""
    stored = store.incidents.add(without_time(known_diagnosis("a")), now=NOW)
    cause = store.causes.get("cuda.out-of-memory", now=NOW)
    assert (cause.last_at, cause.last_has_time) == (NOW, False)
    changed = without_time(known_diagnosis("a", "host.sigkill"))
    store.incidents.replace_diagnosis(store.incidents.find_number(stored.id), changed, "test", now=NOW + DAY)
    incident = store.incidents.get(stored.id).incident
    assert (incident.at, incident.has_time) == (NOW, False)
    store.incidents.add(known_diagnosis("b", "host.sigkill", at=NOW + 5), now=NOW + 5)
    assert store.causes.get("host.sigkill", now=NOW).last_has_time


def test_sums_follow_changes_and_deletion(store: Store) -> None:
    """After another diagnosis, another name of the job, and retention, the sums are those of the incidents."""
    fill(store)
    store.incidents.add(known_diagnosis("llama-0", "host.sigkill", host="node9", at=NOW - DAY), now=NOW)
    assert sums(store) == counted_again(store)
    moved = known_diagnosis("llama-1", host="node1", at=NOW - 2 * DAY)
    moved = dataclasses.replace(moved, job=dataclasses.replace(moved.job, name="other"))
    store.incidents.add(moved, now=NOW)
    assert ("cuda.out-of-memory", "job", "other", 1) in sums(store)
    assert sums(store) == counted_again(store)
    maintenance.prune(store.connections, store.incidents, days=1.5, now=NOW)
    assert sums(store) == counted_again(store)
    maintenance.prune(store.connections, store.incidents, days=-2, now=NOW)
    assert sums(store) == []
    assert store.causes.list_causes(now=NOW).total == 0


@pytest.mark.parametrize("most", [1, 2])
def test_the_incidents_of_a_merged_cluster_come_by_time(
    store: Store, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Pages of one give those of both fingerprints, the latest first, whether they are asked one by one or not."""
    monkeypatch.setattr(search, "MOST_FINGERPRINTS", most)
    for number in range(3):
        store.incidents.add(unknown_diagnosis(f"a{number}", at=NOW - 2 * number * DAY), now=NOW)
        late = unknown_diagnosis(
            f"b{number}", "KeyError: 'weights' is gone", "u-bbbbbb", at=NOW - (2 * number + 1) * DAY
        )
        store.incidents.add(late, now=NOW)
    ids = [cluster.id for cluster in store.clusters.list_clusters()]
    _, merged = store.cluster_actions.merge(ids, actor="ann")
    names: list[str] = []
    after = None
    while page := store.search.list_incidents(search.Filter(cause=merged, since=NOW - 4.5 * DAY), limit=1, after=after):
        names += [incident.job_name for incident in page]
        after = store.search.cursor_after(page[-1])
    assert names == ["a0", "b0", "a1", "b1", "a2"]


def test_a_merged_cluster_is_one_cause(store: Store) -> None:
    """Fingerprints of one cluster are one cause; hosts that they share count once."""
    fill(store)
    ids = [cause.id for cause in store.causes.list_causes(CauseFilter(kind="cluster"), now=NOW).causes]
    _, merged = store.cluster_actions.merge(ids, actor="ann")
    page = store.causes.list_causes(CauseFilter(kind="cluster"), now=NOW)
    assert [(cause.id, cause.incidents, cause.host_count, cause.jobs) for cause in page.causes] == [(merged, 3, 1, 3)]
    assert {store.causes.get(name, now=NOW).incidents for name in ids} == {3}


def test_causes_are_filtered_and_ordered(store: Store) -> None:
    """Filters of text, host, kind and domain narrow the list; each order is another one; pages do not overlap."""
    fill(store)

    def ids(order: str = "week", **values: str) -> list[str]:
        page = store.causes.list_causes(CauseFilter(**values), order=order, now=NOW)  # type: ignore[arg-type]
        return [cause.id for cause in page.causes]

    assert ids(text="OUT memory") == ["cuda.out-of-memory"]
    assert ids(host="node2") == ["cuda.out-of-memory"]
    assert ids(domain="host") == ["host.sigkill"]
    assert ids(order="first")[-1] == "host.sigkill"
    assert ids(order="count")[0] == "cuda.out-of-memory"
    assert ids(order="last")[-1] == "host.sigkill"
    pages = [store.causes.list_causes(limit=2, offset=offset, now=NOW).causes for offset in (0, 2, 4)]
    assert [len(page) for page in pages] == [2, 2, 0]
    assert len({cause.id for page in pages for cause in page}) == 4


@pytest.mark.parametrize(("since", "total"), [(NOW, 1), (NOW + 1, 0)])
def test_new_causes_are_those_first_stored_since(store: Store, since: float, total: int) -> None:
    """A cause is new by when its first incident was stored, however old its failures are."""
    store.incidents.add(known_diagnosis("a", at=NOW - 30 * DAY), now=NOW)
    store.incidents.add(known_diagnosis("b", at=NOW), now=NOW + 5)
    assert store.causes.list_causes(CauseFilter(new_since=since), now=NOW).total == total


def test_a_cause_without_incidents_is_an_error(store: Store) -> None:
    """A signature that ended no job, and an unknown cluster, are errors with a hint."""
    for name in ("cuda.out-of-memory", "u-123456"):
        with pytest.raises(NotFoundError):
            store.causes.get(name)


def test_copies_and_imports_have_the_sums(place: Place) -> None:
    """A copied store and one that imports an export compute the same sums, also of what comes after it."""
    with Store.open(place("one")) as one, Store.open(place("two")) as two, Store.open(place("three")) as three:
        fill(one)
        copying.copy_store(one.connections, two.connections)
        transfer.import_lines(three.connections, list(transfer.export_lines(one.connections)))
        assert sums(one) == sums(two) == sums(three) == counted_again(one)
        two.incidents.add(known_diagnosis("later", host="node9"), now=NOW)
        assert sums(two) == counted_again(two)


def test_a_page_of_causes_takes_as_many_queries_as_one_cause(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of queries of a list does not grow with its causes, fixed ones and clusters among them."""
    counts = []
    for round_ in range(2):
        for number in range(20 * round_ + 1):
            store.incidents.add(known_diagnosis(f"k{number}", f"made.cause-{number}", at=NOW - number), now=NOW)
            store.incidents.add(unknown_diagnosis(f"u{number}", f"ValueError: {chr(97 + number) * 5} is torn"))
            change = WorkChange(status="fixed", date=NOW - DAY)
            store.cause_work.change([f"made.cause-{number}"], change, actor="anna", now=NOW)
        queries: list[str] = []
        read = store.connections.read

        def counted(sql: str, *values: object, read: Any = read, queries: list[str] = queries) -> Any:
            queries.append(sql)
            return read(sql, *values)

        with monkeypatch.context() as patched:
            patched.setattr(store.connections, "read", counted)
            page = store.causes.list_causes(CauseFilter(kind="signature"), now=NOW)
        assert {cause.status for cause in page.causes} == {"regressed"}
        assert all(cause.since_fix == 1 and cause.hosts and sum(cause.days) == 1 for cause in page.causes)
        counts.append(len(queries))
    assert counts[0] == counts[1]
