"""triage.ranks.json_errors"""

from __future__ import annotations

import json
from typing import Any

import pytest

from triage.ranks.json_errors import read_errors

FRAME = {"filename": "a.py", "lineno": 3, "name": "f", "line": "g()"}


def errors_of(record: Any) -> list[tuple[str, str]]:
    """Return the errors of a record as JSON."""
    return read_errors(json.dumps(record))


def test_an_exception_with_frames_is_a_traceback() -> None:
    """structlog's exception, with the code of a frame where it has one."""
    frames = [FRAME, {"file": "b.py", "line": "12", "method": "h"}, {"path": "c.py", "lineno": "x"}]
    record = {"level": "error", "exception": [{"exc_type": "ValueError", "exc_value": "x", "frames": frames}]}
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\n'
        '  File "b.py", line 12, in h\n  File "c.py", line 0, in ?\nValueError: x'
    )
    assert errors_of(record) == [("exception", text)]


@pytest.mark.parametrize(("count", "most"), [(400, 400), (401, 400)])
def test_at_most_400_frames_are_read(count: int, most: int) -> None:
    """The outermost ones."""
    record = {"exception": {"exc_type": "RecursionError", "frames": [{"filename": "a.py", "lineno": 1}] * count}}
    [(_, text)] = errors_of(record)
    assert len(text.split("\n")) == most + 2


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ({"kind": "OSError", "message": "full"}, "OSError: full"),
        ({"kind": "OSError"}, "OSError"),
        ({"message": "full", "type": 3}, "full"),
        ({"type": "OSError", "message": "full", "stack": "OSError: full\n at a"}, "OSError: full\n at a"),
        ({"type": "OSError", "message": "full", "stack": " at a"}, "OSError: full\n at a"),
        ({"type": "OSError", "stack": " at a"}, " at a"),
        ({"type": "OSError", "message": "full", "stack": " "}, "OSError: full"),
        ({"type": "OSError", "message": "full", "stack": []}, "OSError: full"),
        ({"type": "OSError", "message": "full", "stack": ["at a", 3, "at b"]}, "OSError: full\nat a\nat b"),
        ({"type": "OSError", "message": "full", "stack": ["OSError: full", "at b"]}, "OSError: full\nat b"),
        ({"type": "OSError", "stack": ["at a"]}, "OSError\nat a"),
    ],
)
def test_an_error_object_is_its_stack_or_its_message(error: dict[str, Any], text: str) -> None:
    """The headline stands above a stack that does not hold the message."""
    assert errors_of({"err": error}) == [("err", text)]


def test_errors_stand_anywhere_in_a_record() -> None:
    """In lists and nested objects; texts, numbers and empty errors are none."""
    record = {
        "err": {"code": 3},
        "errors": ["a", {"msg": "b"}, 3, ["c"]],
        "data": {"stack": ["at a", "at b"], "trace": ["at c", 3], "frames": []},
        "error": "as text",
    }
    assert errors_of(record) == [("errors", "a"), ("errors", "b"), ("stack", "at a\nat b")]


@pytest.mark.parametrize(("depth", "count"), [(6, 1), (7, 0)])
def test_errors_are_read_to_a_depth_of_six(depth: int, count: int) -> None:
    """Deeper objects are not searched."""
    record: Any = {"err": {"msg": "x"}}
    for _ in range(depth):
        record = {"data": record}
    assert len(errors_of(record)) == count


@pytest.mark.parametrize(("length", "count"), [(1 << 18, 1), ((1 << 18) + 1, 0)])
def test_a_very_long_record_is_not_read(length: int, count: int) -> None:
    """Up to 256 Ki characters."""
    record = json.dumps({"err": {"msg": "x"}})
    assert len(read_errors(record.rjust(length))) == count


@pytest.mark.parametrize("text", ['{"err": {"msg": "x"}', '{"level": "error"}', '"err": {', ""])
def test_other_text_holds_no_error(text: str) -> None:
    """A record that is cut or has no error as an object."""
    assert read_errors(text) == []


def test_text_around_the_record_does_not_matter() -> None:
    """A prefix before it, or a newline behind it."""
    assert read_errors('2026-11-21 {"err": {"msg": "x"}} \n') == [("err", "x")]
