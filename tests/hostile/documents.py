"""Hostile JSON: error files, dumps and logs whose lines are objects."""

from __future__ import annotations

import json

from tests.hostile.model import MIB, HostileCase, Job, repeat

ERROR = b'{"message": {"message": "%s", "extraInfo": {"py_callstack": "%s", "timestamp": "%s"}}}'


def write_deep_error_file(job: Job) -> None:
    """An error file of a million open lists."""
    job.write("error.json", (b'{"message": {"message": ', *repeat(b"[", job.size(100_000, 3 * MIB))))


def write_huge_number(job: Job) -> None:
    """An error file with a number of a million digits, and times beyond all clocks."""
    job.write("0/error.json", b'{"message": {"message": %s}}' % (b"9" * 1_000_000))
    job.write("1/error.json", ERROR % (b"x", b"y", b"1e999"))
    job.write("2/error.json", ERROR % (b"x", b"y", b"-99999999999999999999"))


def write_strange_error_files(job: Job) -> None:
    """Error files whose fields have other types, keys twice, and halves of surrogate pairs."""
    texts = (b'{"message": {"message": {}, "extraInfo": []}}', b'{"message": {"errorCode": 1}, "message": NaN}')
    for number, text in enumerate((*texts, ERROR % (b"\\ud800", b"\\udfff\\u0000", b"nan"))):
        job.write(f"{number}/error.json", text)


def write_cut_error_file(job: Job) -> None:
    """An error file that was cut."""
    job.write("error.json", (ERROR % (b"x", b"y" * 999, b"1"))[:500])


def write_deep_lines(job: Job) -> None:
    """A log of objects, some of which nest a hundred thousand times, within fields that are read."""
    deep = b"[" * 100_000
    lines = [b'{"level": "ERROR", "message": "x", "exception": %s\n' % deep, b'{"MESSAGE": %s\n' % deep]
    job.write("json.log", b"".join((b'{"level": "INFO", "message": "step 1"}\n', *lines)) * 20)


def write_strange_lines(job: Job) -> None:
    """A log of objects with wrong types, keys twice, NaN, halves of surrogate pairs and numbers without end."""
    number = "9" * 5000
    lines = [
        '{"level": ["ERROR"], "msg": {"a": 1}, "ts": 1e400, "rank": -1}',
        '{"level": "INFO", "level": "INFO", "message": "\\ud83d", "message": "\\u0000"}',
        '{"message": NaN, "time": Infinity, "rank": 99999999999999999999}',
        f'{{"message": "x", "rank": {number}, "pid": {number}, "local_rank": "{number}"}}',
        '{"MESSAGE": [300, -1, "a"], "__REALTIME_TIMESTAMP": "999999999999999999999999"}',
        '{"log": "a\\n", "stream": "stdout", "time": "9999-99-99T99:99:99.999999999999Z"}',
    ]
    job.write("json.log", "\n".join(lines * 500).encode())


def write_long_object(job: Job) -> None:
    """One object of many megabytes on one line."""
    parts = b",".join(b'"k%d": "v"' % number for number in range(job.size(100_000, 5_000_000)))
    job.write("json.log", b'{"level": "INFO", "message": "x", ' + parts + b"}\n")


def write_wide_report(job: Job) -> None:
    """A dump of Flight Recorder as JSON in which every second key is there twice."""
    text = json.dumps({"version": "2.1", "pg_config": {}, "pg_status": {}, "entries": []})
    job.write("fr_rank_0", text[:-1].encode() + b', "entries": {}, "pg_config": []' * 50_000 + b"}")


READ = "its lines are read as text, and what is not valid stays as it is"
CASES = (
    HostileCase("json: deep error file", write_deep_error_file, r"damaged-artifact: .*error file"),
    HostileCase("json: number of a million digits", write_huge_number, r"damaged-artifact: .*ValueError"),
    HostileCase("json: error files of other types", write_strange_error_files, "", "no exception is in them"),
    HostileCase("json: cut error file", write_cut_error_file, r"damaged-artifact: .*JSONDecodeError"),
    HostileCase("json: deep lines", write_deep_lines, "", READ),
    HostileCase("json: lines of other types", write_strange_lines, "", READ),
    HostileCase("json: object of megabytes", write_long_object, "", READ, seconds=300),
    HostileCase("json: keys twice", write_wide_report, r"damaged-artifact: "),
)
