"""`triage catalog graph`, `docs` and `diff`: show the catalog to its readers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from triage.cli import lookup, options, streams

if TYPE_CHECKING:
    from triage.catalog.diff import FindingChange
    from triage.catalog.model import Catalog


CenterSignature = Annotated[
    str | None,
    typer.Option(
        "--signature",
        "-s",
        metavar="ID",
        help="Only this signature, its causes and its consequences.",
        autocompletion=options.complete_signature_ids,
        show_default=False,
    ),
]
FormatOption = Annotated[Literal["svg", "dot"], typer.Option("--format", "-f", help="A drawing, or text for Graphviz.")]
PageDirectory = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="DIR", help="The directory for the pages; created if missing.", show_default=False
    ),
]
CheckPages = Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 if a page is out of date.")]
DiffJobs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="JOB", help="Jobs, or their reports as JSON. Default: the samples of both.", show_default=False
    ),
]


def graph(
    signature: CenterSignature = None,
    every: Annotated[bool, typer.Option("--all", help="Also edges that follow from others.")] = False,
    catalog: options.Catalogs = None,
    format: FormatOption = "svg",  # noqa: A002
    output: options.Output = None,
) -> None:
    """Draw the causal edges: causes left, symptoms right.

    An edge that follows from others (A to B to C implies A to C) is left out, except with --all or for one signature.

    \b
    Examples:
      triage catalog graph -o causes.svg
      triage catalog graph --signature host.sigkill -o sigkill.svg
      triage catalog graph --format dot | dot -Tpdf -o causes.pdf
    """
    from triage.catalog.graph import build_graph, build_neighbourhood
    from triage.render.graph import WRITERS

    streams.check_output(output)
    signatures = lookup.load_signatures(catalog)
    if signature is None:
        selected = build_graph(signatures, with_implied=every)
    else:
        selected = build_neighbourhood(signatures, lookup.find_signature(signature, signatures).id)
    streams.write_output(WRITERS[format](selected, signature), output, utf8=True)


def docs(output: PageDirectory, catalog: options.Catalogs = None, check: CheckPages = False) -> None:
    """Write one Markdown page per signature, and an index by domain.

    Pages of removed signatures are deleted; other files in DIR stay.

    \b
    Examples:
      triage catalog docs -o docs/signatures
      triage catalog docs -o docs/signatures --check
    """
    from triage.catalog import page_files
    from triage.render.catalog_pages import MARK, render_pages

    streams.check_output(None)
    texts = render_pages(lookup.load_signatures(catalog))
    stale = page_files.find_stale_pages(output, texts, MARK)
    if not check:
        page_files.write_pages(output, texts, MARK)
        streams.write_output(f"{len(stale)} of {len(texts)} pages written to {output}\n")
        return
    streams.write_output("".join(f"{output / name} is out of date\n" for name in stale))
    if stale:
        raise typer.Exit(1)
    streams.write_output(f"{len(texts)} pages are current\n")


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A directory of signatures.", show_default=False)],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="A later version of it.", show_default=False)],
    jobs: DiffJobs = None,
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
) -> None:
    """Show what a change of signatures would change: findings that appear, disappear, or lose the root.

    OLD and NEW extend the shipped signatures, or are whole catalogs with a catalog.yaml. A JOB that ends in .json is a
    report of `triage ingest --format json`. `triage retriage --catalog NEW --dry-run` shows the changes of a store.

    \b
    Examples:
      triage catalog diff our-signatures/ our-signatures.new/
      triage catalog diff signatures.last-release/ signatures/ reports/*.json
      triage catalog diff old/ new/ jobs/4711/
    """
    from triage.catalog.check_context import default_reader
    from triage.catalog.diff import CatalogDiff, compare_samples, compare_signatures
    from triage.catalog.load import load
    from triage.render import catalog_diff

    streams.check_output(output)
    before, after = load((old,)), load((new,))
    if jobs:
        changes, count = [change for job in jobs for change in _compare_job(job, old, new, after)], len(jobs)
    else:
        changes, count = compare_samples(before, after, default_reader())
    result = CatalogDiff(compare_signatures(before, after), tuple(changes), count)
    streams.write_format(
        format, output, json=lambda: catalog_diff.as_json(result), text=lambda: catalog_diff.as_text(result)
    )


def _compare_job(job: Path, old: Path, new: Path, after: Catalog) -> list[FindingChange]:
    """Compare the findings of one job or report under both catalogs."""
    from triage import pipeline
    from triage.catalog.check_context import default_reader
    from triage.catalog.diff import compare_findings, compare_report

    if job.suffix == ".json" and job.is_file():
        report = _read_report(job)
        findings = [*report["findings"], *report["unknown"]]
        texts = [str(fact.get("text", "")) for finding in findings for fact in finding.get("evidence", ())]
        return compare_report(str(job), report["findings"], texts, after, default_reader())
    diagnoses = [pipeline.ingest([str(job)], pipeline.Options(catalogs=(directory,))) for directory in (old, new)]
    roots = [diagnosis.root_cause.signature or "unknown" if diagnosis.root_cause else "none" for diagnosis in diagnoses]
    names = [{finding.signature for finding in diagnosis.findings if finding.signature} for diagnosis in diagnoses]
    return compare_findings(str(job), names[0], names[1], (roots[0], roots[1]))


def _read_report(path: Path) -> dict[str, Any]:
    """Read a report, as far as its shape matters here. Raises ReportError for another file."""
    import json

    from triage.base.errors import ReportError

    hint = "give the file that `triage ingest JOB --format json -o FILE` wrote"
    try:
        report = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ReportError(f"cannot be read: {error}", hint=hint, path=str(path)) from None
    lists = [report.get(key) for key in ("findings", "unknown")] if isinstance(report, dict) else [None]
    if not all(isinstance(part, list) and all(isinstance(item, dict) for item in part) for part in lists):
        raise ReportError("is not a report of triage", hint=hint, path=str(path))
    checked: dict[str, Any] = report
    return checked


COMMANDS = (("graph", graph), ("docs", docs), ("diff", diff))
