"""Several sources of evidence for one job."""

from __future__ import annotations

import random
from collections.abc import Callable

from triage.testing.schedules.evidence.dump_format import DumpStyle
from triage.testing.schedules.evidence.flight import write_dumps
from triage.testing.schedules.evidence.interface import Form, Scene, WrittenEvidence, merge
from triage.testing.schedules.evidence.stacks import write_py_spy
from triage.testing.schedules.evidence.watchdog import write_logs

_Write = Callable[[Scene, random.Random], WrittenEvidence]
_VERSIONS = ((2, 4), (2, 5), (2, 6), (2, 8), (2, 9), (2, 13))


def _dumps(scene: Scene, rng: random.Random) -> WrittenEvidence:
    style = DumpStyle(rng.choice((4, 5, 8, 10)), has_timing=rng.random() < 0.4, is_active_only=rng.random() < 0.3)
    return write_dumps(scene, dict.fromkeys(range(scene.outcome.schedule.size), style), rng, {})


def _logs(scene: Scene, rng: random.Random) -> WrittenEvidence:
    return write_logs(scene, rng, _VERSIONS)


def _logs_of_recorded(scene: Scene, rng: random.Random) -> WrittenEvidence:
    return write_logs(scene, rng, _VERSIONS, has_recorder=True)


def _all_of(*writers: _Write) -> _Write:
    def write(scene: Scene, rng: random.Random) -> WrittenEvidence:
        return merge(*(writer(scene, rng) for writer in writers))

    return write


FORMS = (
    Form("dump+watchdog", _all_of(_dumps, _logs_of_recorded)),
    Form("dump+py-spy", _all_of(_dumps, write_py_spy)),
    Form("watchdog+py-spy", _all_of(_logs, write_py_spy)),
    Form("dump+watchdog+py-spy", _all_of(_dumps, _logs_of_recorded, write_py_spy)),
)
