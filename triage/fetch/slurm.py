"""Slurm: `slurm://JOBID`: what the accounting says of the job, and the files of its output if they are here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from triage.base.errors import InputError, OptionError
from triage.fetch.interface import Piece, SourceQuery
from triage.fetch.programs import run_program

FIELDS = "JobID,JobName,Partition,State,ExitCode,DerivedExitCode,Start,End,Elapsed,NodeList,MaxRSS,Reason"


def fetch(query: SourceQuery) -> Iterator[Piece]:
    """Yield the table of sacct, the description of scontrol while Slurm knows the job, and the output."""
    job = query.host
    if not re.fullmatch(r"\d+(?:_\d+)?(?:\+\d+)?", job):
        raise OptionError(
            f"{job!r} is not the id of a job", hint="write slurm://1234567, or slurm://1234_7 of an array"
        )
    table = run_program(["sacct", "--jobs", job, "--format", FIELDS, "--parsable2"])
    if len(table.splitlines()) < 2:
        raise InputError(f"Slurm's accounting has no job {job}", hint="check the id, and the cluster with sacct -M")
    yield Piece("sacct.txt", table)
    described = _scontrol(job)
    if described:
        yield Piece("scontrol.txt", described)
    for path in dict.fromkeys(re.findall(r"^\s*Std(?:Out|Err)=(/.*)$", described, re.MULTILINE)):
        yield from _output(path.strip())


def _scontrol(job: str) -> str:
    """Return what Slurm still knows of the job: nothing some minutes after its end."""
    try:
        return run_program(["scontrol", "show", "job", job])
    except InputError:
        return ""


def _output(path: str) -> Iterator[Piece]:
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            while text := file.read(1 << 20):
                yield Piece(os.path.basename(path), text)
    except OSError as error:  # it may be on another machine, or of another user
        yield Piece(os.path.basename(path), "", f"{path} cannot be read here: {error.strerror}")
