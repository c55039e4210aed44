"""torchelastic's error.json, as every version writes it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

import triage
from triage import artifacts
from triage.artifacts.error_file import extract_exceptions
from triage.artifacts.interface import Artifact, ArtifactError
from triage.model.evidence import Evidence, Source
from triage.testing.jobs import JobBuilder

SOURCE = Source("logs/none_run/attempt_0/3/error.json", "error-file")
STACK = 'Traceback (most recent call last):\n  File "/w/train.py", line 25, in main\n    run()\nValueError: no tokens\n'


def read(content: object) -> list[Evidence]:
    return extract_exceptions(Artifact(SOURCE, json.dumps(content).encode()))


def test_recorded_exception() -> None:
    """Type, message and place of the exception come from the stack, its time from the file."""
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


def test_stack_in_the_message() -> None:
    """The message of older versions is the stack itself."""
    (fact,) = read({"message": STACK})
    assert fact.fields["type"] == "ValueError"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"message": '])
def test_damage_is_an_artifact_error(data: bytes) -> None:
    """A damaged file gives an error with a hint."""
    with pytest.raises(ArtifactError) as caught:
        extract_exceptions(Artifact(SOURCE, data))
    assert caught.value.hint


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(JSON, JSON)
def test_any_json_is_read_or_refused(message: object, info: object) -> None:
    """Values of unexpected types never give another error than ArtifactError."""
    for content in (
        message,
        {"message": message, "extraInfo": info},
        {"message": message, "extraInfo": {"py_callstack": info, "timestamp": message}},
    ):
        assert all(fact.kind == "exception" for fact in read({"message": content}))


@pytest.mark.parametrize("timestamp", ["nan", "inf", "-1e300", 1e300, None, "yesterday", True])
def test_impossible_time_is_ignored(timestamp: object) -> None:
    """An impossible timestamp leaves the time unknown."""
    (fact,) = read({"message": {"message": "x", "extraInfo": {"py_callstack": STACK, "timestamp": timestamp}}})
    assert fact.origin.time is None


def test_unreadable_artifacts_are_warnings() -> None:
    """Artifacts without a reader and damaged ones give a warning each."""
    unreadable = [Artifact(SOURCE, b"{"), Artifact(Source("x.bin", "binary"), b"")]
    result = artifacts.read_artifacts(unreadable)
    assert result.evidence == []
    assert sorted((warning.code, warning.source) for warning in result.warnings) == [
        ("artifact-not-read", "x.bin"),
        ("damaged-artifact", SOURCE.name),
    ]


def test_error_file_belongs_to_the_rank_of_its_directory(tmp_path: object) -> None:
    """With redirected logs, the exception of an error file counts once, for the rank of its directory."""
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
