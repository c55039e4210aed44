"""The stages in their order: sources → scan → records → evidence → artifacts → compare → catalog → diagnose."""

from __future__ import annotations

from collections.abc import Sequence

from triage import artifacts, compare, evidence, sources
from triage.base.addresses import displayed_address
from triage.base.digit_masks import remember_masks
from triage.base.options import Options, Report, advance
from triage.catalog import version_bounds
from triage.catalog.configured_catalogs import list_configured_catalogs
from triage.catalog.load import load
from triage.diagnose import near_misses, report
from triage.evidence.extraction import extract_job
from triage.evidence.job_facts import find_facts, with_labels
from triage.model.diagnosis import Stats
from triage.pipeline import summary
from triage.pipeline.earlier_readings import open_readings
from triage.pipeline.intake import Intake
from triage.pipeline.results import AnalysedJob, ScannedJob
from triage.pipeline.scan_texts import scan_texts
from triage.pipeline.scanned_texts import ScannedTexts
from triage.pipeline.setting_causes import diagnose_with_settings
from triage.pipeline.summary import traced

_TEXTS_OF_FACT = 2  # that rules ask for: its own, and the name of its source or a line of it
_TEXTS_WITH_FACTS = 256  # a launcher or a prolog prints what the scheduler says; not each of thousands of ranks does


def read_job(paths: Sequence[str], options: Options, progress: Report | None) -> AnalysedJob:
    """Scan and analyse everything under the paths. Raises InputError and CatalogError."""
    discovered = traced("discover", sources.discover)(
        paths, allow_addresses=options.addresses, changed_since=options.changed_since
    )
    shown = list(map(displayed_address, paths))  # no later stage needs a password or a signature
    is_strict = bool(options.catalogs or list_configured_catalogs())
    catalog = load(options.catalogs, strict=is_strict, with_samples=False)
    forms, literals = evidence.scan_literals(catalog.literals)
    intake = Intake(discovered.files, shown, discovered.warnings)
    readings = open_readings(shown, intake.files, forms, options)
    scanned = traced("scan", scan_texts)(intake, readings, forms, catalog, options.for_paths(paths), progress)
    sources.stop_threads(paths)
    files, size = discovered.files, sum(file.size for file in discovered.files)
    job = ScannedJob(catalog, literals, scanned, len(files), size, discovered.warnings, readings=readings)
    return analyse(shown, options, intake, job, progress)


def analyse(
    paths: Sequence[str], options: Options, intake: Intake, job: ScannedJob, progress: Report | None = None
) -> AnalysedJob:
    """Extract the evidence of a scanned job, compare its ranks and diagnose it."""
    texts = ScannedTexts(job.scanned, options.sharer, job.readings.find_lines)
    done = advance(progress, sum(scan.size for _, scan in job.scanned), "read")
    dumps = traced("artifacts", artifacts.read_artifacts)(intake.artifacts)
    extracted = traced("extract", extract_job)(
        job.scanned, job.literals, texts.read_of, dumps.evidence, job.source_contexts, options.sharer, done, paths,
        earlier=job.readings,
    )  # fmt: skip
    with remember_masks(_TEXTS_OF_FACT * len(extracted.facts)):
        facts = [*dumps.evidence, *extracted.facts]
        stacks = artifacts.infer_from_stacks(
            facts, extracted.job.complete, extracted.activity, {*extracted.job.ranks, *extracted.job.missing_ranks()}
        )
        rules = compare.load_rules(options.settings)
        reconciled = artifacts.reconcile(dumps.evidence, stacks.evidence)
        compared = traced("compare", compare.compare_ranks)(
            job.scanned, texts.read_of, extracted, reconciled, rules, options.sharer
        )
        applying = version_bounds.restrict_to_versions(job.catalog, extracted.stated_versions)
        result = traced("diagnose", diagnose_with_settings)(compared, extracted, applying)
        near_misses.name_near_misses(result, applying.signatures)
    warnings = {*job.warnings, *job.catalog.warnings, *intake.all_warnings(), *extracted.warnings}
    warnings.update(dumps.warnings, stacks.warnings, compared.warnings)
    warnings.update(report.collect_warnings(result, extracted.job))
    return AnalysedJob(
        catalog=job.catalog,
        extracted=extracted,
        result=result,
        texts=texts,
        readings=job.readings,
        audit=compared.audit,
        job=summary.summarise_job(
            paths,
            extracted,
            result,
            intake.identify(job.scanned, dumps.digests),
            with_labels(_find_facts(intake, job), options.labels),
        ),
        warnings=tuple(sorted(warnings, key=lambda warning: (warning.source or "", warning.code, warning.message))),
        stats=Stats(files=job.files, bytes=job.size, hits=sum(scan.matched for _, scan in job.scanned)),
        unread=tuple(sorted(intake.unread)),
    )


def _find_facts(intake: Intake, job: ScannedJob) -> dict[str, tuple[str, ...]]:
    """Return the facts of the job as a whole, from dumps of the environment and the ends of its first texts."""
    dumps = (artifact.data for artifact in intake.artifacts if artifact.source.kind == "environment")
    scans = [scan for _, scan in job.scanned[:_TEXTS_WITH_FACTS]]
    return find_facts(dumps, (part for scan in scans for part in dict.fromkeys((scan.head, scan.tail))))
