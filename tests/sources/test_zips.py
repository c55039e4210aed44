"""triage.sources.zips"""

from __future__ import annotations

import io
import stat
import struct
import zipfile

import pytest
import zstandard
from hypothesis import example, given, settings, strategies as st

from triage.sources import Limits, zips

from .factories import codes, log, make_zip, read, tar

METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]


class ForwardFile(io.RawIOBase):
    """A file that zipfile cannot seek back in, so that it writes sizes after the data."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.data += data
        return len(data)


def make_streamed_zip(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive as written to a pipe."""
    out = ForwardFile()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return bytes(out.data)


def without_directory(data: bytes) -> bytes:
    """Return an archive without its directory."""
    return data[: data.index(b"PK\x01\x02")]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [make_zip, make_streamed_zip])
def test_members_are_read(method: int, make: type[zipfile.ZipFile]) -> None:
    """Every method that the standard library writes is read, in place and as a stream."""
    members = {"logs/": b"", "logs/a.log": log(), "b.log": b""}
    sources, warnings = read(make(members, method), name="z")  # type: ignore[arg-type,call-overload]
    assert sources == {"z!/logs/a.log": log(), "z!/b.log": b""}
    assert not warnings


@pytest.mark.parametrize("method", METHODS)
def test_members_are_read_without_the_directory(method: int) -> None:
    """An archive that lost its end is read from header to header, which is reported."""
    sources, warnings = read(without_directory(make_zip({"a.log": log(), "b.log": log(3)}, method)), name="z")
    assert sources == {"z!/a.log": log(), "z!/b.log": log(3)}
    assert codes(warnings) == ["truncated-archive"]


@pytest.mark.parametrize("method", METHODS[1:])
def test_members_are_read_without_the_directory_and_sizes(method: int) -> None:
    """Where sizes follow the data, the compressed data itself has an end."""
    sources, warnings = read(without_directory(make_streamed_zip({"a.log": log(), "b.log": log(3)}, method)), name="z")
    assert sources == {"z!/a.log": log(), "z!/b.log": log(3)}
    assert codes(warnings) == ["truncated-archive"]


def test_a_stored_member_without_size_is_skipped_with_a_reason() -> None:
    """A member without an end is skipped, and the next one is found."""
    data = without_directory(make_streamed_zip({"a.log": log()}, zipfile.ZIP_STORED)) + without_directory(
        make_zip({"b.log": log(3)})
    )
    sources, warnings = read(data, name="z")
    assert sources == {"z!/b.log": log(3)}
    assert codes(warnings) == ["skipped", "truncated-archive"]


@given(
    st.lists(st.binary(max_size=3000), min_size=1, max_size=5),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(METHODS[:3]),
    st.booleans(),
)
@example([b"PK\x05\x06"], 0.75, METHODS[0], False)
@settings(max_examples=80, deadline=None)
def test_truncation_never_loses_earlier_members(bodies: list[bytes], cut: float, method: int, nested: bool) -> None:
    """Wherever an archive is cut, members before the cut are whole, also inside a tar."""
    members = {f"{at}.log": b"log " + body for at, body in enumerate(bodies)}
    data = make_zip(members, method)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        ends = {
            info.filename: info.header_offset + 30 + len(info.filename) + info.compress_size
            for info in archive.infolist()
        }
    end = max(40, int(len(data) * cut))
    sources, warnings = read(tar({"z": data[:end]}) if nested else data[:end], name="t")
    shown = "t!/z!/" if nested else "t!/"
    for name, body in members.items():
        if ends[name] <= end:
            assert sources[shown + name] == body
        elif shown + name in sources:
            assert body.startswith(sources[shown + name])
    assert warnings


@given(
    st.lists(st.binary(max_size=1000), min_size=1, max_size=5),
    st.floats(0, 1, exclude_max=True),
    st.binary(min_size=1, max_size=100),
)
@settings(max_examples=100, deadline=None)
def test_garbage_anywhere_never_raises(bodies: list[bytes], at: float, garbage: bytes) -> None:
    """An archive that is overwritten anywhere but at its first bytes is read as far as possible."""
    data = bytearray(make_zip({f"{at}.log": body for at, body in enumerate(bodies)}))
    start = 4 + int((len(data) - 4) * at)
    data[start : start + len(garbage)] = garbage
    sources = read(bytes(data), name="z")[0]
    assert all(name == "z" or name.startswith("z!/") for name in sources)


def test_a_wrong_checksum_is_reported_and_costs_nothing() -> None:
    """The text of a member with a wrong checksum is delivered."""
    data = make_zip({"a.log": log(), "b.log": log(3)})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        crc = struct.pack("<L", archive.getinfo("a.log").CRC)
    sources, warnings = read(data.replace(crc, b"\1\2\3\4"), name="z")
    assert sources == {"z!/a.log": log(), "z!/b.log": log(3)}
    assert [(warning.code, (warning.source or "")[-7:]) for warning in warnings] == [("corrupt", "!/a.log")]


