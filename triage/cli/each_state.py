"""What `triage ingest --each` has done: one line of JSON for each job, so that a rerun continues."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triage.base.addresses import displayed_address, is_address
from triage.base.errors import OptionError

Row = dict[str, Any]


def default_path(root: str) -> Path:
    """Return the state file of a directory or prefix: in $XDG_STATE_HOME, else in ~/.local/state."""
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path(os.path.expanduser("~")) / ".local" / "state"
    place = displayed_address(root).rstrip("/") if is_address(root) else os.path.abspath(root)
    return base / "triage" / "each" / f"{hashlib.sha256(place.encode('utf-8', 'replace')).hexdigest()[:16]}.jsonl"


def load(path: Path) -> dict[str, Row]:
    """Return the last row of each job. A missing or damaged line only means that its job is read again."""
    rows: dict[str, Row] = {}
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return rows
    for line in lines:
        try:
            row = json.loads(line)
            rows[row["job"]] = row
        except (ValueError, LookupError, TypeError):
            continue
    return rows


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row. Raises OptionError if the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    except OSError as error:
        raise OptionError(
            f"cannot write the state: {error.strerror}", hint="give another file with --state", path=str(path)
        ) from None
