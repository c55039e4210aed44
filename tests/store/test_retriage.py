"""triage.store.retriage: a signature made from a cluster makes its stored incidents known."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import triage
from tests.store.conftest import Place
from triage.catalog.check import check_files
from triage.catalog.load import load
from triage.cli import main
from triage.store import Store
from triage.store.retriage import ChangedIncident, retriage
from triage.store.search import Filter
from triage.testing.jobs import JobBuilder

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return call


def write_job(path: Path, number: int, text: str) -> str:
    """Write a job of four ranks in which one raises; return its path."""
    built = JobBuilder(path / f"job{number}", world_size=4)
    built.rank(number % 4).traceback(text)
    built.elastic_table({number % 4: 1})
    return str(built.write())


def test_promoted_signatures_explain_stored_incidents(tmp_path: Path, place: Place, command: Command) -> None:
    """25 unknown incidents become known by a generated signature of which only the texts were edited."""
    path, mine = place("triage"), tmp_path / "signatures"
    with Store.open(path) as store:
        for number in range(25):
            text = f"ReshardError: tokenizer shard {number * 7} at offset 0x{number * 4096 + 255:x} is torn"
            store.incidents.add(triage.ingest(write_job(tmp_path / "jobs", number, text)))
        near = store.incidents.add(
            triage.ingest(write_job(tmp_path / "near", 1, "ReshardError: tokenizer vocabulary is empty"))
        )
        assert store.search.count_incidents() == 26
        cluster = max(store.clusters.list_clusters(), key=lambda item: item.incidents)
        assert (cluster.incidents, cluster.jobs) == (25, 25)

    status, out, err = command(
        "clusters",
        "promote",
        cluster.id,
        "data.torn-shard",
        "-d",
        mine,
        "--title",
        "A tokenizer shard is torn",
        "--store",
        path,
    )
    assert (status, err) == (0, "")
    made = mine / "data" / "torn-shard.yaml"
    text = made.read_text(encoding="utf-8")
    assert "TODO" in text
    assert "tokenizer vocabulary is empty" in text.partition("no_match:")[2]
    made.write_text(re.sub(r'"TODO: [^"]*"', '"Write the shard again ({shard})."', text), encoding="utf-8")
    assert [str(problem) for problem in check_files([made]) if problem.severity != "info"] == []

    status, out, err = command("retriage", "--catalog", mine, "--dry-run", "--store", path)
    assert (status, err) == (0, "")
    assert "25 would change" in out
    with Store.open(path) as store:
        assert store.search.compute_stats().verdicts[0].name == "unknown"
        done = retriage(store.connections, store.incidents, load((mine,)))
        assert (done.checked, dict(done.kinds)) == (26, {"unknown → known": 25})
        assert retriage(store.connections, store.incidents, load((mine,))).changed == ()
        details = store.incidents.get(done.changed[0].incident)
        root = details.diagnosis.root_cause
        assert root is not None
        assert (root.signature, root.title) == ("data.torn-shard", "A tokenizer shard is torn")
        assert root.remediation.summary == f"Write the shard again ({root.captures['shard']})."
        assert root.evidence[0].line is not None
        assert [(change.old, change.new, change.reason) for change in details.history] == [
            (cluster.id, "data.torn-shard", "retriage")
        ]
        assert len([post for post in store.outbox.list_posts() if post.kind == "changed"]) == 25
        assert store.incidents.get(near.id).diagnosis.verdict == "unknown"
        assert store.clusters.get(cluster.id).state == "promoted"
        # A new ingest of the same files says the same, and the change is not told again.
        same = store.search.list_incidents(Filter(job="job3"))[0]
        again = store.incidents.add(triage.ingest(same.path, triage.Options(catalogs=(mine,))))
        assert (again.id, again.is_new, again.diagnosis.verdict) == (same.id, False, "known")
        assert len(store.incidents.get(same.id).history) == 1


def test_an_unchanged_catalog_changes_nothing(place: Place) -> None:
    """The stored excerpts never refute a diagnosis of all files by the same catalog."""
    samples = Path(__file__).parents[2] / "samples" / "jobs"
    names = (
        "sigkill_perrank",
        "exception_one_rank_tee",
        "skipped_collective_plain",
        "ranks_missing_perrank",
        "healthy_handled_plain",
        "segfault_plain",
    )
    with Store.open(place("triage")) as store:
        for name in names:
            store.incidents.add(triage.ingest(samples / name / "job"))
        progress: list[tuple[int, int]] = []
        done = retriage(store.connections, store.incidents, load(()), progress=lambda *counts: progress.append(counts))
        assert (done.checked, done.changed) == (len(names), ())
        assert progress == [(number, len(names)) for number in range(len(names))]


def test_a_removed_signature_makes_the_failure_unknown(tmp_path: Path, place: Place) -> None:
    """Without its signature the failure is unknown again, has a cluster, and has a history."""
    mine = tmp_path / "signatures" / "data"
    mine.mkdir(parents=True)
    (mine / "torn.yaml").write_text(
        "id: data.torn\nrevision: 1\ntitle: Torn\nstatus: stable\nrole: cause\nseverity: fatal\n"
        "match: {any: [{text: 'shard (?P<n>\\d+) is torn'}]}\n"
        "remediation: {summary: Write it again.}\nsamples: {match: [{text: 'ReshardError: shard 7 is torn'}]}\n"
    )
    with Store.open(place("triage")) as store:
        path = write_job(tmp_path / "jobs", 1, "ReshardError: shard 7 is torn")
        stored = store.incidents.add(triage.ingest(path, triage.Options(catalogs=(mine.parent,))))
        assert stored.diagnosis.verdict == "known"
        done = retriage(store.connections, store.incidents, load(()))
        assert dict(done.kinds) == {"known → unknown": 1}
        details = store.incidents.get(stored.id)
        assert details.incident.cluster == details.history[0].new
        assert (
            store.clusters.get(details.history[0].new).incidents == 0
        )  # it was counted when it was ingested, as what it was then
        assert [hit.incident.id for hit in store.search.search_text("torn")] == [stored.id]


def test_limits_of_a_retriage(tmp_path: Path, place: Place) -> None:
    """--signature and --since leave other incidents unchanged."""
    mine = tmp_path / "signatures" / "data"
    mine.mkdir(parents=True)
    for name, fruit in (("one", "apple"), ("two", "pear")):
        (mine / f"{name}.yaml").write_text(
            f"id: data.{name}\nrevision: 1\ntitle: {name}\nstatus: stable\nrole: cause\nseverity: fatal\n"
            f"match: {{any: [{{text: '{fruit} is torn'}}]}}\n"
            f"remediation: {{summary: Write it again.}}\n"
            f"samples: {{match: [{{text: 'ReshardError: {fruit} is torn'}}]}}\n"
        )
    with Store.open(place("triage")) as store:
        for number, fruit in enumerate(("apple", "pear")):
            store.incidents.add(triage.ingest(write_job(tmp_path / "jobs", number, f"ReshardError: {fruit} is torn")))
        known = load((mine.parent,))
        assert retriage(store.connections, store.incidents, known, since=4_000_000_000.0).checked == 0
        done = retriage(store.connections, store.incidents, known, signature="data.two")
        assert [item.new for item in done.changed] == ["data.two"]
        assert [item.signature for item in store.search.list_incidents()].count("data.two") == 1


@pytest.mark.parametrize(
    ("old", "new", "verdicts", "kind"),
    [
        ("a.one", "a.one", ("known", "known"), "findings beside the cause"),
        ("a.one", "a.two", ("known", "known"), "one signature → another"),
        ("u-aaaaaa", "a.two", ("unknown", "known"), "unknown → known"),
    ],
)
def test_a_change_has_a_kind(old: str, new: str, verdicts: tuple[str, str], kind: str) -> None:
    """The kind names what changed: only other findings, the signature, or the verdict."""
    assert ChangedIncident("j-1", "job", old, new, *verdicts).kind == kind
