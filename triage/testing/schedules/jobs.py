"""Draw a job: a schedule, a fault in it, and the form of evidence that it leaves."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from triage.testing.job_files import write_files
from triage.testing.schedules.evidence import FORMS
from triage.testing.schedules.evidence.interface import Form, Scene
from triage.testing.schedules.faults import FAULTS, Fault
from triage.testing.schedules.play import play
from triage.testing.schedules.programs import TRAININGS, draw_schedule
from triage.testing.schedules.truth import Truth, find_truth

_FAULTS = {fault.name: fault for fault in FAULTS}
_FORMS = {form.name: form for form in FORMS}
_SIZES = (2, 4, 4, 8, 8, 8, 16, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class DrawnJob:
    """The files of a job by relative path, and its truth. `kind` and `size` describe the schedule."""

    fault: str
    form: str
    seed: int
    kind: str
    size: int
    files: Mapping[str, bytes]
    truth: Truth

    def write(self, directory: Path) -> Path:
        """Write the files below `directory` and return it."""
        return write_files(self.files, directory)


def list_cells() -> Iterator[tuple[str, str]]:
    """Yield (fault, form) of all pairs."""
    for fault in FAULTS:
        for form in FORMS:
            yield fault.name, form.name


def is_held_out(fault: str, form: str) -> bool:
    """Whether nobody looks at jobs of this cell while triage is changed. Half of the cells, by their names."""
    return hashlib.sha256(f"hangs\0{fault}\0{form}".encode()).digest()[0] % 2 == 1


def draw_job(fault_name: str, form_name: str, seed: int, size: int | None = None) -> DrawnJob:
    """Return the job of a cell; the same arguments give the same bytes. `size`: the number of ranks, else drawn."""
    fault, form = _FAULTS[fault_name], _FORMS[form_name]
    for attempt in range(200):
        rng = random.Random(f"{fault_name}\0{form_name}\0{seed}\0{attempt}")
        job = _try(fault, form, seed, size, rng)
        if job is not None:
            return job
    raise LookupError(f"no schedule shows {fault_name} in {form_name} with seed {seed}")


def _try(fault: Fault, form: Form, seed: int, size: int | None, rng: random.Random) -> DrawnJob | None:
    needs_pipeline = fault.nature == "pair" or fault.name == "broken-transfer"
    training = rng.choice([one for one in TRAININGS if one.kind.startswith("pipeline") or not needs_pipeline])
    ranks = size or rng.choice(_SIZES)
    if ranks < 2 ** len(training.dimensions):
        return None
    injected = fault.inject(draw_schedule(training.kind, ranks, rng), rng)
    if injected is None:
        return None
    outcome = play(injected.schedule)
    if (outcome.fired is not None) != injected.is_hang:
        return None
    last = max(host.entered for host in outcome.hosts)
    moment = outcome.fired + rng.uniform(0.2, 3) if outcome.fired is not None else last * rng.uniform(0.3, 0.95)
    scene = Scene(outcome, moment, rng.uniform(1.75e9, 1.79e9))
    written = form.write(scene, rng)
    truth = find_truth(fault, injected, scene, written)
    if truth is None or not written.files:
        return None
    return DrawnJob(fault.name, form.name, seed, training.kind, ranks, written.files, truth)


def truth_as_json(job: DrawnJob) -> str:
    """Return the truth of a job as JSON text."""
    values = {
        key: sorted(value) if isinstance(value, frozenset) else value
        for key, value in dataclasses.asdict(job.truth).items()
    }
    head = {"fault": job.fault, "form": job.form, "seed": job.seed, "schedule": job.kind, "ranks": job.size}
    return json.dumps({**head, **values}, indent=1)
