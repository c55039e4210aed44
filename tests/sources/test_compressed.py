"""triage.sources.compressed, inflate and engines"""

from __future__ import annotations

import gzip
import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.sources import Limits, engines
from triage.sources.bytestream import Memory
from triage.sources.engines import ENGINES, Engine
from triage.sources.inflate import Inflated

from .making import COMPRESSIONS, codes, log, read, tar

BYTES = st.binary(min_size=1, max_size=5000) | st.builds(
    lambda data, times: data * times, st.binary(min_size=1, max_size=50), st.integers(1, 5000)
)


def inflated(data: bytes, engine: Engine) -> tuple[bytes, str | None]:
    """`data` decompressed, and the code of the damage."""
    stream = Inflated(Memory(data), engine, lambda _: None)
    return stream.read(), stream.damage.code if stream.damage else None


@pytest.fixture(params=["isal", "zlib"])
def gzip_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Both ways of reading gzip."""
    if request.param == "zlib":
        monkeypatch.setitem(sys.modules, "isal.igzip_lib", None)
    engine = engines.gzip_engine()
    assert (engine.errors[0].__name__ == "IsalError") == (request.param == "isal")
    return engine


@pytest.mark.parametrize("kind", ENGINES)
@given(parts=st.lists(BYTES, min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_any_bytes_come_back(kind: str, parts: list[bytes]) -> None:
    """Any bytes in any compression come back byte for byte, also in several frames one after the other."""
    data = b"".join(map(COMPRESSIONS[kind], parts))
    assert inflated(data, ENGINES[kind]()) == (b"".join(parts), None)  # type: ignore[index]


@pytest.mark.parametrize("kind", ENGINES)
@given(data=BYTES, cut=st.floats(0, 1, exclude_max=True))
@settings(max_examples=40, deadline=None)
def test_a_truncated_stream_gives_its_beginning(kind: str, data: bytes, cut: float) -> None:
    """Wherever a stream is cut, what comes out is a beginning of what went in, and the damage is told."""
    whole = COMPRESSIONS[kind](data)
    out, code = inflated(whole[: max(1, int(len(whole) * cut))], ENGINES[kind]())  # type: ignore[index]
    assert data.startswith(out)
    assert code == "truncated"


@pytest.mark.parametrize("kind", ENGINES)
@given(data=BYTES, at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=40, deadline=None)
def test_a_flipped_bit_never_raises(kind: str, data: bytes, at: float, bit: int) -> None:
    """Damage anywhere is told or harmless, never an exception."""
    whole = bytearray(COMPRESSIONS[kind](data))
    whole[int(len(whole) * at)] ^= 1 << bit
    out, code = inflated(bytes(whole), ENGINES[kind]())  # type: ignore[index]
    assert code or out == data


def test_both_gzip_engines_agree(gzip_engine: Engine) -> None:
    """isal and zlib give the same for whole, several, truncated and padded files."""
    text = log(50_000)
    packed = gzip.compress(text)
    assert inflated(packed, gzip_engine) == (text, None)
    assert inflated(packed + packed, gzip_engine) == (text + text, None)
    assert inflated(packed + bytes(1000), gzip_engine) == (text, None)
    out, code = inflated(packed[:-1000], gzip_engine)
    assert code == "truncated"
    assert len(out) > len(text) * 0.9
    assert text.startswith(out)


def test_a_wrong_gzip_checksum_loses_nothing(gzip_engine: Engine) -> None:
    """The end of the log survives a checksum that is wrong."""
    text = log()
    packed = bytearray(gzip.compress(text))
    packed[-6] ^= 1
    assert inflated(bytes(packed), gzip_engine) == (text, "corrupt")


def test_what_follows_a_stream_is_told(gzip_engine: Engine) -> None:
    """Garbage behind a complete stream costs nothing of the stream."""
    assert inflated(gzip.compress(b"hello") + b"garbage" * 20, gzip_engine) == (b"hello", "corrupt")


def test_damage_in_the_middle_keeps_what_lies_before() -> None:
    """Most of what lies before a damaged place is delivered."""
    text = random.Random(1).randbytes(4 << 20)
    for kind in ("gzip", "zstd", "bzip2"):
        packed = bytearray(COMPRESSIONS[kind](text))
        packed[len(packed) // 2 : len(packed) // 2 + 5000] = bytes(range(250)) * 20
        out, _ = inflated(bytes(packed), ENGINES[kind]())  # type: ignore[index]
        same = next((at for at in range(0, len(out), 1000) if out[at : at + 1000] != text[at : at + 1000]), len(out))
        assert same > len(text) * (0.2 if kind == "bzip2" else 0.45)


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_a_compressed_log_keeps_its_name(kind: str) -> None:
    """The source of a compressed log is called like the file, which is what the user would open."""
    assert read(COMPRESSIONS[kind](log()), name="rank0.log.x") == ({"rank0.log.x": log()}, [])


def test_a_file_compressed_twice_is_skipped_with_a_reason() -> None:
    """Only one compression is taken off."""
    sources, warnings = read(gzip.compress(gzip.compress(log())))
    assert not sources
    assert codes(warnings) == ["nested-too-deep"]


def test_a_truncated_tar_gz_is_told_once_and_as_an_archive() -> None:
    """The cut is told for the archive, not again for the member that it hits."""
    data = gzip.compress(tar({"a.log": log(), "b.log": log(90_000)}))
    sources, warnings = read(data[: len(data) // 2], name="t")
    assert sources["t!/a.log"] == log()
    assert log(90_000).startswith(sources["t!/b.log"])
    assert len(sources["t!/b.log"]) > 100_000
    assert codes(warnings) == ["truncated-archive"]


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_a_bomb_is_stopped(kind: str) -> None:
    """Output out of all proportion to the file ends with a reason, and what came before is delivered."""
    data = COMPRESSIONS[kind](bytes(b"x" * 99 + b"\n") * 200_000)
    limits = Limits(max_ratio=20, ratio_floor_bytes=2 << 20)
    sources, warnings = read(data, limits)
    assert 0 < len(sources["f"]) <= 20_000_000
    assert kind == "zstd" or len(sources["f"]) <= 4 << 20  # one call of zstd may make more
    assert codes(warnings) == ["bomb"]


def test_the_total_is_capped_over_all_members() -> None:
    """A cap on the whole file ends the archive with one warning."""
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
    """What is recognised but not supported says what to do."""
    with pytest.raises(Exception, match="lz4 -d"):
        read(b"\x02\x21\x4c\x18" + bytes(20))
    sources, warnings = read(tar({"a.lz4": b"\x02\x21\x4c\x18" + bytes(20), "b.log": log()}), name="t")
    assert list(sources) == ["t!/b.log"]
    assert codes(warnings) == ["skipped"]
    assert "lz4 -d" in warnings[0].message


def test_wide_text_in_gzip_becomes_utf8() -> None:
    """The encoding is found behind the compression."""
    assert read(gzip.compress("\ufeffNCCL WARN ä\n".encode("utf-16-le"))) == ({"f": "NCCL WARN ä\n".encode()}, [])
