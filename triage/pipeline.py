"""The whole way, and the only file that knows it: sources → scan → ranks → evidence → catalog → diagnose → Diagnosis."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import triage
from triage import artifacts, compare, evidence, sources, summary
from triage.catalog import applies
from triage.catalog.load import load
from triage.catalog.model import Catalog
from triage.catalog.setting import configured
from triage.diagnose import Result, diagnose, report
from triage.diagnose import timeline as timelines
from triage.diagnose.explain import explanation
from triage.errors import OptionError
from triage.evidence.collect import Harvest, harvest
from triage.evidence.redact import redact
from triage.intake import Intake, Reading, writer_key
from triage.model import Audit, Diagnosis, Explanation, Job, Stats, Timeline, Warning
from triage.options import ENGINES, Options, Progress, Report, advance
from triage.scan.run import Scan

__all__ = ["ENGINES", "Options", "Progress", "Report", "audit", "explain", "ingest"]


def ingest(paths: Sequence[str], options: Options = Options(), progress: Report | None = None) -> Diagnosis:
    """Diagnose one job from everything under `paths`.

    Raises InputError when nothing there can be read and CatalogError when a catalog given by the user cannot.
    """
    started = time.monotonic()
    read = _read(paths, options, progress)
    (verdict, root), (known, unknown) = report.root_cause(read.result), report.findings(read.result)
    with read.reading as reading:
        reading.number(fact for finding in (*([root] if root else []), *known, *unknown) for fact in finding.evidence)
        diagnosis = Diagnosis(
            tool_version=triage.__version__,
            catalog_version=read.catalog.version,
            job=read.job,
            verdict=verdict,
            root_cause=reading.placed(root) if root else None,
            findings=tuple(reading.placed(finding) for finding in known),
            unknown=tuple(reading.placed(finding) for finding in unknown),
            timeline=report.timeline(read.result),
            ranks=report.states(read.result, read.harvest.job),
            warnings=read.warnings,
            stats=replace(read.stats, seconds=round(time.monotonic() - started, 3), peak_memory_bytes=summary.peak_memory()),
        )
    return evidence.redact_all(diagnosis)


def explain(paths: Sequence[str], signature_id: str, options: Options = Options()) -> Explanation:
    """Why the signature did or did not match what lies under `paths`. Raises OptionError for an id that the catalog has not."""
    known = load(options.catalogs, strict=False)
    signature = next((signature for signature in known.signatures if signature.id == signature_id), None)
    if signature is None:
        raise OptionError(f"the catalog has no signature {signature_id}", hint="`triage catalog list` names them all")
    read = _read(paths, options, None)
    with read.reading as reading:
        found = reading.placed_explanation(explanation(signature, read.result))
        reason = applies.outside(signature, read.harvest.stated)
        return found if reason is None else replace(found, matched=False, outcome=f"not matched, because {reason}")


def timeline(paths: Sequence[str], options: Options = Options(), progress: Report | None = None) -> Timeline:
    """What happened to the ranks of the job under `paths`, failures and last lines, in the order of their clocks."""
    read = _read(paths, options, progress)
    with read.reading as reading:
        lasts = [replace(line, text=redact(line.text)) for line in reading.last_lines(read.harvest.words, read.harvest.job)]
        return timelines.timeline(read.result, read.job, report.states(read.result, read.harvest.job), lasts, read.warnings)


def audit(paths: Sequence[str], options: Options = Options(), progress: Report | None = None) -> Audit:
    """The environment of the job under `paths`: what all ranks agree on, and what deviates."""
    read = _read(paths, options, progress)
    with read.reading as reading:
        return replace(read.audit, deviations=tuple(map(reading.placed, read.audit.deviations)), warnings=read.warnings)


@dataclass(frozen=True, slots=True)
class _Read:
    """What both answers start from."""

    catalog: Catalog
    harvest: Harvest
    result: Result
    reading: Reading
    audit: Audit
    job: Job
    warnings: tuple[Warning, ...]
    stats: Stats


def _read(paths: Sequence[str], options: Options, progress: Report | None) -> _Read:
    found = sources.discover(paths)
    known = load(options.catalogs, strict=bool(options.catalogs or configured()))
    forms, literals = evidence.sought(known.literals)
    intake = Intake(found.files, paths)
    scan = Scan(
        forms,
        writer_key,
        workers=max(1, options.workers or os.cpu_count() or 1),
        chunk_bytes=options.chunk_bytes,
        windows=known.windows,
        generic=frozenset(range(len(evidence.TRIGGERS))),
        engine=options.engine,
        advance=advance(progress, sum(file.size for file in intake.files)),
        failed=intake.failed,
    )
    scanned, _ = scan.run(intake.containers())
    reading = Reading(scanned)
    gathered = harvest(scanned, literals, reading.read_of)
    facts, notes = artifacts.read(intake.artifacts)
    for fact in facts:
        gathered.job.learn(fact.source, fact.origin)
    facts += artifacts.conclude([*facts, *gathered.facts], gathered.job.complete)
    seen = compare.look(scanned, reading.read_of, gathered, facts, compare.load(options.settings))
    applying = applies.within(known, gathered.stated)
    result = diagnose([*seen.facts, *seen.settings], gathered.words, gathered.job, applying)
    if seen.settings and not summary.failed(result, seen.settings):  # settings explain failures, they are none
        result = diagnose(seen.facts, gathered.words, gathered.job, applying)
    warnings = [*found.warnings, *known.warnings, *intake.remarks(), *gathered.warnings, *notes, *report.remarks(result, gathered.job)]
    return _Read(
        catalog=known,
        harvest=gathered,
        result=result,
        reading=reading,
        audit=seen.audit,
        job=summary.job(paths, gathered, result, intake.identity(scanned)),
        warnings=tuple(sorted(set(warnings), key=lambda warning: (warning.source or "", warning.code, warning.message))),
        stats=Stats(files=len(found.files), bytes=sum(file.size for file in found.files), hits=sum(scan.matched for _, scan in scanned)),
    )
