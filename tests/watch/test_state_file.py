"""The state of a watch is saved and loaded."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from triage.base.errors import InputError
from triage.model.watch import Episode, WatchEvent
from triage.watch import state_file
from triage.watch.policy import Announcement

ANNOUNCED = {
    0: Announcement(("known", "cuda.out-of-memory", (3,)), 1, 1763700000.25),
    2: Announcement(("clean", "", ()), 2),
}
SILENT = WatchEvent("silent", 1763700000.5, "rank 3 wrote nothing for 9.0 s", (3,), hosts=("node1",))
STATE = state_file.WatchState(ANNOUNCED, frozenset({2}), Episode((SILENT,), frozenset({"silent 3"})), (2.0, 2.25))


def test_a_saved_state_is_loaded_for_the_same_files(tmp_path: Path) -> None:
    """The loaded state equals the saved one if one of the files is still followed."""
    state_file.save(tmp_path / "s" / "m.json", [(1, 2), (1, 3)], STATE)
    assert state_file.load(tmp_path / "s" / "m.json", [(1, 3), (1, 9)]) == STATE


def test_another_job_under_the_same_paths_gets_an_empty_state(tmp_path: Path) -> None:
    """Without a common file nothing is loaded."""
    state_file.save(tmp_path / "m.json", [(1, 2)], STATE)
    assert state_file.load(tmp_path / "m.json", [(1, 5)]) == state_file.WatchState()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 1}',
        '{"version": 9, "files": [[1, 2]], "said": {}}',
        '{"version": 3, "files": [[1, 2]], "said": {"x": 1}}',
        '{"version": 3, "files": [[1, 2]], "said": {}, "unsure": [], "episode": {"news": [], "wrong": []}, "base": []}',
    ],
)
def test_a_damaged_state_file_counts_as_empty(tmp_path: Path, text: str) -> None:
    """A repeated report is better than none."""
    (tmp_path / "m.json").write_text(text)
    assert state_file.load(tmp_path / "m.json", [(1, 2)]) == state_file.WatchState()


def test_parts_of_killed_watches_are_removed(tmp_path: Path) -> None:
    """Saving removes the parts of processes that are gone; those of living ones and other files stay."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    stay = {"m.json", f"m.json.{os.getppid()}.part", "m.json.backup", f"other.json.{gone.pid}.part"}
    for name in (*stay, f"m.json.{gone.pid}.part", f"m.json.{10**30}.part"):
        (tmp_path / name).write_text("{")
    state_file.save(tmp_path / "m.json", [(1, 2)], STATE)
    assert {path.name for path in tmp_path.iterdir()} == stay


def test_an_unwritable_state_file_gives_a_hint(tmp_path: Path) -> None:
    """The hint of the error names --state."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as caught:
        state_file.save(tmp_path / "file" / "m.json", [(1, 2)], STATE)
    assert "--state" in caught.value.hint


def test_the_default_path_does_not_depend_on_the_order_of_paths() -> None:
    """Only the set of watched paths decides."""
    assert (
        state_file.default_path(["/a", "/b"])
        == state_file.default_path(["/b", "/a"])
        != state_file.default_path(["/a"])
    )
