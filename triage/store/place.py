"""Where the store lies: `--store PATH`, else TRIAGE_STORE, else the user's data directory."""

from __future__ import annotations

import os
from pathlib import Path

FILE = "triage.db"
VARIABLE = "TRIAGE_STORE"
OFF = "off"


def place(given: str | os.PathLike[str] | None = None) -> Path | None:
    """The file of the store; a directory stands for `triage.db` in it. None when TRIAGE_STORE is `off` and nothing is
    given.

    Without either it is `$XDG_DATA_HOME/triage/triage.db`, and `~/.local/share/triage/triage.db` where that is not set.
    """
    wanted = os.fspath(given) if given is not None else os.environ.get(VARIABLE, "")
    if given is None and wanted.lower() == OFF:
        return None
    if wanted:
        path = Path(wanted).expanduser()
        return path / FILE if wanted.endswith("/") or path.is_dir() else path
    data = os.environ.get("XDG_DATA_HOME", "")
    base = Path(data) if os.path.isabs(data) else Path(os.path.expanduser("~")) / ".local" / "share"
    return base / "triage" / FILE
