"""The id of a job: the digest of everything that was read, and of nothing else."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import random
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings, strategies as st

import triage
from tests.artifacts.flight import factories as flight
from tests.scan.factories import TEXTS, plain_container, scan, small_limits, stream_container, temporary_file
from triage import api
from triage.model import Diagnosis
from triage.pipeline.intake import Intake
from triage.store import Store

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "jobs"
OOM = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
COMPRESSIONS: Mapping[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}


def steps(count: int, **others: str) -> bytes:
    """Return a log of as many lines of equal length; `others` replace the lines of these numbers."""
    lines = [f"[rank1]: step {number:06} of a healthy run, loss 2.1".ljust(100) for number in range(count)]
    for number, text in others.items():
        lines[int(number.removeprefix("at"))] = text.ljust(100)
    return "\n".join(lines).encode() + b"\n"


def job_id(path: Path) -> str:
    return triage.ingest(path).job.id


def write_zip(path: Path, members: Mapping[str, bytes]) -> Path:
    """Write a zip whose bytes depend on its members only."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return path


def write_tar(path: Path, members: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def test_a_line_in_the_middle_makes_another_incident(tmp_path: Path) -> None:
    """Two logs of 6,000 lines and equal size, head and tail are two incidents, and neither changes the other."""
    store = tmp_path / "triage.db"
    failed, healthy = tmp_path / "failed.log", tmp_path / "healthy.log"
    failed.write_bytes(steps(6000, at3000=OOM))
    healthy.write_bytes(steps(6000))
    assert failed.stat().st_size == healthy.stat().st_size
    for path in (failed, healthy, healthy, failed):
        api.remember(triage.ingest(path), store)
    with Store.open(store) as opened:
        incidents = {item.job_name: item for item in opened.search.list_incidents()}
        assert len(incidents) == 2
        assert incidents["failed.log"].signature == "cuda.out-of-memory"
        assert incidents["healthy.log"].verdict == "inconclusive"
        assert opened.audit.list_entries() == []


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.integers(1, 2000), st.integers(1, 4), st.data())
def test_the_id_is_independent_of_how_it_is_read(
    texts: list[bytes], chunk: int, workers: int, data: st.DataObject
) -> None:
    """Chunk sizes, workers, packing, names and the order of files do not change the id; one byte more anywhere does."""
    plain = identify(texts)
    order = data.draw(st.permutations(texts))
    packed = data.draw(st.sets(st.integers(0, len(texts) - 1)))
    assert identify(order, packed=packed, chunk_bytes=chunk, workers=workers) == plain
    changed = data.draw(st.integers(0, len(order) - 1))
    place = data.draw(st.integers(0, len(order[changed])))
    order[changed] = order[changed][:place] + b"\n" + order[changed][place:]
    assert identify(order, packed=packed, chunk_bytes=chunk, workers=workers) != plain


def identify(texts: list[bytes], packed: Collection[int] = (), **options: object) -> str:
    """Return the identity of texts that are scanned as files or, if `packed`, as streams; spans are very small."""
    with small_limits(), ExitStack() as stack:
        containers = [
            stream_container(text, name=f"{number}.gz")
            if number in packed
            else plain_container(stack.enter_context(temporary_file(text)), name=f"{number}{len(options)}.log")
            for number, text in enumerate(texts)
        ]
        return Intake([]).identify(scan(containers, **options).scanned, [])  # type: ignore[arg-type]


def test_what_is_read_counts_not_how_it_is_packed(tmp_path: Path) -> None:
    """Each compression and each archive of a job, nested ones too, has the id of the plain files."""
    members = {"rank0.log": steps(500), "logs/rank1.log": steps(500, at250=OOM)}
    plain = tmp_path / "plain"
    (plain / "logs").mkdir(parents=True)
    for name, text in members.items():
        (plain / name).write_bytes(text)
    zipped, tarred = write_zip(tmp_path / "job.zip", members), write_tar(tmp_path / "job.tgz", members)
    nested = write_tar(tmp_path / "nested.tgz", {"all/job.zip": zipped.read_bytes()})
    ids = {job_id(path) for path in (plain, zipped, tarred, nested)}
    for ending, compress in COMPRESSIONS.items():
        directory = tmp_path / ending
        directory.mkdir()
        for name, text in members.items():
            (directory / f"{Path(name).name}.{ending}").write_bytes(compress(text))
        ids.add(job_id(directory))
    assert len(ids) == 1


def test_names_and_duplicates(tmp_path: Path) -> None:
    """The name of a job is not part of its id; a file that is there twice is another job than one."""
    for name, count in (("one", 1), ("other", 1), ("twice", 2)):
        (tmp_path / name).mkdir()
        for number in range(count):
            (tmp_path / name / f"{name}{number}.log").write_bytes(steps(5))
    first, second, third = (triage.ingest(tmp_path / name).job for name in ("one", "other", "twice"))
    assert (first.name, second.name) == ("one", "other")
    assert first.id == second.id
    assert first.id != third.id


