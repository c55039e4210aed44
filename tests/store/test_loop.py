"""From unknown to known: incidents gather in a cluster, a signature is made of it, and the past is known too."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import triage
from triage.catalog.check import check
from triage.catalog.load import load
from triage.cli import main
from triage.store import Store
from triage.store.retriage import retriage
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


def job(path: Path, number: int, text: str) -> str:
    """A job of four ranks in which one raises."""
    built = JobBuilder(path / f"job{number}", world_size=4)
    built.rank(number % 4).traceback(text)
    built.elastic_table({number % 4: 1})
    return str(built.write())


def test_promote_check_retriage_closes_the_loop(tmp_path: Path, command: Command) -> None:
    """25 unknown incidents become known by a generated signature of which only the texts were edited."""
    path, mine = tmp_path / "triage.db", tmp_path / "signatures"
    with Store.open(path) as store:
        for number in range(25):
            text = f"ReshardError: tokenizer shard {number * 7} at offset 0x{number * 4096 + 255:x} is torn"
            store.incidents.add(triage.ingest(job(tmp_path / "jobs", number, text)))
        near = store.incidents.add(
            triage.ingest(job(tmp_path / "near", 1, "ReshardError: tokenizer vocabulary is empty"))
        )
        assert store.search.count() == 26
        cluster = max(store.clusters.listed(), key=lambda item: item.incidents)
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
    made.write_text(re.sub(r'"TODO: [^"]*"', '"Write shard {shard} again."', text), encoding="utf-8")
    assert [str(problem) for problem in check([made]) if problem.severity != "info"] == []

    status, out, err = command("retriage", "--catalog", mine, "--dry-run", "--store", path)
    assert (status, err) == (0, "")
    assert "25 would change" in out
    with Store.open(path) as store:
        assert store.search.sums().verdicts[0].name == "unknown"
        done = retriage(store.connections, store.incidents, load((mine,)))
        assert (done.asked, dict(done.kinds)) == (26, {"unknown → known": 25})
        assert retriage(store.connections, store.incidents, load((mine,))).changed == ()
        found = store.incidents.get(done.changed[0].incident)
        root = found.diagnosis.root_cause
        assert root is not None
        assert (root.signature, root.title) == ("data.torn-shard", "A tokenizer shard is torn")
        assert root.remediation.summary == f"Write shard {root.captures['shard']} again."
        assert root.evidence[0].line is not None
        assert [(change.old, change.new, change.reason) for change in found.history] == [
            (cluster.id, "data.torn-shard", "retriage")
        ]
        assert len([post for post in store.outbox.listed() if post.kind == "changed"]) == 25
        assert store.incidents.get(near.id).diagnosis.verdict == "unknown"
        assert store.clusters.get(cluster.id).state == "promoted"
        # A new ingest of the same files says the same, and the change is not told again.
        same = store.search.listed(Filter(job="job3"))[0]
        again = store.incidents.add(triage.ingest(same.path, triage.Options(catalogs=(mine,))))
        assert (again.id, again.new, again.diagnosis.verdict) == (same.id, False, "known")
        assert len(store.incidents.get(same.id).history) == 1


def test_a_cause_of_an_unchanged_catalog_is_never_taken_back(tmp_path: Path) -> None:
    """What a diagnosis knew from all the files, a few stored lines do not disprove: nothing changes on recorded jobs."""
    samples = Path(__file__).parents[2] / "samples" / "jobs"
    names = (
        "sigkill_perrank",
        "exception_one_rank_tee",
        "skipped_collective_plain",
        "ranks_missing_perrank",
        "healthy_handled_plain",
        "segfault_plain",
    )
    with Store.open(tmp_path / "triage.db") as store:
        for name in names:
            store.incidents.add(triage.ingest(samples / name / "job"))
        done = retriage(store.connections, store.incidents, load(()))
        assert (done.asked, done.changed) == (len(names), ())


def test_a_signature_that_is_gone_or_narrowed_lets_go(tmp_path: Path) -> None:
    """Without the signature that knew it the failure is unknown again, in a cluster, and says so in its history."""
    mine = tmp_path / "signatures" / "data"
    mine.mkdir(parents=True)
    (mine / "torn.yaml").write_text(
        "id: data.torn\nrevision: 1\ntitle: Torn\nstatus: stable\nrole: cause\nseverity: fatal\nmatch: {any: [{text: 'shard (?P<n>\\d+) is torn'}]}\n"
        "remediation: {summary: Write it again.}\nsamples: {match: [{text: 'ReshardError: shard 7 is torn'}]}\n"
    )
    with Store.open(tmp_path / "triage.db") as store:
        path = job(tmp_path / "jobs", 1, "ReshardError: shard 7 is torn")
        stored = store.incidents.add(triage.ingest(path, triage.Options(catalogs=(mine.parent,))))
        assert stored.diagnosis.verdict == "known"
        done = retriage(store.connections, store.incidents, load(()))
        assert dict(done.kinds) == {"known → unknown": 1}
        found = store.incidents.get(stored.id)
        assert found.incident.cluster == found.history[0].new
        assert (
            store.clusters.get(found.history[0].new).incidents == 0
        )  # it was counted when it was ingested, as what it was then
        assert [hit.incident.id for hit in store.search.text("torn")] == [stored.id]


def test_limits_of_a_retriage(tmp_path: Path) -> None:
    """--signature and --since leave the others alone."""
    mine = tmp_path / "signatures" / "data"
    mine.mkdir(parents=True)
    for name, words in (("one", "apple"), ("two", "pear")):
        (mine / f"{name}.yaml").write_text(
            f"id: data.{name}\nrevision: 1\ntitle: {name}\nstatus: stable\nrole: cause\nseverity: fatal\nmatch: {{any: [{{text: '{words} is torn'}}]}}\n"
            f"remediation: {{summary: Write it again.}}\nsamples: {{match: [{{text: 'ReshardError: {words} is torn'}}]}}\n"
        )
    with Store.open(tmp_path / "triage.db") as store:
        for number, words in enumerate(("apple", "pear")):
            store.incidents.add(triage.ingest(job(tmp_path / "jobs", number, f"ReshardError: {words} is torn")))
        known = load((mine.parent,))
        assert retriage(store.connections, store.incidents, known, since=4_000_000_000.0).asked == 0
        done = retriage(store.connections, store.incidents, known, signature="data.two")
        assert [item.new for item in done.changed] == ["data.two"]
        assert [item.signature for item in store.search.listed()].count("data.two") == 1
