"""What is written of the trials: bench/results/mutate.json, with a row for each room and all survivors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import trust
from tests.mutation.trial import Trial

EQUIVALENT = trust.ROOT / "bench" / "equivalent_mutants.tsv"
HEAD = ("package", "changes", "noticed", "by the time limit", "equivalent", "unnoticed", "score", "commit")
Change = tuple[str, str, str]


def read_equivalent(path: Path = EQUIVALENT) -> dict[Change, str]:
    """Read the changes that change no behaviour: {(path::scope, line before, line after): reason}."""
    reasons: dict[Change, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != 4 or not all(fields):
                raise ValueError(
                    f"{path}:{number}: write path::scope, line before, line after and reason, with tabs between"
                )
            reasons[fields[0], fields[1], fields[2]] = fields[3]
    return reasons


def summarize(trials: Sequence[Trial], equivalent: Mapping[Change, str], failing: Sequence[str]) -> dict[str, Any]:
    """Return the counts of a room and its survivors, of which those that are equivalent are counted apart."""
    outcomes = [trial.outcome for trial in trials]
    survived = [trial.mutant for trial in trials if trial.outcome == "survived"]
    unnoticed = [mutant for mutant in survived if mutant.change not in equivalent]
    return {
        "commit": trust.read_commit(),
        "mutants": len(trials),
        "killed": outcomes.count("killed"),
        "timeouts": outcomes.count("timeout"),
        "equivalent": len(survived) - len(unnoticed),
        "survived": len(unnoticed),
        "survivors": [
            {"path": mutant.path, "line": mutant.line, "before": mutant.before, "after": mutant.after}
            for mutant in unnoticed
        ],
        "tests_left_out": list(failing),
    }


def compute_score(room: Mapping[str, Any]) -> float:
    """Return the share of changes that were noticed, of those that change behaviour."""
    noticed: int = room["killed"] + room["timeouts"]
    return noticed / max(1, noticed + room["survived"])


def write_rooms(rooms: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write the results of rooms; those of other rooms stay."""
    stored = trust.RESULTS / "mutate.json"
    earlier = json.loads(stored.read_text(encoding="utf-8"))["rooms"] if stored.exists() else {}
    merged = dict(sorted({**earlier, **rooms}.items()))
    rows = [
        (
            f"`{name}`",
            room["mutants"],
            room["killed"] + room["timeouts"],
            room["timeouts"],
            room["equivalent"],
            room["survived"],
            f"{compute_score(room):.0%}",
            room["commit"],
        )
        for name, room in merged.items()
    ]
    return trust.write_result("mutate", {"head": HEAD, "rows": rows, "notes": list_notes(merged), "rooms": merged})


def list_notes(rooms: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what a reader of the table must know."""
    notes = [
        "Each change is one comparison, constant, condition or early exit. It is noticed if a test of `tests/PACKAGE`"
        " fails; tests of other packages do not count. `bench/equivalent_mutants.tsv` says why some change nothing."
    ]
    for name, room in rooms.items():
        if room["tests_left_out"]:
            notes += ["", f"{len(room['tests_left_out'])} tests of `{name}` failed without a change and were left out."]
    return notes
