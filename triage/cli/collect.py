"""`triage collect`: a bundle of a hanging job's processes on this node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_SHOWN = 20


def collect(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT.tar.zst", help="The bundle to write.", show_default=False)
    ],
    pid: Annotated[
        list[int] | None,
        typer.Option("--pid", metavar="PID", min=1, help="A process; may be repeated.", show_default=False),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option("--match", metavar="PATTERN", help="Processes whose command line matches.", show_default=False),
    ] = None,
    seconds: Annotated[
        int, typer.Option("--seconds", metavar="N", min=1, max=3600, help="Start no tool after so long.")
    ] = 60,
    mib: Annotated[
        int, typer.Option("--mib", metavar="N", min=1, max=4096, help="At most so much content, before compression.")
    ] = 64,
) -> None:
    """Gather on this node what tells why a job hangs, while it does.

    For each rank: stacks by py-spy and gdb, states of its threads, open files, environment without secrets; of the
    node: dmesg,
    nvidia-smi, npu-smi; and the last MiB of the logs that the ranks write. Says what it could not get and why. Without
    --pid and
    without --match it takes the processes to which a launcher gave a RANK. Tools stop a process for a moment; nothing
    is changed.

    \b
    Examples:
      sudo triage collect -o node1.tar.zst
      triage collect --match train.py -o node1.tar.zst
      triage ingest node1.tar.zst node2.tar.zst

    Exit status: 0 a bundle was written; 2 there is no such process, or the file cannot be written.
    """
    from triage import collect as room
    from triage.cli import progress
    from triage.cli.streams import to_stderr
    from triage.render.safe import safe_line

    with progress.status(quiet=False) as line:
        done = room.collect(
            output, pid or (), match, seconds=float(seconds), most=mib << 20, report=lambda name: line(safe_line(name))
        )
    to_stderr(f"{output}: {len(done.names)} pieces, {done.size / 1e6:.1f} MB before compression\n")
    for name, why in done.missing[:_SHOWN]:
        to_stderr(f"  not: {safe_line(f'{name}: {why}')}\n")
    if len(done.missing) > _SHOWN:
        to_stderr(f"  not: {len(done.missing) - _SHOWN} more, listed in COLLECTED.md of the bundle\n")
    to_stderr(f"  try: triage ingest {safe_line(str(output))}\n")
