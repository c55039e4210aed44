"""Flight Recorder dumps of all ranks in their forms."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from triage.testing.schedules.evidence.dump_format import DumpStyle, dump_content, own_groups
from triage.testing.schedules.evidence.interface import Form, Scene, Shown, WrittenEvidence
from triage.testing.schedules.model import RankView, view

_PREFIXES = ("nccl_trace_rank_", "comm_lib_trace_rank_", "fr/rank_", "dumps/nccl_trace_rank_")
_Styles = Callable[[Scene, random.Random], Mapping[int, DumpStyle]]


def write_dumps(
    scene: Scene, styles: Mapping[int, DumpStyle], rng: random.Random, moments: Mapping[int, float]
) -> WrittenEvidence:
    """Write a dump for each rank of `styles` whose process is alive. `moments`: those written at another time."""
    schedule = scene.outcome.schedule
    prefix = rng.choice(_PREFIXES)
    files: dict[str, bytes] = {}
    shown: dict[int, Shown] = {}
    for rank, style in styles.items():
        at_moment = view(scene.outcome, rank, moments.get(rank, scene.moment))
        if at_moment.has_left:
            continue
        content, records = dump_content(
            at_moment, schedule.groups, replace(style, script=scene.script), scene.start, schedule.timeout
        )
        name = f"{prefix}{rank}.json" if style.is_json else f"{prefix}{rank}"
        files[name] = json.dumps(content).encode() if style.is_json else pickle.dumps(content, protocol=2)
        shown[rank] = _shown(at_moment, records, style, own_groups(schedule.groups, rank))
    return WrittenEvidence(files, shown)


def _shown(at_moment: RankView, records: frozenset[int], style: DumpStyle, groups: list[int]) -> Shown:
    numbers = frozenset(groups) if style.minor >= 3 or not style.is_active_only else frozenset()
    return Shown(at_moment, records, numbers, style.has_timing, style.minor >= 3)


def _same(style: DumpStyle) -> _Styles:
    def styles(scene: Scene, rng: random.Random) -> dict[int, DumpStyle]:
        drawn = replace(style, minor=rng.choice((3, 4, 5, 5, 6, 7, 8, 9, 10)), has_frames=rng.random() < 0.7)
        return dict.fromkeys(range(scene.outcome.schedule.size), drawn)

    return styles


def _mixed(scene: Scene, rng: random.Random) -> dict[int, DumpStyle]:
    """Two versions of torch in one job, as after an update of some nodes."""
    timed = rng.random() < 0.5
    minors = rng.sample(range(11), 2)
    return {rank: DumpStyle(rng.choice(minors), has_timing=timed) for rank in range(scene.outcome.schedule.size)}


def _wrapped(scene: Scene, rng: random.Random) -> dict[int, DumpStyle]:
    style = DumpStyle(rng.choice((4, 5, 8, 10)), rng.choice((4, 8, 16, 32)), rng.random() < 0.5)
    return dict.fromkeys(range(scene.outcome.schedule.size), style)


def _some_missing(scene: Scene, rng: random.Random) -> dict[int, DumpStyle]:
    styles = _same(DumpStyle(has_timing=rng.random() < 0.5, is_active_only=rng.random() < 0.3))(scene, rng)
    lost = rng.sample(sorted(styles), max(1, len(styles) // rng.choice((4, 8, 16))))
    return {rank: style for rank, style in styles.items() if rank not in lost}


def _write(styles: _Styles) -> Callable[[Scene, random.Random], WrittenEvidence]:
    def write(scene: Scene, rng: random.Random) -> WrittenEvidence:
        return write_dumps(scene, styles(scene, rng), rng, {})

    return write


def _write_early(scene: Scene, rng: random.Random) -> WrittenEvidence:
    """Some dumps stem from an earlier moment, when their ranks had not come so far."""
    styles = _same(DumpStyle(has_timing=rng.random() < 0.5))(scene, rng)
    early = rng.sample(sorted(styles), max(1, len(styles) // 4))
    last = max((one.enqueued for records in scene.outcome.records for one in records), default=0.0)
    last = min(last, scene.moment)
    return write_dumps(scene, styles, rng, {rank: last * rng.uniform(0.3, 0.95) for rank in early})


FORMS = (
    Form("dump-timed", _write(_same(DumpStyle(has_timing=True)))),
    Form("dump-untimed", _write(_same(DumpStyle()))),
    Form("dump-active", _write(_same(DumpStyle(is_active_only=True)))),
    Form("dump-active-timed", _write(_same(DumpStyle(is_active_only=True, has_timing=True)))),
    Form("dump-wrapped", _write(_wrapped)),
    Form("dump-json", _write(_same(DumpStyle(is_json=True)))),
    Form("dump-json-timed", _write(_same(DumpStyle(is_json=True, has_timing=True)))),
    Form("dump-mixed-versions", _write(_mixed)),
    Form("dump-some-missing", _write(_some_missing)),
    Form("dump-some-early", _write_early),
)
