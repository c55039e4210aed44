"""triage.sources as a whole"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import get_args

from triage import sources
from triage.sources import READERS, FileKind
from triage.sources.lazy import Lazy


def test_every_kind_has_exactly_one_reader() -> None:
    """No kind of file is forgotten, none is claimed twice."""
    claimed = [kind for reader in READERS for kind in reader.kinds]
    assert sorted(claimed) == sorted(get_args(FileKind))


def test_lazy_readers_repeat_the_kinds_of_the_real_ones() -> None:
    """What stands for a reader claims what the reader claims."""
    for reader in READERS:
        if isinstance(reader, Lazy):
            assert reader.load().kinds == reader.kinds


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    """Importing the room brings in no archive or compression module."""
    code = "import sys; before = set(sys.modules); import triage.sources; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"tarfile", "zipfile", "lzma", "bz2", "gzip", "zstandard", "isal", "tempfile", "numpy"}
    assert not heavy & set(done.stdout.split())


def test_the_room_looks_only_to_the_left() -> None:
    """Only model, errors, leaves and the room itself are imported, and nothing here writes or extracts."""
    for path in Path(sources.__file__).parent.glob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("triage."):
                assert node.module.split(".")[1] in ("sources", "model", "errors", "lazy_re", "forks"), (
                    f"{path.name}: {node.module}"
                )
        assert ".extract" not in text


def test_no_module_hides_a_public_name() -> None:
    """A module of the room that is imported late must not take the place of a function of the same name."""
    modules = {path.stem for path in Path(sources.__file__).parent.glob("*.py")}
    assert not modules & set(sources.__all__)
