"""What `triage ingest` does, without typer, so that plain command lines need not import it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triage.cli import progress, streams, values

if TYPE_CHECKING:
    from triage.base.errors import StoreError
    from triage.model.diagnosis import Diagnosis
    from triage.model.store import Recurrence
    from triage.pipeline import Options
    from triage.store import Store

EXIT_FAILING = 1


def ingest_job(
    paths: Sequence[str],
    *,
    format: values.Format = "text",  # noqa: A002
    output: Path | None = None,
    fail_on: values.FailingVerdict | None = None,
    catalog: Sequence[Path] | None = None,
    workers: int | None = None,
    chunk_size: str = values.DEFAULT_CHUNK_SIZE,
    exact: bool = False,
    color: values.ColorChoice = "auto",
    width: int | None = None,
    link: str = "",
    quiet: bool = False,
    store: str | None = None,
    no_store: bool = False,
    notify: bool = False,
    label: Sequence[str] | None = None,
    verbose: bool = False,
    dask: str | None = None,
) -> int:
    """Diagnose a job, store the diagnosis, write the report and return the exit status. Raises TriageError."""
    import atexit
    import gc

    from triage.base.compiled_patterns import patterns_cached_in
    from triage.catalog.cache import choose_directory

    gc.disable()  # a short process that creates hardly any reference cycles
    atexit.register(gc.freeze)  # else Python looks for cycles among all objects before it ends
    streams.check_output(output)
    with patterns_cached_in(choose_directory()):
        pipeline_options = build_options(catalog, workers, chunk_size, exact, label)
        from triage.render import render

        with _with_cluster(pipeline_options, dask) as chosen:
            diagnosis, recurrence = diagnose(paths, chosen, store, no_store=no_store, notify=notify, quiet=quiet)
        style = streams.text_style(width, color, output)
        text = render(diagnosis, format, link=link, verbose=verbose, recurrence=recurrence, **style)
        return write_report(diagnosis, text, format, output, link, fail_on)


@contextmanager
def _with_cluster(options: Options, dask: str | None) -> Iterator[Options]:
    """Give the options with the workers of a Dask cluster; say at the end what they could not do."""
    if dask is None:
        yield options
        return
    from dataclasses import replace

    from triage.base.dask_cluster import dask_workers

    with dask_workers(dask) as workers:
        yield replace(options, cluster=workers)
    if workers.redone:
        streams.write_stderr(
            f"triage: {workers.redone} of {workers.done} parts of the work were done here, because workers could not "
            f"({workers.reason}); workers must open the same paths, with credentials of their own\n"
        )


def diagnose(
    paths: Sequence[str], options: Options, store: str | None, *, no_store: bool, notify: bool, quiet: bool
) -> tuple[Diagnosis, Recurrence | None]:
    """Diagnose a job, store the diagnosis and notify the routes; return it, and how often its cause occurred."""
    from triage import pipeline

    routed = None
    if notify:
        from triage.cli.notify import load_routes, store_and_notify

        routed = load_routes(store, no_store)  # a missing route is an error before anything is read
    with progress.progress_bar(quiet) as callback:
        if routed is None and (no_store or not has_store(store)):
            return pipeline.ingest(paths, options, callback), None
        diagnosis, audit = pipeline.ingest_with_audit(paths, options, callback)
    from triage.render import environment

    if routed is not None:
        return store_and_notify(diagnosis, routed, environment.as_document(audit))
    return store_and_compare(diagnosis, store, environment.as_document(audit))


def write_report(
    diagnosis: Diagnosis,
    text: str,
    format: values.Format,  # noqa: A002
    output: Path | None,
    link: str,
    fail_on: values.FailingVerdict | None,
) -> int:
    """Write the report, and the workflow files for GitHub. Return 1 if `fail_on` asks for the verdict, else 0."""
    streams.write_output(text, output, utf8=format in values.UTF8)
    if format == "github":
        from triage.cli import workflow

        workflow.write_workflow_files(diagnosis, link)
    return EXIT_FAILING if values.is_failing(diagnosis.verdict, fail_on) else 0


def build_options(
    catalog: Sequence[Path] | None,
    workers: int | None,
    chunk_size: str,
    exact: bool,
    labels: Sequence[str] | None = None,
) -> Options:
    """Return the options of the pipeline. Raises OptionError for an invalid chunk size or label."""
    size = values.parse_size(chunk_size)
    from triage.evidence.job_facts import parse_labels
    from triage.pipeline import Options

    return Options(
        catalogs=tuple(catalog or ()),
        workers=workers,
        chunk_bytes=size,
        fork=True,
        addresses=True,
        reuse=not exact,
        labels=parse_labels(labels or ()),
    )


def store_and_compare(
    diagnosis: Diagnosis, store: str | None, settings: Mapping[str, Any] | None
) -> tuple[Diagnosis, Recurrence | None]:
    """Store the diagnosis; return it with the clusters of the store, and how often its cause ended jobs before.

    With `settings`, the document of `triage env`, those of the job are stored too. A store that cannot be used is only
    a warning, because the diagnosis matters more.
    """
    from triage.base.errors import StoreError
    from triage.store import Store, store_location
    from triage.store.recurrence import find_recurrence

    if store_location(store) is None:
        return diagnosis, None
    try:
        with Store.open(store) as opened:
            stored = opened.incidents.add(diagnosis)
            save_settings(opened, stored.id, settings)
            return stored.diagnosis, find_recurrence(opened, stored.id)
    except StoreError as error:
        return warn_not_stored(diagnosis, error), None


def warn_not_stored(diagnosis: Diagnosis, error: StoreError) -> Diagnosis:
    """Return the diagnosis with the warning that it was not stored."""
    import dataclasses

    from triage.model.evidence import Warning

    warning = Warning("not-stored", error.path, f"not stored: {error.message}; {error.hint}")
    return dataclasses.replace(diagnosis, warnings=(*diagnosis.warnings, warning))


def has_store(store: str | None) -> bool:
    """Return whether there is a store to write to; a malformed one is said when it is opened."""
    from triage.store.location import store_location

    return store_location(store) is not None


def save_settings(store: Store, incident: str, settings: Mapping[str, Any] | None) -> None:
    """Store the settings, versions and training values of a job with its incident, to compare it with others."""
    if settings is None or not any(settings[name] for name in ("agreed", "deviations", "training")):
        return
    with store.connections.write() as db:
        store.service_data.save_document(db, incident, "environment", settings)
