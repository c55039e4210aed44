"""triage.sources as a whole"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import get_args

from triage import sources
from triage.sources import READERS, FileKind
from triage.sources.expand import LazyReader


def test_every_kind_has_exactly_one_reader() -> None:
    """Each kind of file has one reader."""
    claimed = [kind for reader in READERS for kind in reader.kinds]
    assert sorted(claimed) == sorted(get_args(FileKind))


def test_lazy_readers_repeat_the_kinds_of_the_real_ones() -> None:
    """A lazy reader has the kinds of its reader."""
    for reader in READERS:
        if isinstance(reader, LazyReader):
            assert reader.load().kinds == reader.kinds


def test_heavy_modules_are_imported_late() -> None:
    """Importing the package imports no archive or compression module."""
    code = "import sys; before = set(sys.modules); import triage.sources; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"tarfile", "zipfile", "lzma", "bz2", "gzip", "zstandard", "isal", "tempfile", "numpy"}
    assert not heavy & set(done.stdout.split())


def test_imports_follow_the_layers() -> None:
    """Only model, base, remote and the package itself are imported, and nothing extracts to disk."""
    for path in Path(sources.__file__).parent.glob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("triage."):
                assert node.module.split(".")[1] in ("sources", "remote", "model", "base"), (
                    f"{path.name}: {node.module}"
                )
        assert ".extract" not in text


def test_no_module_hides_a_public_name() -> None:
    """A module that is imported late must not replace a function of the same name."""
    modules = {path.stem for path in Path(sources.__file__).parent.glob("*.py")}
    assert not modules & set(sources.__all__)
