"""`triage ingest`: what a job left behind → the diagnosis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.cli import options

if TYPE_CHECKING:
    from triage.model.diagnosis import Diagnosis
    from triage.pipeline import Options


def ingest(
    paths: options.Paths,
    format: options.Chosen = options.Format.text,  # noqa: A002
    output: options.Output = None,
    fail_on: options.Failing = None,
    catalog: options.Catalogs = None,
    workers: options.Workers = None,
    chunk_size: options.ChunkSize = "256K",
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
    link: options.Link = "",
    quiet: options.Quiet = False,
    store: options.StoreFile = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Remember nothing of it.")] = False,
    notify: options.Notify = False,
) -> None:
    """Find where a job began to fail, what it is and what to do.

    Give everything the job left behind: logs of all ranks, archives, scheduler and kernel logs. Several paths are one
    job.

    \b
    Examples:
      triage ingest job_logs/
      triage ingest rank*.log dmesg.txt slurm-1234.out
      triage ingest logs.tar.gz --format json -o report.json
      triage ingest job_logs/ --format html -o report.html
      kubectl logs trainer-0 | triage ingest -
      triage ingest job_logs/ --format github --fail-on any
      triage ingest job_logs/ --fail-on unknown || notify-the-team

    Exit status: 0 it worked, whatever it found; 1 with --fail-on when that was found; 2 the input or the options cannot
    be used.
    """
    import gc

    from triage.cli import progress, streams
    from triage.render import render

    gc.disable()  # a short-lived process whose data holds hardly a circle: collecting would only cost time
    streams.check(output)
    chosen = pipeline_options(catalog, workers, chunk_size)
    from triage import pipeline

    with progress.shown(quiet) as callback:
        diagnosis = pipeline.ingest(paths, chosen, callback)
    if notify:
        from triage.cli.notify import told

        diagnosis = told(diagnosis, store, no_store)
    elif not no_store:
        diagnosis = remembered(diagnosis, store)
    shown = render(
        diagnosis, format.value, width=streams.width(width, output), color=streams.color(color.value, output), link=link
    )
    streams.deliver(shown, output, utf8=format in options.UTF8)
    if format is options.Format.github:
        from triage.cli import workflow

        workflow.tell(diagnosis, link)
    if options.found(diagnosis.verdict, fail_on):
        raise typer.Exit(1)


def pipeline_options(catalog: list[Path] | None, workers: int | None, chunk_size: str) -> Options:
    """The options as the pipeline takes them. Raises OptionError for a chunk size that is none."""
    size = options.byte_count(chunk_size)
    from triage.pipeline import Options

    return Options(catalogs=tuple(catalog or ()), workers=workers, chunk_bytes=size, fork=True)


def remembered(diagnosis: Diagnosis, given: Path | None) -> Diagnosis:
    """Store it, and give it with the clusters of the store. A store that cannot be used is a warning: the diagnosis is
    what counts now.
    """
    import dataclasses

    from triage.base.errors import StoreError
    from triage.model.evidence import Warning
    from triage.store import Store, place

    if place(given) is None:
        return diagnosis
    try:
        with Store.open(given) as store:
            return store.incidents.add(diagnosis).diagnosis
    except StoreError as error:
        note = Warning("not-stored", error.path, f"not remembered, because {error.message}; {error.hint}")
        return dataclasses.replace(diagnosis, warnings=(*diagnosis.warnings, note))
