"""Convert a catalog to plain JSON data and back, and check every type on the way in.

The data comes from a cache file that anyone with the user's rights may have changed, so nothing is trusted: any other
shape than the expected one raises ValueError, and the catalog is compiled again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from triage.catalog.model import Catalog, CausalEdge, Clause, Leaf, Sample, Signature
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


def encode_catalog(catalog: Catalog) -> dict[str, Any]:
    """The catalog as JSON data. A change of its shape needs a new `cache.FORMAT_VERSION`."""
    edges = _EdgeTable()
    signatures = [_encode_signature(signature, edges) for signature in catalog.signatures]
    return {
        "version": catalog.version,
        "edges": edges.lists,
        "literals": list(catalog.literals),
        "windows": list(catalog.windows),
        "warnings": [[note.code, note.source, note.message] for note in catalog.warnings],
        "signatures": signatures,
    }


def decode_catalog(data: Any) -> Catalog:
    """Restore the catalog that `encode_catalog` wrote. ValueError if the data has another shape."""
    try:
        warnings = tuple(
            Note(_text(code), _optional_text(source), _text(message))
            for code, source, message in _list(data["warnings"])
        )
        edges = [
            tuple(CausalEdge(_text(name), _text(scope), _optional_number(window)) for name, scope, window in _list(row))
            for row in _list(data["edges"])
        ]
        signatures = tuple(_decode_signature(item, edges) for item in _list(data["signatures"]))
        return Catalog(_text(data["version"]), signatures, _texts(data["literals"]), warnings, _texts(data["windows"]))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"not a catalog: {error!r}") from None


def encode_match(match: Clause | Leaf | None, *, literals: bool = True) -> Any:
    """The condition as JSON data without empty keys, so that equal conditions give equal data."""
    if match is None:
        return None
    if isinstance(match, Clause):
        parts = [encode_match(part, literals=literals) for part in match.parts]
        none = [encode_match(leaf, literals=literals) for leaf in match.none]
        return {match.op: parts, "none": none} if none else {match.op: parts}
    keys = ("kind", "component", "text", "not_text")
    data: dict[str, Any] = {key: value for key in keys if (value := getattr(match, key)) is not None}
    if match.fields:
        data["fields"] = dict(match.fields)
    if match.values:
        data["values"] = {name: list(values) for name, values in match.values.items()}
    if match.literals and literals:
        data["literals"] = list(match.literals)
    return data


def compute_fingerprint(match: Clause | Leaf | None) -> str:
    """12 hex digits that change exactly when the condition changes."""
    data = json.dumps(encode_match(match, literals=False), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class _EdgeTable:
    """Stores each different list of edges once: the rows of a table share theirs."""

    def __init__(self) -> None:
        self.lists: list[list[Any]] = []
        self._known: dict[tuple[CausalEdge, ...], int] = {}

    def number(self, edges: tuple[CausalEdge, ...]) -> int:
        if edges not in self._known:
            self._known[edges] = len(self.lists)
            self.lists.append([[edge.signature, edge.scope, edge.window] for edge in edges])
        return self._known[edges]


def _encode_signature(signature: Signature, edges: _EdgeTable) -> dict[str, Any]:
    data: dict[str, Any] = {key: getattr(signature, key) for key in _TEXTS}
    data |= {key: list(getattr(signature, key)) for key in _LISTS}
    return data | {
        "revision": signature.revision,
        "match": encode_match(signature.match),
        "blames": signature.blames,
        "replaced_by": signature.replaced_by,
        "leads_to": edges.number(signature.causal_edges),
        "tells": signature.indicates,
        "applies_to": dict(signature.applies_to),
        "samples_match": [_encode_sample(sample) for sample in signature.samples_match],
        "samples_no_match": [_encode_sample(sample) for sample in signature.samples_no_match],
    }


def _encode_sample(sample: Sample) -> list[Any]:
    return [
        sample.text,
        dict(sample.captures),
        sample.why,
        sample.kind,
        sample.component,
        dict(sample.fields),
        list(sample.also),
    ]


def _decode_signature(data: Any, edges: Sequence[tuple[CausalEdge, ...]]) -> Signature:
    values: dict[str, Any] = {key: data[key] for key in _TEXTS}
    _texts([*values.values()])
    if values["role"] not in _ROLES or values["severity"] not in _SEVERITIES or type(data["revision"]) is not int:
        raise ValueError("not a signature")
    for key in _LISTS:
        values[key] = _texts(data[key])
    return Signature(
        **values,
        revision=data["revision"],
        match=None if data["match"] is None else _decode_match(data["match"], 0),
        blames=_optional_text(data["blames"]),
        replaced_by=_optional_text(data["replaced_by"]),
        causal_edges=edges[_index(data["leads_to"], edges)],
        indicates=_optional_text(data["tells"]),
        applies_to=_texts_by_name(data["applies_to"]),
        samples_match=tuple(_decode_sample(item) for item in _list(data["samples_match"])),
        samples_no_match=tuple(_decode_sample(item) for item in _list(data["samples_no_match"])),
    )


def _decode_sample(data: Any) -> Sample:
    text, captures, why, kind, component, fields, also = _list(data)
    return Sample(
        _text(text),
        _texts_by_name(captures),
        _text(why),
        _optional_text(kind),
        _text(component),
        _texts_by_name(fields),
        _texts(also),
    )


def _decode_match(data: Any, depth: int) -> Clause | Leaf:
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    for op in ("any", "all"):
        if op in data:
            parts = tuple(_decode_match(part, depth + 1) for part in _list(data[op]))
            return Clause(op, parts, tuple(_decode_leaf(leaf) for leaf in _list(data.get("none", []))))
    return _decode_leaf(data)


def _decode_leaf(data: Any) -> Leaf:
    get = data.get
    return Leaf(
        _optional_text(get("kind")),
        _optional_text(get("component")),
        _optional_text(get("text")),
        _optional_text(get("not_text")),
        _texts_by_name(get("fields", {})),
        _texts(get("literals", [])),
        _lists_by_name(get("values", {})),
    )


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("not a text")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _index(value: Any, within: Sequence[Any]) -> int:
    if type(value) is not int or not 0 <= value < len(within):
        raise ValueError("not a place")
    return value


def _optional_number(value: Any) -> float | None:
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


def _lists_by_name(value: Any) -> Mapping[str, tuple[str, ...]]:
    if type(value) is not dict:
        raise ValueError("not a mapping")
    return {name: _texts(texts) for name, texts in value.items()}


def _texts_by_name(value: Any) -> Mapping[str, str]:
    if type(value) is not dict:
        raise ValueError("not a mapping")
    if value and not _TEXT.issuperset(map(type, value.values())):
        raise ValueError("not a mapping to texts")
    return value
