"""The sentence of a log line, without what any logger writes before it and the fields that it writes behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from triage.base.lazy_re import lazy_re

_VALUE = r'"(?:[^"\\\n]|\\.){0,1000}"|[^\s"{}]{0,400}'
_FIELD = lazy_re(rf"(?<![\w.])(?P<name>[A-Za-z][\w.]{{0,40}})=(?P<value>{_VALUE})(?=[\s,;]|$)")
_JSON_FIELD = lazy_re(r'"(?P<name>[A-Za-z]\w{0,40})": ?(?P<value>"(?:[^"\\\n]|\\.){0,1000}"|-?[\w.]{1,40})')
# zap writes the fields as JSON behind the sentence.
_JSON_BEHIND = lazy_re(r'(?<=\S)\s+(?P<fields>\{"\w{1,41}": ?[^\n]*\})$')
_MESSAGES = frozenset(("message", "msg"))
_REASONS = ("reason", "cause", "error", "err", "exception", "detail", "details")
_LEVEL = r"(?:FATAL|CRITICAL|PANIC|SEVERE|ERROR|ERRO|ERR|WARNING|WARN|INFO|DEBUG|TRACE)"
_TIME = r"\[?\d{4}[-/]\d\d[-/]\d\d(?:[T ,]+\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?\]?"
_PLACE = r"[\w./-]{1,200}\.\w{1,5}:\d{1,7}(?::\w{1,80})?\]?:?"
_BRACKETS = r"\[[^\]\n]{0,80}\]:?"
_NAME = r"[\w./-]{1,80}(?:\[\d{1,8}\])?:"
_PROPERTY = r"[a-z][\w.]{0,40}=\S{1,200}"
_LOGGER = r"(?:\w{1,40}(?:::|[./])){1,8}\w{1,40}:?"
_MARGIN = r"(?:\s+(?:[-|]\s+)?|(?<=\])(?=\[))"
_STATES_LEVEL = rf"(?:\[?{_LEVEL}\]?|(?-i:error|fatal|critical):):?"
# Up to the level stand only times, places, names and fields; behind it the logger's name, a place and fields.
_HEAD = lazy_re(
    rf"(?:(?:{_TIME}|{_PLACE}|{_BRACKETS}|{_NAME}|{_PROPERTY}|[a-z][\w.-]{{1,40}}){_MARGIN}){{0,6}}?"
    rf"{_STATES_LEVEL}{_MARGIN}"
    rf"(?:(?:{_PLACE}|{_BRACKETS}|{_LOGGER}|{_PROPERTY}){_MARGIN}){{0,6}}"
)
_LEAST_LETTERS = 6
# What launchers write has rules of its own (`unwrap` in rules.toml).
_LAUNCHERS = ("srun", "slurmstepd")


def read_statement(line: str) -> str:
    """Return what a line says: its sentence, and behind a colon the reason that a field holds.

    A line that no logger wrote stays, and so does one of a launcher.
    """
    if line.startswith(_LAUNCHERS):
        return line
    behind = _JSON_BEHIND.search(line)
    values = dict(_fields(behind["fields"], _JSON_FIELD) if behind else _fields(line, _FIELD))
    message = next((values[name] for name in _MESSAGES if values.get(name)), "")
    reason = next((values[name] for name in _REASONS if _is_sentence(values.get(name, ""))), "")
    if not message:
        message = line[: behind.start()] if behind else _without_fields(line, has_reason=bool(reason))
    head = _HEAD.match(message)
    if head is not None and sum(map(str.isalpha, message[head.end() :] + reason)) >= _LEAST_LETTERS:
        message = message[head.end() :]
    if not _is_sentence(message + reason):
        return line
    return f"{message}: {reason}" if message and reason and reason not in message else message or reason


def _fields(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    for match in pattern.finditer(text):
        value = match["value"]
        yield match["name"].lower(), value[1:-1].replace('\\"', '"') if value[:1] == '"' else value


def _without_fields(line: str, *, has_reason: bool) -> str:
    """Return a line without the fields at its end; with a reason among them, without any field."""
    if has_reason:
        return " ".join(_FIELD.sub("", line).split())
    fields = list(_FIELD.finditer(line))
    end = len(line.rstrip())
    for match in reversed(fields):
        if line[match.end() : end].strip(" ,;"):
            break
        end = match.start()
    return line[:end].rstrip(" ,;")


def _is_sentence(text: str) -> bool:
    return " " in text.strip() and sum(map(str.isalpha, text)) >= _LEAST_LETTERS
