"""`triage repro`: a script that replays the last collectives of a job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from triage.base.lazy_re import lazy_re
from triage.cli import options

_INCIDENT = lazy_re(r"(?:[ij]-)?[0-9a-z]{3,40}")


def repro(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH|INCIDENT",
            help="Dumps, directories or archives of one job, or the id of an incident of the store whose files are still where they were.",
            show_default=False,
        ),
    ],
    output: options.Output = None,
    calls: Annotated[
        int, typer.Option("--calls", metavar="N", min=1, max=100_000, help="Calls of each rank that are replayed.")
    ] = 50,
    scale: Annotated[int, typer.Option("--scale", metavar="N", min=1, help="Divide every tensor's elements by N.")] = 1,
    store: options.StoreFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Write a torchrun script that replays the last calls of a job.

    The script creates the same groups and makes the same calls with the same types and sizes, in each rank's own order,
    on nccl, hccl
    or gloo. Where the program is at fault it hangs again, on two CPUs too; its option --fix-rank lets it go through.
    Where the network
    is at fault, it goes through elsewhere.

    \b
    Examples:
      triage repro dumps/ -o repro.py
      triage repro i-3f9c2a41d0 -o repro.py
      torchrun --nproc-per-node 4 repro.py --backend gloo
      torchrun --nproc-per-node 4 repro.py --backend gloo --fix-rank 2

    Exit status: 0 it is written; 2 no dump could be read.
    """
    from triage.cli import progress, streams

    streams.check(output)
    from triage.artifacts.flight.analyse import analyse
    from triage.artifacts.flight.gather import gather
    from triage.artifacts.flight.replay import replay
    from triage.pipeline import Progress
    from triage.render import repro as scripts

    paths = _files(paths, store)
    with progress.shown(quiet) as callback:
        advance = (
            (lambda done, total: callback(Progress("read", done, total))) if callback else (lambda done, total: None)
        )
        recording, warnings = gather(paths, advance)
    plan = replay(recording, analyse(recording), calls=calls, scale=scale)
    name = output.name if output is not None else "repro.py"
    streams.deliver(scripts.script(plan, origin=paths[0], name=name), output, utf8=True)
    for warning in warnings:
        streams.to_stderr(f"triage: {warning.source or ''}: {warning.message}\n")


def _files(paths: Sequence[str], store: Path | None) -> list[str]:
    """The paths as they are; of the id of an incident, where its job was read from. Raises InputError when that is
    gone.
    """
    if len(paths) != 1 or os.path.lexists(paths[0]) or not _INCIDENT.fullmatch(paths[0]):
        return list(paths)
    from triage.base.errors import InputError, TriageError

    try:
        with options.stored(store) as opened:
            incident = opened.incidents.get(paths[0]).incident
    except TriageError as error:
        if paths[0][:2] in ("i-", "j-"):
            raise
        hint = "Give the directory of the dumps, or the id of an incident; `triage list` shows those of the store."
        raise InputError(
            f"neither a file nor an incident of the store ({error.message})", hint=hint, path=paths[0]
        ) from error
    if incident.path == "-" or not os.path.lexists(incident.path):
        where = "standard input" if incident.path == "-" else f"{incident.path}, which is not there any more"
        hint = "The store keeps reports, not dumps. Give the dumps by their path: triage repro DIR."
        raise InputError(f"incident {incident.id} was read from {where}", hint=hint)
    return [incident.path]
