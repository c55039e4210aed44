"""The lines around the evidence, read while the files are there: so a page never opens what somebody uploaded."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from triage import sources
from triage.evidence.redact import redact
from triage.model.diagnosis import Diagnosis
from triage.model.evidence import Evidence
from triage.store.codec import placed

AROUND = 30
MOST_FACTS = 200
LINE = 2000
MOST_CHARACTERS = 2_000_000
_BLOCK = 1 << 20


def around(paths: Sequence[str], diagnosis: Diagnosis) -> dict[str, Any]:
    """{"sources": {name: [{"line": first, "lines": [...]}]}}: what stands around each piece of evidence, secrets taken
    out.
    """
    wanted = windows(evidence(diagnosis))
    left, found = MOST_CHARACTERS, {}
    if wanted:
        for name, stream in _streams(paths, wanted):
            pieces = _cut(stream, wanted[name], left)
            left -= sum(len(line) for piece in pieces for line in piece["lines"])
            found[name] = pieces
    return {"sources": found}


def evidence(diagnosis: Diagnosis) -> list[Evidence]:
    """What an incident's evidence is numbered by: findings in their order, each with its facts."""
    return [fact for item in placed(diagnosis) for fact in item.finding.evidence]


def windows(facts: Sequence[Evidence]) -> dict[str, list[tuple[int, int]]]:
    """By source the ranges of lines to keep, apart from each other and in order."""
    found: dict[str, list[tuple[int, int]]] = {}
    for fact in facts[:MOST_FACTS]:
        if fact.line is not None:
            span = max(1, fact.line - AROUND), min(max(fact.end_line or 0, fact.line), fact.line + 200) + AROUND
            found.setdefault(fact.source, []).append(span)
    return {name: _joined(sorted(spans)) for name, spans in found.items()}


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for first, last in spans:
        if out and first <= out[-1][1] + 1:
            out[-1] = out[-1][0], max(out[-1][1], last)
        else:
            out.append((first, last))
    return out


def _streams(paths: Sequence[str], wanted: Mapping[str, object]) -> Iterator[tuple[str, BinaryIO]]:
    """The wanted sources, opened one after the other."""
    missing = set(wanted)
    for file in sources.discover(paths).files:
        if not missing:
            return
        if not any(name == file.name or name.startswith(file.name) for name in missing):
            continue
        for source, stream in sources.streams(file, sources.Limits(), lambda _: None):
            if source.name not in missing:
                continue
            missing.discard(source.name)
            if stream is not None:
                yield source.name, stream
            elif source.path is not None:
                with open(source.path, "rb") as opened:
                    yield source.name, opened
            if not missing:
                return


def _cut(stream: BinaryIO, spans: Sequence[tuple[int, int]], left: int) -> list[dict[str, Any]]:
    pieces: list[dict[str, Any]] = []
    lines: list[str] = []
    place = 0
    for number, line in enumerate(_lines(stream), 1):
        if place == len(spans) or left <= 0:
            break
        first, last = spans[place]
        if number >= first:
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            text = text if len(text) <= LINE else text[:LINE] + "…"
            lines.append(text)
            left -= len(text)
        if number == last:
            pieces.append(_piece(first, lines))
            lines, place = [], place + 1
    if lines:
        pieces.append(_piece(spans[place][0], lines))
    return pieces


def _piece(first: int, lines: list[str]) -> dict[str, Any]:
    """Secrets are looked for in the piece as a whole: a private key is many lines."""
    clean = redact("\n".join(lines)).split("\n")
    return {"line": first, "lines": clean if len(clean) == len(lines) else [redact(line) for line in lines]}


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines ended by a line feed, in bounded memory: of an endless one only the beginning is kept."""
    rest = b""
    while data := stream.read(_BLOCK):
        parts = io.BytesIO(data).readlines()
        for part in parts:
            whole = part.endswith(b"\n")
            if rest:
                part, rest = rest[: 4 * LINE] + part, b""
            if whole:
                yield part
            else:
                rest = part
    if rest:
        yield rest
