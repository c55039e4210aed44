from __future__ import annotations

import contextlib
import json as std
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from triage.base.errors import ReportError
from triage.model.evidence import Evidence, Origin
from triage.render import json

from .factories import ALL, CAUSE, INCONCLUSIVE, KNOWN, UNKNOWN_ROOT, diagnoses

FINDING_KEYS = [
    "signature",
    "revision",
    "fingerprint",
    "title",
    "domain",
    "role",
    "severity",
    "confidence",
    "ranks",
    "hosts",
    "count",
    "first_time",
    "explained_by",
    "why",
    "captures",
    "evidence",
    "remediation",
]


@given(diagnoses)
def test_a_report_reads_back_as_it_was(diagnosis: object) -> None:
    """`read` is the inverse of `render` for everything the contract carries."""
    assert json.read(json.render(diagnosis)) == diagnosis  # type: ignore[arg-type]


@given(diagnoses)
def test_the_report_is_strict_json_without_active_characters(diagnosis: object) -> None:
    """It encodes as UTF-8, holds no control but the line end, and is the same each time."""
    written = json.render(diagnosis)  # type: ignore[arg-type]
    written.encode()
    assert not any(
        (ord(character) < 32 and character != "\n") or 0x7F <= ord(character) <= 0x9F for character in written
    )
    assert not set(written) & set("\u202e\u2066\u2028")
    assert written == json.render(diagnosis)  # type: ignore[arg-type]


def test_keys_and_their_order_are_those_of_the_contract() -> None:
    """The keys of docs/json.md, in its order, at every level."""
    report = std.loads(json.render(KNOWN))
    assert list(report) == [
        "schema",
        "tool",
        "job",
        "verdict",
        "root_cause",
        "inconclusive",
        "findings",
        "unknown",
        "timeline",
        "ranks",
        "warnings",
        "stats",
    ]
    assert report["schema"] == "triage.diagnosis/2"
    assert report["inconclusive"] is None
    assert list(report["tool"]) == ["version", "catalog"]
    assert list(report["job"]) == [
        "id",
        "name",
        "path",
        "world_size",
        "ranks",
        "hosts",
        "first_time",
        "last_time",
        "versions",
    ]
    assert list(report["root_cause"]) == FINDING_KEYS
    assert list(report["root_cause"]["evidence"][0]) == [
        "source",
        "line",
        "end_line",
        "rank",
        "host",
        "time",
        "kind",
        "text",
    ]
    assert list(report["root_cause"]["remediation"]) == ["summary", "steps", "references"]
    assert list(report["unknown"][0]) == ["cluster", "title", "ranks", "count", "evidence", "similar"]
    assert list(report["timeline"][0]) == ["time", "rank", "what", "signature"]
    assert list(report["ranks"][0]) == ["rank", "host", "state", "last_step", "last_time"]
    assert list(report["warnings"][0]) == ["code", "source", "message"]
    assert list(report["stats"]) == ["files", "bytes", "hits", "seconds", "peak_memory_bytes"]


def test_an_unknown_root_names_its_cluster() -> None:
    """The signature is null and the cluster's id is there."""
    root = std.loads(json.render(UNKNOWN_ROOT))["root_cause"]
    assert root["signature"] is None
    assert root["cluster"] == "u-7f3a9c"


def test_the_local_rank_is_written_without_a_global_rank() -> None:
    """`rank` is null then."""
    item = Evidence("message", "app", "x", Origin(local_rank=3, host="n"), "a.log", 0)
    written = std.loads(json.render(replace(KNOWN, root_cause=replace(CAUSE, evidence=(item,)))))["root_cause"][
        "evidence"
    ][0]
    assert (written["rank"], written["local_rank"], written["host"]) == (None, 3, "n")


def test_times_are_utc_with_z() -> None:
    """Whole seconds have no fraction, others microseconds, impossible ones are null."""
    job = replace(KNOWN.job, first_time=0.0, last_time=1.5)
    written = std.loads(json.render(replace(KNOWN, job=job)))["job"]
    assert (written["first_time"], written["last_time"]) == ("1970-01-01T00:00:00Z", "1970-01-01T00:00:01.500000Z")
    assert std.loads(json.render(replace(KNOWN, job=replace(job, first_time=1e300))))["job"]["first_time"] is None


def test_a_surrogate_becomes_the_replacement_character() -> None:
    """A file name that is no UTF-8 does not make a report that strict readers refuse."""
    written = json.render(replace(KNOWN, job=replace(KNOWN.job, path="bad\udcff")))
    assert std.loads(written)["job"]["path"] == "bad\ufffd"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "not a triage report"),
        ("NaN", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"a": 1}', "not a triage report"),
        ('{"schema": "triage.diagnosis/3"}', "triage.diagnosis/3"),
        ('{"schema": "triage.diagnosis/2"}', "Object missing required field `[a-z_]+`"),
        ('{"schema": "triage.diagnosis/1"}', "Object missing required field `[a-z_]+`"),
    ],
)
def test_other_json_is_refused_with_a_hint(text: str, says: str) -> None:
    """A message, a hint, and never another exception."""
    with pytest.raises(ReportError, match=says) as caught:
        json.read(text, "r.json")
    assert caught.value.hint
    assert caught.value.path == "r.json"


def test_the_error_names_the_key() -> None:
    """A wrong value deep inside is found by its path."""
    report = std.loads(json.render(KNOWN))
    report["findings"][1]["ranks"] = ["zero"]
    with pytest.raises(ReportError, match=r"Expected `int`, got `str` - at `\$\.findings\[1\]\.ranks\[0\]`"):
        json.read(std.dumps(report))


def test_a_report_of_the_first_schema_is_read() -> None:
    """The first schema has neither the verdict nor the key `inconclusive`."""
    report = std.loads(json.render(KNOWN))
    del report["inconclusive"]
    report["schema"] = "triage.diagnosis/1"
    assert json.read(std.dumps(report)) == json.read(json.render(KNOWN))


def test_an_inconclusive_report_is_read_back() -> None:
    """Its lines, their numbers and times, and its sentences."""
    report = std.loads(json.render(INCONCLUSIVE))
    assert list(report["inconclusive"]) == ["why", "last_lines", "unusual_lines", "looked_for", "next_steps"]
    assert list(report["inconclusive"]["last_lines"][0]) == ["rank", "source", "line", "time", "text"]
    assert json.read(json.render(INCONCLUSIVE)).inconclusive == INCONCLUSIVE.inconclusive


def test_unknown_keys_are_ignored() -> None:
    """A report of a later version with the same schema can be read."""
    report = std.loads(json.render(KNOWN))
    report["root_cause"]["later"] = report["later"] = {"x": 1}
    assert json.read(std.dumps(report)) == json.read(json.render(KNOWN))


values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
)


@given(st.data())
def test_a_damaged_report_raises_nothing_else(data: st.DataObject) -> None:
    """Any value in any place is a ReportError, or is read so that writing and reading it again changes nothing."""
    report = std.loads(json.render(data.draw(st.sampled_from(ALL))))
    node = report
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(node[key], (dict, list)) and node[key] and data.draw(st.booleans()):
            node = node[key]
            continue
        node[key] = data.draw(values)
        break
    with contextlib.suppress(ReportError):
        text = json.render(json.read(std.dumps(report)))
        assert json.render(json.read(text)) == text
