"""What travels between the stages of the pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from triage.catalog.model import Catalog
from triage.diagnose import Result
from triage.evidence.collect import Harvest, Opening
from triage.intake import Reading
from triage.model.diagnosis import Job, Stats
from triage.model.environment import Audit
from triage.model.evidence import Source, Warning
from triage.scan.interface import Scanned


@dataclass(frozen=True, slots=True)
class Seen:
    """Texts that are scanned, the catalog that told for what, and for each literal that hits name the one that is
    meant.

    `files` and `size` (bytes) count what was given, before anything was unpacked.
    """

    catalog: Catalog
    literals: Sequence[str]
    scanned: Sequence[tuple[Source, Scanned]]
    files: int
    size: int
    warnings: tuple[Warning, ...] = ()
    openings: Mapping[str, Opening] = field(default_factory=dict)  # of sources whose openings are known already


@dataclass(frozen=True, slots=True)
class Read:
    """What every answer starts from."""

    catalog: Catalog
    harvest: Harvest
    result: Result
    reading: Reading
    audit: Audit
    job: Job
    warnings: tuple[Warning, ...]
    stats: Stats

    def warned(self) -> tuple[Warning, ...]:
        """The warnings, with those about what was lost since they were written."""
        return self.reading.checked(self.warnings)
