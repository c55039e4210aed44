"""Logs with the watchdog's lines, one file a rank or merged with prefixes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from triage.testing.schedules.evidence.dump_format import own_groups
from triage.testing.schedules.evidence.interface import Form, Scene, Shown, WrittenEvidence
from triage.testing.schedules.evidence.stack_frames import frames_of_call
from triage.testing.schedules.evidence.watchdog_texts import (
    VERSIONS,
    GroupStatus,
    Version,
    desync_report,
    op_type,
    signal_lines,
    timeout_lines,
    work_text,
)
from triage.testing.schedules.model import RankView, Record

_Line = tuple[float, str]
_LAYOUTS: tuple[str, ...] = ("files", "files", "attempts", "merged", "tee", "srun")


@dataclass(frozen=True, slots=True)
class _Caught:
    """A timeout that the watchdog of a group saw on a rank, seconds after the first step."""

    at: float
    group: int
    index: int
    record: Record


@dataclass(frozen=True, slots=True)
class _Manner:
    """How torch was configured."""

    version: Version
    has_desync: bool
    has_timing: bool
    has_recorder: bool


def write_logs(
    scene: Scene, rng: random.Random, versions: Sequence[Version] = VERSIONS, has_desync: bool = False,
    has_recorder: bool | None = None,
) -> WrittenEvidence:  # fmt: skip
    """Write what all ranks print until the job is taken down some seconds after the first timeout.

    `has_recorder`: the Flight Recorder is on, so that stacks are printed; drawn if None. `has_desync`:
    TORCH_NCCL_DESYNC_DEBUG is set, and with it timing.
    """
    version = rng.choice(versions)
    layout = rng.choice(_LAYOUTS if version >= (2, 2) else ("files", "attempts", "tee", "srun"))
    views = scene.views()
    patience = rng.uniform(3, 30)
    manner = _Manner(
        version,
        has_desync,
        has_desync or rng.random() < 0.3,
        rng.random() < 0.4 if has_recorder is None else has_recorder,
    )
    caught = {view.rank: _timeouts(scene, view, patience, rng) for view in views}
    times = [one.at for ones in caught.values() for one in ones]
    first = min(times, default=None)
    sender = min(((ones[0].at, rank) for rank, ones in caught.items() if ones), default=(0.0, None))[1]
    logs: dict[int, list[_Line]] = {}
    shown: dict[int, Shown] = {}
    for view in views:
        lines = _start_lines(scene, view, version)
        if first is not None and not view.has_left:
            lines += _rank_lines(scene, view, manner, caught[view.rank], sender, first)
        logs[view.rank] = lines
        shown[view.rank] = _shown(scene, view, version, caught[view.rank], has_desync)
    return WrittenEvidence(_lay_out(logs, layout, rng), shown)


def _timeouts(scene: Scene, view: RankView, patience: float, rng: random.Random) -> list[_Caught]:
    """Return the first open call of each group, if its time is over before the job is taken down."""
    if scene.outcome.fired is None or view.has_left:
        return []
    caught: dict[int, _Caught] = {}
    for index, record in enumerate(view.records):
        at = record.enqueued + scene.outcome.schedule.timeout + rng.uniform(0.01, 0.1)
        if record.completed is None and at < scene.outcome.fired + patience:
            caught.setdefault(record.call.group, _Caught(at, record.call.group, index, record))
    return sorted(caught.values(), key=lambda one: one.at)


def _status(scene: Scene, view: RankView, group: int, has_timing: bool) -> GroupStatus:
    groups = scene.outcome.schedule.groups
    records = [record for record in view.records if record.call.group == group]
    done = [record.sequence for record in records if record.completed is not None]
    started = [record for record in records if record.started is not None] if has_timing else []
    return GroupStatus(
        groups[group],
        own_groups(groups, view.rank).index(group),
        groups[group].ranks.index(view.rank),
        records[-1].sequence if records else -1,
        done[-1] if done else -1,
        started[-1].sequence if started else -1,
        op_type(started[-1].call) if started else "",
    )


def _start_lines(scene: Scene, view: RankView, version: Version) -> list[_Line]:
    size = scene.outcome.schedule.size
    lines = [(0.0, f"rank {view.rank} of {size} starts, torch {version[0]}.{version[1]}.0")]
    if view.rank == 0:
        ends = [one.completed for one in view.records if one.call.site == "reduce_loss" and one.completed is not None]
        lines += [(end, f"step {step} loss {11.0 / (step + 1):.4f}") for step, end in enumerate(ends, 1)]
    return lines


def _rank_lines(
    scene: Scene, view: RankView, manner: _Manner, caught: Sequence[_Caught], sender: int | None, first: float
) -> list[_Line]:
    """Return what a rank prints from the first timeout of the job on, `first`, until its process aborts."""
    version = manner.version
    lines: list[_Line] = []
    for one in caught:
        texts = _caught_texts(scene, view, manner, one)
        lines += [(one.at, _glog(scene, view.rank, version, one.at, number, text)) for number, text in texts]
        if one is caught[-1]:
            end = f"terminate called after throwing an instance of '{_exception(version)}'\n  what():  {texts[-1][1]}"
            lines.append((one.at + 30, end))
    if version >= (2, 4):
        at = first + 1.0
        status = _status(scene, view, 0, manner.has_timing)
        texts = signal_lines(version, status, None if sender == view.rank else sender)
        lines += [(at, _glog(scene, view.rank, version, at, number, text)) for number, text in texts]
    return lines


def _caught_texts(scene: Scene, view: RankView, manner: _Manner, one: _Caught) -> list[tuple[int, str]]:
    schedule, call = scene.outcome.schedule, one.record.call
    status = _status(scene, view, one.group, manner.has_timing)
    work = work_text(manner.version, call, one.record.sequence, schedule.groups[one.group], schedule.timeout)
    frames = frames_of_call(call, scene.script) if manner.has_recorder else ()
    milliseconds = int((one.at - one.record.enqueued) * 1000)
    texts = timeout_lines(manner.version, status, work, one.record.sequence, milliseconds, frames)
    if manner.has_desync:
        texts.insert(1, (texts[0][0] + 3, f"{status.prefix(manner.version)} {_desync(scene, one, status)}"))
    return texts


def _exception(version: Version) -> str:
    return "c10::DistBackendError" if version >= (2, 2) else "std::runtime_error"


def _desync(scene: Scene, one: _Caught, status: GroupStatus) -> str:
    """Return the report for a group: the last call that each member has started.

    It compares the numbers of sends and receives with those of collectives, as torch does.
    """
    latest: dict[int, tuple[int, str, bool]] = {}
    views = scene.views()
    for place, rank in enumerate(status.group.ranks):
        started = [
            record for record in views[rank].records if record.call.group == one.group and record.started is not None
        ]
        if started:
            last = started[-1]
            latest[place] = (last.sequence, op_type(last.call), last.completed is not None)
    return desync_report(status.own, one.record.call, one.record.sequence, latest, len(status.group.ranks))


def _glog(scene: Scene, rank: int, version: Version, at: float, line: int, text: str) -> str:
    place = f"ProcessGroupNCCL.cpp:{line}] {text}"
    if version < (2, 2):
        return f"[E {place}"
    if version < (2, 4):
        return f"[rank{rank}]:[E {place}"
    stamp = time.strftime("%m%d %H:%M:%S", time.gmtime(scene.start + at)).removeprefix("0")
    return f"[rank{rank}]:[E{stamp}.{(rank * 7919 + line * 104729) % 10**9:09d} {place}"


def _shown(scene: Scene, view: RankView, version: Version, caught: Sequence[_Caught], has_desync: bool) -> Shown:
    """Before 2.3 the lines do not name the group: they can be compared only if there is one."""
    if version < (2, 3) and len(scene.outcome.schedule.groups) > 1:
        return Shown(view, has_types=False, has_members=False)
    groups = {one.group for one in caught} if version >= (2, 3) else set()
    if version >= (2, 4) and not view.has_left:
        groups.add(0)
    if has_desync:
        groups.add(0)  # the report of another group counts within it
    records = frozenset(one.index for one in caught)
    return Shown(view, records, frozenset(groups), has_types=False, has_members=False)


def _lay_out(logs: Mapping[int, Sequence[_Line]], layout: str, rng: random.Random) -> dict[str, bytes]:
    ordered = {rank: sorted(lines, key=lambda line: line[0]) for rank, lines in logs.items()}
    if layout in ("files", "attempts"):
        name = (
            rng.choice(("logs/rank_{}.log", "rank{}.txt", "{}.err")) if layout == "files" else "attempt_0/{}/stderr.log"
        )
        return {
            name.format(rank): ("\n".join(text for _, text in lines) + "\n").encode() for rank, lines in ordered.items()
        }
    width = len(str(len(logs) - 1))
    label = {"merged": "", "tee": "[default{}]:", "srun": f"{{:>{width}}}: "}[layout]
    merged = sorted(
        (at, rank, number, part)
        for rank, lines in ordered.items()
        for number, (at, text) in enumerate(lines)
        for part in [text]
    )
    rows = [label.format(rank) + part for _, rank, _, text in merged for part in text.split("\n")]
    return {"train.log": ("\n".join(rows) + "\n").encode()}


def _write(versions: Sequence[Version], has_desync: bool = False) -> Callable[[Scene, random.Random], WrittenEvidence]:
    def write(scene: Scene, rng: random.Random) -> WrittenEvidence:
        return write_logs(scene, rng, versions, has_desync)

    return write


FORMS = (
    Form("watchdog-2.1-2.3", _write(VERSIONS[:3])),
    Form("watchdog-2.4-2.5", _write(VERSIONS[3:5])),
    Form("watchdog-2.6-2.13", _write(VERSIONS[5:])),
    Form("watchdog-desync", _write(VERSIONS, has_desync=True)),
)
