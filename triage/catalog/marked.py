"""YAML as plain data that knows its places.

Built from the parser's events and not from its objects: nothing is constructed, anchors and aliases (and with them
alias
bombs) are refused, depth and size are bounded, duplicate keys are seen, and every plain scalar stays the text it is
(`no`,
`1e3` and `-9` mean what they look like). Only the errors of the YAML grammar itself end the reading early.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

MAX_BYTES = 256 * 1024
MAX_DEPTH = 24
MAX_NODES = 20_000

Path = tuple[str | int, ...]
Place = tuple[int, int]  # line and column, 1-based
Remark = tuple[Place, str, str]  # where, what is wrong, how to mend it


@dataclass(slots=True)
class Marked:
    """`value` is made of dict, list, str and None; `places` says where the item at a path stands (its key, in a
    mapping).
    """

    value: Any = None
    places: dict[Path, Place] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)

    def place(self, path: Path) -> Place:
        """Where `path` stands, or the nearest thing around it that exists."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (1, 1))


class _Stop(Exception):
    """The document cannot be read further; the remark is already noted."""


def parse(text: str) -> Marked:
    """Read one YAML document. Never raises: what is wrong stands in `remarks`, and `value` is None if nothing is
    usable.
    """
    marked = Marked()
    try:
        _Reader(text, marked).document()
    except _Stop:
        marked.value = None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        marked.remarks.append(
            ((mark.line + 1, mark.column + 1) if mark else (1, 1), f"not YAML: {_words(error)}", _hint(error, text))
        )
        marked.value = None
    except yaml.YAMLError as error:
        marked.remarks.append(
            (
                (1, 1),
                f"not YAML: {' '.join(str(error).split())}",
                "save the file as UTF-8 text without control characters",
            )
        )
        marked.value = None
    return marked


def _words(error: yaml.MarkedYAMLError) -> str:
    return ", ".join(part for part in (error.context, error.problem) if part)


def _hint(error: yaml.MarkedYAMLError, text: str) -> str:
    words = _words(error)
    lines = text.splitlines()
    mark = error.problem_mark
    if mark is not None and mark.line < len(lines) and "\t" in lines[mark.line][: mark.column + 1]:
        return "indent with spaces, not with tabs"
    if "mapping values are not allowed" in words or "could not find expected ':'" in words:
        return "put the value in single quotes if it contains a colon"
    if "did not find expected" in words or "cannot start any token" in words:
        return "put the value in single quotes, and look at the indentation"
    if "unknown escape" in words:
        return "use single quotes around patterns, so that backslashes stay as they are"
    return "look at the indentation and the quotes"


class _Reader:
    def __init__(self, text: str, marked: Marked) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._next: Callable[[], yaml.Event] = loader(text).get_event
        self._marked = marked
        self._nodes = 0

    def document(self) -> None:
        event = self._next()
        while isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
            event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            self._stop(event, "the file is empty", "start with `id:`")
        self._marked.value = self._node(event, ())
        event = self._next()
        while isinstance(event, yaml.DocumentEndEvent):
            event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            self._stop(
                event,
                "there is more than one document in the file",
                "write one signature a file, without a second `---`",
            )

    def _note(self, event: yaml.Event, message: str, hint: str) -> None:
        self._marked.remarks.append((_place(event), message, hint))

    def _stop(self, event: yaml.Event, message: str, hint: str) -> None:
        self._note(event, message, hint)
        raise _Stop

    def _node(self, event: Any, path: Path) -> Any:  # the stubs of PyYAML give events no attributes
        self._nodes += 1
        self._marked.places.setdefault(path, _place(event))
        if self._nodes > MAX_NODES or len(path) > MAX_DEPTH:
            self._stop(event, "the file is nested too deeply or has too many parts", "a signature needs neither")
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            self._stop(
                event,
                "anchors and aliases (& and *) are not read",
                "write the text out, or quote it if it begins with * or &",
            )
        if getattr(event, "tag", None) not in (None, "!"):
            self._stop(
                event, f"tags are not read: {event.tag}", "leave the tag out, or quote the text if it begins with !"
            )
        if isinstance(event, yaml.ScalarEvent):
            return None if event.implicit[0] and event.value in ("", "~", "null", "Null", "NULL") else event.value
        return self._sequence(path) if isinstance(event, yaml.SequenceStartEvent) else self._mapping(path)

    def _sequence(self, path: Path) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items))))
        return items

    def _mapping(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                self._stop(event, "a key is not a plain text", "quote a text that begins with {, [, * or &")
            key = str(getattr(event, "value", ""))
            if key in found:
                self._note(event, f"the key `{key}` is given twice", "keep one of them, or make one list")
            self._marked.places.setdefault((*path, key), _place(event))
            found[key] = self._node(self._next(), (*path, key))
        return found


def _place(event: yaml.Event) -> Place:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)
