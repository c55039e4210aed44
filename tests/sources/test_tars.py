"""triage.sources.tars"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from triage.sources import Limits, discover

from .factories import codes, log, make_zip, read, read_sources, tar, temporary_directory
from .test_classify import CASES, CORE

NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=40
) | st.sampled_from(["../../../tmp/evil", "/etc/passwd", "a/../../b", ".", "..", "/", "a//b", "x" * 300])
MEMBERS = st.lists(st.tuples(NAMES, st.binary(max_size=2000)), min_size=1, max_size=6)


def make_tar(*infos: tuple[tarfile.TarInfo, bytes], layout: int = tarfile.GNU_FORMAT) -> bytes:
    """Return a tar archive of any members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=layout) as archive:
        for header, data in infos:
            archive.addfile(header, io.BytesIO(data))
    return out.getvalue()


def make_header(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, **more: str) -> tarfile.TarInfo:
    """Return a member's header."""
    header = tarfile.TarInfo(name)
    header.size, header.type = size, kind
    for key, value in more.items():
        setattr(header, key, value)
    return header


@pytest.mark.parametrize("layout", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_are_in_order_under_the_archives_name(layout: int) -> None:
    """Every format gives the members as `archive!/path`."""
    data = make_tar(
        (make_header("logs/b.log", 5), b"hello"),
        (make_header("logs", 0, tarfile.DIRTYPE), b""),
        (make_header("a.log", 2), b"hi"),
        layout=layout,
    )
    sources, warnings = read(data, name="t.tar")
    assert list(sources.items()) == [("t.tar!/logs/b.log", b"hello"), ("t.tar!/a.log", b"hi")]
    assert not warnings


@given(MEMBERS)
@settings(max_examples=60, deadline=None)
def test_no_name_touches_the_disk(members: list[tuple[str, bytes]]) -> None:
    """Whatever its name, a member is read, displayed below the archive, and not written to disk."""
    data = make_tar(
        *((make_header(name, 4 + len(body)), b"log " + body) for name, body in members), layout=tarfile.PAX_FORMAT
    )
    with temporary_directory() as place:
        (place / "t").write_bytes(data)
        sources, warnings = read_sources(discover([str(place)]).files[0])
        assert os.listdir(place) == ["t"]
    assert [text for _, text in sources] == [b"log " + body for _, body in members]
    assert not warnings
    for source, _ in sources:
        shown = source.name.split("!/", 1)[1]
        assert ".." not in shown.split("/")
        assert not shown.startswith("/")
        assert source.name.isprintable()


@given(MEMBERS, st.floats(0, 1, exclude_max=True), st.booleans())
@settings(max_examples=80, deadline=None)
def test_truncation_never_loses_earlier_members(members: list[tuple[str, bytes]], cut: float, packed: bool) -> None:
    """Members before the cut are whole, the one at the cut is a beginning, and the cut is reported."""
    numbered = {f"{at}.log": b"log " + body for at, (_, body) in enumerate(members)}
    whole = tar(numbered)
    end = max(512, int(len(whole) * cut))
    sources, warnings = read(gzip.compress(whole[:end]) if packed else whole[:end], name="t")
    at = 0
    for name, body in numbered.items():
        at += 512
        if at + len(body) <= end:
            assert sources[f"t!/{name}"] == body
        elif f"t!/{name}" in sources:
            assert body.startswith(sources[f"t!/{name}"])
        at += -(-len(body) // 512) * 512
    assert set(codes(warnings)) <= {"truncated-archive", "corrupt"}
    assert warnings or end >= at + 512


@given(MEMBERS, st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=600))
@settings(max_examples=80, deadline=None)
def test_garbage_anywhere_never_raises(members: list[tuple[str, bytes]], at: float, garbage: bytes) -> None:
    """An archive that is overwritten anywhere is read as far as possible, and so is the file behind it."""
    whole = bytearray(
        make_tar(*((make_header(name, len(body)), body) for name, body in members), layout=tarfile.PAX_FORMAT)
    )
    start = int(len(whole) * at)
    whole[start : start + len(garbage)] = garbage
    with temporary_directory() as place:
        (place / "t").write_bytes(whole)
        (place / "z.log").write_bytes(b"x\n")
        texts = [text for file in discover([str(place)]).files for _, text in read_sources(file)[0]]
        assert texts[-1] == b"x\n"
        assert sorted(os.listdir(place)) == ["t", "z.log"]


def test_after_a_broken_header_the_next_member_is_found() -> None:
    """Damage in one header costs one member."""
    data = bytearray(tar({"a.log": log(), "b.log": log(), "c.log": log(5)}))
    broken = 512 + -(-len(log()) // 512) * 512
    data[broken : broken + 200] = b"?" * 200
    sources, warnings = read(bytes(data), name="t")
    assert sources == {"t!/a.log": log(), "t!/c.log": log(5)}
    assert codes(warnings) == ["corrupt"]


def test_concatenated_archives_are_read_to_the_end() -> None:
    """`cat a.tar b.tar` has the members of both."""
    sources, warnings = read(tar({"a.log": log()}) + tar({"b.log": log(3)}), name="t")
    assert sources == {"t!/a.log": log(), "t!/b.log": log(3)}
    assert not warnings


def test_links_and_special_members_are_skipped_with_a_reason() -> None:
    """Only regular files are read; a link is never followed."""
    data = make_tar(
        (make_header("s", kind=tarfile.SYMTYPE, linkname="/etc/passwd"), b""),
        (make_header("h", kind=tarfile.LNKTYPE, linkname="../x"), b""),
        (make_header("f", kind=tarfile.FIFOTYPE), b""),
        (make_header("d", kind=tarfile.CHRTYPE), b""),
        (make_header("ok.log", 3), b"ok\n"),
    )
    sources, warnings = read(data, name="t")
    assert sources == {"t!/ok.log": b"ok\n"}
    assert codes(warnings) == ["special-member"] * 4


def test_members_are_classified_by_content() -> None:
    """Core files, dumps and other artifacts inside an archive have the right kind."""
    data = tar(
        {
            "core.1": CORE,
            "dump": CASES["flight-recorder"],
            "stack": CASES["py-spy"],
            "error.json": CASES["error-file"],
            "e": b"",
        }
    )
    with temporary_directory() as place:
        (place / "t").write_bytes(data)
        sources, _ = read_sources(discover([str(place)]).files[0])
    assert [source.kind for source, _ in sources] == ["core", "flight-recorder", "py-spy", "error-file", "empty"]


def test_archives_inside_are_opened_one_level() -> None:
    """A zip in a tar is read, an archive in that one is skipped with a reason."""
    inner = make_zip({"c.log": log(), "d.tar": tar({"e.log": b"x"})})
    sources, warnings = read(tar({"b.zip": inner, "c.log.gz": gzip.compress(log())}), name="a")
    assert sources == {"a!/b.zip!/c.log": log(), "a!/c.log.gz": log()}
    assert codes(warnings) == ["nested-too-deep"]


def test_a_sparse_member_is_read_with_its_holes() -> None:
    """A member of `tar --sparse` is read as the file was (GNU's old format and PAX 1.0)."""
    body = b"a" * 512
    sparse_map = b"2\n0\n512\n1536\n0\n".ljust(512, b"\0")
    pax = make_header("GNUSparseFile.0/core", 1024)
    pax.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "core",
        "GNU.sparse.realsize": "1536",
    }
    sources, warnings = read(
        make_tar((pax, sparse_map + body), (make_header("z.log", 2), b"z\n"), layout=tarfile.PAX_FORMAT), name="t"
    )
    assert sources == {"t!/core": body + bytes(1024), "t!/z.log": b"z\n"}
    assert not warnings


def test_holes_count_against_the_total() -> None:
    """A member of a terabyte of holes ends at the limit."""
    pax = make_header("GNUSparseFile.0/big", 512)
    size = str(1 << 40)
    pax.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "big",
        "GNU.sparse.realsize": size,
    }
    data = make_tar((pax, b"1\n1099511627776\n0\n".ljust(512, b"\0")), layout=tarfile.PAX_FORMAT)
    sources, warnings = read(data, Limits(max_total_bytes=1 << 20), name="t")
    assert sum(map(len, sources.values())) <= 1 << 20
    assert codes(warnings) == ["too-large"]


