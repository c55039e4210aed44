from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.factories import GLOO, shipped, write
from triage.base.errors import CatalogError
from triage.catalog import build, cache, stored_catalog
from triage.catalog.load import load
from triage.catalog.model import Catalog, Clause, Leaf
from triage.catalog.signature_files import find_shipped_directory

Load = Callable[..., Catalog]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    root = shipped(tmp_path / "shipped")
    write(root)
    return root


@pytest.fixture
def read(tmp_path: Path, base: Path) -> Load:
    return lambda *directories, **options: load(directories, tmp_path / "cache", shipped=base, **options)


def count_builds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows with every compilation of the catalog."""
    calls: list[int] = []
    original = build.build_catalog

    def count(*arguments: Any) -> Catalog:
        calls.append(1)
        return original(*arguments)

    monkeypatch.setattr(build, "build_catalog", count)
    return calls


def test_the_catalog_has_version_literals_and_fingerprints(read: Load) -> None:
    """Every text leaf has its literals, and the catalog has all of them."""
    catalog = read()
    assert catalog.version == "2026.11.1"
    assert catalog.literals == (": Connection reset by peer", "Connection closed by peer [")
    match = catalog.signatures[0].match
    assert isinstance(match, Clause)
    assert [part.literals for part in match.parts if isinstance(part, Leaf)] == [
        (catalog.literals[1],),
        (catalog.literals[0],),
    ]
    assert len(catalog.signatures[0].fingerprint) == 12


def test_a_directory_overrides_the_shipped_one(read: Load, tmp_path: Path) -> None:
    """A signature with a shipped id replaces it, others are added, and the order is by id."""
    write(tmp_path / "mine", text=GLOO.replace("A peer closed", "My peer closed"))
    single = write(tmp_path / "else", "aaa.first")
    catalog = read(tmp_path / "mine", single)
    assert [signature.id for signature in catalog.signatures] == ["aaa.first", "gloo.peer-closed"]
    assert catalog.signatures[1].title == "My peer closed its connection"


def test_a_whole_catalog_replaces_all_before_it(read: Load, tmp_path: Path) -> None:
    """A directory with a catalog.yaml hides the shipped signatures; later directories still override it."""
    write(tmp_path / "mine", "aaa.first")
    write(shipped(tmp_path / "other"), "bbb.other")
    write(tmp_path / "later", "ccc.later")
    catalog = read(tmp_path / "mine", tmp_path / "other", tmp_path / "later")
    assert [signature.id for signature in catalog.signatures] == ["bbb.other", "ccc.later"]


def test_strict_lists_every_problem(read: Load, tmp_path: Path) -> None:
    """Strict loading raises one CatalogError with all problems; a missing directory is one of them."""
    write(tmp_path / "mine", "a.one", GLOO.replace("revision: 1", "revision: 0"))
    write(tmp_path / "mine", "a.two", GLOO.replace("status: stable", "status: x"))
    with pytest.raises(CatalogError) as caught:
        read(tmp_path / "mine", tmp_path / "missing")
    assert all(part in str(caught.value) for part in ("one.yaml: line 3", "two.yaml: line 5", "missing"))
    assert caught.value.hint


def test_lenient_loading_skips_the_bad_file_only(read: Load, tmp_path: Path) -> None:
    """With strict=False a warning names the skipped file, also from the cache."""
    write(tmp_path / "mine", "a.one", "id: [")
    write(tmp_path / "mine", "a.two")
    for _ in range(2):
        catalog = read(tmp_path / "mine", strict=False)
        assert [signature.id for signature in catalog.signatures] == ["a.two", "gloo.peer-closed"]
        assert [note.code for note in catalog.warnings] == ["catalog-skipped"]
        assert str(catalog.warnings[0].source).endswith("one.yaml")


def test_duplicate_ids_in_one_directory_are_a_problem(read: Load, tmp_path: Path) -> None:
    """Two files of a directory with the same id: the second is refused and names the first."""
    write(tmp_path / "mine", "a.one")
    write(tmp_path / "mine", "a.two", GLOO.replace("gloo.peer-closed", "a.one"))
    catalog = read(tmp_path / "mine", strict=False)
    assert [note.message for note in catalog.warnings if "already uses the id a.one" in note.message]


def test_weak_patterns_are_a_warning(read: Load, tmp_path: Path) -> None:
    r"""A pattern without literals loads and matches, and a warning says that the scan cannot look for it."""
    write(
        tmp_path / "mine",
        "a.one",
        GLOO.replace("'Read error", r"'\d+ \w+'").replace(
            r" \[(?P<peer>[^\]]+)\](:\d+)?: Connection reset by peer'", ""
        ),
    )
    catalog = read(tmp_path / "mine")
    assert [note.code for note in catalog.warnings] == ["catalog-weak-pattern"]


def test_the_cache_gives_the_same_catalog(read: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second load compiles nothing and gives an equal catalog."""
    calls = count_builds(monkeypatch)
    assert read() == read()
    assert calls == [1]


