"""The path of the store: `--store PATH`, else TRIAGE_STORE, else the user's data directory."""

from __future__ import annotations

import os
from pathlib import Path

FILE = "triage.db"
VARIABLE = "TRIAGE_STORE"
OFF = "off"


def store_path(path_option: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the store's file; for a directory, `triage.db` in it. None when TRIAGE_STORE is `off` without an option.

    Without both it is `$XDG_DATA_HOME/triage/triage.db`, or `~/.local/share/triage/triage.db` where that is not set.
    """
    name = os.fspath(path_option) if path_option is not None else os.environ.get(VARIABLE, "")
    if path_option is None and name.lower() == OFF:
        return None
    if name:
        path = Path(name).expanduser()
        return path / FILE if name.endswith("/") or path.is_dir() else path
    data = os.environ.get("XDG_DATA_HOME", "")
    base = Path(data) if os.path.isabs(data) else Path(os.path.expanduser("~")) / ".local" / "share"
    return base / "triage" / FILE
