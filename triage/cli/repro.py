"""`triage repro`: a script that replays the last collectives of a job."""

from __future__ import annotations

from typing import Annotated

import typer

from triage.cli import options


def repro(
    paths: options.Paths,
    output: options.Output = None,
    calls: Annotated[int, typer.Option("--calls", metavar="N", min=1, max=100_000, help="Calls of each rank that are replayed.")] = 50,
    scale: Annotated[int, typer.Option("--scale", metavar="N", min=1, help="Divide every tensor's elements by N.")] = 1,
    quiet: options.Quiet = False,
) -> None:
    """Write a torchrun script that replays the last calls of a job.

    The script creates the same groups and makes the same calls with the same types and sizes, in each rank's own order, on nccl, hccl
    or gloo. Where the program is at fault it hangs again, on two CPUs too; its option --fix-rank lets it go through. Where the network
    is at fault, it goes through elsewhere.

    \b
    Examples:
      triage repro dumps/ -o repro.py
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

    with progress.shown(quiet) as callback:
        advance = (lambda done, total: callback(Progress("read", done, total))) if callback else (lambda done, total: None)
        recording, warnings = gather(paths, advance)
    plan = replay(recording, analyse(recording), calls=calls, scale=scale)
    name = output.name if output is not None else "repro.py"
    streams.deliver(scripts.script(plan, origin=paths[0], name=name), output, utf8=True)
    for warning in warnings:
        streams.to_stderr(f"triage: {warning.source or ''}: {warning.message}\n")
