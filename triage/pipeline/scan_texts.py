"""Scan all texts of a job for the literals of the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triage import evidence
from triage.base.options import Options, Report, advance
from triage.catalog.cache import choose_directory
from triage.catalog.model import Catalog
from triage.model import Source
from triage.pipeline.earlier_readings import EarlierReadings
from triage.pipeline.intake import Intake, writer_key
from triage.scan.interface import ScanResult
from triage.scan.run import Scan


def scan_texts(
    intake: Intake,
    readings: EarlierReadings,
    forms: Sequence[str],
    catalog: Catalog,
    options: Options,
    progress: Report | None,
) -> list[tuple[Source, ScanResult]]:
    """Return the scan of each text. What only the scan needs is gone when they are analysed."""
    scan = Scan(
        forms,
        writer_key,
        workers=options.cores,
        chunk_bytes=options.chunk_bytes,
        windows=catalog.windows,
        generic=frozenset(range(len(evidence.TRIGGERS))),
        engine=options.engine,
        sharer=options.sharer if options.fork or options.cluster else None,
        scan_remotely=scan_on_worker,
        cache=choose_directory(),
        find_known=readings.find_spans,
        on_progress=advance(progress, sum(file.size for file in intake.files)),
        on_failure=intake.warn_unreadable,
    )
    scanned, _ = scan.run(intake.containers())
    readings.add_spans(scan.file_spans())
    return scanned


def scan_on_worker(shared: Any, unit: Any) -> Any:
    """Scan one span on a worker of a cluster. Raises OSError if it cannot be read there to its end."""
    from triage.scan import remote_spans

    return remote_spans.scan_unit(shared, unit, writer_key, choose_directory())
