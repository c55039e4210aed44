from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import triage
from tests.store.factories import unknown_diagnosis
from triage.base.errors import InputError
from triage.store import Store

from .conftest import FakePipeline
from .factories import LOG

Command = Callable[..., tuple[int, str, str]]


def test_text_is_the_default(fake: FakePipeline, command: Command) -> None:
    """The report goes to standard output, and standard error stays empty."""
    status, out, err = command("ingest", "a", "b")
    assert (status, err) == (0, "")
    assert out.startswith("ROOT CAUSE  The number is cursed")
    assert fake.calls[0][0] == ["a", "b"]


def test_json_is_one_object_and_nothing_else(fake: FakePipeline, command: Command) -> None:
    """A program can read standard output as it is."""
    status, out, err = command("ingest", "a", "--format", "json")
    assert (status, err) == (0, "")
    assert json.loads(out)["schema"] == "triage.diagnosis/2"


def test_options_reach_the_pipeline(fake: FakePipeline, command: Command) -> None:
    """Catalogs keep their order, and the chunk size is in bytes."""
    command("ingest", "-", "--catalog", "x", "--catalog", "y", "--workers", "3", "--chunk-size", "64K", "-q")
    paths, options = fake.calls[0]
    assert paths == ["-"]
    assert (options.catalogs, options.workers, options.chunk_bytes) == ((Path("x"), Path("y")), 3, 65536)


@pytest.mark.parametrize(
    ("verdict", "fail_on", "status"),
    [
        ("known", None, 0),
        ("known", "known", 1),
        ("known", "unknown", 0),
        ("known", "any", 1),
        ("unknown", None, 0),
        ("unknown", "known", 0),
        ("unknown", "unknown", 1),
        ("unknown", "any", 1),
        ("inconclusive", "unknown", 0),
        ("inconclusive", "inconclusive", 1),
        ("inconclusive", "any", 1),
        ("clean", "any", 0),
    ],
)
def test_fail_on(fake: FakePipeline, command: Command, verdict: str, fail_on: str | None, status: int) -> None:
    """The exit status is 1 only for the requested verdict; the report is always written."""
    fake.verdict = verdict
    result = command("ingest", "a", *(["--fail-on", fail_on] if fail_on else []))
    assert result[0] == status
    assert result[1]


def test_output_goes_to_the_file(fake: FakePipeline, command: Command, tmp_path: Path) -> None:
    """-o replaces the file, in UTF-8, and leaves no temporary file."""
    target = tmp_path / "out.txt"
    target.write_text("old")
    status, out, err = command("ingest", "a", "-o", target)
    assert (status, out, err) == (0, "", "")
    assert "训练失败" in target.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [target]


def test_a_dash_is_standard_output(fake: FakePipeline, command: Command) -> None:
    """`-o -` writes no file of that name."""
    assert command("ingest", "a", "-o", "-")[1].startswith("ROOT CAUSE")


