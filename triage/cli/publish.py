"""`triage catalog graph` and `docs`: the catalog for those who read."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from triage.cli import options


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
    format: Annotated[GraphFormat, typer.Option("--format", "-f", help="A drawing, or text for Graphviz.")] = GraphFormat.svg,  # noqa: A002
    output: options.Output = None,
) -> None:
    """Draw what leads to what: causes left, symptoms right.

    An edge that follows from others (A to B to C implies A to C) is left out, unless you ask for --all or for one signature.

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
        typer.Option("--output", "-o", metavar="DIR", help="The directory for the pages; made if it is not there.", show_default=False),
    ],
    catalog: options.Catalogs = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 when a page is out of date.")] = False,
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
        streams.deliver("".join(f"{output / name} is out of date\n" for name in stale) or f"{len(wanted)} pages are current\n")
        if stale:
            raise typer.Exit(1)
        return
    files.write(output, wanted, MARK)
    streams.deliver(f"{len(stale)} of {len(wanted)} pages written to {output}\n")


COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (("graph", graph), ("docs", docs))
