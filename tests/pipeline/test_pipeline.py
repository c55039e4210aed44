"""The diagnosis depends on what the job wrote, not on how its files are packed, cut, ordered or read."""

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
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import triage
from triage import pipeline
from triage.base.errors import InputError, OptionError
from triage.model.diagnosis import Diagnosis
from triage.pipeline import Options, Progress, stages
from triage.render.json import render
from triage.testing.jobs import JobBuilder

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "jobs"
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
    """Return the report as JSON without duration and memory."""
    document = json.loads(render(diagnosis))
    del document["stats"]["seconds"], document["stats"]["peak_memory_bytes"]
    return json.dumps(document)


def files_of(job: Path) -> list[str]:
    return sorted(str(path) for path in job.rglob("*") if path.is_file())


@cache
def plain_answer(name: str) -> str:
    return document(triage.ingest(files_of(SAMPLES / name / "job"), Options(workers=1)))


def essence(diagnosis: Diagnosis) -> tuple[object, ...]:
    """Return what must not depend on packing: verdict, root cause, ranks and the evidence of each finding."""
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
def test_order_workers_chunks_and_engine_do_not_change_the_report(
    name: str, seed: int, workers: int, chunk: int, engine: str
) -> None:
    """The report is byte-identical for any order of paths, number of threads, chunk size and scan engine."""
    files = files_of(SAMPLES / name / "job")
    random.Random(seed).shuffle(files)
    chunk_bytes = (1 << chunk) + seed % 4096
    assert document(
        triage.ingest(files, Options(workers=workers, chunk_bytes=chunk_bytes, engine=engine))
    ) == plain_answer(name)


def pack_tar(job: Path, target: Path) -> list[str]:
    with tarfile.open(target / "job.tar.gz", "w:gz") as archive:
        archive.add(job, arcname="job")
    return [str(target / "job.tar.gz")]


