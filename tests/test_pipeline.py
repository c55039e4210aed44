"""The whole way: the answer depends on what the job wrote, not on how it is packed, cut, ordered or read."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import sys
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import triage
from triage import pipeline
from triage.base.errors import InputError, OptionError
from triage.model.diagnosis import Diagnosis
from triage.pipeline import Options, Progress
from triage.render.json import render
from triage.testing.jobs import JobBuilder

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "jobs"
FOUR = (
    "exception_one_rank_tee",
    "sigkill_redirects",
    "dtype_mismatch_detail_perrank",
    "assertion_all_ranks_interleaved",
)
SEVERAL = sorted(path.name for path in SAMPLES.iterdir() if sum(file.is_file() for file in path.glob("job/**/*")) > 1)
ENGINES = ("auto", "hyperscan", "re2")
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB"


def document(diagnosis: Diagnosis) -> str:
    """The report's bytes without what a run costs."""
    document = json.loads(render(diagnosis))
    del document["stats"]["seconds"], document["stats"]["peak_memory_bytes"]
    return json.dumps(document)


def files_of(job: Path) -> list[str]:
    return sorted(str(path) for path in job.rglob("*") if path.is_file())


@cache
def plain_answer(name: str) -> str:
    return document(triage.ingest(files_of(SAMPLES / name / "job"), Options(workers=1)))


def essence(diagnosis: Diagnosis) -> tuple[object, ...]:
    """What may not depend on packing: verdict, root, ranks and the lines that are shown of each finding."""
    root = diagnosis.root_cause
    shown = [
        (
            finding.signature or finding.cluster,
            finding.ranks,
            sorted((os.path.basename(e.source).removesuffix(".gz"), e.line, e.end_line) for e in finding.evidence),
        )
        for finding in (*diagnosis.findings, *diagnosis.unknown)
    ]
    return (
        diagnosis.verdict,
        root and (root.signature, root.cluster, root.ranks, root.confidence),
        shown,
        diagnosis.job.id,
    )


@settings(max_examples=24, deadline=None)
@given(
    name=st.sampled_from(SEVERAL),
    seed=st.integers(0, 1 << 30),
    workers=st.integers(1, 4),
    chunk=st.integers(12, 22),
    engine=st.sampled_from(ENGINES),
)
def test_order_workers_chunks_and_engine_change_nothing(
    name: str, seed: int, workers: int, chunk: int, engine: str
) -> None:
    """The report is the same, byte for byte, for any order of the paths, number of threads, size of chunks and
    automaton.

    Each run draws other samples of all that have several files.
    """
    files = files_of(SAMPLES / name / "job")
    random.Random(seed).shuffle(files)
    chunk_bytes = (1 << chunk) + seed % 4096
    assert document(
        triage.ingest(files, Options(workers=workers, chunk_bytes=chunk_bytes, engine=engine))
    ) == plain_answer(name)


def tarred(job: Path, target: Path) -> list[str]:
    with tarfile.open(target / "job.tar.gz", "w:gz") as archive:
        archive.add(job, arcname="job")
    return [str(target / "job.tar.gz")]