def test_a_changed_file_is_compiled_again(read: Load, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contents, new files, removed files and the healthy corpus make a cache stale."""
    calls = count_builds(monkeypatch)
    read()
    path = write(base, text=GLOO.replace("A peer closed", "Some peer closed"))
    assert read().signatures[0].title == "Some peer closed its connection"
    second = write(base, "b.two")
    assert len(read().signatures) == 2
    second.unlink()
    assert len(read().signatures) == 1
    os.utime(path, ns=(1, 1))
    read()
    (base / "healthy.txt").write_text("other\n", encoding="utf-8")
    read()
    assert len(calls) == 6


@pytest.mark.parametrize(
    "damage", ["truncate", "empty", "list", "number", "deep", "shape", "types", "key", "binary", "role"]
)
def test_a_damaged_cache_is_rebuilt(read: Load, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A truncated, hostile or foreign cache file is ignored, and replaced by a good one."""
    expected = read()
    (path,) = (tmp_path / "cache").glob("catalog-*")
    text = path.read_text(encoding="utf-8")
    data = json.loads(text)
    data["catalog"]["catalog"]["signatures"][0]["match"] = {"any": 5}
    other = json.loads(text)
    other["catalog"]["catalog"]["signatures"][0]["title"] = 7
    role = json.loads(text)
    role["catalog"]["catalog"]["signatures"][0]["role"] = "king"
    damaged = {
        "truncate": text[: len(text) // 2],
        "empty": "",
        "list": "[]",
        "number": "1",
        "deep": "[" * 100_000,
        "shape": json.dumps(data),
        "types": json.dumps(other),
        "key": text.replace('"key":"', '"key":"0'),
        "role": json.dumps(role),
        "binary": "",
    }[damage]
    path.write_bytes(b"\xff\x00\xfe" * 100 if damage == "binary" else damaged.encode())
    calls = count_builds(monkeypatch)
    assert read() == expected
    assert read() == expected
    assert calls == [1]


def test_the_cache_is_private(read: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is 0600 and alone; a file that others can write, or a link, is ignored."""
    read()
    (path,) = (tmp_path / "cache").glob("catalog-*")
    assert path.stat().st_mode & 0o777 == 0o600
    calls = count_builds(monkeypatch)
    path.chmod(0o666)
    read()
    assert calls == [1]
    real = tmp_path / "real.json"
    path.rename(real)
    path.symlink_to(real)
    read()
    assert calls == [1, 1]


def test_an_unwritable_cache_is_ignored(base: Path, tmp_path: Path) -> None:
    """When the cache directory is a file, or below one, loading still works."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        assert load(cache_dir=place, shipped=base).signatures


def test_the_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The argument wins, then TRIAGE_CACHE (off for none), an absolute XDG_CACHE_HOME, ~/.cache."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TRIAGE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.choose_directory() == tmp_path / ".cache" / "triage"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache.choose_directory() == Path("/xdg/triage")
    monkeypatch.setenv("TRIAGE_CACHE", "/mine")
    assert cache.choose_directory() == Path("/mine")
    assert cache.choose_directory(Path("/given")) == Path("/given")
    monkeypatch.setenv("TRIAGE_CACHE", "off")
    assert cache.choose_directory() is None


def test_odd_directories(read: Load, tmp_path: Path) -> None:
    """Hidden directories, cyclic links, pipes and other files are skipped or reported."""
    root = tmp_path / "odd"
    write(root / ".git", "a.one")
    write(root, "b.two")
    (root / "loop").symlink_to(root)
    (root / "broken.yaml").symlink_to(tmp_path / "nowhere")
    os.mkfifo(root / "pipe.yaml")
    (root / "README.md").write_text("x", encoding="utf-8")
    catalog = read(root, strict=False)
    assert [signature.id for signature in catalog.signatures] == ["b.two", "gloo.peer-closed"]
    assert len(catalog.warnings) == 2


def test_a_cache_hit_is_fast(tmp_path: Path) -> None:
    """From the cache, 300 signatures load in under 60 ms without YAML, pydantic and RE2."""
    root = shipped(tmp_path / "shipped")
    for number in range(300):
        write(root, f"d{number % 20}.s{number}")
    load(cache_dir=tmp_path / "cache", shipped=root)
    times = []
    for _ in range(5):
        stored_catalog.read_files.cache_clear()
        start = time.process_time()
        load(cache_dir=tmp_path / "cache", shipped=root)
        times.append(time.process_time() - start)
    assert min(times) < 0.060
    code = (
        "import sys; from pathlib import Path; from triage.catalog.load import load;"
        f"load(cache_dir=Path({str(tmp_path / 'cache')!r}), shipped=Path({str(root)!r}));"
        "print(sorted({'yaml', 'pydantic', 're2', 'tempfile', 'triage.catalog.build'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert done.stdout.strip() == "[]"


def test_missing_shipped_signatures_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken installation is an error with a hint, or a warning, but no crash."""
    from triage.catalog import load as module

    monkeypatch.setattr(module, "find_shipped_directory", lambda: None)
    with pytest.raises(CatalogError, match="install triage again"):
        load(cache_dir=tmp_path)
    assert load(cache_dir=tmp_path, strict=False).version == "0"


def test_a_checkout_has_its_own_directory() -> None:
    """In a checkout the shipped directory is signatures/ beside the package."""
    assert find_shipped_directory() == Path(__file__).resolve().parents[2] / "signatures"
