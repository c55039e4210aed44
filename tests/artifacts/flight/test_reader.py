"""Dumps as part of a job: facts, warnings, and what the whole diagnosis makes of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

import triage
from tests.artifacts.flight.making import Call, Job, as_json, as_pickle, write
from tests.artifacts.flight.test_load import HOSTILE
from triage.artifacts.flight import FlightRecorder
from triage.artifacts.interface import Artifact, Facts
from triage.model.evidence import Source

HANG = Job({rank: [Call()] * (3 if rank == 2 else 6) for rank in range(4)})


def read(files: dict[str, bytes]) -> Facts:
    return FlightRecorder().read(
        [Artifact(Source(name, "flight-recorder", len(data)), data) for name, data in sorted(files.items())]
    )


def test_one_conclusion_for_each_rank_at_fault_in_its_own_dump() -> None:
    """It names rule, ranks, group and number; every dump tells how far its rank had come."""
    found = read({f"fr/nccl_trace_rank_{rank}": as_pickle(dump) for rank, dump in HANG.dumps().items()})
    (conclusion,) = [fact for fact in found.evidence if fact.kind == "inference"]
    assert {key: conclusion.fields[key] for key in ("rule", "ranks", "group", "seq", "op", "waiting", "ground")} == {
        "rule": "never-joined",
        "ranks": "2",
        "group": "default_pg",
        "seq": "4",
        "op": "all_reduce",
        "waiting": "0,1,3",
        "ground": "measured",
    }
    assert (conclusion.source, conclusion.origin.rank, conclusion.component) == (
        "fr/nccl_trace_rank_2",
        2,
        "flight-recorder",
    )
    assert [fact.origin.rank for fact in found.evidence if fact.kind == "flight"] == [0, 1, 2, 3]
    assert found.warnings == []


def test_a_hostile_dump_is_refused_and_the_others_are_read() -> None:
    """Its name and what it asked for are in the warning; the answer stands without it."""
    files = {f"fr_rank_{rank}": as_pickle(dump) for rank, dump in HANG.dumps().items()}
    files["fr_rank_1"] = HOSTILE["system"][0]
    found = read(files)
    assert [(warning.code, warning.source) for warning in found.warnings] == [
        ("damaged-artifact", "fr_rank_1"),
        ("no-dump", None),
    ]
    assert "global posix.system" in found.warnings[0].message
    assert [fact.fields["ranks"] for fact in found.evidence if fact.kind == "inference"] == ["2"]


def test_a_dump_without_a_rank_in_its_name_is_said() -> None:
    """Nothing in a dump tells whose it is."""
    (warning,) = read({"trace": as_pickle(HANG.dumps()[0])}).warnings
    assert warning.code == "no-rank"


def test_cut_dumps_are_used_as_far_as_they_go() -> None:
    """The end of a cut dump is unknown, so its rank is not said to be missing for sure."""
    files = {f"fr_rank_{rank}": as_pickle(dump) for rank, dump in HANG.dumps().items()}
    files["fr_rank_2"] = files["fr_rank_2"][:-600]
    found = read(files)
    assert [warning.code for warning in found.warnings] == ["cut-dump"]
    assert {(fact.fields["ranks"], fact.fields["ground"]) for fact in found.evidence if fact.kind == "inference"} == {
        ("2", "silence")
    }


@pytest.mark.parametrize("form", ["plain", "gz", "zst", "json", "json.gz", "nested", "tar"])
def test_forms_and_layouts(form: str, tmp_path: Path) -> None:
    """Compressed, as JSON, in directories of nodes or in an archive: the diagnosis is the same."""
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
            packed = gzip.compress(data) if form.endswith("gz") else zstandard.compress(data) if form == "zst" else data
            (job / f"fr_rank_{rank}.{form}").write_bytes(packed)
    found = triage.ingest(str(job))
    assert found.verdict == "known"
    assert found.root_cause is not None
    assert (found.root_cause.signature, found.root_cause.ranks) == ("torch.rank-never-joined", (2,))
    assert found.job.world_size == 4
    assert found.job.ranks == (0, 1, 2, 3)


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
    """No rule of the dumps is without a signature that knows it."""
    from typing import get_args

    from triage.artifacts.flight.model import Rule
    from triage.catalog.load import load
    from triage.catalog.match import positive_leaves

    assert set(SIGNATURES) == set(get_args(Rule))
    asked = {
        signature.id: {leaf.fields.get("rule") for leaf in positive_leaves(signature.match)}
        for signature in load().signatures
    }
    for rule, signature in SIGNATURES.items():
        assert rule in asked[signature], signature


def test_dump_and_log_together(tmp_path: Path) -> None:
    """The log shows who timed out, the dump who was missing and where: the root stands on the dump, the timeouts are
    its effects.
    """
    job = write(HANG, tmp_path / "job" / "fr").parent
    line = (
        "[rank{0}]:[E1121 03:10:00.1 ProcessGroupNCCL.cpp:681] [Rank {0}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
    )
    (job / "train.log").write_text("".join(line.format(rank) for rank in (0, 1, 3)))
    found = triage.ingest(str(job))
    assert found.root_cause is not None
    assert (found.root_cause.signature, found.root_cause.ranks) == ("torch.rank-never-joined", (2,))
    assert Path(found.root_cause.evidence[0].source).name == "fr_rank_2"
    (timeout,) = [finding for finding in found.findings if finding.signature == "torch.collective-timeout"]
    assert timeout.explained_by == ("torch.rank-never-joined",)
    assert {Path(fact.source).name for fact in timeout.evidence} == {"train.log"}


def test_an_error_in_the_log_outweighs_what_follows_from_it(tmp_path: Path) -> None:
    """rank 2 raised: that it never joined afterwards is known to the dumps, and is not the cause."""
    job = write(HANG, tmp_path / "job" / "fr").parent
    (job / "train.log").write_text(
        '[rank2]: Traceback (most recent call last):\n[rank2]:   File "train.py", line 9, in <module>\n[rank2]:     step()\n'
        "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    found = triage.ingest(str(job))
    assert found.root_cause is not None
    assert (found.root_cause.signature, found.root_cause.ranks) == ("cuda.out-of-memory", (2,))


@pytest.mark.parametrize("kind", ["finished", "empty", "moments", "hostile"])
def test_dumps_without_a_fault_are_no_proof_of_a_good_end(kind: str, tmp_path: Path) -> None:
    """No dump says that its program ended well, so dumps alone are never `clean`; what they do say stands in the
    reasons.
    """
    calls = {
        rank: [Call()] * (0 if kind == "empty" else 6 - 2 * (rank == 2) if kind == "moments" else 6)
        for rank in range(4)
    }
    job = write(Job(calls), tmp_path / "job")
    if (
        kind == "moments"
    ):  # rank 2 was dumped before the others, which have passed on: all that it holds is done everywhere
        for rank, dump in Job({rank: [Call()] * 6 for rank in range(4)}).dumps().items():
            if rank != 2:
                (job / f"fr_rank_{rank}").write_bytes(as_pickle(dump))
    if kind == "hostile":
        for rank in calls:
            (job / f"fr_rank_{rank}").write_bytes(HOSTILE["system"][0])
    found = triage.ingest(str(job))
    assert found.root_cause is not None
    assert (found.verdict, found.root_cause.signature, found.root_cause.ranks) == ("unknown", None, ())
    words = {
        "finished": "have got through all calls",
        "empty": "hold no call",
        "moments": "have got through all calls",
        "hostile": "can be read",
    }
    assert any(words[kind] in why for why in found.root_cause.why)
    assert found.root_cause.confidence < 0.3
    (job / "train.log").write_text("step 6 loss 1.0\ntraining finished\n")
    assert triage.ingest(str(job)).verdict == "clean"


def test_compressed_dumps_are_held_as_small_as_they_were(tmp_path: Path) -> None:
    """What unfolds to much is held deflated until its turn comes, and read up to the cap of one dump."""
    import io

    reader = FlightRecorder()
    dump = as_pickle(HANG.dumps()[0])
    kept = reader.keep(Source("fr_rank_0.gz", "flight-recorder"), io.BytesIO(dump))
    assert kept.content(reader.max_bytes) == dump
    bomb = reader.keep(
        Source("fr_rank_1.gz", "flight-recorder"), io.BytesIO(b"\x80\x02" + b"]" * (reader.max_bytes + 5))
    )
    assert len(bomb.packed) + len(bomb.data) < 1 << 20
    assert len(bomb.content(reader.max_bytes)) == reader.max_bytes


def test_all_dumps_together_have_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is beyond it is left out in words, and the others are analysed."""
    from triage.artifacts.flight import recording

    monkeypatch.setattr(recording, "MAX_ENTRIES", 12)
    found = read({f"fr_rank_{rank}": as_pickle(dump) for rank, dump in HANG.dumps().items()})
    assert [warning.source for warning in found.warnings if warning.code == "too-many-entries"] == ["fr_rank_3"]
    assert {fact.fields["ranks"] for fact in found.evidence if fact.kind == "inference"} == {"2"}
