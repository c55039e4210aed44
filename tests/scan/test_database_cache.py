"""triage.scan.database_cache"""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

import pytest

from triage.base.content_digest import digest_bytes
from triage.scan import database_cache
from triage.scan.database_cache import StoredDatabases, compute_key, read_databases, write_databases
from triage.scan.literal_matcher import HyperscanMatcher, build

pytest.importorskip("hyperscan")
LITERALS = ["a window99 failed", "boom", "err: 7"]
LINE = b"boom, a window99 failed"
# hs_database in src/database.h of Hyperscan: magic, version, length (4 bytes each), platform (8 bytes), crc32.
VERSION, PLATFORM, CHECKSUM = 4, 12, 20


def build_matcher(cache: Path) -> HyperscanMatcher:
    matcher = build(LITERALS, "hyperscan", ["window99"], cache=cache)
    assert isinstance(matcher, HyperscanMatcher)
    return matcher


def count_compilations(cache: Path) -> int:
    """Build a matcher, check every search with it, and return how many databases it compiled."""
    with mock.patch.object(
        HyperscanMatcher, "_compile", autospec=True, side_effect=HyperscanMatcher._compile
    ) as compiled:
        matcher = build_matcher(cache)
        assert [end for end, _ in matcher.find(LINE, 0, len(LINE), 9)] == [4, 16]
        assert [tuple(named) for _, named in matcher.find(LINE, 0, len(LINE), 9, exact=True)] == [(1,), (0,)]
        assert matcher.find_first(LINE, 0, len(LINE)) == [(4, 1), (23, 0)]
        assert matcher.literals_in(LINE) == (0, 1)
    return compiled.call_count


def change_databases(path: Path, offset: int) -> None:
    """Change a byte of each database in the file; the digest of the file is right again."""
    data = database_cache.msgspec.msgpack.decode(path.read_bytes()[64:], type=StoredDatabases)
    changed = {
        name: database[:offset] + bytes([database[offset] ^ 1]) + database[offset + 1 :]
        for name, database in data.databases.items()
    }
    packed = database_cache.msgspec.msgpack.encode(
        StoredDatabases(data.key, data.windows, data.window_literals, changed)
    )
    path.write_bytes(digest_bytes(packed).encode() + packed)


def test_the_second_matcher_compiles_nothing(tmp_path: Path) -> None:
    """The first matcher compiles and stores its three databases, the next one loads them and finds the same."""
    assert count_compilations(tmp_path) == 3
    assert count_compilations(tmp_path) == 0


def test_without_a_directory_nothing_is_stored(tmp_path: Path) -> None:
    """Without a cache, and where the cache cannot be written, searches work all the same."""
    (tmp_path / "file").write_text("")
    assert count_compilations(tmp_path / "file") == 3
    assert build(LITERALS, "hyperscan").literals_in(LINE) == (0, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("offset", [0, 63, 64, 200, -1])
def test_a_damaged_file_is_noticed_and_written_again(tmp_path: Path, offset: int) -> None:
    """A file in which one byte differs is not used, wherever it is, and is whole again after the run."""
    count_compilations(tmp_path)
    [path] = tmp_path.iterdir()
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[offset] ^= 1
    path.write_bytes(damaged)
    assert count_compilations(tmp_path) == 3
    assert count_compilations(tmp_path) == 0


@pytest.mark.parametrize("size", [0, 10, 64, 500])
def test_a_cut_file_is_noticed(tmp_path: Path, size: int) -> None:
    """A file that ends too soon is not used."""
    count_compilations(tmp_path)
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:size])
    assert count_compilations(tmp_path) == 3


@pytest.mark.parametrize("offset", [0, VERSION, PLATFORM, CHECKSUM, -1], ids=str)
def test_a_database_that_hyperscan_refuses_is_compiled(tmp_path: Path, offset: int) -> None:
    """A database of another version or processor, or with a wrong checksum, is compiled again at its first use."""
    count_compilations(tmp_path)
    [path] = tmp_path.iterdir()
    change_databases(path, offset)
    assert count_compilations(tmp_path) == 3


def test_the_key_names_what_databases_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another literal, window, processor, machine or package gives another key; the same ones the same key."""
    keys = [compute_key([b"a"], [b"w"]), compute_key([b"b"], [b"w"]), compute_key([b"a"], [b"v"])]
    keys += [compute_key([b"a", b"w"], []), compute_key([], [b"a", b"w"])]
    assert compute_key([b"a"], [b"w"]) == keys[0]
    with monkeypatch.context() as patch:
        patch.setattr(database_cache, "_processor_features", lambda: b"flags : other")
        keys.append(compute_key([b"a"], [b"w"]))
    with monkeypatch.context() as patch:
        patch.setattr("hyperscan.__version__", "0.0")
        keys.append(compute_key([b"a"], [b"w"]))
    with monkeypatch.context() as patch:
        patch.setattr(database_cache.os, "uname", lambda: ("Linux", "", "", "", "other"))
        keys.append(compute_key([b"a"], [b"w"]))
    assert len(set(keys)) == len(keys)


def test_a_file_of_another_key_is_not_read(tmp_path: Path) -> None:
    """A file whose content has another key than its name is not used, nor one with fewer literals than windows."""
    write_databases(tmp_path, StoredDatabases("k" * 64, [b"w"], [(0,)], {}))
    assert read_databases(tmp_path, "k" * 64) is not None
    assert read_databases(tmp_path, "k" * 63 + "l") is None
    write_databases(tmp_path, StoredDatabases("k" * 64, [b"w"], [], {}))
    assert read_databases(tmp_path, "k" * 64) is None


def test_a_file_that_others_can_write_is_not_read(tmp_path: Path) -> None:
    """Whoever can write the file could make the scan find other lines."""
    count_compilations(tmp_path)
    [path] = tmp_path.iterdir()
    path.chmod(0o622)
    assert count_compilations(tmp_path) == 3
    assert path.stat().st_mode & 0o777 == 0o600


def test_only_the_newest_files_stay(tmp_path: Path) -> None:
    """A seventh file removes the oldest one, and no other file."""
    (tmp_path / "catalog-1.json").write_text("")
    for number in range(6):
        write_databases(tmp_path, StoredDatabases(f"{number}" * 64, [], [], {}))
        os.utime(tmp_path / f"scan-{str(number) * 16}.hyperscan", (number, number))
    assert len(list(tmp_path.iterdir())) == 7
    write_databases(tmp_path, StoredDatabases("x" * 64, [], [], {}))
    stored = sorted(path.name[5] for path in tmp_path.glob("scan-*"))
    assert stored == ["1", "2", "3", "4", "5", "x"]
    assert len(list(tmp_path.iterdir())) == 7


def test_fitting_keeps_the_stored_databases_of_whole_literals(tmp_path: Path) -> None:
    """For a sample in which a window is common, only the database of windows is compiled."""
    build_matcher(tmp_path)
    matcher = build(LITERALS, "hyperscan", ["window99"], b"window99 is healthy\n" * 3, tmp_path)
    assert isinstance(matcher, HyperscanMatcher)
    with mock.patch.object(
        HyperscanMatcher, "_compile", autospec=True, side_effect=HyperscanMatcher._compile
    ) as compiled:
        assert [tuple(named) for _, named in matcher.find(LINE, 0, len(LINE), 9)] == [(1,), (0,)]
        assert matcher.find_first(LINE, 0, len(LINE)) == [(4, 1), (23, 0)]
    assert [call.args[1] for call in compiled.call_args_list] == ["windows"]
