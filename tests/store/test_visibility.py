"""A reader of a part of the store reads nothing of the other part, in each kind of database."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest

from tests.store.conftest import Place
from tests.store.factories import NOW, known_diagnosis, make_fact, unknown_diagnosis
from triage.base.errors import NotFoundError, StoreError
from triage.model import Diagnosis
from triage.store import Store, copying, maintenance, stats_cache
from triage.store.cause_work import WorkChange
from triage.store.causes import CauseFilter
from triage.store.recurrence import find_recurrence
from triage.store.search import FACT, Filter
from triage.store.visibility import PARTS, UNRESTRICTED, VisibleConnections, needed_parts

VISION, LLM = (("team", "vision"),), (("team", "llm"),)
OOM = "cuda.out-of-memory"


def of_team(diagnosis: Diagnosis, team: str, host: str) -> Diagnosis:
    """Return a diagnosis of a job of a team on a host."""
    job = dataclasses.replace(diagnosis.job, facts={"team": (team,), "user": (f"user-{team}",)}, hosts={host: (0, 1)})
    assert diagnosis.root_cause is not None
    fact = make_fact(diagnosis.root_cause.evidence[0].text, host=host)
    root = dataclasses.replace(diagnosis.root_cause, hosts=(host,), evidence=(fact,))
    is_known = root.signature is not None
    parts = {"findings": (root,)} if is_known else {"unknown": (root,)}
    return dataclasses.replace(diagnosis, job=job, root_cause=root, **parts)


@pytest.fixture
def ids(store: Store) -> dict[str, str]:
    """Incidents of two teams: a common known cause, and unknown failures, one of them common."""
    diagnoses = {
        "vision-oom": of_team(known_diagnosis("vision-oom"), "vision", "node-vision"),
        "llm-oom": of_team(known_diagnosis("llm-oom"), "llm", "node-llm"),
        "vision-shard": of_team(unknown_diagnosis("v-shard", "ValueError: shard 7 is bad"), "vision", "node-vision"),
        "llm-shard": of_team(unknown_diagnosis("l-shard", "ValueError: shard 8 is bad"), "llm", "node-llm"),
        "llm-only": of_team(
            unknown_diagnosis("l-only", "KeyError: tokenizer secretllm", "u-11aa22"), "llm", "node-llm"
        ),
        "nobody": known_diagnosis("nobody"),
    }
    return {name: store.incidents.add(item, now=NOW + place).id for place, (name, item) in enumerate(diagnoses.items())}


def test_each_table_has_a_part_or_is_open(store: Store) -> None:
    """Each table of the database is restricted or named as open, so that a new one is thought about."""
    if store.connections.dialect.name == "sqlite":
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'page_fts%'"
    else:
        query = (
            "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = current_schema() "
            "AND table_name <> 'cause_parts'"  # a view, for triggers
        )
    tables = {row["name"] for row in store.connections.read(query)} - {"sqlite_stat1", "sqlite_sequence"}
    assert tables - PARTS.keys() - set(UNRESTRICTED) == set()
    assert PARTS.keys() <= tables
    assert set(copying.TABLES) <= PARTS.keys() | set(UNRESTRICTED)


def test_each_part_has_the_columns_of_its_table(store: Store, ids: dict[str, str]) -> None:
    """A query of any column works on the part as on the table, with names and with positions of values."""
    part = store.visible_to(VISION, "mira")
    for table in PARTS:
        whole = [row.keys() for row in store.connections.read(f"SELECT * FROM {table} LIMIT 1")]
        for rows in (
            part.connections.read(f"SELECT * FROM {table} WHERE 1 = ? LIMIT 1", (1,)),
            part.connections.read(f"SELECT * FROM {table} WHERE 1 = :one LIMIT 1", {"one": 1}),
        ):
            assert [set(row.keys()) for row in rows] in ([], [set(keys) for keys in whole]), table


def test_lists_and_counts_have_the_visible_incidents_only(store: Store, ids: dict[str, str]) -> None:
    """Lists, counts, facets, statistics and search are those of a store that has the visible incidents alone."""
    part = store.visible_to(VISION, "mira")
    assert {item.id for item in part.search.list_incidents()} == {ids["vision-oom"], ids["vision-shard"]}
    assert part.search.count_incidents() == 2
    assert part.search.get_latest()[1] == 2
    facets = part.search.count_facets()
    assert [(row.name, row.count) for row in facets[FACT + "team"]] == [("vision", 2)]
    assert [(row.name, row.count) for row in facets["host"]] == [("node-vision", 2)]
    stats = part.search.compute_stats()
    assert stats.incidents == 2
    assert [(row.name, row.count) for row in stats.hosts] == [("node-vision", 2)]
    assert [hit.incident.id for hit in part.search.search_text("secretllm")] == []
    assert [hit.incident.id for hit in part.search.search_text("shard")] == [ids["vision-shard"]]
    assert part.search.count_incidents(Filter(text="bad")) == 1
    assert part.host_history("node-llm").incidents == 0
    assert part.host_history("node-vision").incidents == 2
    assert maintenance.summarize(part.connections)["incident"] == 2
    assert store.search.count_incidents() == 6


def test_each_table_has_rows_of_visible_incidents_only(store: Store, ids: dict[str, str]) -> None:
    """Read as a whole, no table of the part has a row of a hidden incident, another person or the service itself."""
    for name in ("llm-oom", "vision-oom"):
        changed = of_team(known_diagnosis(name, "nccl.timeout"), name.partition("-")[0], "node-x")
        store.incidents.add(changed, now=NOW + 50)
    with store.connections.write() as db:
        for name in ("llm-oom", "vision-oom"):
            store.service_data.save_document(db, ids[name], "environment", {"agreed": {}})
            store.service_data.save_origin(db, ids[name], "lea", {"source": name}, NOW)
            db.execute("INSERT INTO warning SELECT num, 9, 'cut', 'a', 'b' FROM incident WHERE id = ?", (ids[name],))
            db.execute("INSERT INTO redacted SELECT num, 'token', 1 FROM incident WHERE id = ?", (ids[name],))
        keys = sorted(row[0] for row in db.execute("SELECT key FROM cluster_key").fetchall())
        db.execute("INSERT INTO apart VALUES (?, ?, 'because of llm', 1.0)", (keys[0], keys[-1]))
    store.outbox.put("slack", "llm", "once", {}, now=NOW)
    store.tokens.create("lea", ["read"], actor="lea", now=NOW)
    store.service_data.save_upload("0" * 64, 1, now=NOW)
    store.service_data.get_secret("cookies")
    store.subscriptions.add("webhook:llm", actor="lea", cause=OOM, now=NOW)
    for person in ("lea", "mira"):
        store.visits.record(person, now=NOW)
    part = store.visible_to(VISION, "mira").connections
    visible = {row["num"] for row in part.read("SELECT num FROM incident")}
    assert len(visible) == 2
    filled = set()
    for table in PARTS:
        rows = [dict(row) for row in part.read(f"SELECT * FROM {table}")]
        numbers = {row.get("incident", row.get("num")) for row in rows} & {int(row["num"]) for row in _numbers(store)}
        assert numbers <= visible, table
        assert not any("llm" in str(value) or value == "lea" for row in rows for value in _texts(table, row)), table
        filled |= {table} if store.connections.read(f"SELECT 1 FROM {table} LIMIT 1") else set()
    closed = {"outbox", "token", "upload", "secret", "subscription", "apart"}
    assert filled >= closed | {
        "report",
        "page",
        "history",
        "attempt",
        "finding",
        "origin",
        "document",
        "visit",
        "warning",
        "redacted",
    }
    assert all(part.read(f"SELECT * FROM {table}") == [] for table in closed)


def _numbers(store: Store) -> list[Any]:
    return store.connections.read("SELECT num FROM incident")


def _texts(table: str, row: dict[str, Any]) -> list[object]:
    """Return the values of a row that a page may show; who sent a visible job is one of them only in its origin."""
    return [value for name, value in row.items() if (table, name) != ("origin", "actor")]


def test_feedback_is_counted_for_the_visible_incidents(store: Store, ids: dict[str, str]) -> None:
    """Counts and lists of feedback have that on visible incidents alone."""
    for name in ("llm-oom", "vision-oom", "nobody"):
        store.feedback.add(ids[name], "wrong", actor="lea", because=f"says {name}")
    part = store.visible_to(VISION, "mira")
    assert part.feedback.counts() == [(OOM, 0, 1)]
    assert [item.because for item in part.feedback.list_feedback()] == ["says vision-oom"]


def test_a_hidden_incident_does_not_exist(store: Store, ids: dict[str, str]) -> None:
    """A hidden incident gives the error of an id that was never stored, also by the first digits of its job."""
    part = store.visible_to(VISION, "mira")
    for name in ("llm-oom", "llm-only", "nobody"):
        with pytest.raises(NotFoundError, match="the store has no incident"):
            part.incidents.get(ids[name])
    assert part.incidents.get(ids["vision-oom"]).incident.id == ids["vision-oom"]
    similar = part.search.find_similar(ids["vision-oom"])
    assert [item.incident.id for item in similar] == []
    assert {item.incident.id for item in store.search.find_similar(ids["vision-oom"])} == {
        ids["llm-oom"],
        ids["nobody"],
    }


def test_causes_are_summed_over_the_visible_incidents(store: Store, ids: dict[str, str]) -> None:
    """Counts, times, days, hosts and jobs of a cause are those of the visible incidents; a hidden one is not there."""
    part = store.visible_to(VISION, "mira")
    page = part.causes.list_causes(now=NOW + 60)
    assert page.total == 2
    oom = part.causes.get(OOM, now=NOW + 60)
    assert (oom.incidents, oom.recent, oom.hosts, oom.jobs, sum(oom.days)) == (1, 1, ("node-vision",), 1, 1)
    assert store.causes.get(OOM, now=NOW + 60).incidents == 3
    assert part.causes.list_causes(CauseFilter(host="node-llm")).total == 0
    with pytest.raises(NotFoundError):
        part.causes.get("u-11aa22")


def test_earlier_failures_are_counted_among_the_visible_incidents(store: Store, ids: dict[str, str]) -> None:
    """A cause that came before only in hidden jobs is new to a reader of a part, with no host or comment of them."""
    store.cause_work.comment(OOM, "secretllm", actor="llm")
    again = store.incidents.add(of_team(known_diagnosis("vision-again", at=NOW + 60), "vision", "node-vision")).id
    everything = find_recurrence(store, again)
    part = find_recurrence(store.visible_to(VISION, "mira"), again)
    assert everything is not None
    assert (everything.total, everything.hosts, "secretllm" in everything.fix) == (3, (), True)
    assert part is not None
    assert (part.total, part.hosts, part.fix) == (1, ("node-vision",), "")
    assert find_recurrence(store.visible_to(LLM, "luis"), ids["llm-oom"]) is None


def test_readers_of_the_same_part_share_its_sums(
    store: Store, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was summed for one reader is not summed for the next; a decision still shows at once, a new incident too."""
    monkeypatch.setattr(stats_cache, "CHEAP", 1e9)
    store.visible_to(VISION, "mira").causes.list_causes(now=NOW)
    store.visible_to(LLM, "lea").causes.list_causes(now=NOW)
    queries: list[str] = []
    read = VisibleConnections.read
    monkeypatch.setattr(
        VisibleConnections, "read", lambda self, sql, *rest: queries.append(sql) or read(self, sql, *rest)
    )
    assert store.visible_to(VISION, "max").causes.list_causes(now=NOW).total == 2
    assert not [sql for sql in queries if "cause_sum" in sql or "cause_part" in sql]
    only = store.incidents.get(ids["llm-only"]).incident.cluster
    assert only is not None
    store.cause_work.change([only], WorkChange(assignee="lea"), actor="lea")
    assert store.visible_to(LLM, "max").causes.get(only, now=NOW).assignee == "lea"
    store.incidents.add(of_team(known_diagnosis("next"), "vision", "node-vision"), now=NOW)
    assert store.visible_to(VISION, "max").causes.get(OOM, now=NOW).incidents == 2


