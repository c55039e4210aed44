"""The work of one task, inside the sandbox: from the files of a job to its diagnosis and documents in a JSON file."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, cast

from triage import pipeline, sources
from triage.base.errors import InputError
from triage.base.options import Options, Progress
from triage.evidence.job_facts import parse_labels
from triage.evidence.redact import redact
from triage.model import Diagnosis, Evidence
from triage.render import environment
from triage.service.work.job_files import open_job
from triage.settings import Settings
from triage.store import codec

Report = Callable[[Mapping[str, Any]], None]
LINES_AROUND = 30
MAX_EVIDENCE_LINES = 200
MAX_FACTS = 200
MAX_LINE = 2000
MAX_CHARACTERS = 2_000_000
WARM_UP = Path(__file__).with_name("warm_up.log")  # in the package: a killed worker removes no temporary file
_BLOCK_BYTES = 1 << 20


def analyse(
    settings: Settings, root: Path, payload: Mapping[str, Any], attempt: str, out: Path, report: Report
) -> None:
    """Diagnose the job of a payload and write {"body", "documents"} to `out`. Raises TriageError.

    `report` is called with {"stage", "done", "total"}.
    """

    def report_progress(progress: Progress) -> None:
        report({"stage": progress.stage, "done": progress.done, "total": progress.total})

    is_remote = "address" in payload["place"]
    labels = parse_labels(payload.get("labels", ()))
    options = Options(workers=settings.tasks.scan_threads, addresses=is_remote, labels=labels)
    if is_remote:
        restrict_addresses(settings)
    with open_job(root, payload["place"], settings, attempt) as (directory, paths):
        os.chdir(directory)
        report({"stage": "read", "done": 0, "total": None})
        diagnosis, audit = pipeline.ingest_with_audit(paths, options, report_progress)
        report({"stage": "finish", "done": 0, "total": None})
        documents = {"environment": environment.as_document(audit), "context": lines_around(paths, diagnosis)}
        matrix = _flight_matrix(paths)
        if matrix is not None:
            documents["flight"] = matrix
    name = payload.get("name") or diagnosis.job.name
    job = dataclasses.replace(diagnosis.job, name=name, path=job_path(payload["place"]))
    diagnosis = dataclasses.replace(diagnosis, job=job)
    out.write_bytes(
        codec.encode_document(
            {"body": codec.decode_document(codec.encode_diagnosis(diagnosis)), "documents": documents}
        )
    )


def restrict_addresses(settings: Settings) -> None:
    """Let this process read addresses as the settings say, and no internal host that they do not name."""
    from triage.remote import interface, session

    session.set_rules(interface.RemoteRules(settings.remote.internal_hosts, settings.remote.cache_bytes))


def read_result(out: Path) -> tuple[Diagnosis, dict[str, Any]]:
    """Return the diagnosis and the documents that `analyse` wrote."""
    result = codec.decode_document(out.read_bytes())
    return codec.decode_diagnosis(codec.encode_document(result["body"]), {}), result["documents"]


def job_path(place: Mapping[str, Any]) -> str:
    """Return where a job is from, the same for the same content: its name in a source, or the hash of an upload."""
    if "source" in place:
        return "/".join(filter(None, (place["source"], place.get("job"))))
    if "address" in place:
        return str(place["address"])
    files = place["files"]
    digests = sorted(item["digest"] for item in files)
    content = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    return "/".join((f"upload {content[:12]}", *(item["name"] for item in files if len(files) == 1)))


def warm_up() -> None:
    """Load what every task needs, once, before the processes of tasks are forked."""
    pipeline.ingest_with_audit([str(WARM_UP)], Options(workers=1))


def _flight_matrix(paths: list[str]) -> dict[str, Any] | None:
    """Return the matrix of the Flight Recorder dumps, None without dumps."""
    from triage.artifacts.flight.dump_files import read_dump_files

    try:
        recording, warnings = read_dump_files(paths)
    except InputError:
        return None
    # These load numpy, so they are imported after the processes that read dumps are forked.
    from triage.artifacts.flight.analyse import analyse as analyse_recording
    from triage.artifacts.flight.view import view
    from triage.render import flight

    matrix: dict[str, Any] = json.loads(
        flight.as_json(view(recording, analyse_recording(recording), path=paths[0], warnings=warnings))
    )
    return matrix


def lines_around(paths: Sequence[str], diagnosis: Diagnosis) -> dict[str, Any]:
    """Return {"sources": {name: [{"line": first, "lines": [...]}]}}: the redacted lines around the evidence.

    They are read while the files are there, so that a page never opens an uploaded file.
    """
    facts = [fact for item in codec.place_findings(diagnosis) for fact in item.finding.evidence]
    ranges = _line_ranges(facts)
    remaining, excerpts = MAX_CHARACTERS, {}
    if ranges:
        for name, stream in _open_sources(paths, set(ranges)):
            excerpts[name] = _read_excerpts(stream, ranges[name], remaining)
            remaining -= sum(len(line) for excerpt in excerpts[name] for line in excerpt["lines"])
    return {"sources": excerpts}


def _line_ranges(facts: Sequence[Evidence]) -> dict[str, list[tuple[int, int]]]:
    """Return by source the (first, last) line numbers to read: sorted, and without overlap."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for fact in facts[:MAX_FACTS]:
        if fact.line is not None:
            last = min(max(fact.end_line or 0, fact.line), fact.line + MAX_EVIDENCE_LINES)
            ranges.setdefault(fact.source, []).append((max(1, fact.line - LINES_AROUND), last + LINES_AROUND))
    return {name: _merge_ranges(sorted(spans)) for name, spans in ranges.items()}


