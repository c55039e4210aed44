from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.shared_catalog import OPTIONS, share_catalog
from triage import ingest

_SURE = 0.5


def _read_cases() -> list[Any]:
    cases = yaml.safe_load((Path(__file__).parent / "near_misses.yaml").read_text())
    return [
        pytest.param(
            case,
            id=f"{case['id']}-{number}",
            marks=[pytest.mark.xfail(reason=case["open"], strict=True)] if "open" in case else [],
        )
        for number, case in enumerate(cases)
    ]


@pytest.fixture(scope="module", autouse=True)
def _catalog() -> Iterator[None]:
    with share_catalog():
        yield


@pytest.mark.parametrize("case", _read_cases())
def test_a_near_miss_is_not_the_cause(case: dict[str, Any], tmp_path: Path) -> None:
    """Another failure may be named where there is one; what harmed nothing is no sure cause."""
    (tmp_path / "job.log").write_text(case["text"].rstrip("\n") + "\n")
    root = ingest([str(tmp_path)], options=OPTIONS).root_cause
    claimed = root.signature if root is not None and root.confidence >= _SURE else None
    assert claimed != case["id"]
    assert claimed is None or claimed in case.get("right", ())


def test_there_are_two_near_misses_of_each_kind_of_cause() -> None:
    """At least 400 lines, two for each cause."""
    counts: dict[str, int] = {}
    for case in yaml.safe_load((Path(__file__).parent / "near_misses.yaml").read_text()):
        counts[case["id"]] = counts.get(case["id"], 0) + 1
    assert sum(counts.values()) >= 400
    assert min(counts.values()) >= 2
