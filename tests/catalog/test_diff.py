"""What a change of signatures would change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.catalog.factories import GLOO, write
from triage.catalog.diff import CatalogDiff, FindingChange, SignatureChange
from triage.cli import main
from triage.render.catalog_diff import as_text

CLOSED = "gloo/transport/tcp/pair.cc:534 Connection closed by peer [10.0.0.1:29]"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The second directory lost a clause, got a signature and gave another title."""
    root = tmp_path_factory.mktemp("catalogs")
    old, new = root / "old", root / "new"
    write(old, "box.closed", GLOO)
    write(old, "box.gone", GLOO.replace("match:\n  any:", "match:\n  any:\n    - text: 'never said'"))
    narrowed = GLOO.replace("    - text: 'gloo/transport.*Connection closed by peer \\[(?P<peer>[^\\]]+)\\]'\n", "")
    write(
        new,
        "box.closed",
        narrowed.replace("revision: 1", "revision: 2").replace("A peer closed its", "Somebody closed the"),
    )
    write(new, "box.added", GLOO.replace("gloo/transport", "tcp/pair"))
    return old, new


def diff(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, list[dict[str, object]]]:
    assert main(["catalog", "diff", *map(str, arguments), "--format", "json"]) == 0
    result: dict[str, list[dict[str, object]]] = json.loads(capsys.readouterr().out)
    return result


def test_changed_signatures_and_samples(both: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Signatures are added, removed or changed, and samples show which findings change."""
    result = diff(capsys, *both)
    assert [(change["signature"], change["what"], change["parts"]) for change in result["changes"]] == [
        ("box.added", "added", []),
        ("box.closed", "changed", ["match", "words"]),
        ("box.gone", "removed", []),
    ]
    assert {"gone": ["box.closed", "box.gone"], "new": ["box.added"]} in [
        {key: moved[key] for key in ("gone", "new")} for moved in result["moved"]
    ]


def test_a_job_and_its_report_change_alike(
    both: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job and its stored report give the same changes."""
    old, new = both
    log = tmp_path / "job.log"
    log.write_text(f"step 1 loss 2.0\n[rank1]: RuntimeError: {CLOSED}\n", encoding="utf-8")
    report = tmp_path / "report.json"
    assert main(["ingest", str(log), "--catalog", str(old), "--format", "json", "-o", str(report)]) == 0
    for job in (log, report):
        (moved,) = diff(capsys, old, new, job)["moved"]
        assert moved["where"] == str(job)
        assert (moved["gone"], moved["new"]) == (["box.closed", "box.gone"], ["box.added"])
    assert diff(capsys, old, old, log, report)["moved"] == []


def test_text_has_one_line_per_change() -> None:
    """Signatures come first, then findings, then the sums."""
    result = CatalogDiff(
        (SignatureChange("box.closed", "changed", ("match", "words"), 1, 2), SignatureChange("box.gone", "removed")),
        (FindingChange("job.log", ("box.gone",), ("box.added",), ("box.gone", "unknown")),),
        7,
    )
    assert as_text(result).splitlines() == [
        "changed box.closed (revision 1 to 2): match, words",
        "removed box.gone",
        "",
        "job.log: -box.gone, +box.added, root cause box.gone becomes unknown",
        "2 signatures differ; findings change in 1 of 7",
    ]


@pytest.mark.parametrize("content", ["{", "[]", '{"findings": 1, "unknown": []}'])
def test_a_file_that_is_no_report_is_an_error(
    both: tuple[Path, Path], tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2 and the next step, no traceback."""
    path = tmp_path / "report.json"
    path.write_text(content, encoding="utf-8")
    assert main(["catalog", "diff", *map(str, both), str(path)]) == 2
    assert "triage ingest JOB --format json" in capsys.readouterr().err
