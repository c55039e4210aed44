"""Signatures to plain JSON data and back, with every type checked on the way in.

The data comes from a cache file that anyone with the user's rights may have touched, so nothing is taken on trust:
whatever has not exactly the expected shape raises ValueError and the catalog is compiled again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from triage.catalog.model import Catalog, Clause, Edge, Leaf, Sample, Signature
from triage.model.diagnosis import Role, Severity
from triage.model.evidence import Warning as Note

_ROLES = frozenset(get_args(Role))
_SEVERITIES = frozenset(get_args(Severity))
_MAX_DEPTH = 24
_TEXTS = (
    "id",
    "title",
    "status",
    "role",
    "severity",
    "path",
    "meaning",
    "impact",
    "summary",
    "action",
    "origin",
    "fingerprint",
    "table",
)
_TEXT = frozenset({str})
_LISTS = ("steps", "falsepositives", "references", "yields_to")


def catalog_data(catalog: Catalog) -> dict[str, Any]:
    edges = _Edges()
    signatures = [_signature_data(signature, edges) for signature in catalog.signatures]
    return {
        "version": catalog.version,
        "edges": edges.lists,
        "literals": list(catalog.literals),
        "windows": list(catalog.windows),
        "warnings": [[note.code, note.source, note.message] for note in catalog.warnings],
        "signatures": signatures,
    }


def catalog_from(data: Any) -> Catalog:
    """The catalog that `catalog_data` wrote. ValueError if the data has another shape."""
    try:
        warnings = tuple(
            Note(_text(code), _maybe(source), _text(message)) for code, source, message in _list(data["warnings"])
        )
        edges = [
            tuple(Edge(_text(name), _text(scope), _number(window)) for name, scope, window in _list(of))
            for of in _list(data["edges"])
        ]
        signatures = tuple(_signature_from(item, edges) for item in _list(data["signatures"]))
        return Catalog(_text(data["version"]), signatures, _texts(data["literals"]), warnings, _texts(data["windows"]))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"not a catalog: {error!r}") from None


def match_data(match: Clause | Leaf | None, *, literals: bool = True) -> Any:
    """The condition as data. Keys that say nothing are left out, so that it is the same however it was written."""
    if match is None:
        return None
    if isinstance(match, Clause):
        parts = [match_data(part, literals=literals) for part in match.parts]
        none = [match_data(leaf, literals=literals) for leaf in match.none]
        return {match.op: parts, "none": none} if none else {match.op: parts}
    found: dict[str, Any] = {
        key: value for key in ("kind", "component", "text", "not_text") if (value := getattr(match, key)) is not None
    }
    if match.fields:
        found["fields"] = dict(match.fields)
    if match.values:
        found["values"] = {name: list(values) for name, values in match.values.items()}
    if match.literals and literals:
        found["literals"] = list(match.literals)
    return found


def fingerprint(match: Clause | Leaf | None) -> str:
    """12 hex digits that change when, and only when, what a signature matches changes."""
    data = json.dumps(match_data(match, literals=False), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class _Edges:
    """Each different list of edges once: the rows of a table share theirs."""

    def __init__(self) -> None:
        self.lists: list[list[Any]] = []
        self._known: dict[tuple[Edge, ...], int] = {}

    def number(self, edges: tuple[Edge, ...]) -> int:
        if edges not in self._known:
            self._known[edges] = len(self.lists)
            self.lists.append([[edge.signature, edge.scope, edge.window] for edge in edges])
        return self._known[edges]


def _signature_data(signature: Signature, edges: _Edges) -> dict[str, Any]:
    data: dict[str, Any] = {key: getattr(signature, key) for key in _TEXTS}
    data |= {key: list(getattr(signature, key)) for key in _LISTS}
    return data | {
        "revision": signature.revision,
        "match": match_data(signature.match),
        "blames": signature.blames,
        "replaced_by": signature.replaced_by,
        "leads_to": edges.number(signature.leads_to),
        "tells": signature.tells,
        "applies_to": dict(signature.applies_to),
        "samples_match": [_sample_data(sample) for sample in signature.samples_match],
        "samples_no_match": [_sample_data(sample) for sample in signature.samples_no_match],
    }


def _sample_data(sample: Sample) -> list[Any]:
    return [
        sample.text,
        dict(sample.captures),
        sample.why,
        sample.kind,
        sample.component,
        dict(sample.fields),
        list(sample.also),
    ]


def _signature_from(data: Any, edges: Sequence[tuple[Edge, ...]]) -> Signature:
    values: dict[str, Any] = {key: data[key] for key in _TEXTS}
    _texts([*values.values()])
    if values["role"] not in _ROLES or values["severity"] not in _SEVERITIES or type(data["revision"]) is not int:
        raise ValueError("not a signature")
    for key in _LISTS:
        values[key] = _texts(data[key])
    return Signature(
        **values,
        revision=data["revision"],
        match=None if data["match"] is None else _match_from(data["match"], 0),
        blames=_maybe(data["blames"]),
        replaced_by=_maybe(data["replaced_by"]),
        leads_to=edges[_index(data["leads_to"], edges)],
        tells=_maybe(data["tells"]),
        applies_to=_mapping(data["applies_to"]),
        samples_match=tuple(_sample_from(item) for item in _list(data["samples_match"])),
        samples_no_match=tuple(_sample_from(item) for item in _list(data["samples_no_match"])),
    )


def _sample_from(data: Any) -> Sample:
    text, captures, why, kind, component, fields, also = _list(data)
    return Sample(
        _text(text), _mapping(captures), _text(why), _maybe(kind), _text(component), _mapping(fields), _texts(also)
    )


def _match_from(data: Any, depth: int) -> Clause | Leaf:
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    for op in ("any", "all"):
        if op in data:
            parts = tuple(_match_from(part, depth + 1) for part in _list(data[op]))
            return Clause(op, parts, tuple(_leaf_from(leaf) for leaf in _list(data.get("none", []))))
    return _leaf_from(data)


def _leaf_from(data: Any) -> Leaf:
    get = data.get
    return Leaf(
        _maybe(get("kind")),
        _maybe(get("component")),
        _maybe(get("text")),
        _maybe(get("not_text")),
        _mapping(get("fields", {})),
        _texts(get("literals", [])),
        _choices(get("values", {})),
    )


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("not a text")
    return value


def _maybe(value: Any) -> str | None:
    return None if value is None else _text(value)


def _index(value: Any, within: Sequence[Any]) -> int:
    if type(value) is not int or not 0 <= value < len(within):
        raise ValueError("not a place")
    return value


def _number(value: Any) -> float | None:
    if value is not None and type(value) is not float:
        raise ValueError("not a number")
    return value


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise ValueError("not a list")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not _TEXT.issuperset(map(type, _list(value))):
        raise ValueError("not a list of texts")
    return tuple(value)


def _choices(value: Any) -> Mapping[str, tuple[str, ...]]:
    if type(value) is not dict:
        raise ValueError("not a mapping")
    return {name: _texts(wanted) for name, wanted in value.items()}


def _mapping(value: Any) -> Mapping[str, str]:
    if type(value) is not dict:
        raise ValueError("not a mapping")
    if value and not _TEXT.issuperset(map(type, value.values())):
        raise ValueError("not a mapping to texts")
    return value
