"""Read a YAML file into its signatures, or into everything that is wrong with it."""

from __future__ import annotations

import difflib
import os
import stat
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from triage.catalog import code_tables, schema, yaml_document
from triage.catalog.edge_groups import Groups, expand_edges, find_groups, list_unknown_groups
from triage.catalog.fingerprint import compute_fingerprint
from triage.catalog.model import Clause, Leaf, Sample, Signature
from triage.catalog.problems import Problem

_FORM_HINTS = {
    code_tables.CODE: "write the code as logs print it, with letters, digits and -",
    schema.ID: "write <domain>.<slug> in lower case, words joined by -",
    schema.BOUNDS: 'write bounds such as ">=2.4, <3"',
    schema.NAME: "use letters, digits and _, and no digit at the start",
    schema.URL: "write a full address, https://…",
    schema.GROUP: "write small letters, digits and -",
    schema.WINDOW: "write a number and a unit, such as 90s, 30m, 2h or 1d",
}
# Errors of pydantic about the type of a value, and what the author of a file should write.
_TYPE_HINTS = {
    "string_type": "a text",
    "dict_type": "a mapping",
    "list_type": "a list (lines that begin with `- `)",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
}


def read_signature(path: str | Path) -> tuple[Signature | None, list[Problem]]:
    """Read a file that is not a table: its signature (None if unusable), and all its errors."""
    signatures, problems = read_signatures(path)
    if signatures and signatures[0].table:
        hint = "name one of its rows by its id"
        return None, [Problem("error", str(path), 1, 1, "the file is a table of codes", hint)]
    return (signatures[0] if signatures else None), problems


def read_signatures(path: str | Path) -> tuple[list[Signature], list[Problem]]:
    """Read the signatures of a file (several for a table of codes, none if it is unusable), and all its errors."""
    try:
        text = _read_text(Path(path))
    except (OSError, ValueError) as error:
        message = f"cannot be read: {_describe_error(error)}"
        return [], [Problem("error", str(path), None, None, message, "give a readable UTF-8 text file")]
    return parse_signatures(text, str(path))


def parse_signatures(text: str, name: str) -> tuple[list[Signature], list[Problem]]:
    """Parse the text of a file called `name`; otherwise like `read_signatures`."""
    document = yaml_document.parse_yaml(text)
    problems = [Problem("error", name, *position, message, hint) for position, message, hint in document.remarks]
    if document.value is None:
        return [], problems or [Problem("error", name, 1, 1, "the file is empty", "start with `id:`")]
    if not isinstance(document.value, dict):
        return [], [*problems, Problem("error", name, 1, 1, "the file is not a mapping", "start with `id:`")]
    try:
        signatures, unknown = _expand(document.value, name)
        problems += [
            Problem("error", name, *document.locate(("leads_to", index, "group")), message, hint)
            for index, message, hint in unknown
        ]
    except ValidationError as error:
        problems += [_to_problem(detail, document, name) for detail in error.errors(include_url=False)]
        return [], sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))
    return ([] if problems else signatures), problems


def read_document(path: str | Path) -> yaml_document.YamlDocument:
    """The file's tree with its positions; empty if it cannot be read."""
    try:
        return yaml_document.parse_yaml(_read_text(Path(path)))
    except (OSError, ValueError):
        return yaml_document.YamlDocument()


