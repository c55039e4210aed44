"""`triage catalog graph` and `docs`: the catalog for those who read."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from triage.cli import options

if TYPE_CHECKING:
    from triage.catalog.diff import Moved
    from triage.catalog.model import Catalog


class GraphFormat(str, Enum):  # noqa: UP042
    svg = "svg"
    dot = "dot"


def graph(
    signature: Annotated[
        str | None,
        typer.Option(
            "--signature",
            "-s",
            metavar="ID",
            help="Only this one, what explains it and what it explains.",
            autocompletion=options.signature_ids,
            show_default=False,
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also edges that follow from others.")] = False,
    catalog: options.Catalogs = None,
    format: Annotated[  # noqa: A002
        GraphFormat, typer.Option("--format", "-f", help="A drawing, or text for Graphviz.")
    ] = GraphFormat.svg,
    output: options.Output = None,
) -> None:
    """Draw what leads to what: causes left, symptoms right.

    An edge that follows from others (A to B to C implies A to C) is left out, unless you ask for --all or for one
    signature.

    \b
    Examples:
      triage catalog graph -o causes.svg
      triage catalog graph --signature host.sigkill -o sigkill.svg
      triage catalog graph --format dot | dot -Tpdf -o causes.pdf
    """
    from triage.catalog import graph as causal
    from triage.cli import lookup, streams
    from triage.render.graph import WRITERS

    streams.check(output)
    known = lookup.load(catalog)
    if signature is None:
        found = causal.graph(known, every=every)
    else:
        found = causal.neighbourhood(known, lookup.named(signature, known).id)
    streams.deliver(WRITERS[format.value](found, signature), output, utf8=True)


def docs(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="The directory for the pages; made if it is not there.",
            show_default=False,
        ),
    ],
    catalog: options.Catalogs = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 when a page is out of date.")
    ] = False,
) -> None:
    """Write one Markdown page a signature, and an index by domain.

    Pages of signatures that are gone are removed; other files in DIR stay as they are.

    \b
    Examples:
      triage catalog docs -o docs/signatures
      triage catalog docs -o docs/signatures --check
    """
    from triage.catalog import pages as files
    from triage.cli import lookup, streams
    from triage.render.pages import MARK, pages

    streams.check(None)
    wanted = pages(lookup.load(catalog))
    stale = files.stale(output, wanted, MARK)
    if check:
        streams.deliver(
            "".join(f"{output / name} is out of date\n" for name in stale) or f"{len(wanted)} pages are current\n"
        )
        if stale:
            raise typer.Exit(1)
        return
    files.write(output, wanted, MARK)
    streams.deliver(f"{len(stale)} of {len(wanted)} pages written to {output}\n")


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A directory of signatures.", show_default=False)],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The same at a later time.", show_default=False)],
    jobs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="JOB", help="Jobs, or their reports as JSON. Default: the samples of both.", show_default=False
        ),
    ] = None,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write the answer.")
    ] = options.PlainFormat.text,
    output: options.Output = None,
) -> None:
    """Say what a change of signatures would change: which findings go, come, or lose the root.

    OLD and NEW are each laid over the shipped signatures, or are whole catalogs, with a catalog.yaml. A JOB that ends
    in .json is a
    report of `triage ingest --format json`. For the incidents of a store: `triage retriage --catalog NEW --dry-run`.

    \b
    Examples:
      triage catalog diff our-signatures/ our-signatures.new/
      triage catalog diff signatures.last-release/ signatures/ reports/*.json
      triage catalog diff old/ new/ jobs/4711/
    """
    from triage.catalog.case import ingest_evidence
    from triage.catalog.diff import Diff, changes, samples
    from triage.catalog.load import load
    from triage.cli import streams
    from triage.render import difference

    streams.check(output)
    before, after = load((old,)), load((new,))
    if jobs:
        moved, count = [found for job in jobs for found in _moved(job, old, new, after)], len(jobs)
    else:
        moved, count = samples(before, after, ingest_evidence())
    written = Diff(changes(before, after), tuple(moved), count)
    if format is options.PlainFormat.json:
        streams.deliver(difference.as_json(written), output, utf8=True)
    else:
        streams.deliver(difference.as_text(written), output)


def _moved(job: Path, old: Path, new: Path, after: Catalog) -> list[Moved]:
    """One job or report under both catalogs."""
    from triage import pipeline
    from triage.catalog.case import ingest_evidence
    from triage.catalog.diff import compared, stored

    if job.suffix == ".json" and job.is_file():
        report = _report(job)
        whole = [*report["findings"], *report["unknown"]]
        texts = [str(fact.get("text", "")) for finding in whole for fact in finding.get("evidence", ())]
        return stored(str(job), report["findings"], texts, after, ingest_evidence())
    left, right = (pipeline.ingest([str(job)], pipeline.Options(catalogs=(directory,))) for directory in (old, new))
    roots = [
        diagnosis.root_cause.signature or "unknown" if diagnosis.root_cause else "none" for diagnosis in (left, right)
    ]
    names = [{finding.signature for finding in diagnosis.findings if finding.signature} for diagnosis in (left, right)]
    return compared(str(job), names[0], names[1], (roots[0], roots[1]))


def _report(path: Path) -> dict[str, Any]:
    """A stored report, as far as its shape is needed here. Raises ReportError for another file."""
    import json

    from triage.base.errors import ReportError

    hint = "give what `triage ingest JOB --format json -o FILE` wrote"
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ReportError(f"cannot be read: {error}", hint=hint, path=str(path)) from None
    lists = [found.get(key) for key in ("findings", "unknown")] if isinstance(found, dict) else [None]
    if not all(isinstance(part, list) and all(isinstance(one, dict) for one in part) for part in lists):
        raise ReportError("is no report of triage", hint=hint, path=str(path))
    whole: dict[str, Any] = found
    return whole


COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (("graph", graph), ("docs", docs), ("diff", diff))
