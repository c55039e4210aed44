"""`triage ingest`: diagnose what a job left behind."""

from __future__ import annotations

from typing import Annotated

import typer

from triage.cli import options, values

_ONLY_EACH = ("each", "again", "state")


def ingest(
    paths: options.Paths,
    format: options.ReportFormat = "text",  # noqa: A002
    output: options.Output = None,
    fail_on: options.FailOn = None,
    catalog: options.Catalogs = None,
    workers: options.Workers = None,
    chunk_size: options.ChunkSize = values.DEFAULT_CHUNK_SIZE,
    exact: options.Exact = False,
    color: options.Color = "auto",
    width: options.Width = None,
    link: options.Link = "",
    quiet: options.Quiet = False,
    store: options.StoreFile = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Do not store the diagnosis.")] = False,
    notify: options.Notify = False,
    label: options.Labels = None,
    verbose: options.Verbose = False,
    each: options.Each = False,
    again: options.Again = False,
    state: options.EachState = None,
    dask: options.Dask = None,
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
      triage ingest s3://bucket/jobs/1234/
      triage ingest --each /shared/jobs/ --format json
      triage ingest s3://bucket/jobs/1234/ --dask tcp://scheduler:8786

    Exit status: 0 success, whatever was found; 1 found what --fail-on asks for; 2 unusable input or options.
    """
    arguments = dict(locals())  # all of them, by their names
    from triage.cli.ingest_job import build_options, ingest_job

    if each:
        from triage.cli.each import EachRequest, ingest_each

        chosen = build_options(catalog, workers, chunk_size, exact, label)
        wanted = (paths, chosen, format, output, fail_on, store, not no_store)
        ingest_each(EachRequest(*wanted, state, again, quiet, color, width, notify, dask))
        return
    status = ingest_job(**{name: value for name, value in arguments.items() if name not in _ONLY_EACH})
    if status:
        raise typer.Exit(status)
