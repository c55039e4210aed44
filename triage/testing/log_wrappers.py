"""How collectors, container runtimes and CI services wrap the lines of a log: each takes records and returns lines.

Text that is not UTF-8 holds surrogates (`surrogateescape`), also in the result.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

CHUNK = 16 * 1024
"""Bytes after which Docker and containerd cut a line."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a log, and what the collector knows of it. `micros`: microseconds since 1970.

    `zone`: seconds by which local time is ahead of UTC; `node`: the index of the host in the job.
    """

    text: str
    micros: int
    host: str = "node1"
    pod: str = "node1"
    node: int = 0
    stream: Literal["stdout", "stderr"] = "stderr"
    zone: int = 0
    pid: int = 77

    def utc(self, form: str = "%Y-%m-%dT%H:%M:%S", digits: int = 0) -> str:
        """Return the time in UTC, with that many digits after the seconds."""
        fraction = f".{self.micros % 1_000_000:06d}{self.micros * 7919 % 1000:03d}"[: digits + 1] if digits else ""
        return time.strftime(form, time.gmtime(self.micros // 1_000_000)) + fraction

    def local(self, form: str = "%Y-%m-%dT%H:%M:%S") -> str:
        """Return the local time; `%e` is the day without a leading zero."""
        return time.strftime(form, time.gmtime(self.micros // 1_000_000 + self.zone))

    def offset(self, colon: str = "") -> str:
        """Return the offset of the zone, like +0530."""
        hours, minutes = divmod(abs(self.zone) // 60, 60)
        return f"{'-' if self.zone < 0 else '+'}{hours:02d}{colon}{minutes:02d}"


Wrap = Callable[[Sequence[Record]], list[str]]


def prefix_each(form: Callable[[Record], str]) -> Wrap:
    """Return a function that puts a prefix before every line."""
    return lambda records: [form(record) + record.text for record in records]


def wrap_docker_json(records: Sequence[Record], width: int | None = CHUNK) -> list[str]:
    """Return moby's json-file, which escapes the special characters of HTML; pieces of a cut line lack the newline."""
    wrapped = []
    for record in records:
        pieces = _cut(_readable(record.text), width)
        for number, piece in enumerate(pieces):
            text = json.dumps(piece + ("\n" if number + 1 == len(pieces) else ""), ensure_ascii=False)
            for letter, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
                text = text.replace(letter, code)
            wrapped.append(f'{{"log":{text},"stream":"{record.stream}","time":"{record.utc(digits=9)}Z"}}')
    return wrapped


def wrap_cri(records: Sequence[Record], width: int | None = CHUNK) -> list[str]:
    """Return the files below /var/log/pods: longer lines come in pieces of `width` bytes, with P."""
    wrapped = []
    for record in records:
        content = record.text.encode("utf-8", "surrogateescape")
        step = width or len(content) or 1
        pieces = [content[at : at + step] for at in range(0, len(content), step)] or [b""]
        for number, piece in enumerate(pieces):
            flag = "F" if number + 1 == len(pieces) else "P"
            wrapped.append(f"{record.utc(digits=9)}Z {record.stream} {flag} {piece.decode('utf-8', 'surrogateescape')}")
    return wrapped


def wrap_journald_json(records: Sequence[Record]) -> list[str]:
    """Return journalctl -o json: text with control characters is a list of bytes."""
    wrapped = []
    for index, record in enumerate(records):
        text = _readable(record.text)
        is_plain = all(letter >= " " or letter == "\t" for letter in text) and "\ufffd" not in text
        fields = {
            "__CURSOR": f"s=1;i={index:x}",
            "__REALTIME_TIMESTAMP": str(record.micros),
            "_HOSTNAME": record.host,
            "_COMM": "python3",
            "MESSAGE": text if is_plain else list(record.text.encode("utf-8", "surrogateescape")),
            "SYSLOG_IDENTIFIER": "train",
        }
        wrapped.append(json.dumps(fields))
    return wrapped


