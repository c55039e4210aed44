"""Compose a job from a plan: draw the world, tell the story, write the layout, add what else lies there, dress it."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from triage.testing.composer.dressings import DRESSINGS, Dressing, name_hosts_otherwise
from triage.testing.composer.faults import FAULTS, Fault
from triage.testing.composer.layouts import LAYOUTS, Layout
from triage.testing.composer.model import Expected, LogLine, Story, World, Written
from triage.testing.composer.noise import add_noise
from triage.testing.composer.surroundings import Surroundings, draw_surroundings
from triage.testing.composer.worlds import draw_world
from triage.testing.job_files import write_files

_FAULTS = {fault.name: fault for fault in FAULTS}
_LAYOUTS = {layout.name: layout for layout in LAYOUTS}
_ASKED_LATER = frozenset(("events.txt",))  # what kubectl said of the job
_DRESSINGS = {dressing.name: dressing for dressing in DRESSINGS}


@dataclass(frozen=True, slots=True)
class Plan:
    """Names of a fault, a layout and a dressing, and a seed for all that is drawn."""

    fault: str
    layout: str
    dressing: str
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ComposedJob:
    """The files of a job by relative path, and what they allow to be known."""

    plan: Plan
    files: Mapping[str, bytes]
    expected: Expected

    def write(self, directory: Path) -> Path:
        """Write the files below `directory` and return it."""
        return write_files(self.files, directory)


def list_cells() -> Iterator[tuple[str, str]]:
    """Yield (fault, layout) of all pairs that can be combined."""
    for fault in FAULTS:
        for layout in list_layouts(fault):
            yield fault.name, layout


def list_layouts(fault: Fault) -> Iterator[str]:
    """Yield the layouts in which a fault can happen."""
    return (layout.name for layout in LAYOUTS if _fits(fault, layout))


def is_held_out(fault: str, layout: str) -> bool:
    """Whether nobody looks at jobs of this cell while rules are written. Half of the cells, by their names."""
    return hashlib.sha256(f"{fault}\0{layout}".encode()).digest()[0] % 2 == 1


def compose(plan: Plan, fault: Fault | None = None) -> ComposedJob:
    """Return the job of a plan; the same plan gives the same bytes. `fault`: one of the caller, with the plan's name.

    A dressing draws nothing that changes what happened: jobs that differ only in their dressing have one truth.
    """
    world, story = tell_story(plan, fault)
    noisy = add_noise(story, world, _random(plan, "noise"))
    written = _LAYOUTS[plan.layout].write(noisy, world, _random(plan, "layout"))
    around = draw_surroundings(story, world, _random(plan, "surroundings"))
    files = _dress(_DRESSINGS[plan.dressing], written, around, world)
    return ComposedJob(plan, files, _expected(story, world, written))


def tell_story(plan: Plan, fault: Fault | None = None) -> tuple[World, Story]:
    """Return the world of a plan and what happened in it, without noise."""
    fault = fault or _FAULTS[plan.fault]
    rng = _random(plan, "story")
    world = draw_world(fault, _LAYOUTS[plan.layout], rng)
    return world, fault.tell(world, rng)


def _random(plan: Plan, part: str) -> random.Random:
    """Return what draws one part of a job: a change of one part leaves the others as they are."""
    return random.Random(f"{plan.fault}\0{plan.layout}\0{plan.seed}\0{part}")


def _dress(dressing: Dressing, written: Written, around: Surroundings, world: World) -> Mapping[str, bytes]:
    """Return all files; a collector of the job's output rewrites neither the kernel's logs nor what was asked later."""
    plain = _DRESSINGS["as written"]

    def dress(logs: Mapping[str, tuple[LogLine, ...]], chosen: Dressing) -> dict[str, bytes]:
        return dict(chosen.dress(path, lines, world, random.Random(path)) for path, lines in logs.items())

    apart = {path: lines for path, lines in written.logs.items() if path in _ASKED_LATER}
    output = {path: lines for path, lines in written.logs.items() if path not in apart}
    around_logs = dress({**around.logs, **apart}, dressing if dressing.fits_any else plain)
    files = {**dress(output, dressing), **around_logs, **written.artifacts, **around.artifacts}
    return dressing.pack(files) if dressing.pack else files


def _fits(fault: Fault, layout: Layout) -> bool:
    shared = set(fault.backends) & set(layout.backends)
    scheduler = not fault.scheduler or layout.scheduler == fault.scheduler
    processes = not (layout.one_per_node and fault.least_per_node > 1)
    named = not fault.layouts or layout.name in fault.layouts
    return bool(shared) and scheduler and processes and named and layout.most_nodes >= fault.least_nodes


def _expected(story: Story, world: World, written: Written) -> Expected:
    truth = story.truth
    hosts = frozenset(world.hosts[node] for node in truth.nodes)
    knows_ranks = not truth.are_ranks_hidden and (
        written.labels_ranks or _ranks_are_stated(story, written) or (written.reports_exits and _exits_tell(story))
    )
    knows_hosts = written.names_hosts or any(line.is_cause and line.says_host for line in story.lines)
    kernels = {line.writer.number for line in story.lines if line.is_cause and line.writer.kind == "kernel"}
    by_kernel = bool(truth.nodes) and kernels >= truth.nodes  # each kernel log is named after its host, or names it
    is_hidden = not written.reports_exits and not truth.by_comparison and _has_no_cause(story)
    cannot_compare = truth.by_comparison and not knows_ranks
    others = {"inconclusive", "unknown"} if is_hidden else _verdicts_without_ranks(story) if cannot_compare else set()
    return Expected(
        truth.verdicts | others,
        truth.roots
        | ({None} if "unknown" in others else set())
        | (truth.roots_without_ranks if not written.labels_ranks else set()),
        truth.ranks if knows_ranks and not is_hidden else None,
        hosts if not is_hidden and (by_kernel or (knows_hosts and (knows_ranks or not truth.ranks))) else None,
        truth.ranks,
        hosts,
        frozenset(world.ranks),
        frozenset(world.hosts),
        {**name_hosts_otherwise(world), **written.host_names},
    )


def _verdicts_without_ranks(story: Story) -> set[str]:
    """Return the other right verdicts where nobody can know which rank wrote a value that differs between ranks.

    The failure that ends such a job is known by its own text only, and a job that ended well looks so.
    """
    return {"unknown"} if story.exits else {"clean", "inconclusive"}


def _has_no_cause(story: Story) -> bool:
    """Whether no line shows the failure of a job that did not end well."""
    return "clean" not in story.truth.verdicts and not any(line.is_cause for line in story.lines)


def _ranks_are_stated(story: Story, written: Written) -> bool:
    """Whether the lines that show the cause name the ranks themselves."""
    causes = [line for line in story.lines if line.is_cause]
    if written.drops_tags:
        causes = [line for line in causes if not line.text.startswith("[rank")]
    named = frozenset[int]().union(*(line.names_ranks for line in causes))
    if not causes or story.truth.by_comparison:
        others = all(line.says_rank for line in story.lines if line.writer.kind == "rank")
        return bool(causes) and (others or (bool(named) and named >= story.truth.ranks))
    stated = named | {line.writer.number for line in causes if line.says_rank and line.writer.kind == "rank"}
    return stated >= story.truth.ranks or any(line.says_rank and line.writer.kind != "rank" for line in causes)


def _exits_tell(story: Story) -> bool:
    """Whether the ranks at fault ended first, by a status that no other has."""
    mine = {end.status for end in story.exits if end.rank in story.truth.ranks}
    others = {end.status for end in story.exits if end.rank not in story.truth.ranks}
    return (
        {end.rank for end in story.exits} >= story.truth.ranks and not mine & others and not story.truth.by_comparison
    )