def test_old_sums_of_a_part_have_current_decisions(
    store: Store, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums that took long may be old for a while; who has the cause, and its status, are never."""
    monkeypatch.setattr(stats_cache, "CHEAP", 0.0)
    monkeypatch.setattr(stats_cache, "TIMES", 1e9)
    only = store.incidents.get(ids["llm-only"]).incident.cluster
    assert only is not None
    llm = store.visible_to(LLM, "lea")
    assert llm.causes.get(only, now=NOW).assignee == ""
    store.incidents.add(of_team(known_diagnosis("next"), "llm", "node-llm"), now=NOW)
    store.cause_work.change([only], WorkChange(assignee="lea", status="acknowledged"), actor="lea")
    assert llm.causes.get(OOM, now=NOW).incidents == 1
    cause = llm.causes.get(only, now=NOW)
    assert (cause.assignee, cause.status) == ("lea", "acknowledged")


def test_old_sums_of_a_part_say_so(store: Store, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A list says since when failures may be missing; nothing if none are, and for who sees all."""
    monkeypatch.setattr(stats_cache, "CHEAP", 0.0)
    monkeypatch.setattr(stats_cache, "TIMES", 1e9)
    part = store.visible_to(VISION, "mira")
    assert part.causes.list_causes(now=NOW).late_since is None
    before = time.time()
    store.incidents.add(of_team(known_diagnosis("next", "host.sigkill"), "vision", "node-vision"), now=NOW)
    page = part.causes.list_causes(now=NOW)
    assert page.total == 2
    assert page.late_since is not None
    assert before - 60 < page.late_since <= before
    assert store.causes.list_causes(now=NOW).late_since is None
    monkeypatch.setattr(stats_cache, "CHEAP", 1e9)
    page = part.causes.list_causes(now=NOW)
    assert (page.total, page.late_since) == (3, None)


def test_old_sums_of_a_part_have_current_regressions(
    store: Store, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure after the fix shows at once, although the sums of its cause are older."""
    monkeypatch.setattr(stats_cache, "CHEAP", 0.0)
    monkeypatch.setattr(stats_cache, "TIMES", 1e9)
    only = store.incidents.get(ids["llm-only"]).incident.cluster
    assert only is not None
    store.cause_work.change([only], WorkChange("fixed", date=NOW + 60), actor="lea")
    llm = store.visible_to(LLM, "lea")
    assert llm.causes.get(only, now=NOW).status == "fixed"
    again = unknown_diagnosis("again", "KeyError: tokenizer secretllm", "u-11aa22", at=NOW + 90)
    store.incidents.add(of_team(again, "llm", "node-llm"), now=NOW + 90)
    cause = llm.causes.get(only, now=NOW)
    assert (cause.incidents, cause.status, cause.since_fix) == (1, "regressed", 1)


def test_a_cluster_of_several_keys_has_the_latest_visible_title(store: Store, ids: dict[str, str]) -> None:
    """Of merged clusters a reader sees the title of their latest visible incident, whichever key it has."""
    shard, only = (store.incidents.get(ids[name]).incident.cluster for name in ("llm-shard", "llm-only"))
    assert shard is not None
    assert only is not None
    _, merged = store.cluster_actions.merge([shard, only], actor="lea")
    assert store.visible_to(LLM, "lea").clusters.get(merged, now=NOW).title == "KeyError: tokenizer secretllm"
    assert store.visible_to(VISION, "mira").clusters.get(merged, now=NOW).title == "ValueError: shard 7 is bad"


def test_a_common_cluster_shows_the_visible_half(store: Store, ids: dict[str, str]) -> None:
    """A cluster of both teams has the reader's title, lines and counts; without the name that somebody gave it."""
    cluster = store.incidents.get(ids["llm-shard"]).incident.cluster
    assert cluster is not None
    assert cluster == store.incidents.get(ids["vision-shard"]).incident.cluster
    store.cluster_actions.name(cluster, "the llm loader", actor="lea", note="see llm-runbook")
    shown = store.visible_to(VISION, "mira").clusters.get(cluster, now=NOW)
    assert (shown.title, shown.name, shown.note, shown.incidents, shown.jobs) == (
        "ValueError: shard 7 is bad",
        None,
        "",
        1,
        1,
    )
    exemplars = store.visible_to(VISION, "mira").clusters.list_exemplars(cluster)
    assert {incident for _, incident, _ in exemplars} == {ids["vision-shard"]}
    other = store.visible_to(LLM, "lea").clusters.get(cluster, now=NOW)
    assert other.title == "ValueError: shard 8 is bad"
    both = store.visible_to((*LLM, *VISION), "max").clusters.get(cluster, now=NOW)
    assert (both.name, both.note, both.incidents) == ("the llm loader", "see llm-runbook", 2)
    assert [item.id for item in store.visible_to(VISION, "mira").clusters.list_clusters()] == [cluster]


def test_work_is_shown_while_all_incidents_of_the_cause_are_visible(store: Store, ids: dict[str, str]) -> None:
    """Assignee, ticket and comments of a common cause are hidden, except one's own comments; others are shown."""
    only = store.incidents.get(ids["llm-only"]).incident.cluster
    assert only is not None
    store.cause_work.change([OOM, only], WorkChange(assignee="lea", ticket="LLM-1"), actor="lea")
    store.cause_work.comment(OOM, "llm batch too large", actor="lea", now=NOW)
    store.cause_work.comment(OOM, "vision too", actor="mira", now=NOW + 1)
    store.cause_work.comment(only, "tokenizer", actor="lea", now=NOW)
    vision, llm = store.visible_to(VISION, "mira"), store.visible_to(LLM, "lea")
    assert (vision.causes.get(OOM).assignee, vision.causes.get(OOM).ticket) == ("", "")
    assert [item.text for item in vision.cause_work.list_comments(OOM)] == ["vision too"]
    assert vision.cause_work.list_comments(only) == []
    assert llm.causes.get(only).assignee == "lea"
    assert [item.text for item in llm.cause_work.list_comments(only)] == ["tokenizer"]
    assert {entry.action for entry in llm.audit.list_entries(subject=only)} == {"work"}
    assert vision.audit.list_entries() == []


def test_what_belongs_to_a_person_is_theirs_alone(store: Store) -> None:
    """A reader of a part has their own tasks and views, not those shared with everybody, and no subscriptions."""
    store.tasks.add("ingest", {"name": "llm-job"}, actor="lea")
    mine = store.tasks.add("ingest", {"name": "mine"}, actor="mira")
    store.saved_views.save("llm only", "causes", {"q": "llm"}, actor="lea", is_shared=True)
    part = store.visible_to(VISION, "mira")
    assert [task.id for task in part.tasks.list_tasks()] == [mine.id]
    assert part.tasks.counts() == {"queued": 1}
    view = part.saved_views.save("my own", "causes", {"q": "oom"}, actor="mira")
    assert [item.id for item in part.saved_views.list_views("mira")] == [view.id]


def test_without_facts_nothing_is_visible(store: Store, ids: dict[str, str]) -> None:
    """A reader whom no rule names sees no incident, and quotes in a fact are a value and nothing else."""
    assert store.visible_to((), "mira").search.count_incidents() == 0
    assert store.visible_to((("team", "vision' OR '1'='1"),), "o'neil").search.count_incidents() == 0
    assert store.visible_to((("user", "user-vision"),), "o'neil").search.count_incidents() == 2


def test_search_finds_old_incidents_behind_many_hidden_ones(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hidden hits do not take the places of visible ones, however many there are."""
    monkeypatch.setattr(
        f"triage.store.{'sqlite_text' if 'sqlite' in store.connections.dialect.name else 'postgres.text'}.RANKED", 3
    )
    old = store.incidents.add(of_team(known_diagnosis("old"), "vision", "node-vision"), now=NOW)
    for number in range(5):
        store.incidents.add(of_team(known_diagnosis(f"new-{number}"), "llm", "node-llm"), now=NOW + 1 + number)
    hits = store.visible_to(VISION, "mira").search.search_text("memory")
    assert [hit.incident.id for hit in hits] == [old.id]


def test_a_part_cannot_be_copied(store: Store) -> None:
    """A copy or an export of a part is refused rather than complete."""
    with pytest.raises(StoreError, match="a part of the store"):
        store.visible_to(VISION, "mira").connections.snapshot()


def test_a_query_needs_the_parts_of_its_tables() -> None:
    """The tables of a query are found with those that their parts are made of, and not in names of columns."""
    assert needed_parts("SELECT number FROM generation") == frozenset()
    assert needed_parts("SELECT * FROM exemplar e WHERE e.key = ?") == {"exemplar", "incident"}
    assert "host" in needed_parts("SELECT * FROM cause_sum")


def test_a_part_works_where_a_store_has_another_place(place: Place) -> None:
    """The real tables are found in the schema of the store."""
    with Store.open(place("other")) as other:
        other.incidents.add(of_team(known_diagnosis("a"), "vision", "n"), now=NOW)
        assert other.visible_to(VISION, "mira").search.count_incidents() == 1
