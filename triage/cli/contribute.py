"""`triage catalog new`, `explain`, `test` and `rate`: the way of a new signature from a log to a catalog that knows it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.base.errors import OptionError
from triage.cli import options

if TYPE_CHECKING:
    from triage.catalog.trial import Trial
    from triage.pipeline import Options


class Role(str, Enum):  # noqa: UP042
    """The roles of `triage.model.Role`."""

    cause = "cause"
    symptom = "symptom"
    either = "either"
    confirmation = "confirmation"
    noise = "noise"
    guide = "guide"


def new(
    id: Annotated[  # noqa: A002
        str, typer.Argument(metavar="ID", help="<domain>.<slug>, like cuda.out-of-memory.", show_default=False)
    ],
    title: Annotated[
        str | None,
        typer.Option(
            "--title", "-t", metavar="TEXT", help="What happened, in at most 80 characters.", show_default=False
        ),
    ] = None,
    role: Annotated[
        Role, typer.Option("--role", "-r", help="Can it begin a failure, or does it follow from one?")
    ] = Role.cause,
    directory: Annotated[
        Path, typer.Option("--directory", "-d", metavar="DIR", help="The directory of signatures to put it into.")
    ] = Path("signatures"),
) -> None:
    """Write the skeleton of a signature file, with comments that teach.

    \b
    Example:
      triage catalog new storage.mount-gone --title "The mount is gone"
    """
    from triage.catalog import files, load
    from triage.catalog.new import new as write
    from triage.catalog.read import read_all
    from triage.cli import streams

    streams.check(None)
    taken = {signature.id for signature in load.load(strict=False).signatures}
    for path in files.files(directory) if directory.is_dir() else ():
        taken |= {signature.id for signature in read_all(path)[0]}
    path = write(id, directory, taken, title=title, role=role.value)
    streams.deliver(f"{path}\nFill it in; `triage catalog check {path}` names what is missing.\n")


def explain(
    signature: Annotated[
        str,
        typer.Argument(
            metavar="FILE|ID",
            help="A signature file, or the id of a signature that the catalog holds.",
            autocompletion=options.signature_ids,
            show_default=False,
        ),
    ],
    catalog: options.Catalogs = None,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write the answer.")
    ] = options.PlainFormat.text,
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
) -> None:
    """Say what triage makes of a signature file, and why its samples match or not.

    Shows the words at which the scan stops for each pattern, how the readers take each sample apart, which clauses hold
    there
    with which captures, what the signature explains and what explains it. Exit status: 0, or 1 when a sample is not as
    it must be.

    \b
    Examples:
      triage catalog explain my-signatures/cuda/new-mode.yaml
      triage catalog explain gpu.xid-79
    """
    from triage.catalog.study import study
    from triage.cli import lookup, streams
    from triage.render import study as written

    streams.check(output)
    identifier = None if lookup.is_file(signature) else signature
    path = signature if identifier is None else lookup.named(identifier, lookup.load(catalog)).path
    found = study(Path(path), identifier)
    if format is options.PlainFormat.json:
        streams.deliver(written.as_json(found), output, utf8=True)
    else:
        streams.deliver(
            written.as_text(found, width=streams.width(width, output), color=streams.color(color.value, output)), output
        )
    if any(tried.matched != tried.expected for tried in found.samples):
        raise typer.Exit(1)


def attempt(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="The log: files, directories or archives of one job.", show_default=False),
    ],
    signature: Annotated[
        str | None,
        typer.Option(
            "--signature",
            "-s",
            metavar="PATH|ID",
            help="The signature to try: its file, or its id. Default: all.",
            autocompletion=options.signature_ids,
            show_default=False,
        ),
    ] = None,
    catalog: options.Catalogs = None,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write the answer.")
    ] = options.PlainFormat.text,
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
) -> None:
    """Try a signature on a log: which lines match, what is captured.

    Exit status: 0, or 1 when the signature that is named does not match.

    \b
    Examples:
      triage catalog test my.log --signature signatures/my/mode.yaml
      triage catalog test my.log -s cuda.out-of-memory
      triage catalog test my.log
    """
    from triage.cli import streams
    from triage.render import trial

    streams.check(output)
    found = _tried(paths, signature, list(catalog or ()))
    if format is options.PlainFormat.json:
        streams.deliver(trial.as_json(found), output, utf8=True)
    else:
        streams.deliver(
            trial.as_text(found, width=streams.width(width, output), color=streams.color(color.value, output)), output
        )
    if found.failed:
        raise typer.Exit(1)


def rate(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR", help="Directories in which each entry is a job.", show_default=False)
    ],
    catalog: options.Catalogs = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when a job disagrees with its truth.")] = False,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write the tables.")
    ] = options.PlainFormat.text,
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
    quiet: options.Quiet = False,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", metavar="FILE", help="Also count what people said about this store.", show_default=False
        ),
    ] = None,
) -> None:
    """Say how the catalog does on many jobs: known, unknown, clean.

    Each entry of DIR is a job. Where an entry holds `job` and TRUTH.yaml, the answer is compared with that truth.

    \b
    Examples:
      triage catalog rate failed-jobs/ --catalog my-signatures/
      triage catalog rate samples/jobs --strict
    """
    from triage import pipeline
    from triage.catalog.rate import rate as judge
    from triage.cli import streams
    from triage.render import rating

    streams.check(output)
    chosen = pipeline.Options(catalogs=tuple(catalog or ()))
    with _counted(quiet) as count:
        found = judge(directories, lambda path: pipeline.ingest([str(path)], chosen), count)
    if store is not None:
        with options.stored(store) as opened:
            found = replace(found, said=tuple(opened.feedback.counts()))
    if format is options.PlainFormat.json:
        streams.deliver(rating.as_json(found), output, utf8=True)
    else:
        streams.deliver(
            rating.as_text(found, width=streams.width(width, output), color=streams.color(color.value, output)), output
        )
    agree, judged = found.judged()
    if strict and agree < judged:
        raise typer.Exit(1)


def mutate(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Files or directories. Default: the shipped catalog.", show_default=False),
    ] = None,
    every: Annotated[
        int, typer.Option("--every", metavar="N", min=1, help="Try only each N-th part, for a quick look.")
    ] = 1,
    quiet: options.Quiet = False,
) -> None:
    """Take each clause and edge of a signature away: does a check notice?

    A part that nobody misses is of no use, or lacks the sample that proves it. Exit status: 1 when there is such a
    part.

    \b
    Examples:
      triage catalog mutate signatures/cuda/out-of-memory.yaml
      triage catalog mutate --every 20
    """
    from triage.catalog.case import ingest_evidence, prepare
    from triage.catalog.mutate import mutants, survivors
    from triage.cli import streams

    streams.check(None)
    case, problems = prepare(paths or (), None)
    if any(problem.severity == "error" for problem in problems):
        raise OptionError("some of the files cannot be read", hint="run `triage catalog check` first")
    total = sum(1 for identifier in case.checked for _ in mutants(case.whole[identifier]))
    with _counted(quiet, "part") as count:

        def wanted(number: int) -> bool:
            if count is not None and number % 100 == 1:
                count(number, total)
            return number % every == 0

        lines = [
            f"{signature.path}: {signature.id}: not missed: {what}"
            for signature, what in survivors(case, ingest_evidence(), wanted)
        ]
    lines.append(f"{len(lines)} of {total // every} parts are not missed by any check")
    streams.deliver("\n".join(lines) + "\n")
    if len(lines) > 1:
        raise typer.Exit(1)


@contextmanager
def _counted(quiet: bool, what: str = "job") -> Iterator[Callable[[int, int], None] | None]:
    """`job 3 of 50` on standard error, for a person who waits."""
    from triage.cli.streams import is_terminal, to_stderr

    if quiet or not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        yield None
        return
    try:
        yield lambda done, total: to_stderr(f"\r{what} {done + 1} of {total}\x1b[K")
    finally:
        to_stderr("\r\x1b[K")


def _tried(paths: list[str], wanted: str | None, catalogs: list[Path]) -> Trial:
    """What an ingest with these catalogs (and the file that is named) says about the log."""
    from triage import pipeline
    from triage.catalog.trial import trial
    from triage.cli import lookup

    if "-" in paths:
        raise OptionError(
            "standard input can be read only once, and a trial reads the log twice", hint="write it to a file first"
        )
    identifier = wanted
    if wanted is not None and lookup.is_file(wanted):
        identifier = lookup.id_in(Path(wanted))
        catalogs = [*catalogs, Path(wanted)]
    known = lookup.load(catalogs)
    if identifier is not None:
        lookup.named(identifier, known)
    chosen: Options = pipeline.Options(catalogs=tuple(catalogs))
    named = pipeline.explain(paths, identifier, chosen) if identifier is not None else None
    return trial(pipeline.ingest(paths, chosen), known, named)


COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("new", new),
    ("explain", explain),
    ("test", attempt),
    ("rate", rate),
    ("mutate", mutate),
)
