"""docs/team.md: the week of a support team, played with as many jobs."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.effort import is_thorough
from tests.shared_catalog import share_catalog
from triage.store import Store

DOCS = Path(__file__).resolve().parents[1] / "docs"
JOBS = 500 if is_thorough() else 150


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that writes the page."""
    spec = importlib.util.spec_from_file_location("team_script", DOCS / "team.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_week_is_what_the_page_tells(script: ModuleType, tmp_path: Path) -> None:
    """A cause is assigned, fixed, ignored and comes back, a cluster is named, and the page has these days."""
    arrivals = script.draw_arrivals(JOBS)
    with share_catalog():
        jobs = [(arrival, script.diagnose(arrival)) for arrival in arrivals]
    again, when = arrivals[-1], script.evening(4) - 1  # the cause that is fixed on Tuesday comes back on Friday
    with Store.open(tmp_path / "first.db") as store:
        fixed = script.play(store, jobs).fixed
        plan = next(arrival for arrival, made in jobs if made.root_cause and made.root_cause.signature == fixed).plan
    again = script.Arrival(script.dataclasses.replace(plan, seed=plan.seed + 10_000), when)
    jobs = sorted([*jobs, (again, script.diagnose(again))], key=lambda item: item[0].at)
    with Store.open(tmp_path / "second.db") as store:
        team = script.play(store, jobs)
        page = script.write_page(team, len(jobs))
        assert team.verdicts.total() == len(jobs)
        assert len(store.search.list_incidents(limit=2 * JOBS + 2)) == len({made.job.id for _, made in jobs})
        cause = store.causes.get(team.fixed, now=script.evening(6))
        assert (cause.status, cause.assignee, cause.ticket) == ("regressed", "mira", "T-381")
        assert store.causes.get(team.ignored, now=script.evening(4)).status == "ignored"
        assert store.causes.get(team.ignored, now=script.evening(6)).status == "open"
        assert any(cluster.name for cluster in store.clusters.list_clusters())
    assert re.search(r"comes back: \d+ failures? since the fix, so it is regressed\. The report", page)
    assert "Last fixed in trainer 4.2 on 2026-03-03. Assigned to mira. Ticket: T-381. Last comment by mira" in page
    assert headings(page) == headings((DOCS / "team.md").read_text(encoding="utf-8"))


def headings(page: str) -> list[str]:
    """Return the headings, and the sentences that have no number and no name of a cause."""
    return re.findall(r"^#.*|^The team opens.*", page, re.MULTILINE)