def pack_zip(job: Path, target: Path) -> list[str]:
    with zipfile.ZipFile(target / "job.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files_of(job):
            archive.write(file, os.path.join("job", os.path.relpath(file, job)))
    return [str(target / "job.zip")]


def pack_gzip(job: Path, target: Path) -> list[str]:
    for file in files_of(job):
        packed = target / "job" / (os.path.relpath(file, job) + ".gz")
        packed.parent.mkdir(parents=True, exist_ok=True)
        packed.write_bytes(gzip.compress(Path(file).read_bytes()))
    return [str(target / "job")]


@pytest.mark.parametrize("pack", [pack_tar, pack_zip, pack_gzip])
@pytest.mark.parametrize("name", [*FOUR, "sigkill_twonode_tee", "restarted_then_finished_tee"])
def test_packing_does_not_change_the_diagnosis(
    name: str, pack: Callable[[Path, Path], list[str]], tmp_path: Path
) -> None:
    """A directory, a tar.gz, a zip and .gz files of one job give the same verdict, root, ranks, lines and job id."""
    job = SAMPLES / name / "job"
    assert essence(triage.ingest(pack(job, tmp_path))) == essence(triage.ingest(job))


def test_a_path_given_twice_is_read_once(tmp_path: Path) -> None:
    """A directory, the same directory again and a file inside it give the diagnosis of the directory."""
    job = SAMPLES / FOUR[0] / "job"
    assert essence(triage.ingest([job, job, job / "console.log"])) == essence(triage.ingest(job))


@pytest.mark.parametrize("paths", [[], ["/no/such/place"], ["s3://bucket/job"]])
def test_invalid_paths_raise_an_input_error(paths: list[str]) -> None:
    """No path, a missing path and a URL raise an InputError with a hint."""
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


def test_nothing_to_read_is_an_input_error(tmp_path: Path) -> None:
    """A directory without files raises an InputError that names it and says what to give instead."""
    _empty(tmp_path / "job")
    with pytest.raises(InputError) as caught:
        triage.ingest(tmp_path / "job")
    assert caught.value.hint
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("make", [_empty_files, _binaries, _source_code])
def test_files_without_text_are_inconclusive(make: Callable[[Path], None], tmp_path: Path) -> None:
    """Nothing is known of a job whose files are empty, binary or programs, and the report names them."""
    make(tmp_path / "job")
    diagnosis = triage.ingest(tmp_path / "job")
    assert (diagnosis.verdict, diagnosis.root_cause) == ("inconclusive", None)
    assert diagnosis.inconclusive is not None
    assert diagnosis.inconclusive.why[0].startswith("Nothing could be read: ")


PROGRAM = 'raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")  # NCCL WARN Duplicate GPU detected\n'


@pytest.mark.parametrize("pack", [None, pack_tar, pack_zip, pack_gzip])
def test_a_program_beside_its_logs_is_not_read(pack: Callable[[Path, Path], list[str]] | None, tmp_path: Path) -> None:
    """A program quotes failures that did not happen: it is skipped with a warning, and read only if it is named."""
    job = JobBuilder(tmp_path / "job", world_size=2).steps(3).finish().write()
    (job / "train.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "packed").mkdir()
    diagnosis = triage.ingest(pack(job, tmp_path / "packed") if pack else job)
    assert diagnosis.verdict == "clean"
    assert any(warning.code == "no-output" and "train.py" in warning.message for warning in diagnosis.warnings)
    assert triage.ingest(job / "train.py").verdict == "known"


def test_an_unknown_signature_is_an_option_error() -> None:
    """`explain` of an id that is not in the catalog raises an OptionError that names the command with all ids."""
    with pytest.raises(OptionError) as caught:
        triage.explain(SAMPLES / FOUR[0] / "job", "no.such-signature")
    assert "catalog list" in caught.value.hint


def test_an_unknown_engine_is_an_option_error() -> None:
    """A scan engine that does not exist raises an OptionError with a hint."""
    with pytest.raises(OptionError) as caught:
        triage.ingest(SAMPLES / FOUR[0] / "job", Options(engine="grep"))
    assert caught.value.hint


def failing_job(directory: Path) -> JobBuilder:
    """Return a job whose rank 1 raises an exception."""
    job = JobBuilder(directory, world_size=2).steps(3)
    job.rank(1).traceback("ValueError: record 'doc-7' has no tokens")
    return job.elastic_table({1: 1})


def test_a_truncated_archive_beside_good_logs_is_a_warning(tmp_path: Path) -> None:
    """The readable files are diagnosed; a warning names the damaged one."""
    job = failing_job(tmp_path / "job").write()
    packed = gzip.compress("".join(f"[rank0]: step {n} loss {n / 7}\n" for n in range(5000)).encode())
    (job / "old.log.gz").write_bytes(packed[: len(packed) // 2])
    diagnosis = triage.ingest(job)
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.ranks == (1,)
    assert [warning for warning in diagnosis.warnings if warning.source and warning.source.endswith("old.log.gz")]


def test_an_unreadable_file_beside_good_logs_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning names a file without read permission, and the rest is diagnosed."""
    job = failing_job(tmp_path / "job").write()
    (job / "secret.log").write_text("[rank0]: step 1\n", encoding="utf-8")
    (job / "secret.log").chmod(0)
    real_open = os.open

    def refuse(path: object, *arguments: object, **named: object) -> int:
        if str(path).endswith("secret.log"):
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)  # root may open everything
    diagnosis = triage.ingest(job)
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.ranks == (1,)
    assert any("secret.log" in (warning.source or "") for warning in diagnosis.warnings)


def test_a_dash_reads_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads a log from standard input; the evidence has its line numbers and the source name `-`."""
    data = (failing_job(tmp_path / "job").write() / "console.log").read_bytes()

    class Stdin:
        buffer = io.BytesIO(data)

    monkeypatch.setattr(sys, "stdin", Stdin())
    root = triage.ingest("-").root_cause
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
def test_encodings_and_long_lines_do_not_change_the_diagnosis(change: Callable[[str], bytes], tmp_path: Path) -> None:
    """Line ends, encodings, NULs, colours and overlong lines change neither root cause nor rank nor line."""
    job = failing_job(tmp_path / "job").write()
    log = job / "console.log"
    changed = change(log.read_text(encoding="utf-8"))
    log.write_bytes(changed)
    diagnosis = triage.ingest(job)
    root = diagnosis.root_cause
    assert root is not None
    assert (root.signature, root.ranks) == (None, (1,))
    text = changed.decode("utf-16" if changed[:2] == b"\xff\xfe" else "latin-1")
    assert "ValueError" in text.split("\n")[(root.evidence[0].line or 0) - 1]
    reported = (*diagnosis.findings, *diagnosis.unknown)
    assert all(len(fact.text) < 20_000 for finding in reported for fact in finding.evidence)


def test_a_storm_does_not_hide_the_cause(tmp_path: Path) -> None:
    """Among 100,000 equal failure lines the root cause is still found, and a warning says that lines were sampled."""
    job = JobBuilder(tmp_path / "job", world_size=2).steps(3)
    job.rank(1).traceback("ValueError: record 'doc-7' has no tokens")
    noise = (
        "node1:412:530 [0] misc/socket.cc:484 NCCL WARN socketProgress: Connection closed by remote peer node2<51234>"
    )
    job.rank(0).line(*[noise] * 100_000)
    job.elastic_table({1: 1})
    diagnosis = triage.ingest(job.write())
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == (None, (1,))
    assert "storm" in {warning.code for warning in diagnosis.warnings}
    assert len(render(diagnosis)) < 200_000


SECRETS = {
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "hf": "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "password": "correct-horse-battery",
    "url": "s3cr3tpassw0rd",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
}


def test_secrets_stay_out_of_the_report(tmp_path: Path) -> None:
    """Keys, tokens and passwords of a traceback or a log line appear nowhere in the report."""
    job = JobBuilder(tmp_path / "job", world_size=2).steps(3)
    job.rank(0).line(f"Failed to authenticate: Authorization: Bearer {SECRETS['jwt']}")
    job.rank(0).line(f"node1:412:530 [0] NCCL WARN NET/Plugin: token={SECRETS['hf']} refused")
    job.rank(1).traceback(
        f"RuntimeError: cannot open https://bob:{SECRETS['url']}@files.example.com/x: "
        f"AWS_ACCESS_KEY_ID={SECRETS['aws']}",
        [("/workspace/train.py", 3, f"login(password='{SECRETS['password']}')")],
    )
    text = render(triage.ingest(job.elastic_table({1: 1}).write()))
    for kind, secret in SECRETS.items():
        assert secret not in text, kind
    assert "redacted" in text


def test_progress_counts_all_bytes(tmp_path: Path) -> None:
    """Progress rises to the total number of bytes of the files."""
    steps: list[Progress] = []
    job = failing_job(tmp_path / "job").write()
    triage.ingest(job, progress=steps.append)
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1].done == steps[-1].total == sum(path.stat().st_size for path in job.rglob("*") if path.is_file())


def test_explain_says_why_a_signature_matched_or_not(tmp_path: Path) -> None:
    """`explain` reports the root cause's signature as matched, with line numbers, and another one as not matched."""
    job = SAMPLES / "sigkill_redirects" / "job"
    chosen = triage.explain(job, "host.sigkill")
    assert chosen.matched
    assert "root cause" in chosen.outcome
    assert all(fact.line for fact in chosen.evidence)
    assert not triage.explain(job, "cuda.out-of-memory").matched


def test_the_job_id_depends_on_the_content(tmp_path: Path) -> None:
    """The same output in another directory has the same job id; other output has another."""
    one, two = failing_job(tmp_path / "a").write(), failing_job(tmp_path / "b").write()
    assert triage.ingest(one).job.id == triage.ingest(two).job.id
    (two / "console.log").write_text("[rank0]: step 1\n", encoding="utf-8")
    assert triage.ingest(one).job.id != triage.ingest(two).job.id


@pytest.mark.parametrize(
    ("module", "stage"),
    [(stages, "scan_texts"), (stages, "extract_job"), (stages, "diagnose_with_settings"), (pipeline, "_diagnosis")],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("change", ["unlink", "truncate", "directory"])
def test_a_file_lost_between_stages_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, stage: str, change: str
) -> None:
    """A log that disappears, shrinks or becomes a directory before any stage gives one warning; the rest is read."""
    for rank in range(2):
        (tmp_path / f"rank_{rank}.log").write_text("step\n" * 20_000 + f"[rank{rank}]: {OOM}\n" + "step\n" * 20_000)
    lost, run_stage = tmp_path / "rank_0.log", getattr(module, stage)

    def lose_file_first(*arguments: Any, **options: Any) -> Any:
        if change == "truncate":
            os.truncate(lost, 10)
        elif lost.is_file():
            lost.unlink()
            if change == "directory":
                lost.mkdir()
        return run_stage(*arguments, **options)

    monkeypatch.setattr(module, stage, lose_file_first)
    diagnosis = pipeline.ingest([str(tmp_path)])
    assert [warning.source for warning in diagnosis.warnings if warning.code == "unreadable"] == [str(lost)]
    assert diagnosis.root_cause is not None
    places = [(fact.source, fact.line) for fact in diagnosis.root_cause.evidence]
    assert (str(tmp_path / "rank_1.log"), 20_001) in places


@pytest.mark.parametrize(
    ("lines", "signature"),
    [
        (["PermissionError: [Errno 13] Permission denied: '/data/a'"], "host.permission-denied"),
        (["PermissionError: [Errno 13] Permission denied: '/data/a'", *(f"step {n} loss 1.8" for n in range(9))], None),
        (["EOFError: Ran out of input"], None),
    ],
)
def test_an_exception_at_the_end_is_known_without_its_traceback(
    lines: list[str], signature: str | None, tmp_path: Path
) -> None:
    """Not where the program goes on, nor where only the frames tell what it means."""
    (tmp_path / "rank_3.log").write_text("\n".join(["step 1 loss 2.0", "step 2 loss 1.9", *lines, ""]))
    root = triage.ingest(tmp_path).root_cause
    assert (root.signature if root else None) == signature
