"""triage.sources.zips and zip_walk"""

from __future__ import annotations

import io
import stat
import struct
import zipfile

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from triage.sources import Limits, zips

from .making import codes, log, read, tar, zipped

METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]


class Forward(io.RawIOBase):
    """A file that zipfile cannot go back in, so that it puts sizes behind the data."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.data += data
        return len(data)


def streamed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive as written to a pipe."""
    out = Forward()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return bytes(out.data)


def headless(data: bytes) -> bytes:
    """An archive without its directory."""
    return data[: data.index(b"PK\x01\x02")]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [zipped, streamed])
def test_members_come_back(method: int, make: type[zipfile.ZipFile]) -> None:
    """Every method the standard library writes is read, in place and as streamed."""
    members = {"logs/": b"", "logs/a.log": log(), "b.log": b""}
    sources, warnings = read(make(members, method), name="z")  # type: ignore[arg-type,call-overload]
    assert sources == {"z!/logs/a.log": log(), "z!/b.log": b""}
    assert not warnings


@pytest.mark.parametrize("method", METHODS)
def test_members_come_back_without_the_directory(method: int) -> None:
    """An archive that lost its end is read from member to member, and that is told."""
    sources, warnings = read(headless(zipped({"a.log": log(), "b.log": log(3)}, method)), name="z")
    assert sources == {"z!/a.log": log(), "z!/b.log": log(3)}
    assert codes(warnings) == ["truncated-archive"]


@pytest.mark.parametrize("method", METHODS[1:])
def test_members_come_back_without_the_directory_and_sizes(method: int) -> None:
    """Where even the sizes lie behind the data, the compressed data itself tells where it ends."""
    sources, warnings = read(headless(streamed({"a.log": log(), "b.log": log(3)}, method)), name="z")
    assert sources == {"z!/a.log": log(), "z!/b.log": log(3)}
    assert codes(warnings) == ["truncated-archive"]


def test_a_stored_member_without_size_is_skipped_with_a_reason() -> None:
    """Where nothing tells the end of a member it is left out, and the next one is found."""
    data = headless(streamed({"a.log": log()}, zipfile.ZIP_STORED)) + headless(zipped({"b.log": log(3)}))
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
    """Wherever an archive is cut, members that lie before the cut are whole, also inside a tar."""
    members = {f"{at}.log": b"log " + body for at, body in enumerate(bodies)}
    data = zipped(members, method)
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
    """An archive overwritten at any place but its first bytes is read as far as it goes."""
    data = bytearray(zipped({f"{at}.log": body for at, body in enumerate(bodies)}))
    start = 4 + int((len(data) - 4) * at)
    data[start : start + len(garbage)] = garbage
    sources = read(bytes(data), name="z")[0]
    assert all(name == "z" or name.startswith("z!/") for name in sources)


def test_a_wrong_checksum_is_told_and_costs_nothing() -> None:
    """The text of a member whose checksum is wrong is delivered."""
    data = zipped({"a.log": log(), "b.log": log(3)})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        crc = struct.pack("<L", archive.getinfo("a.log").CRC)
    sources, warnings = read(data.replace(crc, b"\1\2\3\4"), name="z")
    assert sources == {"z!/a.log": log(), "z!/b.log": log(3)}
    assert [(warning.code, (warning.source or "")[-7:]) for warning in warnings] == [("corrupt", "!/a.log")]


def encrypted(data: bytes) -> bytes:
    """An archive whose members say they are encrypted."""
    out = bytearray(data)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = out.find(mark)
        while at >= 0:
            out[at + offset] |= 1
            at = out.find(mark, at + 4)
    return bytes(out)


@pytest.mark.parametrize("make", [lambda data: data, headless])
def test_encrypted_members_are_skipped_with_a_reason(make: type[bytes]) -> None:
    """Nothing is made of what cannot be read."""
    sources, warnings = read(make(encrypted(zipped({"a.log": log()}))), name="z")
    assert not sources
    assert codes(warnings)[0] == "encrypted"


