"""torchelastic's error.json, of every version that wrote one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import triage
from triage import artifacts
from triage.artifacts.error_file import facts
from triage.artifacts.interface import Artifact, ArtifactError
from triage.model.evidence import Evidence, Source
from triage.testing.jobs import JobBuilder

SOURCE = Source("logs/none_run/attempt_0/3/error.json", "error-file")
STACK = 'Traceback (most recent call last):\n  File "/w/train.py", line 25, in main\n    run()\nValueError: no tokens\n'


def read(content: object) -> list[Evidence]:
    return facts(Artifact(SOURCE, json.dumps(content).encode()))


def test_the_recorded_exception() -> None:
    """Type, message and place come from the stack, the time from the file."""
    (fact,) = read(
        {
            "message": {
                "message": "ValueError: no tokens",
                "extraInfo": {"py_callstack": STACK, "timestamp": "1795230487"},
            }
        }
    )
    assert (fact.kind, fact.text, fact.fields["line"], fact.origin.time, fact.source) == (
        "exception",
        "ValueError: no tokens",
        "25",
        1795230487.0,
        SOURCE.name,
    )


def test_a_plain_string_is_read() -> None:
    """Older versions store the stack as the message itself."""
    (fact,) = read({"message": STACK})
    assert fact.fields["type"] == "ValueError"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"message": '])
def test_damage_is_an_artifact_error(data: bytes) -> None:
    """What cannot be read says so, with a hint."""
    with pytest.raises(ArtifactError) as caught:
        facts(Artifact(SOURCE, data))
    assert caught.value.hint


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(JSON, JSON)
def test_any_json_is_survived(message: object, info: object) -> None:
    """Values of unexpected types give no facts or some, never another error."""
    for content in (
        message,
        {"message": message, "extraInfo": info},
        {"message": message, "extraInfo": {"py_callstack": info, "timestamp": message}},
    ):
        assert all(fact.kind == "exception" for fact in read({"message": content}))


@pytest.mark.parametrize("timestamp", ["nan", "inf", "-1e300", 1e300, None, "yesterday", True])
def test_a_time_that_is_none_is_not_taken(timestamp: object) -> None:
    """A timestamp that no clock shows leaves the time unknown."""
    (fact,) = read({"message": {"message": "x", "extraInfo": {"py_callstack": STACK, "timestamp": timestamp}}})
    assert fact.origin.time is None


def test_what_cannot_be_read_is_a_warning() -> None:
    """Kinds without a reader and damaged artifacts are told and left."""
    given = [Artifact(SOURCE, b"{"), Artifact(Source("x.bin", "binary"), b"")]
    found = artifacts.read(given)
    assert found.evidence == []
    assert sorted((warning.code, warning.source) for warning in found.warnings) == [
        ("artifact-not-read", "x.bin"),
        ("damaged-artifact", SOURCE.name),
    ]


def test_an_error_file_places_its_rank(tmp_path: object) -> None:
    """Beside redirected logs the error file's exception belongs to the rank of its directory, and is not counted twice."""
    job = JobBuilder(tmp_path / "job", layout="redirects").steps(2)  # type: ignore[operator]
    job.rank(3).traceback("ValueError: no tokens", [("/w/train.py", 25, "main")])
    directory = job.elastic_table({3: 1}).write()
    content = {
        "message": {"message": "ValueError: no tokens", "extraInfo": {"py_callstack": STACK, "timestamp": "1795228205"}}
    }
    (directory / SOURCE.name).write_text(json.dumps(content), encoding="utf-8")
    root = triage.ingest(directory).root_cause
    assert root is not None
    assert (root.ranks, root.count) == ((3,), 1)
