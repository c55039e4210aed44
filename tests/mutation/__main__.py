"""Try mutants: `python -m tests.mutation NUMBER [ROOM ...]` (`make mutate N=300 ROOM=scan`).

Needs cosmic-ray, coverage and pytest-cov (the extra `mutate`). MUTATION_SEED chooses another sample. `python -m
tests.mutation again [ROOM ...]` tries only the survivors of the last run, for instance after tests were added.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import trust
from tests.mutation.changes import Candidate, Mutant, list_candidates, make_mutant, sample_mutants
from tests.mutation.report import compute_score, read_equivalent, summarize, write_rooms
from tests.mutation.trial import Copy, Trial, try_mutants

ROOMS = ("clusters", "diagnose", "ranks", "records", "scan")


def try_room(root: Path, room: str, mutants: Sequence[Mutant]) -> tuple[list[Trial], tuple[str, ...]]:
    """Try the mutants of a room. Returns the trials, and the tests that fail without a change."""
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="triage-mutation-") as scratch:
        copy = Copy.make(root, Path(scratch) / "copy0", room)
        baseline = copy.measure_baseline()
        print(f"{room}: {len(mutants)} changes; the tests take {baseline.seconds:.0f} s", flush=True)
        for test in baseline.failing:
            print(f"left out, it fails without a change: {test}", flush=True)
        for trial in try_mutants(copy, mutants, baseline, len(os.sched_getaffinity(0))):
            trials.append(trial)
            if trial.outcome == "survived":
                print(f"not noticed: {trial.mutant}", flush=True)
            elif os.environ.get("MUTATION_VERBOSE"):
                print(f"{trial.outcome} in {trial.seconds} s: {trial.mutant}  ({trial.test})", flush=True)
    return trials, baseline.failing


def list_survivors(root: Path, room: str, stored: dict[str, Any]) -> list[Mutant]:
    """Make the survivors of the last run again, from the sources of today."""
    survivors = {(item["path"], item["line"], item["before"], item["after"]) for item in stored["survivors"]}
    places = {(path, line) for path, line, _, _ in survivors}
    paths = sorted({root / path for path, _ in places if (root / path).exists()})
    candidates = [
        item for path in paths for item in list_candidates(root, path) if (item.path, item.start[0]) in places
    ]
    every = {(item.path, item.line, item.before, item.after): item for item in _make_all(root, candidates)}
    mutants = [every[key] for key in sorted(survivors) if key in every]
    if len(mutants) != len(survivors):
        raise SystemExit(f"triage/{room} has changed since its survivors were written: run `make mutate ROOM={room}`")
    return mutants


def _make_all(root: Path, candidates: Sequence[Candidate]) -> Iterator[Mutant]:
    return (mutant for item in candidates if (mutant := make_mutant(root, item)) is not None)


def try_again(root: Path, rooms: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Try the survivors of the last run of these rooms, and return its results with what is noticed now."""
    stored: dict[str, dict[str, Any]] = json.loads((trust.RESULTS / "mutate.json").read_text("utf-8"))["rooms"]
    results: dict[str, dict[str, Any]] = {}
    for room in [name for name in stored if not rooms or name in rooms]:
        trials, failing = try_room(root, room, list_survivors(root, room, stored[room]))
        now, before = summarize(trials, read_equivalent(), failing), stored[room]
        for count in ("killed", "timeouts", "equivalent"):
            now[count] += before[count]
        results[room] = {
            **now,
            "mutants": sum(now[count] for count in ("killed", "timeouts", "equivalent", "survived")),
        }
    return results


def main(arguments: Sequence[str]) -> int:
    """Try mutants of the named rooms, or all, and write the results. Returns 1 if a change was not noticed."""
    number, rooms = arguments[0], arguments[1:]
    unknown = set(rooms) - set(ROOMS)
    if unknown:
        print(f"no such room: {', '.join(sorted(unknown))}; choose from {', '.join(ROOMS)}", file=sys.stderr)
        return 2
    results: dict[str, dict[str, Any]] = {}
    if number == "again":
        results = try_again(trust.ROOT, rooms)
    else:
        seed = int(os.environ.get("MUTATION_SEED", "0"))
        for room in rooms or ROOMS:
            mutants = sample_mutants(trust.ROOT, trust.ROOT / "triage" / room, int(number), seed)
            trials, failing = try_room(trust.ROOT, room, mutants)
            results[room] = summarize(trials, read_equivalent(), failing)
            write_rooms(results)
    write_rooms(results)
    for room, result in results.items():
        print(f"{room}: {compute_score(result):.0%} noticed, {result['survived']} not", flush=True)
    return int(any(result["survived"] for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
