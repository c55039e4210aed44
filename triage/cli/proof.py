"""Check what `triage catalog check` needs beyond signature files: no match on healthy jobs, and all pages render."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from triage import pipeline
from triage.catalog import check, lint, signature_files
from triage.catalog.check_context import CheckContext, load_context
from triage.catalog.lock import LOCK
from triage.catalog.match import positive_leaves
from triage.catalog.model import Signature
from triage.catalog.problems import Problem
from triage.render import catalog_pages
from triage.render.signature import as_text

GAPS = "clean-gaps.txt"  # next to the corpus, lines `<job>: <why triage does not yet see that it is healthy>`


def check_everything(paths: Sequence[Path]) -> list[Problem]:
    """Return all problems of the files: schema, rules, samples, matches on healthy jobs, pages."""
    problems = check.check_files(paths)
    context, _ = load_context(paths, None)
    base = signature_files.find_shipped_directory()
    corpus = base.parent / "samples" / "clean" if base else None
    problems = [*problems, *_check_pages(context)]
    if corpus is not None and corpus.is_dir():
        problems += _check_healthy_jobs(context, corpus, paths, _list_faulty_files(problems))
    return check.sort_problems(problems)


def known_false_alarms(corpus: Path) -> dict[str, str]:
    """Return healthy jobs that are still diagnosed as failed, with the reason; no signature is to blame for them."""
    try:
        lines = (corpus.parent / GAPS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith("#"))


def _check_pages(context: CheckContext) -> Iterator[Problem]:
    for checked in context.checked.values():
        try:
            catalog_pages.render_page(checked, context.all_signatures, ())
            as_text(checked)
        except Exception as error:  # an unexpected error must not stop the check of the other signatures
            message = f"the page of {checked.id} cannot be rendered: {error!r}"
            yield Problem("error", checked.path, 1, 1, message, "report this as a bug of triage")


def _list_faulty_files(problems: Iterable[Problem]) -> set[str]:
    """Return the files with an error other than of the lock file: the rest of their check can wait."""
    return {one.path for one in problems if one.severity == "error" and LOCK not in one.message}


def _check_healthy_jobs(
    context: CheckContext, corpus: Path, paths: Sequence[Path], without: Collection[str]
) -> Iterator[Problem]:
    """Yield a problem for each cause or symptom found in a healthy job.

    Signatures of the files `without` are left out: a pattern that is too broad would match every job, slowly.
    """
    gaps = known_false_alarms(corpus)
    failures = (item for item in context.checked.values() if item.role in ("cause", "symptom"))
    checked = {item.id: item for item in failures if item.path not in without}
    paths = [path for path in paths if path.exists()]
    for job in sorted(corpus.iterdir()):
        if job.stem in gaps or not _may_match(job, context.all_signatures, checked):
            continue
        diagnosis = pipeline.ingest([str(job)], pipeline.Options(catalogs=tuple(paths), workers=1))
        for finding in diagnosis.findings:
            signature = checked.get(finding.signature or "")
            if signature is not None:
                line = finding.evidence[0].text.split("\n", 1)[0][:160] if finding.evidence else ""
                position = lint.locate(context.documents[signature.path], signature, ("match",))
                hint = f"{job.name} is healthy; narrow the pattern, or add a leaf under `none`"
                yield Problem("error", signature.path, *position, f"{signature.id} matches a healthy job: {line}", hint)


def _may_match(job: Path, signatures: Mapping[str, Signature], checked: Iterable[str]) -> bool:
    """Return whether the job contains a literal of a checked signature; others need no diagnosis."""
    files = [path for path in sorted(job.rglob("*")) if path.is_file()] if job.is_dir() else [job]
    text = "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)
    leaves = [
        leaf
        for identifier in checked
        for leaf in positive_leaves(signatures[identifier].match)
        if leaf.text is not None
    ]
    return any(not leaf.literals or any(literal in text for literal in leaf.literals) for leaf in leaves)
