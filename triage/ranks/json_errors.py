"""Errors that a JSON record holds as objects or lists: exceptions of structlog, error objects, stacks.

An exception with frames becomes a traceback as Python prints it. Formats: structlog `dict_tracebacks` (`exc_type`,
`exc_value`, `frames`), ECS `error`, pino and bunyan `err`, zerolog `stack`, slog attributes, Datadog `error.kind`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from triage.base.lazy_re import lazy_re

# Most records hold none of these: only they are decoded as a whole.
_STRUCTURED = lazy_re(
    r'"(?:exc_type|exc_value|frames|stack|trace|stacktrace|traceback|stack_trace|causes?|exceptions?|err|error)"'
    r"\s*:\s*[\[{]"
)
_LONGEST = 1 << 18
_MOST_DEPTH = 6
_MOST_FRAMES = 400
_TYPES = ("exc_type", "type", "kind", "name", "class", "exception_type", "className")
_VALUES = ("exc_value", "value", "message", "msg", "reason", "detail", "description")
_STACKS = ("stack", "stack_trace", "stacktrace", "traceback", "trace", "frames")
_ERROR_KEYS = ("exception", "exceptions", "error", "err", "exc_info", "cause", "causes", "errors", "exc")


def read_errors(text: str) -> list[tuple[str, str]]:
    """Return (key, text) of the errors that the JSON object in `text` holds as objects or lists."""
    if len(text) > _LONGEST or _STRUCTURED.search(text) is None:
        return []
    try:
        record = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return []
    return list(_find_errors(record, 0))


def _find_errors(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _MOST_DEPTH or not isinstance(value, Mapping):
        return
    for key, part in value.items():
        if key in _ERROR_KEYS and isinstance(part, Mapping | list):
            for error in part if isinstance(part, list) else [part]:
                text = _text_of(error)
                if text:
                    yield str(key), text
        elif key in _STACKS and isinstance(part, list) and part and all(isinstance(line, str) for line in part):
            yield str(key), "\n".join(part)
        elif isinstance(part, Mapping):
            yield from _find_errors(part, depth + 1)


def _text_of(error: Any) -> str:
    """Return one error as a program prints it: its stack, or its type and its message."""
    if isinstance(error, str):
        return error
    if not isinstance(error, Mapping):
        return ""
    kind, message = _first_text(error, _TYPES), _first_text(error, _VALUES)
    headline = f"{kind}: {message}" if kind and message else kind or message
    for key in _STACKS:
        stack = error.get(key)
        if isinstance(stack, str) and stack.strip():
            return stack if not message or message in stack else f"{headline}\n{stack}"
        if isinstance(stack, list) and stack:
            lines = [line for line in stack if isinstance(line, str)]
            if lines:
                text = "\n".join(lines)
                return text if message and message in text else f"{headline}\n{text}"
            frames = [frame for frame in stack if isinstance(frame, Mapping)]
            return "\n".join(["Traceback (most recent call last):", *_frame_lines(frames), headline])
    return headline


def _first_text(error: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((str(error[key]) for key in keys if isinstance(error.get(key), str) and error[key]), "")


def _frame_lines(frames: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for frame in frames[:_MOST_FRAMES]:
        file = _first_text(frame, ("filename", "file", "source", "path"))
        number = frame.get("lineno", frame.get("line", 0))
        function = _first_text(frame, ("name", "func", "function", "method")) or "?"
        yield f'  File "{file}", line {number if str(number).isdigit() else 0}, in {function}'
        if code := _first_text(frame, ("line", "code", "context_line")):
            yield from () if code.isdigit() else (f"    {code.strip()}",)