def test_an_absurd_header_is_not_read_into_memory() -> None:
    """A PAX header that claims gigabytes costs neither memory nor the next member."""
    block = bytearray(tar({"a.log": b"x"})[:512])
    block[124:136] = b"%011o\0" % (4 << 30)
    block[156:157] = b"x"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    sources, warnings = read(bytes(block) + b"12 path=evil\n".ljust(512, b"\0") + tar({"b.log": log()}), name="t")
    assert sources == {"t!/b.log": log()}
    assert codes(warnings) == ["corrupt"]


def test_a_long_chain_of_headers_does_not_exhaust_the_stack() -> None:
    """A long chain of headers is damage, not a crash."""
    block = bytearray(tar({"a.log": b"x"})[:512])
    block[124:136] = b"%011o\0" % 0
    block[156:157] = b"x"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    sources, warnings = read(bytes(block) * 5000 + tar({"b.log": log()}), name="t")
    assert sources["t!/b.log"] == log()
    assert "corrupt" in codes(warnings)


@pytest.mark.parametrize("size", [b"\xff" * 12, b"\x80" + b"\xff" * 11])
def test_an_invalid_size_affects_no_other_member(size: bytes) -> None:
    """A member with an invalid size causes no loop and no exception."""
    block = bytearray(tar({"a.log": b"x"})[:512])
    block[124:136] = size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    _, warnings = read(bytes(block) + tar({"b.log": log()}), name="t")
    assert warnings