def _read_text(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a regular file")
        content = file.read(yaml_document.MAX_BYTES + 1)
    if len(content) > yaml_document.MAX_BYTES:
        raise ValueError(f"larger than {yaml_document.MAX_BYTES // 1024} KiB")
    return content.decode("utf-8-sig")


def _describe_error(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    return str(getattr(error, "strerror", None) or error)


def _to_problem(detail: Any, document: yaml_document.YamlDocument, name: str) -> Problem:
    location = tuple(part for part in detail["loc"] if part != "[key]")
    message, hint = _explain_error(detail, location)
    inner = ".".join(str(part) for part in location)
    return Problem("error", name, *document.locate(location), f"{inner}: {message}" if inner else message, hint)


def _explain_error(detail: Any, location: tuple[Any, ...]) -> tuple[str, str]:
    """Pydantic's error as a message and a hint for the author of a YAML file."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return "unknown key", _suggest_key(str(location[-1]))
    if kind == "missing":
        return "is missing", f"add `{location[-1]}:`"
    if kind == "literal_error":
        return f"{detail['input']!r} is not allowed here", f"one of {context['expected']}"
    if kind == "string_pattern_mismatch":
        hint = _FORM_HINTS.get(context["pattern"], f"it must match {context['pattern']}")
        return f"{detail['input']!r} does not have the right form", hint
    if kind in _TYPE_HINTS:
        return f"found {_describe_shape(detail['input'])}", f"write {_TYPE_HINTS[kind]}, or leave the key out"
    return str(detail["msg"]), str(context.get("hint", ""))


def _describe_shape(value: object) -> str:
    if value is None:
        return "nothing"
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a text"


def _suggest_key(key: str) -> str:
    models = (
        schema.SignatureFile,
        schema.Condition,
        schema.Remediation,
        schema.Edge,
        schema.NoMatchSample,
        schema.Samples,
        code_tables.TableFile,
        code_tables.Row,
    )
    known = sorted({info.alias or name for model in models for name, info in model.model_fields.items()})
    close = difflib.get_close_matches(key, known, n=1)
    return f"did you mean `{close[0]}`?" if close else "remove it; the keys are in signatures/schema.json"


def _expand(value: dict[str, Any], name: str) -> tuple[list[Signature], list[tuple[int, str, str]]]:
    """The signatures of a file, and (index, message, hint) of each unknown group in `leads_to`."""
    groups = find_groups(name) if value.get("leads_to") else {}
    if code_tables.KEY in value:
        table = code_tables.TableFile.model_validate(value)
        return code_tables.expand_table(table, name, groups), list_unknown_groups(table.leads_to, groups)
    file = schema.SignatureFile.model_validate(value)
    return [_to_signature(file, name, groups)], list_unknown_groups(file.leads_to, groups)


def _to_signature(file: schema.SignatureFile, name: str, groups: Groups) -> Signature:
    match = _to_condition(file.match) if file.match else None
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
        causal_edges=expand_edges(file.leads_to, groups, file.id),
        indicates=file.indicates,
        applies_to=dict(file.applies_to),
        meaning=file.meaning.strip(),
        impact=file.impact.strip(),
        summary=file.remediation.summary.strip(),
        steps=tuple(file.remediation.steps),
        action=file.remediation.action,
        origin=file.origin,
        falsepositives=tuple(file.falsepositives),
        references=tuple(file.references),
        samples_match=tuple(_to_sample(sample) for sample in file.samples.match),
        samples_no_match=tuple(_to_sample(sample, sample.why) for sample in file.samples.no_match),
        fingerprint=compute_fingerprint(match),
        replaced_by=file.replaced_by,
    )


def _to_sample(sample: schema.MatchSample, why: str = "") -> Sample:
    return Sample(
        sample.text, dict(sample.captures), why, sample.kind, sample.component, dict(sample.fields), tuple(sample.also)
    )


def _to_condition(condition: schema.Condition) -> Clause | Leaf:
    """A leaf with `none` beside its keys becomes an `any` of that one leaf."""
    none = tuple(map(_to_leaf, condition.none))
    parts = condition.any if condition.any is not None else condition.all
    if parts is not None:
        return Clause("any" if condition.any is not None else "all", tuple(map(_to_condition, parts)), none)
    return Clause("any", (_to_leaf(condition),), none) if none else _to_leaf(condition)


def _to_leaf(leaf: schema.Leaf) -> Leaf:
    return Leaf(
        leaf.kind, leaf.component, leaf.text, leaf.not_text, dict(leaf.fields), (), {}, leaf.engine, leaf.context
    )
