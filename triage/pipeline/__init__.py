"""From files to answers: diagnosis, explanation, timeline, environment. `stages` has the order of the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import triage
from triage import evidence
from triage.base.errors import OptionError
from triage.base.options import ENGINES, Options, Progress, Report
from triage.catalog import version_bounds
from triage.catalog.load import load
from triage.diagnose import rank_states, report, timeline as timelines
from triage.diagnose.explain import explain_signature
from triage.evidence.redact import redact, redact_texts
from triage.model import Audit, Diagnosis, Explanation, Timeline
from triage.pipeline import summary
from triage.pipeline.final_lines import explain_end
from triage.pipeline.intake import Intake
from triage.pipeline.last_activity import with_last_activity
from triage.pipeline.results import AnalysedJob, ScannedJob
from triage.pipeline.stages import analyse, read_job

__all__ = [
    "ENGINES",
    "Options",
    "Progress",
    "Report",
    "audit",
    "explain",
    "ingest",
    "ingest_growing",
    "ingest_with_audit",
]


def ingest(paths: Sequence[str], options: Options = Options(), progress: Report | None = None) -> Diagnosis:
    """Diagnose one job from everything under the paths.

    Raises InputError if nothing there can be read, CatalogError if a catalog of the user cannot.
    """
    run = summary.RunMeter(paths, options.cluster)
    return summary.traced("ingest", lambda: _diagnosis(read_job(paths, options, progress), run))()


def ingest_with_audit(
    paths: Sequence[str], options: Options = Options(), progress: Report | None = None
) -> tuple[Diagnosis, Audit]:
    """Return what `ingest` and `audit` return, from one reading."""
    run = summary.RunMeter(paths, options.cluster)

    def diagnose() -> tuple[Diagnosis, Audit]:
        analysed = read_job(paths, options, progress)
        environment = _audit(analysed)
        return _diagnosis(analysed, run), environment

    return summary.traced("ingest", diagnose)()


def ingest_growing(paths: Sequence[str], scanned: ScannedJob, options: Options = Options()) -> Diagnosis:
    """Diagnose a running job from what was scanned so far. Later lines may change the answer."""
    run = summary.RunMeter()
    return _diagnosis(analyse(paths, options, Intake((), paths), scanned), run)


def explain(paths: Sequence[str], signature_id: str, options: Options = Options()) -> Explanation:
    """Return why the signature did or did not match. Raises OptionError for an unknown id."""
    catalog = load(options.catalogs, strict=False)
    signature = next((signature for signature in catalog.signatures if signature.id == signature_id), None)
    if signature is None:
        raise OptionError(f"the catalog has no signature {signature_id}", hint="`triage catalog list` names them all")
    analysed = read_job(paths, options, None)
    with analysed.read_texts() as texts:
        answer = redact_texts(texts.with_lines(explain_signature(signature, analysed.result)))
    reason = version_bounds.explain_version_mismatch(signature, analysed.extracted.stated_versions)
    return answer if reason is None else replace(answer, matched=False, outcome=f"not matched, because {reason}")


def timeline(paths: Sequence[str], options: Options = Options(), progress: Report | None = None) -> Timeline:
    """Return what happened to each rank, failures and last lines, in the order of their clocks."""
    analysed = read_job(paths, options, progress)
    with analysed.read_texts() as texts:
        last_lines = [replace(line, text=redact(line.text)) for line in texts.last_lines(analysed.extracted)]
        ranks = rank_states.infer_rank_states(analysed.result, analysed.extracted.job)
        built = timelines.build_timeline(analysed.result, analysed.job, ranks, last_lines, analysed.all_warnings())
        return redact_texts(built)


def audit(paths: Sequence[str], options: Options = Options(), progress: Report | None = None) -> Audit:
    """Return the environment of the job: what all ranks agree on, and what deviates."""
    analysed = read_job(paths, options, progress)
    with analysed.read_texts():
        return _audit(analysed)


def _audit(analysed: AnalysedJob) -> Audit:
    deviations = tuple(map(analysed.texts.with_lines, analysed.audit.deviations))
    return redact_texts(replace(analysed.audit, deviations=deviations, warnings=analysed.all_warnings()))


def _diagnosis(analysed: AnalysedJob, run: summary.RunMeter) -> Diagnosis:
    verdict, root = report.decide_verdict(analysed.result, analysed.job.versions)
    known, unknown = report.build_findings(analysed.result)
    with analysed.read_texts() as texts:
        if root:
            completed = with_last_activity(root, analysed)
            known = tuple(completed if finding == root else finding for finding in known)
            root = completed
        inconclusive = explain_end(analysed) if verdict == "inconclusive" else None
        reported = (*([root] if root else []), *known, *unknown)
        texts.count_lines(fact for finding in reported for fact in finding.evidence)
        diagnosis = Diagnosis(
            tool_version=triage.__version__,
            catalog_version=analysed.catalog.version,
            job=analysed.job,
            verdict=verdict,
            root_cause=texts.with_lines(root) if root else None,
            findings=tuple(map(texts.with_lines, known)),
            unknown=tuple(map(texts.with_lines, unknown)),
            timeline=report.build_moments(analysed.result),
            ranks=rank_states.infer_rank_states(analysed.result, analysed.extracted.job),
            warnings=analysed.all_warnings(),
            stats=run.complete(analysed.stats),
            inconclusive=inconclusive,
        )
    return evidence.redact_all(diagnosis)
