"""An unknown failure that looks like a new wording of a signature says so, and stays unknown."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import triage
from tests.diagnose.factories import fact
from triage.catalog.model import Catalog
from triage.diagnose import diagnose
from triage.diagnose.candidates import Candidate
from triage.diagnose.causes import Verdict
from triage.diagnose.near_misses import MOST_CANDIDATES, MOST_TEXTS, name_near_misses
from triage.ranks.identity import JobMap
from triage.render import json as json_report, json_reader
from triage.store.codec import decode_diagnosis, encode_diagnosis

STEPS = [f"[2026-03-01 10:00:{second:02d}] step {second} loss {3 - second / 50:.3f}" for second in range(40)]
TRACEBACK = ["Traceback (most recent call last):", '  File "train.py", line 8, in <module>', "    step()"]
NEAR = "RuntimeError: cuda out-of-memory: tried to allocate 2.00 GiB"
SENTENCE = "Looks like a new wording of cuda.out-of-memory: only case, punctuation or values differ"


def ingest(directory: Path, *lines: str) -> triage.Diagnosis:
    """Diagnose a job of one rank with these lines at its end."""
    (directory / "rank0.log").write_text("\n".join([*STEPS, *lines]) + "\n", "utf-8")
    return triage.ingest(directory)


def test_an_unknown_failure_names_the_signature(tmp_path: Path) -> None:
    """The reason is in `why`, the id in `similar`; the verdict stays unknown."""
    diagnosis = ingest(tmp_path, *TRACEBACK, NEAR)
    assert diagnosis.verdict == "unknown"
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.signature is None
    assert SENTENCE in diagnosis.root_cause.why
    assert [finding.similar for finding in diagnosis.unknown] == [("cuda.out-of-memory",)]


def test_another_failure_names_none(tmp_path: Path) -> None:
    """Too different: nothing is said."""
    diagnosis = ingest(tmp_path, *TRACEBACK, "RuntimeError: the GPU allocator gave up")
    assert diagnosis.verdict == "unknown"
    assert diagnosis.unknown[0].similar == ()
    assert not any("new wording" in sentence for sentence in diagnosis.root_cause.why)  # type: ignore[union-attr]


def test_a_healthy_line_is_not_looked_at(tmp_path: Path) -> None:
    """A line like a signature's in the middle of a job that went on is no failure and no near miss."""
    (tmp_path / "rank0.log").write_text("\n".join([*STEPS[:20], NEAR.partition(": ")[2], *STEPS[20:]]) + "\n", "utf-8")
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.verdict in ("clean", "inconclusive")
    assert diagnosis.unknown == ()


def test_a_known_failure_has_no_near_miss(tmp_path: Path) -> None:
    """What a signature knows is not compared."""
    diagnosis = ingest(tmp_path, *TRACEBACK, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    assert diagnosis.verdict == "known"
    assert all(finding.similar == () for finding in (*diagnosis.findings, *diagnosis.unknown))


def test_reports_and_the_store_keep_it(tmp_path: Path) -> None:
    """JSON has `similar`, and both the JSON report and the store give it back."""
    diagnosis = ingest(tmp_path, *TRACEBACK, NEAR)
    text = json_report.render(diagnosis)
    assert json.loads(text)["unknown"][0]["similar"] == ["cuda.out-of-memory"]
    assert json_reader.read(text, "report.json").unknown[0].similar == ("cuda.out-of-memory",)
    assert decode_diagnosis(encode_diagnosis(diagnosis), {}).unknown == diagnosis.unknown


def candidate(*texts: str, cluster: str = "u-other") -> Candidate:
    """Return an unknown failure with these texts."""
    return Candidate(None, cluster, [fact(text, rank, kind="exception") for rank, text in enumerate(texts)])


def named(candidates: list[Candidate], root: Candidate | None, catalog: Catalog) -> list[str]:
    """Return the clusters for which a near miss was found."""
    result = dataclasses.replace(
        diagnose([], [], JobMap(), catalog), candidates=tuple(candidates), verdict=Verdict(root, (), 0.5)
    )
    name_near_misses(result, catalog.signatures)
    return [one.id for one in candidates if one.similar]


def test_only_some_failures_of_a_job_are_compared(catalog: Catalog) -> None:
    """A job with thousands of different failures takes bounded time; the root cause is always compared."""
    for count, is_root, expected in (
        (MOST_CANDIDATES - 1, False, ["u-near"]),
        (MOST_CANDIDATES, False, []),
        (MOST_CANDIDATES, True, ["u-near"]),
    ):
        near = candidate(NEAR, cluster="u-near")
        others = [candidate("RuntimeError: boom", cluster=f"u-{number}") for number in range(count)]
        assert named([*others, near], near if is_root else None, catalog) == expected


def test_only_some_texts_of_a_failure_are_compared(catalog: Catalog) -> None:
    """Of a failure in many wordings the first different ones are compared."""
    for others, expected in ((MOST_TEXTS - 1, ["u-other"]), (MOST_TEXTS, [])):
        texts = [f"RuntimeError: boom {'again ' * number}" for number in range(others)]
        assert named([candidate(*texts, *texts, NEAR)], None, catalog) == expected


def test_a_bare_exit_status_is_not_compared(catalog: Catalog) -> None:
    """The sentence of a launcher about a process is no message of the failure."""
    bare = Candidate(None, "u-exit", [fact(NEAR, 0, kind="exit")])
    assert named([bare], None, catalog) == []