def wrap_journald_export(records: Sequence[Record]) -> list[str]:
    """Return journalctl -o export: one field per line, and an empty line behind each record."""
    wrapped: list[str] = []
    for index, record in enumerate(records):
        wrapped += [f"__CURSOR=s=1;i={index:x}", f"__REALTIME_TIMESTAMP={record.micros}", "_TRANSPORT=stdout"]
        wrapped += [f"_HOSTNAME={record.host}", f"MESSAGE={record.text}", "_COMM=python3", ""]
    return wrapped


def wrap_fluent_bit(records: Sequence[Record]) -> list[str]:
    """Return what Fluent Bit stores of a container, with its filter for Kubernetes."""
    return [
        json.dumps(
            {
                "date": record.micros / 1_000_000,
                "log": _readable(record.text),
                "stream": record.stream,
                "kubernetes": {"pod_name": record.pod, "namespace_name": "ml", "host": record.host,
                               "container_name": "pytorch"},
            }
        )
        for record in records
    ]  # fmt: skip


def wrap_cloudwatch_export(records: Sequence[Record]) -> list[str]:
    """Return the export of CloudWatch's console: the timestamp is on the next line."""
    return [part for record in records for part in (record.text, f"{record.utc(digits=3)}Z")]


def wrap_aws_json(records: Sequence[Record]) -> list[str]:
    """Return the output of aws logs get-log-events --output json."""
    events = [{"timestamp": record.micros // 1000, "message": _readable(record.text)} for record in records]
    return json.dumps({"events": events}, indent=4).split("\n")


WRAPPERS: dict[str, Wrap] = {
    "docker json-file": wrap_docker_json,
    "docker logs -t": prefix_each(lambda record: f"{record.utc(digits=9)}Z "),
    "docker compose": prefix_each(lambda record: f"trainer-{record.node + 1}  | "),
    "CRI": wrap_cri,
    "kubectl --timestamps": prefix_each(lambda record: f"{record.utc(digits=9)}Z "),
    "kubectl --prefix": prefix_each(lambda record: f"[pod/{record.pod}/pytorch] "),
    "stern": prefix_each(lambda record: f"{record.pod} pytorch "),
    "Fluent Bit": wrap_fluent_bit,
    "GitHub Actions": prefix_each(lambda record: f"{record.utc(digits=7)}Z "),
    "GitLab": prefix_each(lambda record: f"{record.utc(digits=6)}Z 01{'E' if record.stream == 'stderr' else 'O'} "),
    "Jenkins": prefix_each(lambda record: f"[{record.utc(digits=3)}Z] "),
    "journald JSON": wrap_journald_json,
    "journald export": wrap_journald_export,
    "journalctl -o short-iso": prefix_each(
        lambda record: f"{record.local()}{record.offset()} {record.host} train[{record.pid}]: "
    ),
    "syslog": prefix_each(
        lambda record: f"{record.local('%b %e %H:%M:%S')} {record.host.partition('.')[0]} train[{record.pid}]: "
    ),
    "moreutils ts": prefix_each(lambda record: record.local("%b %d %H:%M:%S ")),
    "ISO ts": prefix_each(lambda record: record.local("%Y-%m-%d %H:%M:%S ")),
    "PAI DLC": prefix_each(
        lambda record: f"{record.local('%Y-%m-%d %H:%M:%S')}.{record.micros % 1_000_000:06d} {record.host} >> "
    ),
    "CloudWatch export": wrap_cloudwatch_export,
    "aws logs tail": prefix_each(lambda record: f"{record.utc(digits=6)}+00:00 train/algo-{record.node + 1} "),
    "aws logs get-log-events": wrap_aws_json,
    "pdsh": prefix_each(lambda record: f"{record.host.partition('.')[0]}: "),
}
"""The wrappers by name, in a fixed order."""


def _readable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _cut(text: str, width: int | None) -> list[str]:
    step = width or len(text) or 1
    return [text[at : at + step] for at in range(0, len(text), step)] or [""]
