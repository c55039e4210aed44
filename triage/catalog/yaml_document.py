"""Parse YAML into plain data with the position of every item.

Built from the parser's events: no objects are constructed, anchors and aliases (and with them alias bombs) are refused,
depth and size are bounded, duplicate keys are reported, and every plain scalar stays a text (`no`, `1e3` and `-9` mean
what they look like). Only errors of the YAML grammar itself end the reading early.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

MAX_BYTES = 256 * 1024
MAX_DEPTH = 24
MAX_NODES = 20_000

KeyPath = tuple[str | int, ...]
Position = tuple[int, int]  # line and column, 1-based
YamlRemark = tuple[Position, str, str]  # position, message, hint


@dataclass(slots=True)
class YamlDocument:
    """A parsed file: `value` of dict, list, str and None, and the `positions` of items (of keys in a mapping)."""

    value: Any = None
    positions: dict[KeyPath, Position] = field(default_factory=dict)
    remarks: list[YamlRemark] = field(default_factory=list)

    def locate(self, path: KeyPath) -> Position:
        """The position of `path`, or of its nearest parent that exists."""
        while path and path not in self.positions:
            path = path[:-1]
        return self.positions.get(path, (1, 1))


class _StopReading(Exception):
    """The document cannot be read further; `remarks` says why."""


def parse_yaml(text: str) -> YamlDocument:
    """Parse one YAML document. Never raises: `remarks` has the errors, and `value` is None if nothing is usable."""
    document = YamlDocument()
    try:
        document.value = _Reader(text, document).read()
    except _StopReading:
        pass  # the reader has written its remark
    except yaml.MarkedYAMLError as error:
        position = _position(error.problem_mark or error.context_mark)
        document.remarks.append((position, f"not YAML: {_describe_error(error)}", _suggest_fix(error, text)))
    except yaml.YAMLError as error:
        hint = "save the file as UTF-8 text without control characters"
        document.remarks.append(((1, 1), f"not YAML: {' '.join(str(error).split())}", hint))
    return document


def _describe_error(error: yaml.MarkedYAMLError) -> str:
    return ", ".join(part for part in (error.context, error.problem) if part)


def _suggest_fix(error: yaml.MarkedYAMLError, text: str) -> str:
    message = _describe_error(error)
    lines = text.splitlines()
    mark = error.problem_mark
    if mark is not None and mark.line < len(lines) and "\t" in lines[mark.line][: mark.column + 1]:
        return "indent with spaces, not with tabs"
    if "mapping values are not allowed" in message or "could not find expected ':'" in message:
        return "put the value in single quotes if it contains a colon"
    if "did not find expected" in message or "cannot start any token" in message:
        return "put the value in single quotes, and check the indentation"
    if "unknown escape" in message:
        return "use single quotes around patterns, so that backslashes stay as they are"
    return "check the indentation and the quotes"


class _Reader:
    """Builds the value of a document, and adds its positions and remarks to the document."""

    def __init__(self, text: str, document: YamlDocument) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._next: Callable[[], yaml.Event] = loader(text).get_event
        self._document = document
        self._nodes = 0

    def read(self) -> Any:
        """The value of the only document."""
        event = self._next()
        while isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
            event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            self._stop(event, "the file is empty", "start with `id:`")
        value = self._node(event, ())
        event = self._next()
        while isinstance(event, yaml.DocumentEndEvent):
            event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            hint = "write one signature per file, without a second `---`"
            self._stop(event, "the file contains more than one document", hint)
        return value

    def _add_remark(self, event: yaml.Event, message: str, hint: str) -> None:
        self._document.remarks.append((_position(event.start_mark), message, hint))

    def _stop(self, event: yaml.Event, message: str, hint: str) -> None:
        self._add_remark(event, message, hint)
        raise _StopReading

    def _node(self, event: Any, path: KeyPath) -> Any:  # the stubs of PyYAML give events no attributes
        self._nodes += 1
        self._document.positions.setdefault(path, _position(event.start_mark))
        if self._nodes > MAX_NODES or len(path) > MAX_DEPTH:
            self._stop(event, "the file is nested too deeply or has too many parts", "a signature needs neither")
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            hint = "write the text out, or quote it if it begins with * or &"
            self._stop(event, "anchors and aliases (& and *) are not supported", hint)
        if getattr(event, "tag", None) not in (None, "!"):
            hint = "leave the tag out, or quote the text if it begins with !"
            self._stop(event, f"tags are not supported: {event.tag}", hint)
        if isinstance(event, yaml.ScalarEvent):
            return None if event.implicit[0] and event.value in ("", "~", "null", "Null", "NULL") else event.value
        return self._sequence(path) if isinstance(event, yaml.SequenceStartEvent) else self._mapping(path)

    def _sequence(self, path: KeyPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items))))
        return items

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                self._stop(event, "a key is not a plain text", "quote a text that begins with {, [, * or &")
            key = str(getattr(event, "value", ""))
            if key in mapping:
                self._add_remark(event, f"the key `{key}` occurs twice", "keep one of them, or make one list")
            self._document.positions.setdefault((*path, key), _position(event.start_mark))
            mapping[key] = self._node(self._next(), (*path, key))
        return mapping


def _position(mark: Any) -> Position:
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)
