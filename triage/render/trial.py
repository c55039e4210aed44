"""What a log says to one signature, or to all: the answer of `triage catalog test`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from triage.catalog.trial import Hit, Played, Trial
from triage.render.json import escaped, evidence
from triage.render.layout import Paint, labelled
from triage.render.safe import clip, safe_line
from triage.render.text import NARROWEST, WIDTH, quoted
from triage.render.words import plural

SCHEMA = "triage.trial/1"
SHOWN = 10
SHOWN_OF_OTHERS = 2


def as_json(trial: Trial) -> str:
    """One JSON object; evidence has the shape that it has in a diagnosis."""
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
        "left_out": list(trial.aside),
    }
    return escaped(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"


def _hit(hit: Hit) -> dict[str, Any]:
    return {**evidence(hit.evidence), "component": hit.evidence.component, "captures": dict(hit.captures)}


def as_text(trial: Trial, *, width: int | None = None, color: bool = False) -> str:
    """The answer first, then the lines, then what else the log says."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    sections = [_answer(trial, columns, paint)]
    if trial.hits:
        sections.append([paint("Matched lines", "bold"), *_lines(trial.hits, SHOWN, columns)])
    if trial.named is not None and trial.failed:
        sections += _failed(trial, columns, paint)
    heading = "Also matched" if trial.named else "Matched"
    sections += [_other(heading, played, columns, paint) for played in trial.others]
    sections.append(
        _list(
            "Unknown",
            (f"{finding.cluster}, {finding.count}×: {finding.title}" for finding in trial.unmatched),
            columns,
            paint,
        )
    )
    sections.append(_list("Left out", trial.aside, columns, paint))
    return "\n\n".join("\n".join(line.rstrip() for line in section) for section in sections if section) + "\n"


def _answer(trial: Trial, columns: int, paint: Paint) -> list[str]:
    named = trial.named
    if named is None:
        said = plural(len(trial.others), "signature") + " matched" if trial.others else "no signature matches this log"
        return labelled("RESULT", [said], columns, paint, "bold")
    word, style = ("MATCH", "green") if named.matched else ("NO MATCH", "yellow")
    return labelled(
        word,
        [f"{safe_line(named.signature)}: {safe_line(named.title)}", safe_line(named.outcome)],
        columns,
        paint,
        "bold",
        style,
    )


def _failed(trial: Trial, columns: int, paint: Paint) -> Iterator[list[str]]:
    """What to look at when the named signature did not match."""
    assert trial.named is not None
    clauses = (f"{'holds' if held else 'fails'}, {hits}×: {text}" for text, held, hits in trial.named.clauses)
    yield _list("Clauses", clauses, columns, paint)
    if trial.named.near_misses:
        lines = [paint("Near misses", "bold")]
        for place, text in trial.named.near_misses[:SHOWN]:
            lines += [f"  {clip(safe_line(place), columns - 2)}", *quoted(text, columns, "    ")]
        yield lines
    else:
        said = "no line holds the words that the patterns ask for; a traceback is one fact whose text begins with its last line"
        yield labelled("Hint", [said], columns, paint, "bold")


def _other(heading: str, played: Played, columns: int, paint: Paint) -> list[str]:
    """One line an evidence is enough for what was not asked for."""
    head = f"{safe_line(played.signature)} ({played.role}, {played.count}×): {safe_line(played.title)}"
    shown = played.hits[:SHOWN_OF_OTHERS]
    lines = [f"  {_place(hit)}: {safe_line(hit.evidence.text.partition(chr(10))[0])}" for hit in shown]
    more = [f"  and {played.count - len(shown)} more"] if played.count > len(shown) else []
    return [*labelled(heading, [head], columns, paint, "bold"), *(clip(line, columns) for line in lines), *more]


def _lines(hits: tuple[Hit, ...], shown: int, columns: int) -> Iterator[str]:
    for hit in hits[:shown]:
        item = hit.evidence
        of = f" of {safe_line(item.component)}" if item.component else ""
        yield f"  {_place(hit)}, {safe_line(item.kind)}{of}"
        yield from quoted(item.text, columns, "    ")
        for name, value in hit.captures.items():
            yield f"    {name} = {clip(safe_line(value), columns - 7 - len(name))}"
    if len(hits) > shown:
        yield f"  and {len(hits) - shown} more"


def _place(hit: Hit) -> str:
    item = hit.evidence
    at = safe_line(item.source) + (f":{item.line}" if item.line is not None else "")
    return at + (f" (rank {item.origin.rank})" if item.origin.rank is not None else "")


def _list(label: str, items: Iterable[str], columns: int, paint: Paint) -> list[str]:
    lines = [f"- {safe_line(item)}" for item in items]
    more = [f"- and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return labelled(label, lines[:SHOWN] + more, columns, paint, "bold") if lines else []