def test_links_are_skipped_with_a_reason() -> None:
    """A link is not a file."""
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
    """Method 93, which the standard library does not know yet, is read with zstandard."""
    packed = zstandard.ZstdCompressor().compress(log())
    data = bytearray(zipped({"a.log": packed}, zipfile.ZIP_STORED))
    data[8:10] = struct.pack("<H", 93)
    at = data.rfind(b"PK\x01\x02")
    data[at + 10 : at + 12] = struct.pack("<H", 93)
    sources, warnings = read(bytes(data), name="z")
    assert sources == {"z!/a.log": log()}
    assert codes(warnings) == ["corrupt"]  # the checksum made here is that of the packed bytes


def test_unknown_methods_are_skipped_with_a_reason() -> None:
    """Deflate64 is named, for Windows uses it for large files."""
    data = bytearray(zipped({"a.log": log()}))
    at = data.rfind(b"PK\x01\x02")
    data[at + 10 : at + 12] = struct.pack("<H", 9)
    sources, warnings = read(bytes(data), name="z")
    assert not sources
    assert "Deflate64" in warnings[0].message


def test_names_in_utf8_without_the_flag_are_right() -> None:
    """Names come as they were meant, also where the writer did not say it was UTF-8, and never with control characters."""
    data = zipped({"l\u00f6g.log": b"x\n"})
    out = bytearray(data)
    out[7] &= ~0x08
    at = out.rfind(b"PK\x01\x02")
    out[at + 9] &= ~0x08
    assert list(read(bytes(out), name="z")[0]) == ["z!/l\u00f6g.log"]
    assert list(read(zipped({"../\x1b[2Ja\n.log": b"x\n"}), name="z")[0]) == ["z!/\\x1b[2Ja\\x0a.log"]


def test_a_prefix_before_the_archive_is_no_harm() -> None:
    """Offsets are taken as the standard library takes them (a zip may begin behind other bytes)."""
    inner = zipped({"a.log": log()})
    sources, _ = read(b"PK\x03\x04" + b"\0" * 100 + inner, name="z")
    assert sources == {"z!/a.log": log()}


def test_a_directory_too_large_to_hold_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an absurd directory the members are walked instead."""
    monkeypatch.setattr(zips, "_DIRECTORY", 100)
    sources, warnings = read(zipped({f"{at}.log": log(3) for at in range(10)}), name="z")
    assert len(sources) == 10
    assert codes(warnings) == ["truncated-archive"]


def test_a_large_zip_inside_a_tar_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room to hold it, a nested zip is read forward, and nothing is wrong with that."""
    monkeypatch.setattr(zips, "_NESTED", 100)
    sources, warnings = read(tar({"b.zip": zipped({"c.log": log(), "d.log": log(3)})}), name="a")
    assert sources == {"a!/b.zip!/c.log": log(), "a!/b.zip!/d.log": log(3)}
    assert not warnings


def test_members_that_share_their_bytes_are_capped() -> None:
    """Many entries that point at the same data end at the cap on the whole."""
    data = zipped({"a.log": b"x" * 1_000_000})
    at = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    entry, tail = data[at:end], bytearray(data[end:])
    tail[8:16] = struct.pack("<HHL", 500, 500, len(entry) * 500)
    sources, warnings = read(data[:at] + entry * 500 + bytes(tail), Limits(max_total_bytes=5_000_000), name="z")
    assert len(sources) == 1
    assert codes(warnings) == ["too-large"]


def test_a_checkpoint_is_skipped_with_a_reason() -> None:
    """What torch.save writes is no log."""
    sources, warnings = read(
        zipped({"m/data.pkl": b"\x80\x02}.", "m/data/0": bytes(1000), "m/version": b"3\n"}), name="m.pt"
    )
    assert not sources
    assert codes(warnings) == ["skipped"]
