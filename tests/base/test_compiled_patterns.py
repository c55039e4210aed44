"""Compiled regular expressions that stay in the cache directory."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import triage.pipeline  # noqa: F401  # defines most patterns
from triage.base import compiled_patterns
from triage.base.compiled_patterns import PatternCache, list_missing, open_cache, write_cache
from triage.base.content_digest import digest_bytes
from triage.base.forks import map_forked
from triage.base.lazy_re import LazyPattern, compile_cached, current_cache, lazy_re
from triage.base.masked_re import MaskedPattern, widen_digits

PATTERN = r"(?P<name>rank|Rang) (?P<number>\d+)(?i:ß|ſ)?"


@pytest.fixture(autouse=True)
def _without_cache() -> Iterator[None]:
    yield
    open_cache(None)


def compile_again(directory: Path, text: Any, flags: int = 0) -> re.Pattern[Any]:
    """Compile a pattern, store it, and return it as the next command gets it."""
    open_cache(directory)
    compile_cached(text, flags)
    write_cache()
    open_cache(directory)
    return compile_cached(text, flags)


def the_file(directory: Path) -> Path:
    (path,) = directory.glob("patterns-*")
    return path


def change_file(directory: Path, change: Any) -> None:
    """Change the decoded content of the cache file; its digest is right again."""
    path = the_file(directory)
    content = msgspec.msgpack.decode(path.read_bytes()[64:])
    change(content)
    data = msgspec.msgpack.encode(content)
    path.write_bytes(digest_bytes(data).encode() + data)


def test_all_patterns_are_equal_to_those_that_python_compiles(tmp_path: Path) -> None:
    """Every lazy pattern of a diagnosis comes out of the cache as `re.compile` makes it: code, flags and groups."""
    defined = [one for one in gc.get_objects() if isinstance(one, LazyPattern | MaskedPattern)]
    wanted = list(dict.fromkeys((one.pattern, int(one._flags)) for one in defined))
    assert len(wanted) > 500
    open_cache(tmp_path)
    for text, flags in wanted:
        compile_cached(text, flags)
    write_cache()
    open_cache(tmp_path)
    for text, flags in wanted:
        stored, compiled = compile_cached(text, flags), re.compile(text, flags)
        assert stored == compiled
        assert (stored.groupindex, stored.groups, stored.flags) == (
            compiled.groupindex,
            compiled.groups,
            compiled.flags,
        )
    assert list_missing() == []


@pytest.mark.parametrize(("text", "flags"), [(PATTERN, re.I), (rb"\xff(a|b)\1", re.S), ("", 0), ("x\x00\ud800", 0)])
def test_a_stored_pattern_finds_the_same(tmp_path: Path, text: Any, flags: int) -> None:
    """Patterns of texts and of bytes come back; what cannot be stored, such as a lone surrogate, is compiled again."""
    assert compile_again(tmp_path, text, flags) == re.compile(text, flags)


def test_what_cannot_be_stored_is_not_tried_again(tmp_path: Path) -> None:
    """A pattern with a lone surrogate is compiled by each command, and the file is not written for it again."""
    compile_again(tmp_path, "\ud800")
    before = the_file(tmp_path).stat().st_mtime_ns
    assert compile_again(tmp_path, "\ud800") == re.compile("\ud800")
    assert the_file(tmp_path).stat().st_mtime_ns == before


def test_lazy_patterns_use_the_cache(tmp_path: Path) -> None:
    """A lazy pattern and a masked one are stored when they are first used, the masked one in its wider form too."""
    for expected in ({PATTERN, "rank [1-3]x", r"rank [\d1-3]x"}, set[str]()):
        open_cache(tmp_path)
        assert lazy_re(PATTERN).search("in rank 7")
        assert MaskedPattern("rank [1-3]x", 0).search("rank 2x")
        missing = {text for _, text, _ in list_missing()}
        assert missing >= expected
        assert bool(missing) == bool(expected)
        write_cache()


def test_the_derived_form_is_stored_for_the_pattern(tmp_path: Path) -> None:
    """A derived pattern is not derived again, and does not take the place of the plain one."""
    open_cache(tmp_path)
    assert compile_cached("rank 1", 0, widen_digits).pattern == r"rank \d"
    write_cache()
    open_cache(tmp_path)
    assert compile_cached("rank 1", 0, widen_digits).pattern == r"rank \d"
    assert list_missing() == []
    assert compile_cached("rank 1").pattern == "rank 1"


def test_without_a_directory_nothing_is_stored(tmp_path: Path) -> None:
    """Without a cache directory patterns are compiled, and nothing is written."""
    open_cache(None)
    assert compile_cached("a(b)", re.I).search("AB")
    write_cache()
    assert list_missing() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", [0, 63, 64, 200, -1])
def test_a_damaged_file_is_ignored_and_written_again(tmp_path: Path, place: int) -> None:
    """A changed byte anywhere makes the file worthless: the pattern is compiled and stored again."""
    compile_again(tmp_path, PATTERN)
    path = the_file(tmp_path)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    open_cache(tmp_path)
    assert compile_cached(PATTERN) == re.compile(PATTERN)
    assert len(list_missing()) == 1
    assert compile_again(tmp_path, PATTERN) == re.compile(PATTERN)


def test_a_file_that_others_can_write_is_ignored(tmp_path: Path) -> None:
    """A cache file that another user could have changed is not used."""
    compile_again(tmp_path, PATTERN)
    the_file(tmp_path).chmod(0o666)
    open_cache(tmp_path)
    compile_cached(PATTERN)
    assert len(list_missing()) == 1


def test_a_file_of_another_python_is_ignored(tmp_path: Path) -> None:
    """Code that another release of Python made is not used."""
    compile_again(tmp_path, PATTERN)
    change_file(tmp_path, lambda content: content.update(key="another"))
    open_cache(tmp_path)
    assert compile_cached(PATTERN) == re.compile(PATTERN)
    assert len(list_missing()) == 1


@pytest.mark.parametrize(
    "entry",
    [
        [PATTERN, 32, b"\xff\xff\xff\xff" * 9, 2, {"name": 1, "number": 2}],
        [PATTERN, 32, b"\x01", 2, {}],
        [PATTERN, 32, b"", 2, {}],
        [PATTERN, 32, b"\x01\x00\x00\x00", 0, {"name": 5}],
        [PATTERN, 32, b"\x01\x00\x00\x00", -3, {}],
        ["short"],
        None,
    ],
)
def test_code_that_python_refuses_is_compiled_again(tmp_path: Path, entry: Any) -> None:
    """An entry without valid code, or of another shape, is as if it were missing."""
    compile_again(tmp_path, PATTERN)
    change_file(tmp_path, lambda content: content["patterns"].update(dict.fromkeys(content["patterns"], entry)))
    open_cache(tmp_path)
    assert compile_cached(PATTERN) == re.compile(PATTERN)


def test_an_invalid_pattern_raises_as_ever(tmp_path: Path) -> None:
    """With and without a cache an invalid pattern raises re.error, and is not stored."""
    for directory in (None, tmp_path):
        open_cache(directory)
        with pytest.raises(re.error):
            compile_cached("(")
    write_cache()
    assert list(tmp_path.iterdir()) == []


def test_patterns_of_forked_processes_are_stored(tmp_path: Path) -> None:
    """What forked processes compile comes back with their results, so that the next command need not compile it."""
    open_cache(tmp_path)

    def count_groups(number: int) -> int:
        return compile_cached(f"(a)(b){number}").groups

    assert list(map_forked(count_groups, 4, 2, lambda one: one, lambda one: one)) == [2, 2, 2, 2]
    assert len(list_missing()) == 4
    write_cache()
    open_cache(tmp_path)
    assert [count_groups(number) for number in range(4)] == [2, 2, 2, 2]
    assert list_missing() == []


def test_the_file_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit the file still has all patterns; one more, and it begins anew with the missing ones."""
    monkeypatch.setattr(compiled_patterns, "_MAX_PATTERNS", 3)
    for text in ("a", "b", "c"):
        compile_again(tmp_path, text)
    open_cache(tmp_path)
    assert [compile_cached(text).pattern for text in "abc"] == ["a", "b", "c"]
    assert list_missing() == []
    compile_again(tmp_path, "d")
    open_cache(tmp_path)
    compile_cached("d")
    assert list_missing() == []
    compile_cached("a")
    assert len(list_missing()) == 1


def test_two_commands_keep_the_patterns_of_each_other(tmp_path: Path) -> None:
    """A command that ends later adds its patterns to those that another one has stored since it began."""
    open_cache(tmp_path)
    compile_cached("first")
    earlier = current_cache()
    compile_again(tmp_path, "second")
    assert isinstance(earlier, PatternCache)
    earlier.write()
    open_cache(tmp_path)
    compile_cached("first")
    compile_cached("second")
    assert list_missing() == []
