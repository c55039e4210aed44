"""`triage core`: read one core file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.base.errors import InputError, OptionError
from triage.cli import options, streams

if TYPE_CHECKING:
    from triage.artifacts.cores.report import CoreReport
    from triage.model.evidence import Warning

CoreFile = Annotated[
    str, typer.Argument(metavar="CORE", help="A core file; may be compressed or in an archive.", show_default=False)
]
Exe = Annotated[
    Path | None,
    typer.Option("--exe", metavar="PATH", help="The program, if it is not where the core says.", show_default=False),
]
Sysroot = Annotated[
    Path | None,
    typer.Option(
        "--sysroot", metavar="DIR", help="A copy of the root directory of the crashed machine.", show_default=False
    ),
]
DebugDir = Annotated[
    Path | None,
    typer.Option("--debug-dir", metavar="DIR", help="Directory of separate debug files.", show_default=False),
]
NoGdb = Annotated[bool, typer.Option("--no-gdb", help="Read only the notes of the core; run no other program.")]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0.1, max=3600, help="How long gdb may run.")
]


def core(
    core: CoreFile,
    exe: Exe = None,
    sysroot: Sysroot = None,
    debug_dir: DebugDir = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show why each frame was dropped or not.")] = False,
    no_gdb: NoGdb = False,
    all_threads: Annotated[bool, typer.Option("--all-threads", help="Show the frames of every thread.")] = False,
    timeout: Timeout = 60.0,
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
) -> None:
    """Read a core file: signal, address, crash point, frames.

    gdb unwinds the stack if it is installed and the program with the build-id of the core is here. Otherwise the notes
    of the core give signal, address and the position of every thread as module and offset.

    \b
    Examples:
      triage core core.4242
      triage core core.4242 --exe /opt/venv/bin/python3.11 --explain
      triage core core.zst --sysroot /mnt/image --format json
      triage core core.4242 --no-gdb
    """
    from triage.artifacts.cores.limited_process import Limits
    from triage.artifacts.cores.local_files import SearchPaths
    from triage.render import core as rendering

    streams.check_output(output)
    search_paths = SearchPaths(*(str(path) if path is not None else None for path in (exe, sysroot, debug_dir)))
    _check_paths(search_paths)
    warnings: list[Warning] = []
    reports = list(_read_cores(core, search_paths, not no_gdb, Limits(seconds=timeout), warnings))
    style = streams.text_style(width, color, output)
    streams.write_format(
        format,
        output,
        json=lambda: rendering.as_json(reports, warnings),
        text=lambda: rendering.as_text(reports, warnings, explain=explain, all_threads=all_threads, **style),
    )


def _check_paths(search_paths: object) -> None:
    """Raise OptionError for a missing file or directory."""
    for name, exists in (("exe", os.path.isfile), ("sysroot", os.path.isdir), ("debug_dir", os.path.isdir)):
        path = getattr(search_paths, name)
        if path is not None and not exists(path):
            kind = "file" if name == "exe" else "directory"
            raise OptionError(f"--{name.replace('_', '-')}: no such {kind}", hint="check the path", path=path)


def _is_program(path: str) -> bool:
    """Return whether the file is an ELF program or library, not a core file."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(18)
    return head[:4] == b"\x7fELF" and len(head) == 18 and 4 not in head[16:]


def _read_cores(
    path: str, search_paths: object, use_gdb: bool, limits: object, warnings: list[Warning]
) -> Iterator[CoreReport]:
    """Yield the reports of all core files in `path`. Raises InputError if there is none."""
    from triage import sources
    from triage.artifacts.cores.reader import CoreReader
    from triage.artifacts.cores.report import read_core

    if _is_program(path):
        raise InputError(
            "this is a program or a library, not a core file",
            hint="give the core file, and the program with --exe",
            path=path,
        )
    count = 0
    for file in sources.discover([path]).files:
        for source, stream in sources.streams(file, sources.Limits(), warnings.append):
            if source.kind != "core":
                continue
            count += 1
            artifact = CoreReader().read_stream(source, stream) if stream is not None else None
            place = (artifact.source if artifact is not None else source).path
            yield read_core(place or "", source.name, search_paths, use_gdb, use_gdb, limits)  # type: ignore[arg-type]
    if not count:
        raise InputError(
            "contains no core file", hint="give a file written by the kernel, gcore or systemd-coredump", path=path
        )
