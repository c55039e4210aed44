"""One YAML file to one `Signature`, or to everything that is wrong with it."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from triage.catalog import codec, marked, schema, tables
from triage.catalog.model import Clause, Edge, Leaf, Sample, Signature
from triage.catalog.problems import Problem

_FORMS = {
    tables.CODE: "write the code as it is printed, of letters, digits and -",
    schema.ID: "<domain>.<slug>, in lower case, words joined by -",
    schema.BOUNDS: 'write bounds such as ">=2.4, <3"',
    schema.NAME: "letters, digits and _, not beginning with a digit",
    schema.URL: "write a whole address, https://…",
    schema.WINDOW: "write a number and a unit, such as 90s, 30m, 2h or 1d",
}


def read(path: str | Path, shown: str | None = None) -> tuple[Signature | None, list[Problem]]:
    """The signature of the file (None if it cannot be used) and all its errors. `shown` is the name to report."""
    return _one(read_all(path, shown), shown or str(path))


def parse(text: str, name: str) -> tuple[Signature | None, list[Problem]]:
    """The same for a text that is already there."""
    return _one(parse_all(text, name), name)


def read_all(path: str | Path, shown: str | None = None) -> tuple[list[Signature], list[Problem]]:
    """The signatures of the file, many if it is a table of codes, none if it cannot be used, and all its errors."""
    name = shown or str(path)
    try:
        text = _text(Path(path))
    except (OSError, ValueError) as error:
        return [], [
            Problem("error", name, None, None, f"cannot be read: {_reason(error)}", "give a readable UTF-8 text file")
        ]
    return parse_all(text, name)


def parse_all(text: str, name: str) -> tuple[list[Signature], list[Problem]]:
    """The same for a text that is already there."""
    document = marked.parse(text)
    problems = [Problem("error", name, *place, message, hint) for place, message, hint in document.remarks]
    if document.value is None:
        return [], problems or [Problem("error", name, 1, 1, "the file is empty", "start with `id:`")]
    if not isinstance(document.value, dict):
        return [], [*problems, Problem("error", name, 1, 1, "the file is not a mapping", "start with `id:`")]
    try:
        if tables.KEY in document.value:
            found = tables.expand(tables.TableFile.model_validate(document.value), name)
        else:
            found = [_signature(schema.SignatureFile.model_validate(document.value), name)]
    except ValidationError as error:
        problems += [_problem(detail, document, name) for detail in error.errors(include_url=False)]
        return [], sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))
    return ([] if problems else found), problems


def _one(found: tuple[list[Signature], list[Problem]], name: str) -> tuple[Signature | None, list[Problem]]:
    signatures, problems = found
    if signatures and signatures[0].table:
        return None, [Problem("error", name, 1, 1, "the file is a table of codes", "name one of its rows by its id")]
    return (signatures[0] if signatures else None), problems


def places(path: str | Path) -> marked.Marked:
    """The file's tree with its places, for remarks about a file that was read before."""
    try:
        return marked.parse(_text(Path(path)))
    except (OSError, ValueError):
        return marked.Marked()


def _text(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a regular file")
        content = file.read(marked.MAX_BYTES + 1)
    if len(content) > marked.MAX_BYTES:
        raise ValueError(f"larger than {marked.MAX_BYTES // 1024} KiB")
    return content.decode("utf-8-sig")


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    return str(getattr(error, "strerror", None) or error)


def _problem(detail: Any, document: marked.Marked, name: str) -> Problem:
    location = tuple(part for part in detail["loc"] if part != "[key]")
    message, hint = _say(detail, location)
    inner = ".".join(str(part) for part in location)
    return Problem("error", name, *document.place(location), f"{inner}: {message}" if inner else message, hint)


def _say(detail: Any, location: tuple[Any, ...]) -> tuple[str, str]:
    """Pydantic's error in the words of someone who writes YAML."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return "unknown key", _did_you_mean(str(location[-1]))
    if kind == "missing":
        return "is missing", f"add `{location[-1]}:`"
    if kind == "literal_error":
        return f"{detail['input']!r} is not allowed here", f"one of {context['expected']}"
    if kind == "string_pattern_mismatch":
        return f"{detail['input']!r} has not the right form", _FORMS.get(
            context["pattern"], f"it must match {context['pattern']}"
        )
    if kind in (
        "string_type",
        "dict_type",
        "list_type",
        "model_type",
        "model_attributes_type",
        "int_parsing",
        "int_type",
    ):
        wanted = {
            "string": "a text",
            "dict": "a mapping",
            "list": "a list (lines that begin with `- `)",
            "int": "a whole number",
        }
        return (
            f"{_shape(detail['input'])} stands here",
            f"write {wanted.get(kind.partition('_')[0], 'a mapping')}, or leave the key out",
        )
    return str(detail["msg"]), str(context.get("hint", ""))


def _shape(value: object) -> str:
    if value is None:
        return "nothing"
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a text"


def _did_you_mean(key: str) -> str:
    models = (
        schema.SignatureFile,
        schema.Condition,
        schema.Remediation,
        schema.Edge,
        schema.NoMatchSample,
        schema.Samples,
        tables.TableFile,
        tables.Row,
    )
    known = sorted({field for model in models for field in model.model_fields})
    close = difflib.get_close_matches(key, known, n=1)
    return f"did you mean `{close[0]}`?" if close else "remove it; the keys are in signatures/schema.json"


def _signature(file: schema.SignatureFile, name: str) -> Signature:
    match = _condition(file.match) if file.match else None
    return Signature(
        id=file.id,
        revision=file.revision,
        title=file.title,
        status=file.status,
        role=file.role,
        severity=file.severity,
        match=match,
        path=name,
        blames=file.blames,
        leads_to=tuple(Edge(edge.signature, edge.scope, schema.seconds(edge.window)) for edge in file.leads_to),
        tells=file.tells,
        applies_to=dict(file.applies_to),
        meaning=file.meaning.strip(),
        impact=file.impact.strip(),
        summary=file.remediation.summary.strip(),
        steps=tuple(file.remediation.steps),
        action=file.remediation.action,
        origin=file.origin,
        falsepositives=tuple(file.falsepositives),
        references=tuple(file.references),
        samples_match=tuple(_sample(sample) for sample in file.samples.match),
        samples_no_match=tuple(_sample(sample, sample.why) for sample in file.samples.no_match),
        fingerprint=codec.fingerprint(match),
        replaced_by=file.replaced_by,
    )


def _sample(sample: schema.MatchSample, why: str = "") -> Sample:
    return Sample(
        sample.text, dict(sample.captures), why, sample.kind, sample.component, dict(sample.fields), tuple(sample.also)
    )


def _condition(condition: schema.Condition) -> Clause | Leaf:
    """`none` beside a leaf's keys becomes an `any` of that one leaf."""
    none = tuple(_leaf(leaf) for leaf in condition.none)
    parts = condition.any if condition.any is not None else condition.all
    if parts is not None:
        return Clause("any" if condition.any is not None else "all", tuple(_condition(part) for part in parts), none)
    return Clause("any", (_leaf(condition),), none) if none else _leaf(condition)


def _leaf(leaf: schema.Leaf) -> Leaf:
    fields: Mapping[str, str] = dict(leaf.fields)
    return Leaf(leaf.kind, leaf.component, leaf.text, leaf.not_text, fields)
