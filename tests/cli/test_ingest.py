from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import triage
from tests.store.making import unknown
from triage.base.errors import InputError
from triage.store import Store

from .conftest import Fake
from .making import LOG

Command = Callable[..., tuple[int, str, str]]


def test_text_is_the_default(fake: Fake, command: Command) -> None:
    """The report goes to standard output and standard error stays silent."""
    status, out, err = command("ingest", "a", "b")
    assert (status, err) == (0, "")
    assert out.startswith("ROOT CAUSE  The number is cursed")
    assert fake.calls[0][0] == ["a", "b"]


def test_json_is_one_object_and_nothing_else(fake: Fake, command: Command) -> None:
    """A program can read standard output as it is."""
    status, out, err = command("ingest", "a", "--format", "json")
    assert (status, err) == (0, "")
    assert json.loads(out)["schema"] == "triage.diagnosis/1"


def test_options_reach_the_pipeline(fake: Fake, command: Command) -> None:
    """Catalogs in order, workers, and the chunk size in bytes."""
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
        ("clean", "any", 0),
    ],
)
def test_fail_on(fake: Fake, command: Command, verdict: str, fail_on: str | None, status: int) -> None:
    """1 exactly when what was named was found; the report is written all the same."""
    fake.verdict = verdict
    result = command("ingest", "a", *(["--fail-on", fail_on] if fail_on else []))
    assert result[0] == status
    assert result[1]


def test_output_goes_to_the_file(fake: Fake, command: Command, tmp_path: Path) -> None:
    """-o replaces the file, in UTF-8, and leaves nothing beside it nor on standard output."""
    target = tmp_path / "out.txt"
    target.write_text("old")
    status, out, err = command("ingest", "a", "-o", target)
    assert (status, out, err) == (0, "", "")
    assert "训练失败" in target.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [target]


def test_a_dash_is_standard_output(fake: Fake, command: Command) -> None:
    """-o - writes no file of that name."""
    assert command("ingest", "a", "-o", "-")[1].startswith("ROOT CAUSE")


@pytest.mark.parametrize("target", ["missing/out.txt", ".", "x" * 300])
def test_an_unwritable_output_is_refused_before_the_work(
    fake: Fake, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """Nobody waits for an ingest whose report has no place to go."""
    monkeypatch.chdir(tmp_path)
    status, out, err = command("ingest", "a", "-o", target)
    assert (status, out) == (2, "")
    assert err.startswith("triage: cannot write ")
    assert "\n  try: " in err
    assert fake.calls == []


def test_a_full_disk_leaves_the_old_report(
    fake: Fake, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When writing fails half-way the file is the old one, and the error says why."""
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
def test_unusable_options_are_one_sentence_and_a_hint(fake: Fake, command: Command, arguments: list[str]) -> None:
    """2, two lines, no usage page, no traceback."""
    status, out, err = command(*arguments)
    assert (status, out) == (2, "")
    first, second = err.splitlines()
    assert first.startswith("triage: ")
    assert second.startswith("  try: ")


def test_unusable_input(fake: Fake, command: Command) -> None:
    """The room's own sentence and hint, with what could steer the terminal taken out."""
    fake.error = InputError("no such \x1b[31mfile", hint="look again", path="a\x07b")
    assert command("ingest", "a") == (2, "", "triage: ab: no such file\n  try: look again\n")


def test_a_bug_is_one_sentence(fake: Fake, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """70 and how to report; the traceback only with TRIAGE_DEBUG=1."""
    fake.error = ZeroDivisionError("division by zero")
    status, _, err = command("ingest", "a")
    assert status == 70
    assert err.startswith("triage: unexpected ZeroDivisionError: division by zero\n  try: ")
    assert "Traceback" not in err
    monkeypatch.setenv("TRIAGE_DEBUG", "1")
    assert "Traceback" in command("ingest", "a")[2]


def test_interrupted(fake: Fake, command: Command) -> None:
    """Ctrl-C is a short word and 130."""
    fake.error = KeyboardInterrupt()
    assert command("ingest", "a") == (130, "", "triage: interrupted\n")


def test_no_memory_says_so(fake: Fake, command: Command) -> None:
    """Running out of memory names a way out."""
    fake.error = MemoryError()
    status, _, err = command("ingest", "a")
    assert status == 70
    assert "--workers 1" in err


def test_a_real_log(command: Command, tmp_path: Path) -> None:
    """The whole way: a log of one rank gives its exception and rank."""
    log = tmp_path / "job.log"
    log.write_text(LOG, encoding="utf-8")
    status, out, _ = command("ingest", log, "--format", "json", "--fail-on", "any")
    assert status == 1
    report = json.loads(out)
    assert report["root_cause"]["ranks"] == [0]
    assert "the number 7 is cursed ☃" in report["root_cause"]["evidence"][0]["text"]


@pytest.mark.parametrize("as_given", [str, Path, lambda path: [path], lambda path: (str(path),)])
def test_the_python_api_takes_a_path_in_any_form(tmp_path: Path, as_given: Callable[[Path], object]) -> None:
    """A text, a Path or several of them."""
    log = tmp_path / "job.log"
    log.write_text(LOG, encoding="utf-8")
    assert triage.ingest(as_given(log)).verdict == "unknown"  # type: ignore[arg-type]


def test_lazy_names() -> None:
    """Everything that `__all__` promises is there, and nothing else is made up."""
    assert all(hasattr(triage, name) for name in triage.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        triage.nonsense  # noqa: B018


def test_every_ingest_is_remembered(fake: Fake, command: Command, tmp_path: Path) -> None:
    """Into the store that is named; --no-store leaves it out, and TRIAGE_STORE=off does too."""
    store = tmp_path / "triage.db"
    assert command("ingest", "a", "--no-store", "--store", store)[0] == 0
    assert command("ingest", "a")[0] == 0
    assert not store.exists()
    for _ in range(2):
        assert command("ingest", "a", "--store", store)[::2] == (0, "")
    with Store.open(store) as opened:
        (incident,) = opened.search.listed()
    assert (incident.signature, incident.seen) == ("python.cursed", 2)


def test_a_store_that_cannot_be_written_is_a_warning(fake: Fake, command: Command, tmp_path: Path) -> None:
    """The diagnosis is what counts: it is reported, and says that it is not remembered."""
    (tmp_path / "file").write_text("no directory")
    status, out, err = command("ingest", "a", "--store", tmp_path / "file" / "triage.db", "--format", "json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert report["verdict"] == "known"
    (warning,) = [item for item in report["warnings"] if item["code"] == "not-stored"]
    assert "not remembered, because cannot make the store" in warning["message"]
    assert "--no-store" in warning["message"]


def test_the_report_names_the_cluster_of_the_store(fake: Fake, command: Command, tmp_path: Path) -> None:
    """Where clusters were merged, a report of the one says the id of the other."""
    store = tmp_path / "triage.db"
    fake.verdict = "unknown"
    with Store.open(store) as opened:
        opened.incidents.add(unknown("older", "OSError: gone", "u-000000"))
        command("ingest", "a", "--store", store)
        assert opened.moves.merge(["u-1a2b3c", "u-000000"], actor="test")[1] == "u-000000"
    report = json.loads(command("ingest", "a", "--store", store, "--format", "json")[1])
    assert report["root_cause"]["cluster"] == "u-000000"