def zipped(job: Path, target: Path) -> list[str]:
    with zipfile.ZipFile(target / "job.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files_of(job):
            archive.write(file, os.path.join("job", os.path.relpath(file, job)))
    return [str(target / "job.zip")]


def gzipped(job: Path, target: Path) -> list[str]:
    for file in files_of(job):
        packed = target / "job" / (os.path.relpath(file, job) + ".gz")
        packed.parent.mkdir(parents=True, exist_ok=True)
        packed.write_bytes(gzip.compress(Path(file).read_bytes()))
    return [str(target / "job")]


@pytest.mark.parametrize("pack", [tarred, zipped, gzipped])
@pytest.mark.parametrize("name", [*FOUR, "sigkill_twonode_tee", "restarted_then_finished_tee"])
def test_packing_changes_nothing(name: str, pack: Callable[[Path, Path], list[str]], tmp_path: Path) -> None:
    """A directory, a tar.gz, a zip and single .gz files of one job have one verdict, root, ranks, lines and job id."""
    job = SAMPLES / name / "job"
    assert essence(triage.ingest(pack(job, tmp_path))) == essence(triage.ingest(job))


def test_the_same_job_twice_is_one_job(tmp_path: Path) -> None:
    """Giving a directory and a file inside it, or a directory twice, reads nothing twice."""
    job = SAMPLES / FOUR[0] / "job"
    assert essence(triage.ingest([job, job, job / "console.log"])) == essence(triage.ingest(job))


@pytest.mark.parametrize("paths", [[], ["/no/such/place"], ["s3://bucket/job"]])
def test_useless_paths_say_what_to_do(paths: list[str]) -> None:
    """No path, one that does not exist, a URL: an InputError with a hint."""
    with pytest.raises(InputError) as caught:
        triage.ingest(paths)
    assert caught.value.hint


def _empty(directory: Path) -> None:
    directory.mkdir()


def _empty_files(directory: Path) -> None:
    directory.mkdir()
    (directory / "a.log").touch()
    (directory / "b.log").touch()


def _binaries(directory: Path) -> None:
    directory.mkdir()
    (directory / "model.bin").write_bytes(bytes(range(256)) * 64)
    (directory / "train").write_bytes(b"\x7fELF" + bytes(2000))


def _source_code(directory: Path) -> None:
    directory.mkdir()
    for path in sorted((Path(triage.__file__).parent / "ranks").glob("*.py")):  # full of examples of failures
        (directory / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")


@pytest.mark.parametrize("make", [_empty, _empty_files, _binaries, _source_code])
def test_nothing_to_read_is_an_input_error(make: Callable[[Path], None], tmp_path: Path) -> None:
    """Where no log can be, that is said, and what to give instead."""
    make(tmp_path / "job")
    with pytest.raises(InputError) as caught:
        triage.ingest(tmp_path / "job")
    assert caught.value.hint
    assert str(tmp_path) in str(caught.value)


PROGRAM = 'raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")  # NCCL WARN Duplicate GPU detected\n'


@pytest.mark.parametrize("pack", [None, tarred, zipped, gzipped])
def test_a_program_beside_its_logs_is_not_read(pack: Callable[[Path, Path], list[str]] | None, tmp_path: Path) -> None:
    """What a program quotes did not happen; that it was skipped is told, and naming it reads it."""
    job = JobBuilder(tmp_path / "job", world_size=2).steps(3).finish().write()
    (job / "train.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "packed").mkdir()
    found = triage.ingest(pack(job, tmp_path / "packed") if pack else job)
    assert found.verdict == "clean"
    assert any(warning.code == "no-output" and "train.py" in warning.message for warning in found.warnings)
    assert triage.ingest(job / "train.py").verdict == "known"


def test_a_signature_that_does_not_exist_is_an_option_error() -> None:
    """`explain` of an id that the catalog has not says where the ids are."""
    with pytest.raises(OptionError) as caught:
        triage.explain(SAMPLES / FOUR[0] / "job", "no.such-signature")
    assert "catalog list" in caught.value.hint


def test_an_unknown_engine_is_a_triage_error() -> None:
    """An engine that does not exist is refused with a hint, not with a traceback."""
    with pytest.raises(OptionError) as caught:
        triage.ingest(SAMPLES / FOUR[0] / "job", Options(engine="grep"))
    assert caught.value.hint


def failing(directory: Path) -> JobBuilder:
    job = JobBuilder(directory, world_size=2).steps(3)
    job.rank(1).traceback("ValueError: record 'doc-7' has no tokens")
    return job.elastic_table({1: 1})


def test_a_truncated_archive_beside_good_logs_is_a_warning(tmp_path: Path) -> None:
    """What can be read is diagnosed; what is damaged is told."""
    job = failing(tmp_path / "job").write()
    packed = gzip.compress("".join(f"[rank0]: step {n} loss {n / 7}\n" for n in range(5000)).encode())
    (job / "old.log.gz").write_bytes(packed[: len(packed) // 2])
    found = triage.ingest(job)
    assert found.root_cause is not None
    assert found.root_cause.ranks == (1,)
    assert [warning for warning in found.warnings if warning.source and warning.source.endswith("old.log.gz")]


def test_an_unreadable_file_beside_good_logs_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may not be opened is named, and the rest is diagnosed."""
    job = failing(tmp_path / "job").write()
    (job / "secret.log").write_text("[rank0]: step 1\n", encoding="utf-8")
    (job / "secret.log").chmod(0)
    real = os.open

    def refuse(path: object, *arguments: object, **named: object) -> int:
        if str(path).endswith("secret.log"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)  # root may open everything
    found = triage.ingest(job)
    assert found.root_cause is not None
    assert found.root_cause.ranks == (1,)
    assert any("secret.log" in (warning.source or "") for warning in found.warnings)


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads a log from standard input; lines are counted in it, and the source is called `-`."""
    data = (failing(tmp_path / "job").write() / "console.log").read_bytes()

    class Stdin:
        buffer = io.BytesIO(data)

    monkeypatch.setattr(sys, "stdin", Stdin())
    found = triage.ingest("-")
    root = found.root_cause
    assert root is not None
    assert root.ranks == (1,)
    fact = root.evidence[0]
    assert fact.source == "-"
    assert b"ValueError" in data.split(b"\n")[(fact.line or 0) - 1]


LONG = "x" * 300_000


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.replace("\n", "\r\n").encode(), id="CRLF"),
        pytest.param(lambda text: text.encode("utf-16"), id="UTF-16 with BOM"),
        pytest.param(lambda text: b"\xef\xbb\xbf" + text.encode(), id="UTF-8 with BOM"),
        pytest.param(lambda text: text.replace("step 2 ", "step\0\0 2 ").encode(), id="NULs"),
        pytest.param(lambda text: f"[default0]:{LONG}\n{text}[default0]:{LONG}\n".encode(), id="overlong lines around"),
        pytest.param(
            lambda text: text.replace("has no tokens", "has no tokens " + LONG).encode(), id="overlong message"
        ),
        pytest.param(lambda text: text.replace("[default1]:", "\x1b[31m[default1]:\x1b[0m").encode(), id="colours"),
        pytest.param(lambda text: text.replace("'doc-7'", "'d\xf6c-7'").encode("latin-1"), id="Latin-1"),
    ],
)
def test_bytes_of_any_kind(change: Callable[[str], bytes], tmp_path: Path) -> None:
    """Line ends, encodings, NULs, colours and lines without end change neither the root nor the rank nor the place."""
    job = failing(tmp_path / "job").write()
    log = job / "console.log"
    changed = change(log.read_text(encoding="utf-8"))
    log.write_bytes(changed)
    found = triage.ingest(job)
    root = found.root_cause
    assert root is not None
    assert (root.signature, root.ranks) == (None, (1,))
    text = changed.decode("utf-16" if changed[:2] == b"\xff\xfe" else "latin-1")
    assert "ValueError" in text.split("\n")[(root.evidence[0].line or 0) - 1]
    assert all(len(fact.text) < 20_000 for finding in (*found.findings, *found.unknown) for fact in finding.evidence)


def test_a_storm_is_survived(tmp_path: Path) -> None:
    """A hundred thousand failure lines before the end: the cause is still found, and that counts are sampled is said."""
    job = JobBuilder(tmp_path / "job", world_size=2).steps(3)
    job.rank(1).traceback("ValueError: record 'doc-7' has no tokens")
    noise = (
        "node1:412:530 [0] misc/socket.cc:484 NCCL WARN socketProgress: Connection closed by remote peer node2<51234>"
    )
    job.rank(0).line(*[noise] * 100_000)
    job.elastic_table({1: 1})
    found = triage.ingest(job.write())
    assert found.root_cause is not None
    assert (found.root_cause.signature, found.root_cause.ranks) == (None, (1,))
    assert "storm" in {warning.code for warning in found.warnings}
    assert len(render(found)) < 200_000


SECRETS = {
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "hf": "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "password": "correct-horse-battery",
    "url": "s3cr3tpassw0rd",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
}


def test_secrets_stay_out_of_the_report(tmp_path: Path) -> None:
    """Keys, tokens and passwords in a traceback or a log line appear nowhere in the report, by any way that text takes
    into it.
    """
    job = JobBuilder(tmp_path / "job", world_size=2).steps(3)
    job.rank(0).line(f"Failed to authenticate: Authorization: Bearer {SECRETS['jwt']}")
    job.rank(0).line(f"node1:412:530 [0] NCCL WARN NET/Plugin: token={SECRETS['hf']} refused")
    job.rank(1).traceback(
        f"RuntimeError: cannot open https://bob:{SECRETS['url']}@files.example.com/x: AWS_ACCESS_KEY_ID={SECRETS['aws']}",
        [("/workspace/train.py", 3, f"login(password='{SECRETS['password']}')")],
    )
    text = render(triage.ingest(job.elastic_table({1: 1}).write()))
    for kind, secret in SECRETS.items():
        assert secret not in text, kind
    assert "redacted" in text


def test_progress_counts_all_bytes(tmp_path: Path) -> None:
    """Progress goes up to the total, in bytes of the files."""
    seen: list[Progress] = []
    job = failing(tmp_path / "job").write()
    triage.ingest(job, progress=seen.append)
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert seen[-1].done == seen[-1].total == sum(path.stat().st_size for path in job.rglob("*") if path.is_file())


def test_explain_says_why(tmp_path: Path) -> None:
    """`explain` of the root says that it was chosen, of another signature that nothing meets it, with places that have
    lines.
    """
    job = SAMPLES / "sigkill_redirects" / "job"
    chosen = triage.explain(job, "host.sigkill")
    assert chosen.matched
    assert "root cause" in chosen.outcome
    assert all(fact.line for fact in chosen.evidence)
    assert not triage.explain(job, "cuda.out-of-memory").matched


def test_the_id_of_a_job_is_what_it_wrote(tmp_path: Path) -> None:
    """The same output elsewhere is the same job; other output is another."""
    one, two = failing(tmp_path / "a").write(), failing(tmp_path / "b").write()
    assert triage.ingest(one).job.id == triage.ingest(two).job.id
    (two / "console.log").write_text("[rank0]: step 1\n", encoding="utf-8")
    assert triage.ingest(one).job.id != triage.ingest(two).job.id


@pytest.mark.parametrize("stage", ["Scan", "harvest", "diagnose", "_told"])
@pytest.mark.parametrize("harm", ["unlink", "truncate", "directory"])
def test_what_is_lost_on_the_way_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, harm: str
) -> None:
    """A log that goes away, shrinks or becomes something else before any stage: told once, and the rest is diagnosed."""
    for rank in range(2):
        (tmp_path / f"rank_{rank}.log").write_text("step\n" * 20_000 + f"[rank{rank}]: {OOM}\n" + "step\n" * 20_000)
    lost, after = tmp_path / "rank_0.log", getattr(pipeline, stage)

    def harmed(*given: Any, **options: Any) -> Any:
        if harm == "truncate":
            os.truncate(lost, 10)
        elif lost.is_file():
            lost.unlink()
            if harm == "directory":
                lost.mkdir()
        return after(*given, **options)

    monkeypatch.setattr(pipeline, stage, harmed)
    found = pipeline.ingest([str(tmp_path)])
    assert [(warning.code, warning.source) for warning in found.warnings if warning.code == "unreadable"] == [
        ("unreadable", str(lost))
    ]
    assert found.root_cause is not None
    assert (str(tmp_path / "rank_1.log"), 20_001) in [(fact.source, fact.line) for fact in found.root_cause.evidence]
