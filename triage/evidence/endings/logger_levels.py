"""The level of a log line: a level at the head of any common layout of text, or in any shape of JSON record.

Layouts: `time LEVEL`, `[time] [level]`, `LEVEL:name:`, `time | LEVEL |`, `level=fatal` (logfmt), glog and klog
(`E0302`), TensorFlow (`: E file.cc`), Ray (`[time E pid]`), Android (`E/tag`), spdlog (`[E]`), logrus (`ERRO[0003]`),
VMS (`%FAC-F-ID`), syslog numbers.
JSON: structlog, python-json-logger, loguru, OpenTelemetry, ECS, pino, bunyan, zap, GELF, slog, Serilog, Cloud
Logging, Datadog.
"""

from __future__ import annotations

from typing import Literal

from triage.base.digit_masks import ask_masked_text
from triage.base.lazy_re import lazy_re

Level = Literal["", "fatal", "error", "low"]
"""`low`: the line states a level below error."""

_FATAL_NAMES = r"FATAL|CRITICAL|CRIT|SEVERE|EMERG(?:ENCY)?|ALERT|D?PANIC|FTL|CRT|PNC|SEV|FATA|PANI"
_ERROR_NAMES = r"ERROR|ERR|EROR|ERRO|FAILURE|FAIL"
# Upper case anywhere in the head of a line; other cases where a layout marks the level.
_HEAD = 110
_UPPER = lazy_re(
    rf"(?:^|[\s\[|<(:/*-])(?:(?P<fatal>{_FATAL_NAMES})|(?P<error>{_ERROR_NAMES}))(?=$|[\s\[\]|>):,*/-])(?!=)"
)
_MARKED = lazy_re(
    rf"(?i)(?:^\W{{0,6}}|[\[|<(]\s{{0,2}}|\b(?:level|lvl|severity|sev|loglevel|l)[=:]\s?\"?)"
    rf"(?:(?P<fatal>{_FATAL_NAMES})|(?P<error>{_ERROR_NAMES}))(?:\]|\s{{0,2}}[|>):]|\"?(?:\s|$))"
)
_LETTER = lazy_re(
    r"(?:^|[\s\[(:])(?:(?P<fatal>F)|(?P<error>E))(?:\d{3,4} +\d\d:\d\d:\d|[ ]{1,2}\d{4}-\d\d-\d\d|[ ]\d+ \d+\] |"
    r"[ ][\w./-]+\.(?:cc|cpp|cu|h|py|go|rs):\d+\]|/[A-Z]\w+[: (])"
    # In brackets or between bars (spdlog, NLog), and behind the process and thread (Android).
    r"|(?:^|[\s\]])\[(?:(?P<fatal3>[FC])|(?P<error3>E))\](?: |:(?! (?:in|at) ))|\d\|(?:(?P<fatal4>F)|(?P<error4>E))\|"
    r"|\d\.\d{3} +\d+ +\d+ (?:(?P<fatal5>F)|(?P<error5>E)) \S"
    r"|^[%-][A-Z][A-Z\d]{1,8}-(?:(?P<fatal2>F)|(?P<error2>E))-[A-Z]"
)
_LOW = lazy_re(
    r"(?:^|[\s\[|<(:/*-])(?:DEBUG|INFO|WARN(?:ING)?|TRACE|NOTICE|DBG|DEBU|INF|WRN|TRAC|EVENT)(?=$|[\s\[\]|>):,*/-])(?!=)"
    r"|(?i:\b(?:level|lvl|severity)[=:]\s?\"?(?:debug|info|warn(?:ing)?|trace|notice)\b|[\[<](?:debug|info|"
    r"warn(?:ing)?|notice)[\]>])"
    r"|(?:^|[\s\]])\[[TDIW]\][ :]|\d\|[TDIW]\||\d\.\d{3} +\d+ +\d+ [VDIW] \S"
    r"|(?:^|[\s\[(])[IWD](?:\d{3,4} +\d\d:\d\d:\d|[ ]{1,2}\d{4}-\d\d-\d\d|[ ][\w./-]+\.(?:cc|cpp|cu|h|py):\d+\])"
)
_JSON_LOW = lazy_re(
    r'"(?:level|levelname|lvl|severity|sev|severityText|SeverityText|log\.level|@l|status|loglevel)"\s*:\s*"(?i:debug|info|'
    r'warn(?:ing)?|trace|notice|information|verbose)"'
)
_JSON_LEVEL = lazy_re(
    r'"(?:level|levelname|lvl|severity|sev|severityText|SeverityText|log\.level|@l|status|loglevel|priority)"\s*:\s*'
    rf'(?:\{{[^{{}}]{{0,80}}"name"\s*:\s*)?"(?i:(?P<fatal>{_FATAL_NAMES}|ERROR\+\d)|(?P<error>{_ERROR_NAMES}))"'
)
# CRI writes whether a line is full (F) before it: no level.
_CRI = lazy_re(r"^\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP](?::\w{1,20})? ")
_COLOUR = lazy_re(r"\x1b\[[0-9;]*[A-Za-z]")
# Number of a level and the smallest and largest that mean an error, and a fatal one.
_JSON_NUMBER = lazy_re(
    r'"(?P<key>level|levelno|level_value|SeverityNumber|severityNumber|no|PRIORITY)"\s*:\s*"?(?P<number>\d{1,5})\b'
)
# A collector puts the line of a program, with its level, into a field.
_JSON_LINE = lazy_re(r'"(?:message|log|textPayload|MESSAGE)"\s*:\s*"(?P<line>(?:[^"\\]|\\.){0,200})')
_JSON_HEAD = 4000


def read_level(raw: str) -> Level:
    """Return the level of a line with its prefix; empty where it states none."""
    raw = _CRI.sub("", raw) if raw[:1].isdecimal() else raw
    raw = _COLOUR.sub("", raw) if "\x1b" in raw else raw
    if '{"' in raw[:200] or '": ' in raw[:60]:
        return _read_json_level(raw[:_JSON_HEAD])
    return _read_text_level(raw[:_HEAD])


@ask_masked_text
def _read_text_level(head: str) -> Level:
    for pattern in (_UPPER, _MARKED, _LETTER):
        match = pattern.search(head)
        if match is not None:
            is_fatal = any(letter and name.startswith("fatal") for name, letter in match.groupdict().items())
            return "fatal" if is_fatal else "error"
    return "low" if _LOW.search(head) else ""


def _read_json_level(text: str) -> Level:
    match = _JSON_LEVEL.search(text)
    if match is not None:
        return "fatal" if match["fatal"] else "error"
    for number in _JSON_NUMBER.finditer(text):
        level = _of_number(number["key"], int(number["number"]), is_syslog='"short_message"' in text)
        if level:
            return level
    if _JSON_LOW.search(text):
        return "low"
    line = _JSON_LINE.search(text)
    return _read_text_level(line["line"][:_HEAD]) if line is not None else ""


def _of_number(key: str, number: int, *, is_syslog: bool) -> Level:
    """Return what a number means: syslog counts down from 7, OpenTelemetry to 24, Python and pino to 60."""
    if is_syslog or key == "PRIORITY":
        return "" if number > 3 else "error" if number == 3 else "fatal"
    if key in ("SeverityNumber", "severityNumber"):
        return "" if number < 17 else "error" if number < 21 else "fatal"
    if key == "level_value":
        number //= 1000
        return "error" if 40 <= number <= 99 else ""
    if key == "no" or key == "levelno":
        return "" if number < 40 else "error" if number < 50 else "fatal"
    return "" if not 50 <= number <= 99 else "error" if number < 60 else "fatal"
