"""`triage collect`: bundle what shows why a job hangs on this node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_MAX_LISTED = 20
Bundle = Annotated[
    Path, typer.Option("--output", "-o", metavar="OUT.tar.zst", help="The bundle to write.", show_default=False)
]
Pids = Annotated[
    list[int] | None,
    typer.Option("--pid", metavar="PID", min=1, help="A process; may be repeated.", show_default=False),
]
Match = Annotated[
    str | None,
    typer.Option("--match", metavar="PATTERN", help="Processes whose command line matches.", show_default=False),
]
Seconds = Annotated[int, typer.Option("--seconds", metavar="N", min=1, max=3600, help="Start no tool after this time.")]
Mib = Annotated[
    int, typer.Option("--mib", metavar="N", min=1, max=4096, help="Maximum content in MiB, before compression.")
]


def collect(output: Bundle, pid: Pids = None, match: Match = None, seconds: Seconds = 60, mib: Mib = 64) -> None:
    """Collect on this node what shows why a job hangs, while it hangs.

    For each rank: stacks from py-spy and gdb, states of its threads, open files, environment without secrets. For the
    node: dmesg, nvidia-smi, npu-smi, and the last MiB of the logs of the ranks. Lists what is missing and why. Without
    --pid and --match it takes the processes with a RANK from a launcher. Tools stop a process for a moment; nothing is
    changed.

    \b
    Examples:
      sudo triage collect -o node1.tar.zst
      triage collect --match train.py -o node1.tar.zst
      triage ingest node1.tar.zst node2.tar.zst

    Exit status: 0 the bundle was written; 2 no such process, or the file cannot be written.
    """
    from triage.cli import progress
    from triage.cli.streams import write_stderr
    from triage.collect import collect as write_bundle
    from triage.render.phrases import format_bytes, format_count
    from triage.render.sanitize import sanitize_line

    with progress.status_line(quiet=False) as show:
        result = write_bundle(
            output,
            pid or (),
            match,
            seconds=float(seconds),
            max_bytes=mib << 20,
            report=lambda name: show(sanitize_line(name)),
        )
    write_stderr(
        f"{output}: {format_count(len(result.names), 'file')}, {format_bytes(result.size)} before compression\n"
    )
    for name, reason in result.missing[:_MAX_LISTED]:
        write_stderr(f"  missing: {sanitize_line(f'{name}: {reason}')}\n")
    if len(result.missing) > _MAX_LISTED:
        write_stderr(f"  missing: {len(result.missing) - _MAX_LISTED} more, listed in COLLECTED.md of the bundle\n")
    write_stderr(f"  try: triage ingest {sanitize_line(str(output))}\n")
