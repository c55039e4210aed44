"""`triage core`: one core file, read on its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.cli import options

if TYPE_CHECKING:
    from triage.artifacts.cores.report import Report
    from triage.model.evidence import Warning


def core(
    core: Annotated[
        str, typer.Argument(metavar="CORE", help="A core file; may be compressed or in an archive.", show_default=False)
    ],
    exe: Annotated[
        Path | None,
        typer.Option(
            "--exe", metavar="PATH", help="The program, if it is not where the core says.", show_default=False
        ),
    ] = None,
    sysroot: Annotated[
        Path | None,
        typer.Option(
            "--sysroot",
            metavar="DIR",
            help="A copy of the root directory of the machine it comes from.",
            show_default=False,
        ),
    ] = None,
    debug_dir: Annotated[
        Path | None,
        typer.Option("--debug-dir", metavar="DIR", help="Where separate debug files lie.", show_default=False),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say for each frame why it was dropped or kept.")] = False,
    no_gdb: Annotated[
        bool, typer.Option("--no-gdb", help="Read only the core's own notes; no other program runs.")
    ] = False,
    all_threads: Annotated[bool, typer.Option("--all-threads", help="Show the frames of every thread.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, max=3600, help="How long gdb may take.")
    ] = 60.0,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write the answer.")
    ] = options.PlainFormat.text,
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
) -> None:
    """Read a core file: signal, address, crash point, frames.

    gdb unwinds the stack where it is installed and the program is here with the
    build-id of the core. Without it the core's own notes give signal, address
    and the place of every thread as module and offset.

    \b
    Examples:
      triage core core.4242
      triage core core.4242 --exe /opt/venv/bin/python3.11 --explain
      triage core core.zst --sysroot /mnt/image --format json
      triage core core.4242 --no-gdb
    """
    from triage.artifacts.cores.engine import Limits
    from triage.artifacts.cores.files import Where
    from triage.cli import streams
    from triage.render import core as written

    streams.check(output)
    where = Where(*(str(path) if path is not None else None for path in (exe, sysroot, debug_dir)))
    check(where)
    warnings: list[Warning] = []
    reports = list(_reports(core, where, not no_gdb, Limits(seconds=timeout), warnings))
    if format is options.PlainFormat.json:
        streams.deliver(written.as_json(reports, warnings), output, utf8=True)
        return
    columns, painted = streams.width(width, output), streams.color(color.value, output)
    shown = written.as_text(reports, warnings, explain=explain, all_threads=all_threads, width=columns, color=painted)
    streams.deliver(shown, output)


def check(where: object) -> None:
    """Raises OptionError for a place that is not there."""
    import os

    from triage.base.errors import OptionError

    for name, wanted in (("exe", os.path.isfile), ("sysroot", os.path.isdir), ("debug_dir", os.path.isdir)):
        path = getattr(where, name)
        if path is not None and not wanted(path):
            what = "file" if name == "exe" else "directory"
            raise OptionError(f"--{name.replace('_', '-')}: there is no such {what}", hint="check the path", path=path)


def is_program(path: str) -> bool:
    """Is it the program that crashed, or one of its libraries?"""
    import os

    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(18)
    return head[:4] == b"\x7fELF" and len(head) == 18 and 4 not in head[16:]


def _reports(path: str, where: object, use_gdb: bool, limits: object, warnings: list[Warning]) -> Iterator[Report]:
    """The reports of all core files that `path` holds. Raises InputError when there is none."""
    from triage import sources
    from triage.artifacts.cores.reader import Cores
    from triage.artifacts.cores.report import read
    from triage.base.errors import InputError

    if is_program(path):
        raise InputError(
            "this is a program or a library, and no core file",
            hint="give the core file, and the program with --exe",
            path=path,
        )
    count = 0
    for file in sources.discover([path]).files:
        for source, stream in sources.streams(file, sources.Limits(), warnings.append):
            if source.kind != "core":
                continue
            count += 1
            kept = Cores().keep(source, stream) if stream is not None else None
            place = (kept.source if kept is not None else source).path
            yield read(place or "", source.name, where, use_gdb, use_gdb, limits)  # type: ignore[arg-type]
    if not count:
        raise InputError(
            "no core file in there", hint="give a file that the kernel, gcore or systemd-coredump wrote", path=path
        )
