"""Whether a log matches one signature, or which signatures it matches, for `triage catalog test`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from triage.catalog.trial import Hit, MatchedSignature, Trial
from triage.render.json import dump_json, evidence
from triage.render.phrases import format_count
from triage.render.sanitize import clip, sanitize_line
from triage.render.terminal import Paint, join_sections, labelled
from triage.render.text import NARROWEST, WIDTH, quoted

SCHEMA = "triage.trial/1"
SHOWN = 10
SHOWN_OF_OTHERS = 2


def as_json(trial: Trial) -> str:
    """Return one JSON object; evidence has the same shape as in a diagnosis."""
    named = trial.named
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "signature": named.signature if named else None,
        "matched": named.matched if named else None,
        "outcome": named.outcome if named else None,
        "clauses": [{"text": text, "held": held, "hits": hits} for text, held, hits in named.clauses] if named else [],
        "hits": list(map(_hit, trial.hits)),
        "near_misses": [{"place": place, "text": text} for place, text in named.near_misses] if named else [],
        "also_matched": [
            {
                "signature": played.signature,
                "role": played.role,
                "count": played.count,
                "hits": list(map(_hit, played.hits)),
            }
            for played in trial.others
        ],
        "unknown": [
            {"cluster": finding.cluster, "title": finding.title, "count": finding.count} for finding in trial.unmatched
        ],
        "left_out": list(trial.left_out),
    }
    return dump_json(document)


def _hit(hit: Hit) -> dict[str, Any]:
    return {**evidence(hit.evidence), "component": hit.evidence.component, "captures": dict(hit.captures)}


def as_text(trial: Trial, *, width: int | None = None, color: bool = False) -> str:
    """Return the result, then the matched lines, then what else matches."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    sections = [_answer(trial, columns, paint)]
    if trial.hits:
        sections.append([paint("Matched lines", "bold"), *_lines(trial.hits, SHOWN, columns)])
    if trial.named is not None and trial.failed:
        sections += _failed(trial, columns, paint)
    heading = "Also matched" if trial.named else "Matched"
    sections += [_other(heading, played, columns, paint) for played in trial.others]
    unmatched = (f"{finding.cluster}, {finding.count}×: {finding.title}" for finding in trial.unmatched)
    sections += [_list("Unknown", unmatched, columns, paint), _list("Left out", trial.left_out, columns, paint)]
    return join_sections(sections)


def _answer(trial: Trial, columns: int, paint: Paint) -> list[str]:
    named = trial.named
    if named is None:
        sentence = (
            format_count(len(trial.others), "signature") + " matched"
            if trial.others
            else "no signature matches this log"
        )
        return labelled("RESULT", [sentence], columns, paint, "bold")
    verdict, style = ("MATCH", "green") if named.matched else ("NO MATCH", "yellow")
    return labelled(
        verdict,
        [f"{sanitize_line(named.signature)}: {sanitize_line(named.title)}", sanitize_line(named.outcome)],
        columns,
        paint,
        "bold",
        style,
    )


def _failed(trial: Trial, columns: int, paint: Paint) -> Iterator[list[str]]:
    """Yield the clauses and near misses of a signature that does not match."""
    assert trial.named is not None
    clauses = (f"{'holds' if held else 'fails'}, {hits}×: {text}" for text, held, hits in trial.named.clauses)
    yield _list("Clauses", clauses, columns, paint)
    if trial.named.near_misses:
        lines = [paint("Near misses", "bold")]
        for place, text in trial.named.near_misses[:SHOWN]:
            lines += [f"  {clip(sanitize_line(place), columns - 2)}", *quoted(text, columns, "    ")]
        yield lines
    else:
        hint = "No line contains the literals of the patterns. The text of a traceback begins with its last line."
        yield labelled("Hint", [hint], columns, paint, "bold")


def _other(heading: str, played: MatchedSignature, columns: int, paint: Paint) -> list[str]:
    """Return another matched signature with one line for each evidence."""
    head = f"{sanitize_line(played.signature)} ({played.role}, {played.count}×): {sanitize_line(played.title)}"
    shown = played.hits[:SHOWN_OF_OTHERS]
    lines = [f"  {_place(hit)}: {sanitize_line(hit.evidence.text.partition(chr(10))[0])}" for hit in shown]
    more = [f"  and {played.count - len(shown)} more"] if played.count > len(shown) else []
    return [*labelled(heading, [head], columns, paint, "bold"), *(clip(line, columns) for line in lines), *more]


def _lines(hits: tuple[Hit, ...], shown: int, columns: int) -> Iterator[str]:
    for hit in hits[:shown]:
        item = hit.evidence
        component = f" of {sanitize_line(item.component)}" if item.component else ""
        yield f"  {_place(hit)}, {sanitize_line(item.kind)}{component}"
        yield from quoted(item.text, columns, "    ")
        for name, value in hit.captures.items():
            yield f"    {name} = {clip(sanitize_line(value), columns - 7 - len(name))}"
    if len(hits) > shown:
        yield f"  and {len(hits) - shown} more"


def _place(hit: Hit) -> str:
    item = hit.evidence
    at = sanitize_line(item.source) + (f":{item.line}" if item.line is not None else "")
    return at + (f" (rank {item.origin.rank})" if item.origin.rank is not None else "")


def _list(label: str, items: Iterable[str], columns: int, paint: Paint) -> list[str]:
    lines = [f"- {sanitize_line(item)}" for item in items]
    more = [f"- and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return labelled(label, lines[:SHOWN] + more, columns, paint, "bold") if lines else []
