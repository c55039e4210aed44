"""`triage ingest`: diagnose what a job left behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.cli import options, progress, streams

if TYPE_CHECKING:
    from triage.model.diagnosis import Diagnosis
    from triage.pipeline import Options


def ingest(
    paths: options.Paths,
    format: options.ReportFormat = "text",  # noqa: A002
    output: options.Output = None,
    fail_on: options.FailOn = None,
    catalog: options.Catalogs = None,
    workers: options.Workers = None,
    chunk_size: options.ChunkSize = "256K",
    color: options.Color = "auto",
    width: options.Width = None,
    link: options.Link = "",
    quiet: options.Quiet = False,
    store: options.StoreFile = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Do not store the diagnosis.")] = False,
    notify: options.Notify = False,
) -> None:
    """Find where a job began to fail, what the failure is and what to do.

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

    Exit status: 0 success, whatever was found; 1 found what --fail-on asks for; 2 unusable input or options.
    """
    import gc

    from triage.render import render

    gc.disable()  # a short process that creates hardly any reference cycles
    streams.check_output(output)
    pipeline_options = build_options(catalog, workers, chunk_size)
    from triage import pipeline

    with progress.progress_bar(quiet) as callback:
        diagnosis = pipeline.ingest(paths, pipeline_options, callback)
    if notify:
        from triage.cli.notify import store_and_notify

        diagnosis = store_and_notify(diagnosis, store, no_store)
    elif not no_store:
        diagnosis = store_diagnosis(diagnosis, store)
    text = render(diagnosis, format, link=link, **streams.text_style(width, color, output))
    write_report(diagnosis, text, format, output, link, fail_on)


def write_report(
    diagnosis: Diagnosis,
    text: str,
    format: options.Format,  # noqa: A002
    output: Path | None,
    link: str,
    fail_on: options.FailOn | None,
) -> None:
    """Write the report, and the workflow files for GitHub. Exits with 1 if `fail_on` asks for the verdict."""
    streams.write_output(text, output, utf8=format in options.UTF8)
    if format == "github":
        from triage.cli import workflow

        workflow.write_workflow_files(diagnosis, link)
    if options.is_failing(diagnosis.verdict, fail_on):
        raise typer.Exit(1)


def build_options(catalog: list[Path] | None, workers: int | None, chunk_size: str) -> Options:
    """Return the options of the pipeline. Raises OptionError for an invalid chunk size."""
    size = options.parse_size(chunk_size)
    from triage.pipeline import Options

    return Options(catalogs=tuple(catalog or ()), workers=workers, chunk_bytes=size, fork=True)


def store_diagnosis(diagnosis: Diagnosis, store: str | None) -> Diagnosis:
    """Store the diagnosis and return it with the clusters of the store.

    A store that cannot be used is only a warning, because the diagnosis matters more.
    """
    import dataclasses

    from triage.base.errors import StoreError
    from triage.model.evidence import Warning
    from triage.store import Store, store_location

    if store_location(store) is None:
        return diagnosis
    try:
        with Store.open(store) as opened:
            return opened.incidents.add(diagnosis).diagnosis
    except StoreError as error:
        warning = Warning("not-stored", error.path, f"not stored: {error.message}; {error.hint}")
        return dataclasses.replace(diagnosis, warnings=(*diagnosis.warnings, warning))
