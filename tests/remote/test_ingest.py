"""Jobs in an object store: the same answer as from the disk, whatever the network does."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import tarfile
import threading
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from triage import pipeline
from triage.base.errors import InputError
from triage.base.options import Options
from triage.cli import main
from triage.model import Diagnosis
from triage.model.diagnosis import Stats
from triage.remote import cell_cache, listing, session
from triage.remote.interface import CELL, RUN, RemoteRules
from triage.render import json as json_report
from triage.scan.interface import SPAN
from triage.sources.opened_file import stop_threads
from triage.testing.jobs import JobBuilder

from .conftest import Bucket
from .faulty_proxy import FaultyProxy, choose_some

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "jobs"
REMOTE = Options(addresses=True)


def ingest(path: str) -> Diagnosis:
    return pipeline.ingest([path], REMOTE)


def as_text(diagnosis: Diagnosis, root: str) -> str:
    """The JSON report, with the place of the job left out."""
    job = dataclasses.replace(diagnosis.job, name="job", path="job")
    report = json_report.render(dataclasses.replace(diagnosis, job=job, stats=Stats()))
    return report.replace(root.rstrip("/"), "ROOT")


def build_large_job(directory: Path, ranks: int = 3) -> Path:
    """Write a job with a text of more than one span for each rank; rank 1 has the failure at its end."""
    job = JobBuilder(directory, world_size=ranks)
    job.rank(1).traceback("ValueError: no tokens left in the shard")
    job.elastic_table({1: 1}).write()
    for rank in range(ranks):
        lines = [b"step %d loss 0.%d WARNING: slow batch of rank %d\n" % (step, step, rank) for step in range(180_000)]
        (directory / f"rank_{rank}.log").write_bytes(b"".join(lines))
    return directory


@pytest.mark.parametrize("name", ["dataloader_worker_killed_tee", "sigkill_perrank"])
def test_the_answer_is_that_of_the_disk(s3: Bucket, name: str) -> None:
    """The report of a prefix equals that of the same files in a directory, names aside, and so does the job's id."""
    local = SAMPLES / name / "job"
    address = s3.put_directory(local, "job")
    remote_answer, local_answer = ingest(address), ingest(str(local))
    assert remote_answer.job.id == local_answer.job.id
    assert as_text(remote_answer, address) == as_text(local_answer, str(local))
    assert remote_answer.stats.remote is not None
    assert remote_answer.stats.remote.bytes == remote_answer.stats.bytes
    assert local_answer.stats.remote is None


def test_large_objects_are_read_in_parts(s3: Bucket, tmp_path: Path) -> None:
    """Texts of several spans give the same report, and each byte is received once."""
    local = build_large_job(tmp_path / "job")
    address = s3.put_directory(local, "job")
    answer = ingest(address)
    assert as_text(answer, address) == as_text(ingest(str(local)), str(local))
    assert answer.stats.bytes > 3 * (1 << 23)
    assert answer.stats.remote is not None
    assert answer.stats.remote.bytes == answer.stats.bytes


