"""The whole way, and the only file that knows it: sources → scan → ranks → evidence → catalog → diagnose → Diagnosis."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import triage
from triage import artifacts, compare, evidence, sources, summary
from triage.base.errors import OptionError
from triage.base.options import ENGINES, Options, Progress, Report, advance
from triage.catalog import applies
from triage.catalog.load import load
from triage.catalog.setting import configured
from triage.diagnose import diagnose, report, states
from triage.diagnose import timeline as timelines
from triage.diagnose.explain import explanation
from triage.evidence.collect import harvest
from triage.evidence.redact import redact
from triage.intake import Intake, Reading, writer_key
from triage.model.diagnosis import Diagnosis, Explanation, Stats, Timeline
from triage.model.environment import Audit
from triage.scan.run import Scan
from triage.stages import Read, Seen

__all__ = ["ENGINES", "Options", "Progress", "Report", "audit", "examine", "explain", "ingest"]


def ingest(paths: Sequence[str], options: Options = Options(), progress: Report | None = None) -> Diagnosis:
    """Diagnose one job from everything under `paths`.

    Raises InputError when nothing there can be read and CatalogError when a catalog given by the user cannot.
    """
    started = time.monotonic()
    return _told(_read(paths, options, progress), started)


def examine(
    paths: Sequence[str], options: Options = Options(), progress: Report | None = None
) -> tuple[Diagnosis, Audit]:
    """`ingest` and `audit` in one reading."""
    started = time.monotonic()
    audited = _audited(read := _read(paths, options, progress))
    return _told(read, started), audited


def look(paths: Sequence[str], texts: Seen, options: Options = Options()) -> Diagnosis:
    """Diagnose a job that still runs, from those of its texts that were scanned so far. What they say later may change
    the answer.
    """
    started = time.monotonic()
    return _told(_reasoned(paths, options, Intake((), paths), texts), started)


def _told(read: Read, started: float) -> Diagnosis:
    (verdict, root), (known, unknown) = report.root_cause(read.result, read.job.versions), report.findings(read.result)
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
            ranks=states.states(read.result, read.harvest.job),
            warnings=read.warned(),
            stats=replace(
                read.stats, seconds=round(time.monotonic() - started, 3), peak_memory_bytes=summary.peak_memory()
            ),
        )
    return evidence.redact_all(diagnosis)


def explain(paths: Sequence[str], signature_id: str, options: Options = Options()) -> Explanation:
    """Why the signature did or did not match what lies under `paths`. Raises OptionError for an id that the catalog has
    not.
    """
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
        lasts = [replace(line, text=redact(line.text)) for line in reading.last_lines(read.harvest)]
        return timelines.timeline(
            read.result, read.job, states.states(read.result, read.harvest.job), lasts, read.warned()
        )


def audit(paths: Sequence[str], options: Options = Options(), progress: Report | None = None) -> Audit:
    """The environment of the job under `paths`: what all ranks agree on, and what deviates."""
    read = _read(paths, options, progress)
    with read.reading:
        return _audited(read)


def _audited(read: Read) -> Audit:
    return replace(
        read.audit, deviations=tuple(map(read.reading.placed, read.audit.deviations)), warnings=read.warned()
    )


def _read(paths: Sequence[str], options: Options, progress: Report | None) -> Read:
    found = sources.discover(paths)
    known = load(options.catalogs, strict=bool(options.catalogs or configured()))
    forms, literals = evidence.sought(known.literals)
    intake = Intake(found.files, paths)
    scan = Scan(
        forms,
        writer_key,
        workers=options.cores,
        chunk_bytes=options.chunk_bytes,
        windows=known.windows,
        generic=frozenset(range(len(evidence.TRIGGERS))),
        engine=options.engine,
        fork=options.fork,
        advance=advance(progress, sum(file.size for file in intake.files)),
        failed=intake.failed,
    )
    scanned, _ = scan.run(intake.containers())
    seen = Seen(known, literals, scanned, len(found.files), sum(file.size for file in found.files), found.warnings)
    return _reasoned(paths, options, intake, seen, progress)


def _reasoned(
    paths: Sequence[str], options: Options, intake: Intake, texts: Seen, progress: Report | None = None
) -> Read:
    known, scanned = texts.catalog, texts.scanned
    reading = Reading(scanned, options.processes)
    done = advance(progress, sum(scan.size for _, scan in scanned), "read")
    gathered = harvest(scanned, texts.literals, reading.read_of, texts.openings, options.processes, done)
    facts, notes = found = artifacts.read(intake.artifacts)
    for fact in facts:
        gathered.job.learn(fact.source, fact.origin)
    artifacts.conclude(found, gathered.facts, gathered.job.complete, gathered.words)
    seen = compare.look(scanned, reading.read_of, gathered, facts, compare.load(options.settings))
    applying = applies.within(known, gathered.stated)
    result = diagnose([*seen.facts, *seen.settings], gathered.words, gathered.job, applying)
    if seen.settings and not summary.failed(result, seen.settings):  # settings explain failures, they are none
        result = diagnose(seen.facts, gathered.words, gathered.job, applying)
    warnings = [
        *texts.warnings,
        *known.warnings,
        *intake.remarks(),
        *gathered.warnings,
        *notes,
        *report.remarks(result, gathered.job),
    ]
    return Read(
        catalog=known,
        harvest=gathered,
        result=result,
        reading=reading,
        audit=seen.audit,
        job=summary.job(paths, gathered, result, intake.identity(scanned)),
        warnings=tuple(
            sorted(set(warnings), key=lambda warning: (warning.source or "", warning.code, warning.message))
        ),
        stats=Stats(files=texts.files, bytes=texts.size, hits=sum(scan.matched for _, scan in scanned)),
    )
