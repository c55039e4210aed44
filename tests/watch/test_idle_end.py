"""Jobs that stop writing without a line that the catalog knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.watch.replay import POLL, Clock, start_watch
from triage.model.watch import WatchEvent
from triage.render import watch as rendering
from triage.watch.loop import IDLE, Watch


def write_steps(path: Path, first: int, last: int, end: str = "") -> None:
    """Append one step a second and a last line."""
    lines = (
        f"[rank0]: 2026-03-02 04:00:{step:02},000 INFO train: step={step} loss=2.1\n" for step in range(first, last)
    )
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(lines) + end)


def pass_time(watch: Watch, clock: Clock, seconds: float) -> list[WatchEvent]:
    """Return the events of so many seconds."""
    events = []
    for _ in range(round(seconds / POLL)):
        clock.now += POLL
        events += watch.step()
    return events


@pytest.mark.parametrize(
    ("seconds", "kinds"), [(IDLE - 10, []), (IDLE + 10, ["inconclusive"]), (3 * IDLE, ["inconclusive"])]
)
def test_an_unknown_end_is_reported_once(seconds: float, kinds: list[str], tmp_path: Path) -> None:
    """When all files are idle for the configured time, and no earlier; the last lines are shown."""
    clock = Clock()
    watch = start_watch(tmp_path, clock)
    write_steps(tmp_path / "train.log", 1, 40)
    events = pass_time(watch, clock, seconds)
    assert [event.kind for event in events] == kinds
    assert [event.kind for event in watch.end()] == []
    for event in events:
        text = rendering.as_text(event)
        assert "INCONCLUSIVE all files stopped growing. No line says that the job finished" in text
        assert "train.log:39: " in text
        assert '"event": "inconclusive"' in rendering.as_json(event)


def test_a_job_that_goes_on_and_fails_is_reported(tmp_path: Path) -> None:
    """After an inconclusive pause its failure is an event of its own, and a second pause is none."""
    clock = Clock()
    watch = start_watch(tmp_path, clock)
    write_steps(tmp_path / "train.log", 1, 20)
    assert [event.kind for event in pass_time(watch, clock, IDLE + 10)] == ["inconclusive"]
    write_steps(tmp_path / "train.log", 20, 40)
    assert pass_time(watch, clock, IDLE + 10) == []
    write_steps(tmp_path / "train.log", 40, 50, "[rank0]: torch.OutOfMemoryError: CUDA out of memory.\n")
    assert "failure" in [event.kind for event in pass_time(watch, clock, 60)]


@pytest.mark.parametrize(
    ("end", "kinds"),
    [
        ("[rank0]: %FDR-F-GONE, the feeder has vanished\n", ["failure"]),
        ("[rank0]: 2026-03-02 04:00:50,000 INFO train: training finished\n", []),
    ],
)
def test_an_ending_by_form_is_reported_when_all_is_idle(end: str, kinds: list[str], tmp_path: Path) -> None:
    """The same diagnosis as that of `triage ingest`; a proof of a good end is no event."""
    clock = Clock()
    watch = start_watch(tmp_path, clock)
    write_steps(tmp_path / "train.log", 1, 40, end)
    events = pass_time(watch, clock, IDLE + 10)
    assert [event.kind for event in events] == kinds
    assert all(event.diagnosis and "GONE" in event.diagnosis.root_cause.title for event in events)  # type: ignore[union-attr]


def test_a_job_of_slow_steps_is_not_idle(tmp_path: Path) -> None:
    """A step of ten minutes: three of them must be missing."""
    clock = Clock()
    watch = start_watch(tmp_path, clock)
    for step in range(1, 6):
        write_steps(tmp_path / "train.log", step, step + 1)
        assert pass_time(watch, clock, 600) == []
    assert watch.pace.usual == pytest.approx(600, abs=5)
    assert "inconclusive" not in [event.kind for event in pass_time(watch, clock, 2 * 600 - 30)]
    assert "inconclusive" in [event.kind for event in pass_time(watch, clock, 60)]


def test_a_job_without_a_line_has_no_end(tmp_path: Path) -> None:
    """A job that has not started is no event."""
    clock = Clock()
    watch = start_watch(tmp_path, clock)
    assert pass_time(watch, clock, 2 * IDLE) == []


@pytest.mark.parametrize("is_known_file", [True, False])
def test_a_failure_in_the_last_lines_is_reported_at_the_end(tmp_path: Path, is_known_file: bool) -> None:
    """A sidecar gets SIGTERM right after the trainer's last line, before it looks again."""
    clock = Clock()
    watch = start_watch(tmp_path, clock)
    if is_known_file:
        write_steps(tmp_path / "train.log", 1, 20)
        assert pass_time(watch, clock, 10) == []
    write_steps(tmp_path / "train.log", 20, 40, "[rank0]: torch.OutOfMemoryError: CUDA out of memory.\n")
    assert [event.kind for event in watch.end()] == ["failure"]
