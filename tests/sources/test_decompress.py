"""triage.sources.decompress"""

from __future__ import annotations

import gzip
import random
import sys

import pytest
from hypothesis import given, settings, strategies as st

from triage.sources import Limits, decompress as decompress_module
from triage.sources.bytestream import MemoryStream
from triage.sources.decompress import FORMATS, CompressionFormat, DecompressedStream

from .factories import COMPRESSIONS, codes, log, read, tar

BYTES = st.binary(min_size=1, max_size=5000) | st.builds(
    lambda data, times: data * times, st.binary(min_size=1, max_size=50), st.integers(1, 5000)
)


def decompress(data: bytes, compression: CompressionFormat) -> tuple[bytes, str | None]:
    """Return the decompressed data and the code of the damage."""
    stream = DecompressedStream(MemoryStream(data), compression, lambda _: None)
    return stream.read(), stream.damage.code if stream.damage else None


@pytest.fixture(params=["isal", "zlib"])
def gzip_format(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CompressionFormat:
    """Both implementations of gzip."""
    if request.param == "zlib":
        monkeypatch.setitem(sys.modules, "isal.igzip_lib", None)
    compression = decompress_module.gzip_format()
    assert (compression.errors[0].__name__ == "IsalError") == (request.param == "isal")
    return compression


@pytest.mark.parametrize("kind", FORMATS)
@given(parts=st.lists(BYTES, min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_any_bytes_are_restored(kind: str, parts: list[bytes]) -> None:
    """Any bytes in any compression are restored, also from several frames."""
    data = b"".join(map(COMPRESSIONS[kind], parts))
    assert decompress(data, FORMATS[kind]()) == (b"".join(parts), None)  # type: ignore[index]


@pytest.mark.parametrize("kind", FORMATS)
@given(data=BYTES, cut=st.floats(0, 1, exclude_max=True))
@settings(max_examples=40, deadline=None)
def test_a_truncated_stream_gives_its_beginning(kind: str, data: bytes, cut: float) -> None:
    """Wherever a stream is cut, the output is a beginning of the input, and the damage is reported."""
    whole = COMPRESSIONS[kind](data)
    out, code = decompress(whole[: max(1, int(len(whole) * cut))], FORMATS[kind]())  # type: ignore[index]
    assert data.startswith(out)
    assert code == "truncated"


@pytest.mark.parametrize("kind", FORMATS)
@given(data=BYTES, at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=40, deadline=None)
def test_a_flipped_bit_never_raises(kind: str, data: bytes, at: float, bit: int) -> None:
    """Damage anywhere is reported or harmless, never an exception."""
    whole = bytearray(COMPRESSIONS[kind](data))
    whole[int(len(whole) * at)] ^= 1 << bit
    out, code = decompress(bytes(whole), FORMATS[kind]())  # type: ignore[index]
    assert code or out == data


def test_both_gzip_implementations_agree(gzip_format: CompressionFormat) -> None:
    """isal and zlib give the same for whole, several, truncated and padded files."""
    text = log(50_000)
    packed = gzip.compress(text)
    assert decompress(packed, gzip_format) == (text, None)
    assert decompress(packed + packed, gzip_format) == (text + text, None)
    assert decompress(packed + bytes(1000), gzip_format) == (text, None)
    out, code = decompress(packed[:-1000], gzip_format)
    assert code == "truncated"
    assert len(out) > len(text) * 0.9
    assert text.startswith(out)


def test_a_wrong_gzip_checksum_loses_nothing(gzip_format: CompressionFormat) -> None:
    """The end of the log is delivered when the checksum is wrong."""
    text = log()
    packed = bytearray(gzip.compress(text))
    packed[-6] ^= 1
    assert decompress(bytes(packed), gzip_format) == (text, "corrupt")


def test_garbage_after_a_stream_is_reported(gzip_format: CompressionFormat) -> None:
    """Garbage after a complete stream costs nothing of the stream."""
    assert decompress(gzip.compress(b"hello") + b"garbage" * 20, gzip_format) == (b"hello", "corrupt")


def test_data_before_damage_is_delivered() -> None:
    """Most of the data before a damaged place is delivered."""
    text = random.Random(1).randbytes(4 << 20)
    for kind in ("gzip", "zstd", "bzip2"):
        packed = bytearray(COMPRESSIONS[kind](text))
        packed[len(packed) // 2 : len(packed) // 2 + 5000] = bytes(range(250)) * 20
        out, _ = decompress(bytes(packed), FORMATS[kind]())  # type: ignore[index]
        same = next((at for at in range(0, len(out), 1000) if out[at : at + 1000] != text[at : at + 1000]), len(out))
        assert same > len(text) * (0.2 if kind == "bzip2" else 0.45)


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_a_compressed_log_keeps_its_name(kind: str) -> None:
    """The source of a compressed log has the name of the file."""
    assert read(COMPRESSIONS[kind](log()), name="rank0.log.x") == ({"rank0.log.x": log()}, [])


def test_a_file_compressed_twice_is_skipped_with_a_reason() -> None:
    """Only one compression is removed."""
    sources, warnings = read(gzip.compress(gzip.compress(log())))
    assert not sources
    assert codes(warnings) == ["nested-too-deep"]


def test_a_truncated_tar_gz_is_reported_once() -> None:
    """The cut is reported for the archive, not again for the member."""
    data = gzip.compress(tar({"a.log": log(), "b.log": log(90_000)}))
    sources, warnings = read(data[: len(data) // 2], name="t")
    assert sources["t!/a.log"] == log()
    assert log(90_000).startswith(sources["t!/b.log"])
    assert len(sources["t!/b.log"]) > 100_000
    assert codes(warnings) == ["truncated-archive"]


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_a_bomb_is_stopped(kind: str) -> None:
    """Output far larger than the file ends with a reason, and the bytes before are delivered."""
    data = COMPRESSIONS[kind](bytes(b"x" * 99 + b"\n") * 200_000)
    limits = Limits(max_ratio=20, ratio_floor_bytes=2 << 20)
    sources, warnings = read(data, limits)
    assert 0 < len(sources["f"]) <= 20_000_000
    assert kind == "zstd" or len(sources["f"]) <= 4 << 20  # one call of zstd may make more
    assert codes(warnings) == ["bomb"]


def test_the_total_is_capped_over_all_members() -> None:
    """A limit on the whole file ends the archive with one warning."""
    data = gzip.compress(tar({f"{at}.log": log() for at in range(50)}))
    sources, warnings = read(data, Limits(max_total_bytes=200_000))
    assert sum(map(len, sources.values())) <= 200_000
    assert codes(warnings) == ["too-large"]


def test_a_missing_decompressor_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without zstandard a zstd file is skipped with advice."""
    data = COMPRESSIONS["zstd"](log())
    monkeypatch.setitem(sys.modules, "zstandard", None)
    sources, warnings = read(data)
    assert not sources
    assert codes(warnings) == ["skipped"]
    assert "zstandard" in warnings[0].message


def test_an_lz4_file_of_the_oldest_format_is_skipped_with_advice() -> None:
    """The warning for a format that is not supported says what to do."""
    with pytest.raises(Exception, match="lz4 -d"):
        read(b"\x02\x21\x4c\x18" + bytes(20))
    sources, warnings = read(tar({"a.lz4": b"\x02\x21\x4c\x18" + bytes(20), "b.log": log()}), name="t")
    assert list(sources) == ["t!/b.log"]
    assert codes(warnings) == ["skipped"]
    assert "lz4 -d" in warnings[0].message


def test_wide_text_in_gzip_becomes_utf8() -> None:
    """The encoding is recognized after decompression."""
    assert read(gzip.compress("\ufeffNCCL WARN ä\n".encode("utf-16-le"))) == ({"f": "NCCL WARN ä\n".encode()}, [])
