"""triage.sources.discovery: which files of a job are read, in which order, and within which limits."""

from __future__ import annotations

import errno
import io
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from triage.base.errors import InputError
from triage.sources import Limits, SourceError, discover, interface

from .factories import codes, log, read_sources, tar, temporary_directory


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job's directory, called job, in the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job" / "logs").mkdir(parents=True)
    for name in ("rank1.log", "rank0.log", ".hidden"):
        (tmp_path / "job" / "logs" / name).write_bytes(log(3) + name.encode())
    (tmp_path / "job" / "a.out").write_bytes(log(2))
    return tmp_path / "job"


def discovered_names(*paths: str) -> list[str]:
    """Return the names discovered below paths."""
    return [file.name for file in discover(paths).files]


def test_names_are_what_the_user_would_open(job: Path) -> None:
    """Names begin with the path of the user, hidden files are included, and all are sorted."""
    below = ["a.out", "logs/.hidden", "logs/rank0.log", "logs/rank1.log"]
    assert discovered_names("job") == [f"job/{name}" for name in below]
    assert discovered_names("job/") == [f"job/{name}" for name in below]
    assert discovered_names("./job") == [f"./job/{name}" for name in below]
    assert discovered_names(str(job)) == [f"{job}/{name}" for name in below]
    assert discovered_names("job/logs/rank1.log", "job/a.out") == ["job/a.out", "job/logs/rank1.log"]
    os.chdir("job")
    assert discovered_names(".") == below


def test_a_file_has_size_and_time(job: Path) -> None:
    """Size, time and path are those of the file."""
    file = discover(["job/a.out"]).files[0]
    status = os.stat("job/a.out")
    assert (file.path, file.kind, file.size, file.mtime, file.encoding) == (
        "job/a.out",
        "text",
        status.st_size,
        status.st_mtime,
        "utf-8",
    )


def test_plain_files_are_read_in_place(job: Path) -> None:
    """Text has a path and no stream."""
    (source, text), *_ = read_sources(discover(["job/a.out"]).files[0])[0]
    assert source.path == "job/a.out"
    assert text == log(2)


def test_each_file_is_read_once(job: Path) -> None:
    """Links and hard links to files already read add nothing, real names win, and one warning counts them."""
    (job / "aaa.log").symlink_to("logs/rank0.log")
    (job / "00link").symlink_to("logs")
    os.link(job / "a.out", job / "b.out")
    result = discover(["job"])
    assert [file.name for file in result.files] == [
        "job/a.out",
        "job/logs/.hidden",
        "job/logs/rank0.log",
        "job/logs/rank1.log",
    ]
    assert codes(list(result.warnings)) == ["read-once"]
    assert "3 paths" in result.warnings[0].message


