"""Logs below headings in one text are sources of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.sources import Limits, discover, streams


def read(path: Path) -> list[tuple[str, bytes]]:
    """Return names and bytes of the sources in a file; of one that is read in place only the name."""
    file = discover([str(path)]).files[0]
    sources = streams(file, Limits(), lambda warning: None)
    return [(source.name.removeprefix(f"{path}"), stream.read() if stream else b"") for source, stream in sources]


def test_each_heading_begins_a_source(tmp_path: Path) -> None:
    """As `tail -n +1 *.log` writes them."""
    path = tmp_path / "all.log"
    path.write_bytes(b"==> logs/a.log <==\nstep 1\n\n==> b.log <==\nstep 2")
    assert read(path) == [("!/logs/a.log", b"step 1\n\n"), ("!/b.log", b"step 2")]


def test_a_collector_may_prefix_the_heading(tmp_path: Path) -> None:
    """With a time or a pod; the lines keep theirs."""
    path = tmp_path / "all.log"
    path.write_bytes(
        b"2026-11-21T03:07:45Z ==> a.log <==\n2026-11-21T03:07:45Z x\n2026-11-21T03:07:46Z ==> b.log <==\n"
    )
    assert read(path) == [("!/a.log", b"2026-11-21T03:07:45Z x\n"), ("!/b.log", b"")]


@pytest.mark.parametrize(
    "text",
    [
        b"step 1\n==> a.log <==\nstep 2\n",  # no heading at the start
        b"==> a.log <==\nstep 1\n==> b.log <==\nx\n==> a.log <==\nstep 2\n",  # `tail -f` goes back and forth
        b"==> a.log\nstep 1\n",
    ],
)
def test_other_texts_stay_whole(tmp_path: Path, text: bytes) -> None:
    """They are read in place."""
    path = tmp_path / "all.log"
    path.write_bytes(text)
    assert read(path) == [("", b"")]


def test_sections_of_one_name_are_all_read(tmp_path: Path) -> None:
    """Beyond the first 64 KiB a heading may come again; its text is a source of its own."""
    path = tmp_path / "all.log"
    long = b"x" * 99 + b"\n"
    path.write_bytes(b"==> a.log <==\n" + long * 700 + b"==> a.log <==\ny\n")
    assert read(path) == [("!/a.log", long * 700), ("!/2/a.log", b"y\n")]


def test_headings_are_found_in_long_texts(tmp_path: Path) -> None:
    """Also where a piece of the stream ends within one."""
    path = tmp_path / "all.log"
    body = b"".join(b"step %d of a long log\n" % number for number in range(60_000))
    path.write_bytes(b"==> a.log <==\n" + body + b"==> b.log <==\n" + body)
    assert read(path) == [("!/a.log", body), ("!/b.log", body)]


def test_a_long_line_without_an_end_is_not_kept_back(tmp_path: Path) -> None:
    """Nothing is lost or doubled."""
    path = tmp_path / "all.log"
    path.write_bytes(b"==> a.log <==\n" + b"x" * 1_000_000)
    assert read(path) == [("!/a.log", b"x" * 1_000_000)]