def _merge_ranges(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in spans:
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return merged


def _open_sources(paths: Sequence[str], names: set[str]) -> Iterator[tuple[str, BinaryIO]]:
    """Yield (name, stream) of these sources, one after the other."""
    for file in sources.discover(paths, allow_addresses=True).files:  # those of the task, which were checked
        if not names:
            return
        if not any(name.startswith(file.name) for name in names):
            continue
        for source, stream in sources.streams(file, sources.Limits(), lambda _: None):
            if source.name not in names:
                continue
            names.discard(source.name)
            if stream is not None:
                yield source.name, stream
            elif source.path is not None:
                with closing(sources.open_stream(source.path)) as opened:
                    yield source.name, cast(BinaryIO, opened)
            if not names:
                return


def _read_excerpts(stream: BinaryIO, spans: Sequence[tuple[int, int]], max_characters: int) -> list[dict[str, Any]]:
    excerpts: list[dict[str, Any]] = []
    lines: list[str] = []
    for number, line in enumerate(_read_lines(stream), 1):
        if len(excerpts) == len(spans) or max_characters <= 0:
            break
        first, last = spans[len(excerpts)]
        if number >= first:
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            text = text if len(text) <= MAX_LINE else text[:MAX_LINE] + "…"
            lines.append(text)
            max_characters -= len(text)
        if number == last:
            excerpts.append(_redacted_excerpt(first, lines))
            lines = []
    if lines:
        excerpts.append(_redacted_excerpt(spans[len(excerpts)][0], lines))
    return excerpts


def _redacted_excerpt(first: int, lines: list[str]) -> dict[str, Any]:
    """Redact the lines as a whole: a private key has many lines."""
    redacted = redact("\n".join(lines)).split("\n")
    return {"line": first, "lines": redacted if len(redacted) == len(lines) else [redact(line) for line in lines]}


def _read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield lines in bounded memory: only the beginning of an endless line is kept."""
    rest = b""
    while data := stream.read(_BLOCK_BYTES):
        for piece in io.BytesIO(data).readlines():
            is_complete = piece.endswith(b"\n")
            if rest:
                piece, rest = rest[: 4 * MAX_LINE] + piece, b""
            if is_complete:
                yield piece
            else:
                rest = piece
    if rest:
        yield rest
