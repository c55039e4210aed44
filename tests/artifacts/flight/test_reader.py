"""Flight Recorder dumps as part of a job: evidence, warnings and the diagnosis."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

import triage
from tests.artifacts.flight.factories import Call, Job, as_json, as_pickle, write
from tests.artifacts.flight.test_load import HOSTILE
from triage.artifacts.flight.reader import FlightRecorder
from triage.artifacts.interface import Artifact, ReadResult
from triage.model import FlightDetail
from triage.model.evidence import Source

HANG = Job({rank: [Call()] * (3 if rank == 2 else 6) for rank in range(4)})


def read(files: dict[str, bytes]) -> ReadResult:
    """Read the contents of dumps, by file name."""
    return FlightRecorder().read(
        [Artifact(Source(name, "flight-recorder", len(data)), data) for name, data in sorted(files.items())]
    )


def test_inference_for_the_rank_at_fault() -> None:
    """The inference has rule, ranks, group and number, at the dump of its rank; every dump shows its progress."""
    result = read({f"fr/nccl_trace_rank_{rank}": as_pickle(dump) for rank, dump in HANG.dumps().items()})
    (inference,) = [fact for fact in result.evidence if fact.kind == "inference"]
    assert {key: inference.fields[key] for key in ("rule", "ranks", "group", "seq", "op", "waiting", "ground")} == {
        "rule": "never-joined",
        "ranks": "2",
        "group": "default_pg",
        "seq": "4",
        "op": "all_reduce",
        "waiting": "0,1,3",
        "ground": "measured",
    }
    assert (inference.source, inference.origin.rank, inference.component) == (
        "fr/nccl_trace_rank_2",
        2,
        "flight-recorder",
    )
    calls = {fact.origin.rank: fact.detail.call for fact in result.evidence if isinstance(fact.detail, FlightDetail)}
    assert calls == dict.fromkeys((0, 1, 3), "all_reduce #4 of default_pg") | {2: ""}
    assert result.warnings == []


def test_hostile_dump_is_refused() -> None:
    """A hostile dump gives a warning that names it and its content; the other dumps are analysed."""
    files = {f"fr_rank_{rank}": as_pickle(dump) for rank, dump in HANG.dumps().items()}
    files["fr_rank_1"] = HOSTILE["system"][0]
    result = read(files)
    assert [(warning.code, warning.source) for warning in result.warnings] == [
        ("damaged-artifact", "fr_rank_1"),
        ("no-dump", None),
    ]
    assert "global posix.system" in result.warnings[0].message
    assert [fact.fields["ranks"] for fact in result.evidence if fact.kind == "inference"] == ["2"]


def test_dump_without_a_rank_in_its_name_is_a_warning() -> None:
    """A file name without a rank gives a warning, because the dump does not contain the rank."""
    (warning,) = read({"trace": as_pickle(HANG.dumps()[0])}).warnings
    assert warning.code == "no-rank"


def test_truncated_dump_gives_an_uncertain_fault() -> None:
    """A rank whose dump is truncated is only at fault by absence."""
    files = {f"fr_rank_{rank}": as_pickle(dump) for rank, dump in HANG.dumps().items()}
    files["fr_rank_2"] = files["fr_rank_2"][:-600]
    result = read(files)
    assert [warning.code for warning in result.warnings] == ["cut-dump"]
    assert {(fact.fields["ranks"], fact.fields["ground"]) for fact in result.evidence if fact.kind == "inference"} == {
        ("2", "silence")
    }


@pytest.mark.parametrize("form", ["plain", "gz", "zst", "json", "json.gz", "nested", "tar"])
def test_formats_and_layouts(form: str, tmp_path: Path) -> None:
    """The diagnosis is the same for compressed, JSON, nested and archived dumps."""
    job = tmp_path / "job"
    write(HANG, job)
    if form == "nested":
        for rank in range(4):
            (job / f"node{rank // 2}").mkdir(exist_ok=True)
            (job / f"fr_rank_{rank}").rename(job / f"node{rank // 2}" / f"nccl_trace_rank_{rank}")
    elif form == "tar":
        import tarfile

        with tarfile.open(tmp_path / "job.tar.gz", "w:gz") as archive:
            archive.add(job, "job")
        job = tmp_path / "job.tar.gz"
    elif form != "plain":
        for rank, dump in HANG.dumps().items():
            data = as_json(dump) if form.startswith("json") else (job / f"fr_rank_{rank}").read_bytes()
            (job / f"fr_rank_{rank}").unlink()
            if form.endswith("gz"):
                data = gzip.compress(data)
            elif form == "zst":
                data = zstandard.compress(data)
            (job / f"fr_rank_{rank}.{form}").write_bytes(data)
    diagnosis = triage.ingest(str(job))
    assert diagnosis.verdict == "known"
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("torch.rank-never-joined", (2,))
    assert diagnosis.job.world_size == 4
    assert diagnosis.job.ranks == (0, 1, 2, 3)


SIGNATURES = {
    "never-joined": "torch.rank-never-joined",
    "lagging-rank": "torch.lagging-rank",
    "extra-collective": "torch.extra-collective",
    "rank-conditional": "torch.rank-conditional-collective",
    "divergent-call": "torch.collective-order-mismatch",
    "shape-mismatch": "torch.collective-shape-mismatch",
    "dtype-mismatch": "torch.collective-dtype-mismatch",
    "wrong-group": "torch.wrong-process-group",
    "group-order": "torch.group-order-deadlock",
    "stuck-in-collective": "torch.stuck-in-collective",
    "p2p-mismatch": "torch.collective-order-mismatch",
}


def test_every_rule_is_matched_by_its_signature() -> None:
    """Each rule of the flight recorder is matched by a signature."""
    from typing import get_args

    from triage.artifacts.flight.model import Rule
    from triage.catalog.load import load
    from triage.catalog.match import positive_leaves

    assert set(SIGNATURES) == set(get_args(Rule))
    rules_of = {
        signature.id: {leaf.fields.get("rule") for leaf in positive_leaves(signature.match)}
        for signature in load().signatures
    }
    for rule, signature in SIGNATURES.items():
        assert rule in rules_of[signature], signature


def test_dump_and_log_together(tmp_path: Path) -> None:
    """The root cause comes from the dump, and the timeouts in the log are its effects."""
    job = write(HANG, tmp_path / "job" / "fr").parent
    line = (
        "[rank{0}]:[E1121 03:10:00.1 ProcessGroupNCCL.cpp:681] [Rank {0}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for 600010 "
        "milliseconds before timing out.\n"
    )
    (job / "train.log").write_text("".join(line.format(rank) for rank in (0, 1, 3)))
    diagnosis = triage.ingest(str(job))
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("torch.rank-never-joined", (2,))
    assert Path(diagnosis.root_cause.evidence[0].source).name == "fr_rank_2"
    (timeout,) = [finding for finding in diagnosis.findings if finding.signature == "torch.collective-timeout"]
    assert timeout.explained_by == ("torch.rank-never-joined",)
    assert {Path(fact.source).name for fact in timeout.evidence} == {"train.log"}


def test_error_in_the_log_is_the_root(tmp_path: Path) -> None:
    """An exception of a rank is the root cause; that it never joined afterwards is not."""
    job = write(HANG, tmp_path / "job" / "fr").parent
    (job / "train.log").write_text(
        '[rank2]: Traceback (most recent call last):\n[rank2]:   File "train.py", line 9, in <module>\n'
        "[rank2]:     step()\n"
        "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    diagnosis = triage.ingest(str(job))
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("cuda.out-of-memory", (2,))


@pytest.mark.parametrize("kind", ["finished", "empty", "moments", "hostile"])
def test_dumps_without_a_fault_do_not_prove_success(kind: str, tmp_path: Path) -> None:
    """Dumps alone never give the verdict clean, and the reasons say what they show."""
    calls = {
        rank: [Call()] * (0 if kind == "empty" else 6 - 2 * (rank == 2) if kind == "moments" else 6)
        for rank in range(4)
    }
    job = write(Job(calls), tmp_path / "job")
    # Rank 2 was dumped before the others, which have moved on: all its calls are done everywhere.
    if kind == "moments":
        for rank, dump in Job({rank: [Call()] * 6 for rank in range(4)}).dumps().items():
            if rank != 2:
                (job / f"fr_rank_{rank}").write_bytes(as_pickle(dump))
    if kind == "hostile":
        for rank in calls:
            (job / f"fr_rank_{rank}").write_bytes(HOSTILE["system"][0])
    diagnosis = triage.ingest(str(job))
    assert diagnosis.root_cause is not None
    assert (diagnosis.verdict, diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("unknown", None, ())
    reasons = {
        "finished": "have finished all calls",
        "empty": "hold no call",
        "moments": "have finished all calls",
        "hostile": "can be read",
    }
    assert any(reasons[kind] in why for why in diagnosis.root_cause.why)
    assert diagnosis.root_cause.confidence < 0.3
    (job / "train.log").write_text("step 6 loss 1.0\ntraining finished\n")
    assert triage.ingest(str(job)).verdict == "clean"


def test_compressed_dumps_stay_compressed_in_memory(tmp_path: Path) -> None:
    """A dump from an archive is held deflated, and its content ends at the cap of one dump."""
    import io

    reader = FlightRecorder()
    dump = as_pickle(HANG.dumps()[0])
    artifact = reader.read_stream(Source("fr_rank_0.gz", "flight-recorder"), io.BytesIO(dump))
    assert artifact.content(reader.max_bytes) == dump
    bomb = reader.read_stream(
        Source("fr_rank_1.gz", "flight-recorder"), io.BytesIO(b"\x80\x02" + b"]" * (reader.max_bytes + 5))
    )
    assert len(bomb.compressed) + len(bomb.data) < 1 << 20
    assert len(bomb.content(reader.max_bytes)) == reader.max_bytes


def test_entries_of_all_dumps_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dumps beyond the limit give a warning, and the others are analysed."""
    from triage.artifacts.flight import recording

    monkeypatch.setattr(recording, "MAX_ENTRIES", 12)
    result = read({f"fr_rank_{rank}": as_pickle(dump) for rank, dump in HANG.dumps().items()})
    assert [warning.source for warning in result.warnings if warning.code == "too-many-entries"] == ["fr_rank_3"]
    assert {fact.fields["ranks"] for fact in result.evidence if fact.kind == "inference"} == {"2"}


def test_no_dumps_give_no_evidence() -> None:
    """Without dumps there is neither evidence nor a warning."""
    assert read({}) == ReadResult([], [])


def test_single_dump_of_a_large_job() -> None:
    """One dump of eight shows that its rank waits, but names no rank for which it does."""
    job = Job({rank: [Call()] * (2 if rank == 5 else 3) for rank in range(8)})
    result = read({"fr_rank_0": as_pickle(job.dumps()[0])})
    assert [fact.text for fact in result.evidence if fact.detail is not None and fact.fields.get("end") == "open"] == [
        "rank 0 waits in a call, but the dumps do not show for which rank"
    ]
    assert [warning.code for warning in result.warnings] == ["no-dump"]
