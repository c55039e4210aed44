"""`triage catalog new`, `explain`, `test`, `rate` and `mutate`: write and test your own signatures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from triage.base.errors import OptionError
from triage.cli import lookup, options, progress, streams

if TYPE_CHECKING:
    from triage.catalog.trial import Trial


NewId = Annotated[
    str, typer.Argument(metavar="ID", help="<domain>.<slug>, like cuda.out-of-memory.", show_default=False)
]
Title = Annotated[
    str | None,
    typer.Option("--title", "-t", metavar="TEXT", help="What happened, in at most 80 characters.", show_default=False),
]
RoleOption = Annotated[
    Literal["cause", "symptom", "either", "confirmation", "noise", "guide"],
    typer.Option("--role", "-r", help="Does it start a failure, or follow from one?"),
]

FileOrId = Annotated[
    str,
    typer.Argument(
        metavar="FILE|ID",
        help="A signature file, or the id of a signature in the catalog.",
        autocompletion=options.complete_signature_ids,
        show_default=False,
    ),
]
LogPaths = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help="The log: files, directories or archives of one job.", show_default=False),
]
TestedSignature = Annotated[
    str | None,
    typer.Option(
        "--signature",
        "-s",
        metavar="PATH|ID",
        help="The signature to test: its file, or its id. Default: all.",
        autocompletion=options.complete_signature_ids,
        show_default=False,
    ),
]
JobDirectories = Annotated[
    list[Path], typer.Argument(metavar="DIR", help="Directories in which each entry is a job.", show_default=False)
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if a diagnosis differs from its TRUTH.yaml.")]
FeedbackStore = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="Also count the feedback in this store.", show_default=False),
]

Every = Annotated[int, typer.Option("--every", metavar="N", min=1, help="Try only every N-th part, for a quick look.")]


def new(
    id: NewId,  # noqa: A002
    title: Title = None,
    role: RoleOption = "cause",
    directory: options.SignatureDirectory = Path("signatures"),
) -> None:
    """Write the skeleton of a signature file, with explaining comments.

    \b
    Example:
      triage catalog new storage.mount-gone --title "The mount is gone"
    """
    from triage.catalog import load, signature_files
    from triage.catalog.read import read_signatures
    from triage.catalog.skeleton import write_skeleton

    streams.check_output(None)
    taken = {signature.id for signature in load.load(strict=False).signatures}
    for path in signature_files.list_signature_files(directory) if directory.is_dir() else ():
        taken |= {signature.id for signature in read_signatures(path)[0]}
    path = write_skeleton(id, directory, taken, title=title, role=role)
    streams.write_output(f"{path}\nFill it in; `triage catalog check {path}` shows what is missing.\n")


def explain(
    signature: FileOrId,
    catalog: options.Catalogs = None,
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
) -> None:
    """Explain how triage reads a signature file, and why its samples match or not.

    Shows the literals that the scan looks for in each pattern, how each sample is parsed, which clauses match with
    which captures, and the causal edges. Exit status: 0, or 1 if a sample has an unexpected result.

    \b
    Examples:
      triage catalog explain my-signatures/cuda/new-mode.yaml
      triage catalog explain gpu.xid-79
    """
    from triage.catalog.study import study_signature
    from triage.render import signature_explanation

    streams.check_output(output)
    identifier = None if lookup.is_signature_file(signature) else signature
    path = signature
    if identifier is not None:
        path = lookup.find_signature(identifier, lookup.load_signatures(catalog)).path
    study = study_signature(Path(path), identifier)
    streams.write_format(
        format,
        output,
        json=lambda: signature_explanation.as_json(study),
        text=lambda: signature_explanation.as_text(study, **streams.text_style(width, color, output)),
    )
    if any(sample.matched != sample.expected for sample in study.samples):
        raise typer.Exit(1)


def try_signature(
    paths: LogPaths,
    signature: TestedSignature = None,
    catalog: options.Catalogs = None,
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
) -> None:
    """Test a signature on a log: which lines match, what is captured.

    Exit status: 0, or 1 if the given signature does not match.

    \b
    Examples:
      triage catalog test my.log --signature signatures/my/mode.yaml
      triage catalog test my.log -s cuda.out-of-memory
      triage catalog test my.log
    """
    from triage.render import signature_trial

    streams.check_output(output)
    trial = _run_trial(paths, signature, list(catalog or ()))
    streams.write_format(
        format,
        output,
        json=lambda: signature_trial.as_json(trial),
        text=lambda: signature_trial.as_text(trial, **streams.text_style(width, color, output)),
    )
    if trial.failed:
        raise typer.Exit(1)


def rate(
    directories: JobDirectories,
    catalog: options.Catalogs = None,
    strict: Strict = False,
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
    quiet: options.Quiet = False,
    store: FeedbackStore = None,
) -> None:
    """Rate the catalog on many jobs: known, unknown, clean.

    Each entry of DIR is a job. If an entry contains `job` and TRUTH.yaml, the diagnosis is compared with that truth.

    \b
    Examples:
      triage catalog rate failed-jobs/ --catalog my-signatures/
      triage catalog rate samples/jobs --strict
    """
    from triage import pipeline
    from triage.catalog.rating import rate_jobs
    from triage.render import catalog_rating

    streams.check_output(output)
    pipeline_options = pipeline.Options(catalogs=tuple(catalog or ()))
    with progress.counter(quiet, "job") as count:
        rating = rate_jobs(directories, lambda path: pipeline.ingest([str(path)], pipeline_options), count)
    if store is not None:
        with options.open_store(store) as opened:
            rating = replace(rating, feedback=tuple(opened.feedback.counts()))
    streams.write_format(
        format,
        output,
        json=lambda: catalog_rating.as_json(rating),
        text=lambda: catalog_rating.as_text(rating, **streams.text_style(width, color, output)),
    )
    agree, judged = rating.count_agreements()
    if strict and agree < judged:
        raise typer.Exit(1)


def mutate(paths: options.SignaturePaths = None, every: Every = 1, quiet: options.Quiet = False) -> None:
    """Remove each clause and edge of a signature: does a check notice?

    A part that no check misses is useless, or lacks a sample that proves it. Exit status: 1 if there is such a part.

    \b
    Examples:
      triage catalog mutate signatures/cuda/out-of-memory.yaml
      triage catalog mutate --every 20
    """
    from triage.catalog.check_context import default_reader, load_context
    from triage.catalog.mutate import find_survivors, list_mutants

    streams.check_output(None)
    context, problems = load_context(paths or (), None)
    if any(problem.severity == "error" for problem in problems):
        raise OptionError("some of the files cannot be read", hint="run `triage catalog check` first")
    total = sum(1 for identifier in context.checked for _ in list_mutants(context.all_signatures[identifier]))
    with progress.counter(quiet, "part", every=100) as count:

        def is_selected(number: int) -> bool:
            if count is not None:
                count(number - 1, total)
            return number % every == 0

        lines = [
            f"{signature.path}: {signature.id}: no check notices: {part}"
            for signature, part in find_survivors(context, default_reader(), is_selected)
        ]
    lines.append(f"{len(lines)} of {total // every} removed parts were not noticed by any check")
    streams.write_output("\n".join(lines) + "\n")
    if len(lines) > 1:
        raise typer.Exit(1)


def _run_trial(paths: list[str], signature: str | None, catalogs: list[Path]) -> Trial:
    """Diagnose the log with these catalogs, and with the signature file if one is given."""
    from triage import pipeline
    from triage.catalog.trial import build_trial

    if "-" in paths:
        raise OptionError("a test reads the log twice, standard input only once", hint="write it to a file first")
    identifier = signature
    if signature is not None and lookup.is_signature_file(signature):
        identifier = lookup.read_signature_id(Path(signature))
        catalogs = [*catalogs, Path(signature)]
    signatures = lookup.load_signatures(catalogs)
    if identifier is not None:
        lookup.find_signature(identifier, signatures)
    pipeline_options = pipeline.Options(catalogs=tuple(catalogs))
    explanation = pipeline.explain(paths, identifier, pipeline_options) if identifier is not None else None
    return build_trial(pipeline.ingest(paths, pipeline_options), signatures, explanation)


COMMANDS = (
    ("new", new),
    ("explain", explain),
    ("test", try_signature),
    ("rate", rate),
    ("mutate", mutate),
)
