"""Every drill, once and with fixed faults; `make drill` repeats them at random moments."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.drills import DRILLS
from tests.drills.__main__ import main, repeat_drill
from tests.drills.site import Drill, DrillSite
from triage.store import Store

SEED = 7
NEEDS_MOUNTS = {"fill_disk", "forbid_writing"}


@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.__name__)
def test_nothing_is_lost(drill: Drill, tmp_path: Path) -> None:
    """After a fault the store has what was reported, and no process and no temporary file is left."""
    site = DrillSite(tmp_path / "site", SEED)
    drill(site)
    if not site.faults and drill.__name__ in NEEDS_MOUNTS:
        pytest.skip("file systems may not be mounted here")
    assert site.faults >= 1
    assert site.losses == []


def test_a_site_sees_losses(tmp_path: Path) -> None:
    """An incident that is gone, one that is half there and one that nobody ingested are losses."""
    site = DrillSite(tmp_path / "site", SEED)
    first, second = site.add_job("first"), site.add_job("second")
    site.run("ingest", first, "--quiet")
    site.check_store([first])
    assert site.losses == []
    site.check_store([first, second])
    assert site.losses == [f"lost: {[str(second)]}"]
    with Store.open(site.store) as store:
        store.connections.execute("DELETE FROM finding")
    site.check_store([first])
    assert "it has no root cause" in site.losses[1]
    del site.losses[:]
    site.run("ingest", second, "--quiet", "--store", tmp_path / "other.db")
    site.store = tmp_path / "other.db"
    site.forget_job(second)
    site.check_store()
    assert site.losses[0] == f"nobody ingested {second}"


def test_a_site_sees_what_is_left(tmp_path: Path) -> None:
    """A process that goes on and a temporary file are losses; the process is ended."""
    site = DrillSite(tmp_path / "site", SEED)
    site.patience = 0.1
    process = site.start("ingest", "-", stdin=-1)
    (site.scratch / "triage-1").write_text("x")
    while not site.list_processes():  # on a busy machine its environment is there a moment after its pid
        time.sleep(0.01)
    site.check_processes()
    site.check_files()
    assert site.losses == [f"processes are left: [{process.pid}]", "files are left: ['tmp/triage-1']"]
    assert process.wait(10) == -9
    process.communicate()


def test_the_result_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result has date, commit, faults and losses of each drill; a loss is an exit status of 1."""

    def lose_one(site: DrillSite) -> None:
        """Lose one of two."""
        site.faults += 2
        site.check(site.chance.random() < 0, "one")

    assert repeat_drill(lose_one, 2, 5) == {
        "name": "lose_one",
        "summary": "Lose one of two.",
        "faults": 4,
        "survived": 2,
        "losses": ["seed 5: one", "seed 6: one"],
    }
    monkeypatch.setattr("tests.drills.__main__.DRILLS", (lose_one,))
    monkeypatch.setattr("bench.trust.RESULTS", tmp_path)
    assert main(["--rounds", "3", "--seed", "1"]) == 1
    result = json.loads((tmp_path / "drill.json").read_text())
    assert (result["faults"], result["survived"], result["losses"], result["rounds"]) == (6, 3, 3, 3)
    assert result["rows"] == [["lose_one", 6, 3, "Lose one of two."]]
    assert result["commit"]
    assert main(["--only", "no such drill"]) == 2
