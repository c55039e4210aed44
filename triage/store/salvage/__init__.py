"""Salvage a damaged store: read each page by itself, copy all rows that can be proved, and say what is lost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from triage.store import transfer
from triage.store.salvage.recovery import recover_rows
from triage.store.salvage.report import SalvageReport
from triage.store.sqlite import SqliteConnections

__all__ = ["SalvageReport", "salvage_lines"]


def salvage_lines(path: Path, report: SalvageReport) -> Iterator[str]:
    """Yield an export of all rows that can be read of a store; its last line lists what is lost.

    `report` is filled. Needs free disk space of the size of the store in the temporary directory (TMPDIR). Raises
    StoreError if the file cannot be opened, or there is not enough space.
    """
    with (
        tempfile.TemporaryDirectory(prefix="triage-salvage-") as directory,
        closing(SqliteConnections(Path(directory) / "salvaged.db")) as connections,
    ):
        with connections.translate_errors():
            recover_rows(path, connections, report)
        yield from transfer.export_lines(connections, report.lost)