@pytest.mark.parametrize("target", ["missing/out.txt", ".", "x" * 300])
def test_an_unwritable_output_is_refused_before_the_work(
    fake: FakePipeline, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """The error comes before the diagnosis."""
    monkeypatch.chdir(tmp_path)
    status, out, err = command("ingest", "a", "-o", target)
    assert (status, out) == (2, "")
    assert err.startswith("triage: cannot write ")
    assert "\n  try: " in err
    assert fake.calls == []


def test_a_full_disk_leaves_the_old_report(
    fake: FakePipeline, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If writing fails, the old file stays and the error says why."""
    target = tmp_path / "out.txt"
    target.write_text("old")

    def full(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    status, _, err = command("ingest", "a", "-o", target)
    assert status == 2
    assert "No space left on device" in err
    assert target.read_text() == "old"


@pytest.mark.parametrize(
    "arguments",
    [
        ["ingest"],
        ["ingest", "a", "--format", "xml"],
        ["ingest", "a", "--fail-on", "maybe"],
        ["ingest", "a", "--workers", "0"],
        ["ingest", "a", "--width", "3"],
        ["ingest", "a", "--chunk-size", "many"],
        ["ingest", "a", "--chunk-size", "0"],
        ["ingest", "a", "--bogus"],
        ["bogus"],
    ],
)
def test_unusable_options_are_one_sentence_and_a_hint(
    fake: FakePipeline, command: Command, arguments: list[str]
) -> None:
    """The exit status is 2, without a usage page or a traceback."""
    status, out, err = command(*arguments)
    assert (status, out) == (2, "")
    first, second = err.splitlines()
    assert first.startswith("triage: ")
    assert second.startswith("  try: ")


def test_unusable_input(fake: FakePipeline, command: Command) -> None:
    """Message and hint of the error are shown without control characters."""
    fake.error = InputError("no such \x1b[31mfile", hint="look again", path="a\x07b")
    assert command("ingest", "a") == (2, "", "triage: ab: no such file\n  try: look again\n")


def test_a_bug_is_one_sentence(fake: FakePipeline, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit status is 70; a traceback needs TRIAGE_DEBUG=1."""
    fake.error = ZeroDivisionError("division by zero")
    status, _, err = command("ingest", "a")
    assert status == 70
    assert err.startswith("triage: unexpected ZeroDivisionError: division by zero\n  try: ")
    assert "Traceback" not in err
    monkeypatch.setenv("TRIAGE_DEBUG", "1")
    assert "Traceback" in command("ingest", "a")[2]


def test_interrupted(fake: FakePipeline, command: Command) -> None:
    """Ctrl-C gives a short message and 130."""
    fake.error = KeyboardInterrupt()
    assert command("ingest", "a") == (130, "", "triage: interrupted\n")


def test_out_of_memory_gives_a_hint(fake: FakePipeline, command: Command) -> None:
    """The hint names an option that needs less memory."""
    fake.error = MemoryError()
    status, _, err = command("ingest", "a")
    assert status == 70
    assert "--workers 1" in err


def test_a_real_log(command: Command, tmp_path: Path) -> None:
    """A log of one rank gives its exception and rank."""
    log = tmp_path / "job.log"
    log.write_text(LOG, encoding="utf-8")
    status, out, _ = command("ingest", log, "--format", "json", "--fail-on", "any")
    assert status == 1
    report = json.loads(out)
    assert report["root_cause"]["ranks"] == [0]
    assert "the number 7 is cursed ☃" in report["root_cause"]["evidence"][0]["text"]


@pytest.mark.parametrize("convert", [str, Path, lambda path: [path], lambda path: (str(path),)])
def test_the_python_api_takes_a_path_in_any_form(tmp_path: Path, convert: Callable[[Path], object]) -> None:
    """A text, a Path or several of them are accepted."""
    log = tmp_path / "job.log"
    log.write_text(LOG, encoding="utf-8")
    assert triage.ingest(convert(log)).verdict == "unknown"  # type: ignore[arg-type]


def test_lazy_names() -> None:
    """All names in `__all__` exist, and others raise AttributeError."""
    assert all(hasattr(triage, name) for name in triage.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        triage.nonsense  # noqa: B018


def test_every_ingest_is_stored(fake: FakePipeline, command: Command, tmp_path: Path) -> None:
    """--no-store and TRIAGE_STORE=off store nothing."""
    store = tmp_path / "triage.db"
    assert command("ingest", "a", "--no-store", "--store", store)[0] == 0
    assert command("ingest", "a")[0] == 0
    assert not store.exists()
    for _ in range(2):
        assert command("ingest", "a", "--store", store)[::2] == (0, "")
    with Store.open(store) as opened:
        (incident,) = opened.search.list_incidents()
    assert (incident.signature, incident.ingests) == ("python.cursed", 2)


def test_an_unwritable_store_is_a_warning(fake: FakePipeline, command: Command, tmp_path: Path) -> None:
    """The diagnosis is reported with a warning that it is not stored."""
    (tmp_path / "file").write_text("no directory")
    status, out, err = command("ingest", "a", "--store", tmp_path / "file" / "triage.db", "--format", "json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert report["verdict"] == "known"
    (warning,) = [item for item in report["warnings"] if item["code"] == "not-stored"]
    assert "not stored: the store cannot be created" in warning["message"]
    assert "--no-store" in warning["message"]


def test_the_report_names_the_cluster_of_the_store(fake: FakePipeline, command: Command, tmp_path: Path) -> None:
    """After a merge the report has the id of the remaining cluster."""
    store = tmp_path / "triage.db"
    fake.verdict = "unknown"
    with Store.open(store) as opened:
        opened.incidents.add(unknown_diagnosis("older", "OSError: gone", "u-000000"))
        command("ingest", "a", "--store", store)
        assert opened.cluster_actions.merge(["u-1a2b3c", "u-000000"], actor="test")[1] == "u-000000"
    report = json.loads(command("ingest", "a", "--store", store, "--format", "json")[1])
    assert report["root_cause"]["cluster"] == "u-000000"