def encrypted(data: bytes) -> bytes:
    """Return an archive whose members are marked as encrypted."""
    out = bytearray(data)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = out.find(mark)
        while at >= 0:
            out[at + offset] |= 1
            at = out.find(mark, at + 4)
    return bytes(out)


@pytest.mark.parametrize("make", [lambda data: data, without_directory])
def test_encrypted_members_are_skipped_with_a_reason(make: type[bytes]) -> None:
    """An encrypted member gives a warning and no source."""
    sources, warnings = read(make(encrypted(make_zip({"a.log": log()}))), name="z")
    assert not sources
    assert codes(warnings)[0] == "encrypted"


def test_links_are_skipped_with_a_reason() -> None:
    """A link gives a warning and no source."""
    link = zipfile.ZipInfo("l")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(link, "/etc/passwd")
        archive.writestr("a.log", b"x\n")
    sources, warnings = read(out.getvalue(), name="z")
    assert sources == {"z!/a.log": b"x\n"}
    assert codes(warnings) == ["special-member"]


def test_zstd_members_are_read() -> None:
    """Method 93, which the standard library does not know, is read with zstandard."""
    packed = zstandard.ZstdCompressor().compress(log())
    data = bytearray(make_zip({"a.log": packed}, zipfile.ZIP_STORED))
    data[8:10] = struct.pack("<H", 93)
    at = data.rfind(b"PK\x01\x02")
    data[at + 10 : at + 12] = struct.pack("<H", 93)
    sources, warnings = read(bytes(data), name="z")
    assert sources == {"z!/a.log": log()}
    assert codes(warnings) == ["corrupt"]  # the checksum made here is that of the packed bytes


def test_unknown_methods_are_skipped_with_a_reason() -> None:
    """The warning names Deflate64, which Windows uses for large files."""
    data = bytearray(make_zip({"a.log": log()}))
    at = data.rfind(b"PK\x01\x02")
    data[at + 10 : at + 12] = struct.pack("<H", 9)
    sources, warnings = read(bytes(data), name="z")
    assert not sources
    assert "Deflate64" in warnings[0].message


def test_names_in_utf8_without_the_flag_are_right() -> None:
    """UTF-8 names are decoded without the flag too, and have no control characters."""
    data = make_zip({"l\u00f6g.log": b"x\n"})
    out = bytearray(data)
    out[7] &= ~0x08
    at = out.rfind(b"PK\x01\x02")
    out[at + 9] &= ~0x08
    assert list(read(bytes(out), name="z")[0]) == ["z!/l\u00f6g.log"]
    assert list(read(make_zip({"../\x1b[2Ja\n.log": b"x\n"}), name="z")[0]) == ["z!/\\x1b[2Ja\\x0a.log"]


def test_bytes_before_the_archive_do_no_harm() -> None:
    """Offsets are read as the standard library does (a zip may follow other bytes)."""
    inner = make_zip({"a.log": log()})
    sources, _ = read(b"PK\x03\x04" + b"\0" * 100 + inner, name="z")
    assert sources == {"z!/a.log": log()}


def test_a_directory_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an absurd directory the members are read from header to header."""
    monkeypatch.setattr(zips, "_MAX_DIRECTORY_BYTES", 100)
    sources, warnings = read(make_zip({f"{at}.log": log(3) for at in range(10)}), name="z")
    assert len(sources) == 10
    assert codes(warnings) == ["truncated-archive"]


def test_a_large_zip_inside_a_tar_is_read_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    """A nested zip that is too large for memory is read forward without a warning."""
    monkeypatch.setattr(zips, "_MAX_NESTED_BYTES", 100)
    sources, warnings = read(tar({"b.zip": make_zip({"c.log": log(), "d.log": log(3)})}), name="a")
    assert sources == {"a!/b.zip!/c.log": log(), "a!/b.zip!/d.log": log(3)}
    assert not warnings


def test_members_that_share_their_bytes_are_capped() -> None:
    """Many entries for the same data end at the limit of the whole file."""
    data = make_zip({"a.log": b"x" * 1_000_000})
    at = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    entry, tail = data[at:end], bytearray(data[end:])
    tail[8:16] = struct.pack("<HHL", 500, 500, len(entry) * 500)
    sources, warnings = read(data[:at] + entry * 500 + bytes(tail), Limits(max_total_bytes=5_000_000), name="z")
    assert sum(map(len, sources.values())) <= 5_000_000
    assert codes(warnings) == ["too-large"]


def test_a_checkpoint_is_skipped_with_a_reason() -> None:
    """A file of torch.save is not a log."""
    sources, warnings = read(
        make_zip({"m/data.pkl": b"\x80\x02}.", "m/data/0": bytes(1000), "m/version": b"3\n"}), name="m.pt"
    )
    assert not sources
    assert codes(warnings) == ["skipped"]