@pytest.mark.parametrize("size", [CELL - 1, CELL, CELL + 100, 4 * CELL + 100, RUN + 100, SPAN + 100])
def test_the_ends_of_a_text_are_whole(s3: Bucket, tmp_path: Path, size: int) -> None:
    """Wherever an object is cut into requests, its last lines are those of the file."""
    local = tmp_path / "job"
    local.mkdir()
    end = b"Traceback (most recent call last):\n" + b'  File "a.py", line 1, in f\n' * 20 + b"ValueError: no tokens\n"
    text = b"".join(b"step %d of a rank\n" % step for step in range(size // 12))[: size - len(end) - 1]
    (local / "rank_0.log").write_bytes(text + b"\n" + end)
    address = s3.put_directory(local, "job")
    assert as_text(ingest(address), address) == as_text(ingest(str(local)), str(local))


def test_later_stages_may_fork(s3: Bucket, tmp_path: Path) -> None:
    """After the scan no thread of a network is left, so that extraction uses processes; the answer is the same."""
    address = s3.put_directory(build_large_job(tmp_path / "job", ranks=2), "job")
    before = set(threading.enumerate())
    forked = pipeline.ingest([address], Options(addresses=True, fork=True, workers=2))
    assert as_text(forked, address) == as_text(ingest(str(tmp_path / "job")), str(tmp_path / "job"))
    stop_threads([address])
    assert {thread for thread in set(threading.enumerate()) - before if "fsspec" in thread.name} == set()


@pytest.mark.parametrize("cache", [0, 1 << 21, 1 << 23])
def test_a_small_cache_costs_requests_only(s3: Bucket, tmp_path: Path, cache: int) -> None:
    """With little or no space for what was read, bytes are read again, and the answer is the same."""
    session.set_rules(RemoteRules(cache_bytes=cache))
    local = build_large_job(tmp_path / "job", ranks=2)
    address = s3.put_directory(local, "job")
    assert as_text(ingest(address), address) == as_text(ingest(str(local)), str(local))


@pytest.mark.parametrize("steps", [100_000, 180_000])
def test_cells_that_made_room_are_not_requested_again(
    s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Cells that are dropped after their scan cost no request: later stages and line numbers do without them."""
    local = tmp_path / "job"
    local.mkdir()
    end = b'Traceback (most recent call last):\n  File "t.py", line 3, in f\nValueError: no tokens\n'
    for rank in range(4):
        lines = [b"[rank%d] step %d loss 0.%06d lr 0.001000\n" % (rank, step, step * 7) for step in range(steps)]
        lines.insert(steps // 2, b"[rank%d] WARNING: slow batch\n" % rank)
        (local / f"rank_{rank}.log").write_bytes(b"".join(lines) + end)
    address = s3.put_directory(local, "job")
    without = ingest(address).stats.remote
    session.set_rules(RemoteRules())
    monkeypatch.setattr(cell_cache, "SCANNED_BYTES", 0)
    answer = ingest(address)
    assert as_text(answer, address) == as_text(ingest(str(local)), str(local))
    assert answer.stats.remote is not None
    assert answer.stats.remote.bytes == answer.stats.bytes
    assert without is not None
    assert answer.stats.remote.requests <= without.requests + 4  # which cells came alone depends on threads
    assert len(session.current_session().cache._slots) * CELL < answer.stats.bytes * 4 // 5


def test_archives_and_compressed_files(s3: Bucket, tmp_path: Path) -> None:
    """A tar, a zip and a gzip file are read as streams, with the same answer."""
    job = SAMPLES / "sigkill_perrank" / "job"
    local = tmp_path / "mixed"
    local.mkdir()
    files = sorted(path for path in job.rglob("*") if path.is_file())
    with tarfile.open(local / "first.tar.gz", "w:gz") as tar:
        for path in files[::3]:
            tar.add(path, arcname=str(path.relative_to(job)))
    with zipfile.ZipFile(local / "second.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files[1::3]:
            archive.write(path, arcname=str(path.relative_to(job)))
    for path in files[2::3]:
        target = local / (str(path.relative_to(job)).replace("/", "-") + ".gz")
        target.write_bytes(gzip.compress(path.read_bytes()))
    address = s3.put_directory(local, "mixed")
    answer = ingest(address)
    assert answer.verdict == "unknown"
    assert as_text(answer, address) == as_text(ingest(str(local)), str(local))


def test_a_large_archive_is_one_object(s3: Bucket, tmp_path: Path) -> None:
    """The address of an archive names one job; it is longer than what is requested ahead."""
    local = build_large_job(tmp_path / "job", ranks=2)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.add(local, arcname="job")
    (tmp_path / "job.tar").write_bytes(data.getvalue())
    address = s3.put("job.tar", data.getvalue())
    answer = ingest(address)
    assert as_text(answer, address) == as_text(ingest(str(tmp_path / "job.tar")), str(tmp_path / "job.tar"))
    assert answer.job.path == address


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_faults_lose_nothing(s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate: float) -> None:
    """Throttled, refused and cut requests are sent again: the same answer, without a warning."""
    local = build_large_job(tmp_path / "job", ranks=4)
    address = s3.put_directory(local, "job")
    with FaultyProxy(s3.url, choose_some(rate)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        answer = ingest(address)
    assert as_text(answer, address) == as_text(ingest(str(local)), str(local))
    assert answer.stats.remote is not None
    assert answer.stats.remote.requests == len(proxy.requests)
    assert answer.stats.remote.retries == sum(count for fault, count in proxy.faults.items() if fault)


def test_an_object_that_cannot_be_read_is_a_warning(
    s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one object fails for good, the others are diagnosed, and the report names it."""
    local = build_large_job(tmp_path / "job", ranks=3)
    address = s3.put_directory(local, "job")

    def choose(method: str, path: str) -> str:
        return "refuse" if "rank_0.log" in path else ""

    with FaultyProxy(s3.url, choose) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        answer = ingest(address)
    assert proxy.faults["refuse"] >= 8
    assert answer.root_cause is not None
    assert answer.root_cause.ranks == (1,)
    warnings = [warning for warning in answer.warnings if warning.code == "unreadable"]
    assert [warning.message for warning in warnings] == [
        "skipped, because it cannot be read: the server answered 500 after 8 attempts"
    ]


def test_an_object_that_changes_meanwhile_is_named(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that is replaced while the job is read is a warning; so is one that went away."""
    lines = b"step 1 of many\n" * 400_000  # more than is read with the first bytes
    for number in range(3):
        s3.put(f"job/rank_{number}.log", lines + b"rank %d: ValueError: x\n" % number)
    reads: Counter[str] = Counter()

    def choose(method: str, path: str) -> str:
        reads[path] += 1
        if reads[path] == 2 and "rank_1" in path:
            s3.put("job/rank_1.log", lines + b"another text of the same rank\n")
        elif reads[path] == 2 and "rank_2" in path:
            s3.client.delete_object(Bucket=s3.name, Key="job/rank_2.log")
        return ""

    with FaultyProxy(s3.url, choose) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        answer = ingest(f"s3://{s3.name}/job")
    changed = {warning.source: warning.message for warning in answer.warnings if warning.code == "changed"}
    assert "it was replaced" in changed[f"s3://{s3.name}/job/rank_1.log"]
    assert "it went away" in changed[f"s3://{s3.name}/job/rank_2.log"]
    assert f"s3://{s3.name}/job/rank_0.log" not in changed


@pytest.mark.parametrize(
    ("key", "reason"), [("missing/", "No such file"), ("missing", "No such file"), ("", "No such file")]
)
def test_a_listing_that_fails_is_an_error(s3: Bucket, key: str, reason: str) -> None:
    """An address without objects, and a bucket that does not exist, are errors that say what to check."""
    with pytest.raises(InputError, match=reason) as caught:
        ingest(f"s3://{s3.name}/{key}" if key else "s3://no-such-bucket-anywhere/x")
    assert "Check the address" in caught.value.hint


def test_no_secret_is_in_a_report(s3: Bucket) -> None:
    """Neither the credentials of the environment nor a presigned signature are in reports and warnings."""
    s3.put("job/rank_0.log", b"Traceback (most recent call last):\n  File 'x'\nValueError: no tokens\n")
    presigned = s3.client.generate_presigned_url(
        "get_object", Params={"Bucket": s3.name, "Key": "job/rank_0.log"}, ExpiresIn=600
    )
    assert "Signature" in presigned
    answer = ingest(presigned)
    text = json.dumps(json.loads(json_report.render(answer)))
    assert "Signature" not in text
    assert "AccessKey" not in text
    assert answer.job.path == presigned.partition("?")[0]
    assert answer.stats.bytes > 0


@pytest.mark.parametrize("fault", ["", "refuse"])
def test_no_secret_is_in_a_log(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], fault: str
) -> None:
    """Whatever a request does, the command writes neither the credentials nor the signature made of them."""
    s3.put("job/rank_0.log", b"Traceback (most recent call last):\n  File 'x'\nValueError: no tokens\n")
    with FaultyProxy(s3.url, lambda _, path: fault if "rank_0" in path else "") as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        main(["ingest", f"s3://{s3.name}/job/", "--no-store", "-v"])
    written = "".join(capfd.readouterr())
    assert s3.name in written
    for secret in ("secret-of-the-key", "Signature", "Credential=", "Authorization"):
        assert secret not in written


def test_an_error_shows_no_secret(s3: Bucket) -> None:
    """The error for a presigned address that does not work names it without its query."""
    presigned = s3.client.generate_presigned_url("get_object", Params={"Bucket": s3.name, "Key": "none"}, ExpiresIn=600)
    with pytest.raises(InputError) as caught:
        ingest(presigned)
    assert "Signature" not in f"{caught.value} {caught.value.hint}"
    assert "/none" in str(caught.value)


@pytest.mark.slow
def test_pages_of_objects(s3: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Objects, of which one has the failure, are listed by two pages; with 5 % faults nothing is lost."""
    monkeypatch.setattr(listing, "_PAGE", 100)
    local = tmp_path / "job"
    local.mkdir()
    for rank in range(101):
        text = f"rank {rank} step 1\n" * 50
        if rank == 87:
            text += 'Traceback (most recent call last):\n  File "/x.py", line 1, in f\nValueError: no tokens\n'
        (local / f"rank_{rank}.log").write_text(text)
    address = s3.put_directory(local, "job")
    with FaultyProxy(s3.url, lambda *_: "") as proxy:  # the first object is there before the second page is requested
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        session.set_rules(RemoteRules())
        assert next(session.current_session().list_objects(address)).size > 0
        assert sum("list-type" in path for _, path in proxy.requests) == 1
    session.set_rules(RemoteRules())
    with FaultyProxy(s3.url, choose_some(0.05)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        answer = ingest(address)
    assert answer.root_cause is not None
    assert answer.root_cause.ranks == (87,)
    assert answer.stats.files == 101
    assert as_text(answer, address) == as_text(ingest(str(local)), str(local))
    assert sum("list-type" in path for _, path in proxy.requests) >= 4
