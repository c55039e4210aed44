from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.shared_catalog import OPTIONS, share_catalog
from triage import ingest

CASES = Path(__file__).parent / "counter_samples"


class CounterSample(NamedTuple):
    """A log of a few lines, and what must hold of its report.

    `root` is the id of the root cause ("" = none has a confidence of 0.5 or more), `finds` must be among the findings,
    `never` must not, `action` is that of the root's remediation, and `says` is a part of its title or summary.
    """

    text: str
    root: str | None = None
    finds: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    action: str | None = None
    says: str = ""
    why: str = ""


def _read_cases() -> list[object]:
    cases = []
    for path in sorted(CASES.glob("*.yaml")):
        for number, entry in enumerate(yaml.safe_load(path.read_text()), 1):
            assert set(entry) <= set(CounterSample._fields), f"{path}: case {number} has an unknown key"
            sample = CounterSample(**{k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()})
            cases.append(pytest.param(sample, id=f"{path.stem}-{number}"))
    return cases


@pytest.fixture(scope="module", autouse=True)
def _shared_catalog() -> Iterator[None]:
    with share_catalog():
        yield


@pytest.mark.parametrize("case", _read_cases())
def test_a_line_that_resembles_a_failure_is_not_taken_for_it(case: CounterSample, tmp_path: Path) -> None:
    """What was once matched too widely, or missed, now has the finding and the advice that it deserves."""
    (tmp_path / "job.log").write_text(case.text if case.text.endswith("\n") else case.text + "\n")
    diagnosis = ingest([str(tmp_path)], OPTIONS)
    root = diagnosis.root_cause
    claimed = root.signature or "" if root is not None and root.confidence >= 0.5 else ""
    if case.root is not None:
        assert claimed == case.root
    findings = {finding.signature for finding in diagnosis.findings}
    assert set(case.finds) <= findings
    assert not findings & set(case.never)
    if case.action is not None:
        assert root is not None
        assert _read_action(root.signature) == case.action
    if case.says:
        assert root is not None
        assert case.says in f"{root.title} {root.remediation.summary}"


def _read_action(identifier: str | None) -> str:
    from triage import api

    assert identifier is not None
    return api.signature(identifier).action
