"""`triage repro`: write a script that replays the last collectives of a job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated

import typer

from triage.base.lazy_re import lazy_re
from triage.cli import options, progress, streams

_INCIDENT = lazy_re(r"(?:[ij]-)?[0-9a-z]{3,40}")
PathsOrIncident = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH|INCIDENT",
        help="Dumps, directories or archives of one job, or the id of a stored incident whose files still exist.",
        show_default=False,
    ),
]
Calls = Annotated[
    int, typer.Option("--calls", metavar="N", min=1, max=100_000, help="Number of calls to replay per rank.")
]
Scale = Annotated[int, typer.Option("--scale", metavar="N", min=1, help="Divide the elements of every tensor by N.")]


def repro(
    paths: PathsOrIncident,
    output: options.Output = None,
    calls: Calls = 50,
    scale: Scale = 1,
    store: options.StoreFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Write a torchrun script that replays the last calls of a job.

    The script creates the same groups and makes the same calls with the same types and sizes, in the order of each
    rank, on nccl, hccl or gloo. If the program is at fault, it hangs again, also on two CPUs; the option --fix-rank of
    the script lets it finish. If the network is at fault, it finishes elsewhere.

    \b
    Examples:
      triage repro dumps/ -o repro.py
      triage repro i-3f9c2a41d0 -o repro.py
      torchrun --nproc-per-node 4 repro.py --backend gloo
      torchrun --nproc-per-node 4 repro.py --backend gloo --fix-rank 2

    Exit status: 0 success; 2 no dump could be read.
    """
    streams.check_output(output)
    from triage.artifacts.flight.dump_files import read_dump_files

    paths = _resolve_paths(paths, store)
    with progress.progress_bar(quiet) as callback:
        advance = progress.as_byte_callback("read", callback) or progress.ignore
        recording, warnings = read_dump_files(paths, advance)
    # These load numpy, so they are imported after the processes that read dumps are forked.
    from triage.artifacts.flight.analyse import analyse
    from triage.artifacts.flight.replay import replay
    from triage.render import repro_script

    plan = replay(recording, analyse(recording), calls=calls, scale=scale)
    name = output.name if output is not None else "repro.py"
    streams.write_output(repro_script.script(plan, origin=paths[0], name=name), output, utf8=True)
    for warning in warnings:
        where = f"{warning.source}: " if warning.source else ""
        streams.write_stderr(f"triage: {where}{warning.message}\n")


def _resolve_paths(paths: Sequence[str], store: str | None) -> list[str]:
    """Return the paths; for an incident, the path its job was read from. Raises InputError if that is gone."""
    if len(paths) != 1 or os.path.lexists(paths[0]) or not _INCIDENT.fullmatch(paths[0]):
        return list(paths)
    from triage.base.errors import InputError, TriageError

    try:
        with options.open_store(store) as opened:
            incident = opened.incidents.get(paths[0]).incident
    except TriageError as error:
        if paths[0][:2] in ("i-", "j-"):
            raise
        hint = "give the directory of the dumps, or the id of an incident; `triage list` shows the stored incidents"
        raise InputError(
            f"neither a file nor an incident of the store ({error.message})", hint=hint, path=paths[0]
        ) from error
    if incident.path == "-" or not os.path.lexists(incident.path):
        origin = "standard input" if incident.path == "-" else f"{incident.path}, which no longer exists"
        raise InputError(
            f"incident {incident.id} was read from {origin}",
            hint="the store keeps reports, not dumps; give the path of the dumps: triage repro DIR",
        )
    return [incident.path]
