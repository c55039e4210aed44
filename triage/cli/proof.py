"""What `triage catalog check` does beyond the signature files: healthy jobs must stay healthy, and every page must
render.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triage.catalog.case import Case
    from triage.catalog.model import Signature
    from triage.catalog.problems import Problem

GAPS = "clean-gaps.txt"  # beside the corpus: `<job>: <why triage does not yet see that it is healthy>`


def prove(paths: Sequence[Path]) -> list[Problem]:
    """All that is wrong with the files: schema, rules, samples, cross table, healthy jobs, pages."""
    from triage.catalog import check, files
    from triage.catalog.case import prepare

    found = check.check(paths)
    case, _ = prepare(paths, None)
    base = files.shipped_directory()
    corpus = base.parent / "samples" / "clean" if base else None
    found = [*found, *_pages(case)]
    if corpus is not None and corpus.is_dir():
        found += _healthy(case, corpus, [path for path in paths if path.exists()])
    return check.ordered(found)


def known_gaps(corpus: Path) -> dict[str, str]:
    """Jobs of the corpus that the diagnosis does not see through yet, with the reason: no signature is to blame."""
    try:
        lines = (corpus.parent / GAPS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith("#"))


def _pages(case: Case) -> Iterator[Problem]:
    from triage.catalog.problems import Problem
    from triage.render import pages, signature

    for one in case.checked.values():
        try:
            pages.page(one, case.whole, ())
            signature.as_text(one)
        except Exception as error:  # whatever a file does to the renderers, the others are still checked
            yield Problem(
                "error",
                one.path,
                1,
                1,
                f"{one.id} cannot be shown as a page: {error!r}",
                "report this as a bug of triage",
            )


def _healthy(case: Case, corpus: Path, paths: Sequence[Path]) -> Iterator[Problem]:
    """A cause or a symptom that still stands in a job that went well is a false alarm."""
    from triage import pipeline
    from triage.catalog import lint
    from triage.catalog.problems import Problem

    gaps = known_gaps(corpus)
    alarms = {signature.id: signature for signature in case.checked.values() if signature.role in ("cause", "symptom")}
    for job in sorted(corpus.iterdir()):
        if job.stem in gaps or not _may_show(job, case.whole, alarms):
            continue
        diagnosis = pipeline.ingest([str(job)], pipeline.Options(catalogs=tuple(paths), workers=1))
        for finding in diagnosis.findings:
            signature = alarms.get(finding.signature or "")
            if signature is not None:
                line = finding.evidence[0].text.split("\n", 1)[0][:160] if finding.evidence else ""
                place = lint.place(case.trees[signature.path], signature, ("match",))
                hint = f"nothing is wrong with {job.name}; narrow the pattern, or add a leaf under `none`"
                yield Problem("error", signature.path, *place, f"{signature.id} fires on a healthy job: {line}", hint)


def _may_show(job: Path, whole: Mapping[str, Signature], alarms: Iterable[str]) -> bool:
    """Does the job hold a literal of one of the signatures? Few do, and the others need no diagnosis."""
    from triage.catalog.match import positive_leaves

    files = [path for path in sorted(job.rglob("*")) if path.is_file()] if job.is_dir() else [job]
    text = "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)
    leaves = [
        leaf for identifier in alarms for leaf in positive_leaves(whole[identifier].match) if leaf.text is not None
    ]
    return any(not leaf.literals or any(literal in text for literal in leaf.literals) for leaf in leaves)
