"""What travels between the stages of the pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field

from triage.base.lazy_dataclass import dataclass
from triage.catalog.model import Catalog
from triage.diagnose import ReasoningResult
from triage.evidence.extracted import ExtractedJob, SourceContext
from triage.model import Audit, Job, Source, Stats, Warning
from triage.pipeline.earlier_readings import EarlierReadings
from triage.pipeline.scanned_texts import ScannedTexts
from triage.scan.interface import ScanResult


@dataclass(frozen=True, slots=True)
class ScannedJob:
    """The scanned texts of a job, and the catalog whose literals were scanned for.

    `literals` maps the numbers in hits to literals. `files` and `size` (bytes) are those before unpacking.
    `source_contexts` holds what is already known of sources that `triage watch` read before, `readings` what earlier
    runs read of the files.
    """

    catalog: Catalog
    literals: Sequence[str]
    scanned: Sequence[tuple[Source, ScanResult]]
    files: int
    size: int
    warnings: tuple[Warning, ...] = ()
    source_contexts: Mapping[str, SourceContext] = field(default_factory=dict)
    readings: EarlierReadings = field(default_factory=EarlierReadings)


@dataclass(frozen=True, slots=True)
class AnalysedJob:
    """Everything that was extracted and concluded; every answer is made from it.

    `unread` are the (name, kind) of files that hold no text and no artifact.
    """

    catalog: Catalog
    extracted: ExtractedJob
    result: ReasoningResult
    texts: ScannedTexts
    readings: EarlierReadings
    audit: Audit
    job: Job
    warnings: tuple[Warning, ...]
    stats: Stats
    unread: tuple[tuple[str, str], ...] = ()

    @contextmanager
    def read_texts(self) -> Iterator[ScannedTexts]:
        """Give the texts to read from once more; afterwards, what is known of the files is saved for the next run."""
        with self.texts as texts:
            yield texts
        self.readings.save(self.texts.lines_by_path())

    def all_warnings(self) -> tuple[Warning, ...]:
        """Return the warnings, with those about files that were lost since they were scanned."""
        return self.texts.with_unreadable(self.warnings)