def test_links_to_the_outside_are_followed(job: Path, tmp_path: Path) -> None:
    """A file behind a link is read under the link's name."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.log").write_bytes(b"x\n")
    (job / "more").symlink_to("../elsewhere")
    (job / "y.log").symlink_to("../elsewhere/x.log")
    assert "job/more/x.log" in discovered_names("job")
    assert "job/y.log" not in discovered_names("job")


@pytest.mark.parametrize("target", [".", "..", "/", "../..", "self"])
def test_link_loops_are_not_followed(job: Path, target: str) -> None:
    """A link to itself, to a directory above or to the whole machine is not followed."""
    (job / "self").symlink_to(target)
    result = discover(["job"])
    assert len(result.files) == 4
    assert codes(list(result.warnings)) == ["link-loop"]


def test_loops_over_two_directories_end(job: Path) -> None:
    """Loops over several links end too."""
    (job / "b").mkdir()
    (job / "b" / "to_logs").symlink_to("../logs")
    (job / "logs" / "to_b").symlink_to("../b")
    assert len(discover(["job"]).files) == 4


def test_a_link_given_by_the_user_is_followed(job: Path) -> None:
    """The path of the user may be a link, to a file or a directory."""
    Path("latest").symlink_to("job")
    assert discovered_names("latest")[0] == "latest/a.out"


def test_broken_links_are_reported(job: Path) -> None:
    """The warning about a broken link names the target."""
    (job / "gone.log").symlink_to("missing.log")
    result = discover(["job"])
    assert codes(list(result.warnings)) == ["broken-link"]
    assert "missing.log" in result.warnings[0].message


def test_fifos_sockets_and_devices_are_skipped(job: Path) -> None:
    """Special files are never opened (a FIFO would block)."""
    os.mkfifo(job / "fifo")
    (job / "null").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind("job/socket")
        result = discover(["job"])
    assert len(result.files) == 4
    assert codes(list(result.warnings)) == ["special-file"] * 3


def test_names_that_are_not_utf8_are_escaped(job: Path) -> None:
    """The name is printable, the path opens the file."""
    Path(os.fsdecode(b"job/\xff\n.log")).write_bytes(b"x\n")
    file = next(file for file in discover(["job"]).files if "xff" in file.name)
    assert file.name == "job/\\xff\\x0a.log"
    assert read_sources(file)[0][0][1] == b"x\n"


@given(st.text())
def test_any_name_becomes_printable(name: str) -> None:
    """No control characters remain, and plain names are unchanged."""
    assert interface.printable_name(name).isprintable()
    assert interface.member_name(name).isprintable()
    assert interface.printable_name("rank0.log") == "rank0.log"


def deny_access(monkeypatch: pytest.MonkeyPatch, denied: str) -> None:
    """Make the system refuse to open paths that contain `denied` (tests may run as root)."""
    real_open, real_scan = os.open, os.scandir

    def open_unless_denied(path: str, *rest: int) -> int:
        if denied in str(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real_open(path, *rest)

    def scanning(path: str) -> object:
        if denied in str(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real_scan(path)

    monkeypatch.setattr(os, "open", open_unless_denied)
    monkeypatch.setattr(os, "scandir", scanning)


def test_an_unreadable_file_is_reported(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One unreadable file does not prevent reading the others."""
    deny_access(monkeypatch, "rank0")
    result = discover(["job"])
    assert len(result.files) == 3
    assert codes(list(result.warnings)) == ["unreadable"]


@pytest.mark.parametrize("denied", ["rank", "logs"])
def test_only_unreadable_files_are_a_job(job: Path, monkeypatch: pytest.MonkeyPatch, denied: str) -> None:
    """When permissions are the only problem, warnings name what cannot be read: nothing is known of the job."""
    (job / "a.out").unlink()
    (job / "logs" / ".hidden").unlink()
    deny_access(monkeypatch, denied)
    discovered = discover(["job"])
    assert {file.kind for file in discovered.files} <= {"empty"}
    assert "unreadable" in {warning.code for warning in discovered.warnings}


def test_a_missing_path_is_an_error_with_a_suggestion(job: Path) -> None:
    """A missing path is an error even beside a good one, with the nearest name as hint."""
    with pytest.raises(InputError, match="no such file") as caught:
        discover(["job", "job/lgos"])
    assert caught.value.path == "job/lgos"
    assert "job/logs" in caught.value.hint
    with pytest.raises(InputError) as caught:
        discover(["nowhere/at/all"])
    assert "nowhere/at" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "no files there"),
        ({"sub/": b""}, "no files there"),
        ({"a.7z": b"7z\xbc\xaf\x27\x1c\x00\x04"}, "7-Zip"),
    ],
)
def test_a_useless_directory_is_an_error_that_says_why(tmp_path: Path, content: dict[str, bytes], message: str) -> None:
    """No files and unsupported files have different errors, each with what to do."""
    for name, data in content.items():
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).write_bytes(data)
    with pytest.raises(SourceError, match=message) as caught:
        discover([str(tmp_path)])
    assert caught.value.hint


@pytest.mark.parametrize(
    "content", [{"w.bin": bytes(range(256)) * 50, "p": pickle.dumps(1)}, {"a.log": b"", "b.log": b""}]
)
def test_files_without_text_are_a_job(tmp_path: Path, content: dict[str, bytes]) -> None:
    """Empty and binary files are no mistake of the user: nothing is known of the job."""
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    assert len(discover([str(tmp_path)]).files) == 2


def test_no_path_is_an_error() -> None:
    """Without paths there is an error."""
    with pytest.raises(SourceError, match="no path"):
        discover([])


@pytest.mark.parametrize("url", ["s3://bucket/logs", "gs://b/x", "https://example.org/a.log", "ftp://b/x"])
def test_an_address_is_refused_with_advice(url: str) -> None:
    """Where addresses are not allowed, the error says what to do instead; one of an unknown scheme is never read."""
    with pytest.raises(SourceError, match="addresses cannot be read") as caught:
        discover([url])
    assert "Copy it here" in caught.value.hint
    with pytest.raises(SourceError, match="ftp:// addresses cannot be read by triage"):
        discover(["ftp://b/x"], allow_addresses=True)