def test_the_number_of_members_is_capped() -> None:
    """Too many members end the archive with a reason."""
    sources, warnings = read(tar({f"{at}.log": b"x\n" for at in range(30)}), Limits(max_members=10), name="t")
    assert len(sources) == 10
    assert codes(warnings) == ["too-many-members"]


def test_a_member_is_capped_and_the_next_one_is_read() -> None:
    """The limit for one member cuts no other."""
    sources, warnings = read(tar({"a.log": log(), "b.log": log(3)}), Limits(max_member_bytes=1000), name="t")
    assert sources == {"t!/a.log": log()[:1000], "t!/b.log": log(3)}
    assert codes(warnings) == ["too-large"]


def test_unread_members_are_skipped(tmp_path: Path) -> None:
    """A caller may leave a stream unread and request the next source."""
    (tmp_path / "t").write_bytes(gzip.compress(tar({"a.log": log(), "b.log": log(3)})))
    from triage.sources import streams

    names = [
        source.name.rsplit("/", 1)[-1]
        for source, _ in streams(discover([str(tmp_path)]).files[0], Limits(), lambda _: None)
    ]
    assert names == ["a.log", "b.log"]


def test_ten_thousand_empty_members_are_quick() -> None:
    """Many members cost little each, and many warnings are counted, not listed."""
    data = make_tar(
        *((make_header(f"{at}"), b"") for at in range(10_000)),
        *((make_header(f"l{at}", kind=tarfile.SYMTYPE, linkname="x"), b"") for at in range(100)),
    )
    begun = time.perf_counter()
    sources, warnings = read(gzip.compress(data), name="t")
    assert time.perf_counter() - begun < 10
    assert len(sources) == 10_000
    assert len(warnings) == 21
    assert "80 more" in warnings[-1].message
