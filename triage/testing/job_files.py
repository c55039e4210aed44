"""Write the files of a generated job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_files(files: Mapping[str, bytes], directory: Path) -> Path:
    """Write files, by relative path, below `directory` and return it."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return directory
