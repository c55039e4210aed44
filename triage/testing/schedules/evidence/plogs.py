"""Plogs of the processes of an HCCL job: what `run` says of the groups, and `debug` of the calls that timed out.

Sources of the formats: hicann/hcomm src/legacy/ascend910 (task_exception_handler.cc, heartbeat.cc, op_base.cc).
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from triage.testing.plogs import HANDLERS, PlogJob, PlogTask
from triage.testing.schedules.evidence.interface import Form, Scene, Shown, WrittenEvidence
from triage.testing.schedules.evidence.plog_checks import write_checks
from triage.testing.schedules.evidence.plog_scene import (
    DATA_TYPES,
    SETUP,
    Manner,
    PlogScene,
    count_elements,
    make_tag,
    number_calls,
)
from triage.testing.schedules.evidence.plog_waits import ALGORITHMS, Timeout, find_peer, find_timeouts
from triage.testing.schedules.model import RankView
from triage.testing.schedules.observe import observe


def _write(has_peer: bool = False, has_call: bool = False, has_check: bool = False) -> Callable[..., WrittenEvidence]:
    def write(scene: Scene, rng: random.Random) -> WrittenEvidence:
        manner = Manner(has_peer, has_call, has_check, rng.random() < 0.6, rng.choice(HANDLERS))
        views = scene.views()
        situation = observe(scene.outcome.schedule.groups, views)
        job = _draw_job(scene, rng)
        plogs = PlogScene(scene, views, situation, job, _draw_names(scene, rng), manner)
        return _write_plogs(plogs, rng)

    return write


def _draw_job(scene: Scene, rng: random.Random) -> PlogJob:
    size = scene.outcome.schedule.size
    servers = rng.choice((1, 1, 2)) if size in (4, 8) else max(1, size // rng.choice((8, 8, 16)))
    folder = rng.choice(("node-{}", "worker-{}", "10.0.0.{}"))
    folders = tuple(folder.format(number + 1) for number in range(servers)) if servers > 1 else ()
    start = datetime.datetime.fromtimestamp(int(scene.start) - SETUP, datetime.UTC).replace(tzinfo=None)
    return PlogJob(size, servers, folders, servers > 1 and rng.random() < 0.3, start, rng.randrange(2000, 90000))


def _draw_names(scene: Scene, rng: random.Random) -> list[str]:
    stamp, is_numbered = f"{int(scene.start)}{rng.randrange(10**6):06d}", rng.random() < 0.5
    return [
        f"group_name_{number}" if is_numbered and number else f"10.0.0.1%eth0_{60000 + number}_0_{stamp}"
        for number in range(len(scene.outcome.schedule.groups))
    ]


def _write_plogs(plogs: PlogScene, rng: random.Random) -> WrittenEvidence:
    scene = plogs.scene
    _write_starts(plogs)
    patience = float("inf") if plogs.manner.is_complete else rng.uniform(3, 30)
    every = find_timeouts(scene, plogs.views, plogs.situation)
    end = min((one.at for one in every.values()), default=0.0) + patience
    timeouts = {rank: one for rank, one in every.items() if one.at < end}
    compared = write_checks(plogs) if plogs.manner.has_check else {}
    algorithm = rng.choice(ALGORITHMS)
    for rank, one in timeouts.items():
        slot = next((open_slot for open_slot in plogs.situation.slots if open_slot.slot == one.slot), None)
        peer = find_peer(algorithm, plogs.members(one.record.call.group), one, slot, rng)
        _write_timeout(plogs, rank, one, peer, rng.uniform(0.01, 0.5))
    shown = {
        view.rank: _shown(plogs, view, timeouts, compared.get(view.rank, frozenset()))
        for view in plogs.views
        if view.rank in timeouts or view.rank in compared or timeouts.keys() == every.keys()
    }
    return _lose_files(plogs, shown, timeouts, rng)


def _write_starts(plogs: PlogScene) -> None:
    schedule = plogs.scene.outcome.schedule
    limit = f"[HCCL_ENV] HCCL_EXEC_TIMEOUT set by environment to [{schedule.timeout:.0f}]s"
    for rank in range(schedule.size):
        plogs.job.log(rank, "INFO", limit, at=0.5, place="externalinput.cc:558")
        for number, group in enumerate(schedule.groups):
            if rank in group.ranks:
                plogs.job.enter_group(rank, plogs.names[number], group.ranks.index(rank), len(group.ranks))


def _write_timeout(plogs: PlogScene, rank: int, timeout: Timeout, peer: int, delay: float) -> None:
    manner, record = plogs.manner, timeout.record
    group = record.call.group
    members, name, at = plogs.members(group), plogs.names[group], SETUP + timeout.at + delay
    tag = make_tag(record, members, name)
    if not manner.has_call and not manner.has_peer:
        return plogs.job.report_timeout(rank, at=at, tag=tag)
    task = PlogTask(
        tag, members.index(peer) if manner.has_peer else None, name, members.index(rank), len(members), -1,
        count_elements(record.call, len(members)), DATA_TYPES[record.call.dtype], SETUP + record.enqueued,
    )  # fmt: skip
    if manner.has_call:
        task = replace(task, index=number_calls(plogs.scene.outcome.records[rank])[timeout.index])
    return plogs.job.miss_notify(rank, task, at=at, handler=manner.handler)


def _shown(plogs: PlogScene, view: RankView, timeouts: Mapping[int, Timeout], compared: frozenset[int]) -> Shown:
    """A rank that has not timed out where all others have waits in nothing: its numbers are known as well as theirs."""
    own, manner = timeouts.get(view.rank), plogs.manner
    groups = {number for number in range(len(plogs.names)) if view.rank in plogs.members(number)}
    if own is not None and not own.is_late:
        groups &= {own.record.call.group} if manner.has_call else set()
    records = compared | ({own.index} if own is not None and not own.is_late else set())
    is_batch = own is not None and own.record.call.operation == "coalesced"
    return Shown(
        view, records, frozenset(groups), has_started=True, has_types=manner.has_call, has_members=not is_batch,
        has_content=manner.has_call,
    )  # fmt: skip


def _lose_files(
    plogs: PlogScene, shown: Mapping[int, Shown], timeouts: Mapping[int, Timeout], rng: random.Random
) -> WrittenEvidence:
    """Lose the plogs of some processes, or the last lines of some, as when a disk was full; shuffle the files."""
    job, remaining = plogs.job, dict(shown)
    lost = rng.sample(range(job.size), max(1, job.size // 8)) if rng.random() < 0.15 else []
    cut = rng.sample(sorted(timeouts), 1) if plogs.manner.has_call and timeouts and rng.random() < 0.15 else []
    for rank in cut:
        lines = job.files[job.file_of(rank, "debug")]
        lines[-2:] = [line for line in lines[-2:] if "opData" not in line]
        if rank in remaining:
            records = remaining[rank].records - {timeouts[rank].index}
            remaining[rank] = replace(remaining[rank], records=records, has_numbers=frozenset())
    for rank in lost:
        remaining.pop(rank, None)
        job.files.pop(job.file_of(rank, "debug"), None)
        job.files.pop(job.file_of(rank, "run"), None)
    files = job.contents()
    names = rng.sample(sorted(files), len(files))
    return WrittenEvidence({name: files[name] for name in names}, remaining)


FORMS = (
    Form("plog-timeout", _write()),
    Form("plog-peers", _write(has_peer=True)),
    Form("plog-calls", _write(has_call=True)),
    Form("plog-checked", _write(has_call=True, has_check=True)),
)
