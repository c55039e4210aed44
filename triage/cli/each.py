"""`triage ingest --each`: diagnose every job below a directory or a prefix."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

import triage
from triage.base.addresses import displayed_address
from triage.base.errors import NotFoundError, OptionError, StoreError
from triage.base.executor_work import ExecutorWorkers
from triage.base.options import Options
from triage.cli import each_state, progress, streams, values
from triage.pipeline.job_listing import JobPath, list_jobs
from triage.pipeline.many_jobs import JobResult, diagnose_jobs, diagnose_jobs_remotely, list_jobs_apart
from triage.render import job_rows

Row = dict[str, Any]
FAILED = "failed"
"""The verdict of a job that could not be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class EachRequest:
    """What the command line asks for. `store` is None and `is_stored` False with --no-store."""

    paths: Sequence[str]
    options: Options
    format: str
    output: Path | None
    fail_on: str | None
    store: str | None
    is_stored: bool
    state: Path | None
    is_fresh: bool
    quiet: bool
    color: str
    width: int | None
    notify: bool
    dask: str | None = None


def ingest_each(request: EachRequest) -> None:
    """Diagnose all jobs, write their lines and the summary. Exits with 1 if `fail_on` asks for one of the verdicts."""
    if request.format not in ("text", "json"):
        raise OptionError("--each writes text or json", hint="leave --format out, or give --format json")
    if request.notify:
        raise OptionError("--each does not notify", hint="leave --notify out, or ingest the jobs one by one")
    rows: list[Row] = []
    with _open_workers(request.dask) as workers:
        for root in request.paths:
            rows.extend(_rows_below(root, request, workers))
    if not rows:
        raise OptionError(
            "no job is there: neither a directory nor an archive",
            hint="give the directory that holds one entry per job",
        )
    if request.format == "json":
        text = "".join(map(job_rows.line_as_json, rows)) + job_rows.summary_as_json(rows)
    else:
        text = job_rows.as_text(rows, **streams.text_style(request.width, request.color, request.output))
    streams.write_output(text, request.output, utf8=request.format == "json")
    if all(row["verdict"] == FAILED for row in rows):
        raise typer.Exit(2)
    if any(values.is_failing(row["verdict"], request.fail_on) for row in rows):
        raise typer.Exit(1)


@contextlib.contextmanager
def _open_workers(dask: str | None) -> Iterator[ExecutorWorkers | None]:
    if dask is None:
        yield None
        return
    from triage.base.dask_cluster import dask_workers

    with dask_workers(dask, patience=None) as workers:
        yield workers


def _rows_below(root: str, request: EachRequest, workers: ExecutorWorkers | None) -> Iterator[Row]:
    listing = list_jobs_apart(root) if workers is None else list_jobs(root)
    if listing.others:
        names = ", ".join(listing.others[:3]) + (" …" if len(listing.others) > 3 else "")
        streams.write_stderr(f"triage: skipped in {displayed_address(root)}, because they belong to no job: {names}\n")
    state = request.state or each_state.default_path(root)
    known = {} if request.is_fresh else _known_rows(state, request)
    fingerprints = {name: row["fingerprint"] for name, row in known.items()}
    own = dataclasses.replace(request.options, workers=1)
    if workers is None:
        results = diagnose_jobs(listing.jobs, own, fingerprints, request.options.cores)
    else:
        results = diagnose_jobs_remotely(listing.jobs, own, fingerprints, workers)
    with progress.counter(request.quiet, "job") as count:
        for number, result in enumerate(results):
            if count is not None:
                count(number, len(listing.jobs))
            yield _finish(result, state, known, request)


def _known_rows(state: Path, request: EachRequest) -> dict[str, Row]:
    """Return the rows of earlier runs that still hold: of this release and catalog, and in the store if one is used."""
    from triage.catalog.load import load

    version = _version(load(request.options.catalogs).version)
    rows = {name: row for name, row in each_state.load(state).items() if row.get("version") == version}
    if not request.is_stored or not rows:
        return rows
    from triage.store import Store, store_location

    location = store_location(request.store)
    if location is None:
        return rows
    if isinstance(location, Path) and not location.exists():
        return {}
    with Store.open(location) as store:
        return {name: row for name, row in rows.items() if _is_in_store(store, row)}


def _is_in_store(store: Any, row: Mapping[str, Any]) -> bool:
    try:
        store.incidents.find_number(row["id"])
    except (NotFoundError, StoreError, LookupError):
        return False
    return True


def _version(catalog: str) -> str:
    return f"{triage.__version__} {catalog}"


def _finish(result: JobResult, state: Path, known: Mapping[str, Row], request: EachRequest) -> Row:
    """Store a result and return its row."""
    if result.is_unchanged:
        return {**known[result.job.name], "unchanged": True}
    base = {"job": result.job.name, "path": _shown(result.job)}
    diagnosis = result.diagnosis
    if diagnosis is None:
        reason = {"error": result.error, "hint": result.hint}
        return {**base, "verdict": FAILED, "cause": None, "ranks": [], "title": "", **reason}
    if request.is_stored:
        from triage.cli.ingest_job import store_and_compare

        diagnosis, _ = store_and_compare(diagnosis, request.store, result.settings)
    row = {**base, **job_rows.row_of(diagnosis)}
    row |= {"fingerprint": result.fingerprint, "version": _version(diagnosis.catalog_version)}
    each_state.append(state, row)
    return row


def _shown(job: JobPath) -> str:
    return displayed_address(job.path) if "://" in job.path else os.fspath(job.path)