def test_every_byte_of_an_artifact_counts(tmp_path: Path) -> None:
    """Flight Recorder dumps that differ in one late entry are two jobs, and one that is compressed is the same job."""
    plain = flight.write(flight.Job({rank: [flight.Call()] * 3000 for rank in range(2)}), tmp_path / "plain")
    data = (plain / "fr_rank_1").read_bytes()
    ids = {"plain": job_id(plain)}
    for name, content in (("packed", gzip.compress(data)), ("padded", data + b" ")):
        directory = tmp_path / name
        shutil.copytree(plain, directory)
        (directory / "fr_rank_1").unlink()
        (directory / f"fr_rank_1{'.gz' if name == 'packed' else ''}").write_bytes(content)
        ids[name] = job_id(directory)
    assert ids["packed"] == ids["plain"]
    assert ids["padded"] != ids["plain"]


def encrypted_zip(path: Path, text: bytes) -> None:
    """Mark the only member as encrypted, in its header and in the directory."""
    data = bytearray(write_zip(path, {"rank0.log": text}).read_bytes())
    data[6] |= 1
    data[data.rindex(b"PK\1\2") + 8] |= 1
    path.write_bytes(data)


def damaged_gzip(path: Path, text: bytes) -> None:
    """Put noise in the place of the compressed data."""
    path.write_bytes(gzip.compress(b"", mtime=0)[:10] + b"\xff" + random.Random(len(text)).randbytes(900))


def cut_gzip(path: Path, text: bytes) -> None:
    """Keep the header only, which has the time."""
    path.write_bytes(gzip.compress(text, mtime=len(text))[:10])


def zip_of_links(path: Path, text: bytes) -> None:
    """Hold no file, only a link."""
    info = zipfile.ZipInfo("rank0.log")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, b"x" * len(text))


def binary_file(path: Path, text: bytes) -> None:
    """Hold numbers, of which the last one is another."""
    path.write_bytes(struct.pack("<4000Q", *range(1 << 40, (1 << 40) + 3999), len(text)))


UNREADABLE = {
    "job.zip": (encrypted_zip, "rank0.log is encrypted"),
    "rank0.log.gz": (damaged_gzip, "rank0.log.gz is damaged"),
    "cut.gz": (cut_gzip, "cut.gz is cut off"),
    "links.zip": (zip_of_links, "rank0.log is not a file"),
    "rank0.bin": (binary_file, "rank0.bin is binary"),
}


def ingest_unreadable(directory: Path, name: str, text: bytes) -> Diagnosis:
    directory.mkdir(exist_ok=True)
    UNREADABLE[name][0](directory / name, text)
    return triage.ingest(directory)


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_input_says_so_and_is_known_by_its_bytes(tmp_path: Path, name: str) -> None:
    """It is inconclusive and says why; a copy elsewhere is the same incident, other bytes or another name are not."""
    first = ingest_unreadable(tmp_path / "a", name, steps(10))
    assert (first.verdict, first.root_cause) == ("inconclusive", None)
    assert first.inconclusive is not None
    assert first.inconclusive.why[0] == f"Nothing could be read: {UNREADABLE[name][1]}"
    assert ingest_unreadable(tmp_path / "b", name, steps(10)).job.id == first.job.id
    assert triage.ingest(tmp_path / "b" / name).job.id == first.job.id
    other = ingest_unreadable(tmp_path / "c", name, steps(11)).job.id
    (tmp_path / "b" / name).rename(tmp_path / "b" / f"other-{name}")
    assert len({first.job.id, other, triage.ingest(tmp_path / "b").job.id}) == 3


def test_jobs_without_text_are_not_one_incident(tmp_path: Path) -> None:
    """Empty files, archives without files, damaged and encrypted ones are different jobs."""
    ids = [ingest_unreadable(tmp_path / name, name, steps(10)).job.id for name in UNREADABLE]
    for name in ("rank0.log", "rank1.log"):
        (tmp_path / name).touch()
        ids.append(job_id(tmp_path / name))
    ids += [job_id(write_zip(tmp_path / "empty.zip", {})), job_id(write_tar(tmp_path / "empty.tgz", {}))]
    assert all(one != other for one, other in itertools.combinations(ids, 2))


def test_an_unreadable_file_beside_a_log_does_not_count(tmp_path: Path) -> None:
    """Where something was read, the id is that of what was read."""
    (tmp_path / "rank0.log").write_bytes(steps(10))
    alone = job_id(tmp_path)
    damaged_gzip(tmp_path / "rank1.log.gz", b"")
    assert job_id(tmp_path) == alone