def test_the_error_for_an_address_shows_no_secret() -> None:
    """A password or a signature in the address is not in the message."""
    with pytest.raises(SourceError) as caught:
        discover(["https://me:pass-word@example.org/a.log?X-Amz-Signature=0123abcd"])
    assert "pass-word" not in str(caught.value)
    assert "0123abcd" not in str(caught.value)


def test_a_nul_in_a_path_is_an_error(tmp_path: Path) -> None:
    """A path that the system refuses outright raises SourceError."""
    with pytest.raises(SourceError):
        discover([f"{tmp_path}/a\0b"])


def test_the_number_of_files_is_capped(job: Path) -> None:
    """Too many files end the walk with a reason."""
    result = discover(["job"], Limits(max_files=2))
    assert len(result.files) == 2
    assert codes(list(result.warnings)) == ["too-many-files"]


def test_a_log_behind_a_hole_is_text(tmp_path: Path) -> None:
    """A log that was truncated while its writer went on begins with NULs and is still text."""
    with open(tmp_path / "a.log", "wb") as file:
        file.seek(1 << 20)
        file.write(log())
    assert discover([str(tmp_path)]).files[0].kind == "text"


def test_a_deep_tree_is_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Depth does not exhaust the stack."""
    deep = tmp_path.joinpath(*["d"] * 400)
    deep.mkdir(parents=True)
    (deep / "a.log").write_bytes(b"x\n")
    assert len(discover([str(tmp_path)]).files) == 1


def test_a_file_that_vanishes_is_a_warning(job: Path) -> None:
    """A file may vanish between discovery and reading."""
    (job / "t.tar").write_bytes(tar({"a.log": b"x"}))
    file = discover(["job/t.tar"]).files[0]
    (job / "t.tar").unlink()
    sources, warnings = read_sources(file)
    assert not sources
    assert codes(warnings) == ["unreadable"]


def test_standard_input_can_be_read_at_any_offset() -> None:
    """A pipe is copied to a file without a name."""
    file = discover(["-"], stdin=io.BytesIO(log())).files[0]
    assert (file.name, file.kind, file.size) == ("-", "text", len(log()))
    assert read_sources(file)[0][0][1] == log()
    assert read_sources(file)[0][0][1] == log()


def test_standard_input_may_be_an_archive() -> None:
    """Members of an archive in a pipe are called `-!/name`."""
    file = discover(["-"], stdin=io.BytesIO(tar({"a.log": log()}))).files[0]
    assert [source.name for source, _ in read_sources(file)[0]] == ["-!/a.log"]


def test_a_redirected_file_is_not_copied(job: Path) -> None:
    """A file on standard input is read in place, from its beginning."""
    with open("job/a.out", "rb") as stdin:
        file = discover(["-"], stdin=stdin).files[0]
        assert os.path.samefile(file.path, "job/a.out")
        assert read_sources(file)[0][0][1] == log(2)


def test_standard_input_is_capped() -> None:
    """Endless input ends at the limit, with a reason."""
    result = discover(["-"], Limits(max_member_bytes=100), stdin=io.BytesIO(log()))
    assert result.files[0].size == 100
    assert codes(list(result.warnings)) == ["too-large"]


def test_a_spool_can_be_read_by_another_process() -> None:
    """Workers open standard input by its path."""
    file = discover(["-"], stdin=io.BytesIO(b"hello\n")).files[0]
    done = subprocess.run(
        [sys.executable, "-c", f"print(open({file.path!r}).read())"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "hello"


@given(st.dictionaries(st.text("ab./\0\n", min_size=1, max_size=6), st.binary(max_size=5000), max_size=5))
def test_discovery_is_deterministic(content: dict[str, bytes]) -> None:
    """The same files give the same result, sorted by name."""
    with temporary_directory() as place:
        (place / "always.log").write_bytes(b"x\n")
        for at, data in enumerate(content.values()):
            (place / f"{at % 3}").mkdir(exist_ok=True)
            (place / f"{at % 3}" / f"{at}").write_bytes(data)
        first, second = discover([str(place)]), discover([str(place)])
        assert first == second
        assert [file.name for file in first.files] == sorted(
            (file.name for file in first.files), key=lambda name: name.split("/")
        )
