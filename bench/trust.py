"""Collect what `make hostile fuzz drill mutate coverage` measured, and write docs/trust.md.

Each of them writes bench/results/PART.json by `write_result`: {"date", "commit", ...}. `python bench/trust.py` writes
the page from those that exist; a part that was not measured is named as such.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "trust.md"
Result = Mapping[str, Any]

HEAD = """# What was tried

`make trust` writes this page from what `make hostile fuzz drill mutate coverage` measured.
[security.md](security.md) says what the program does about untrusted input. This page says what was tried against it,
and what it cost. Every number is of the commit beside it.
"""


def write_result(part: str, result: Result, *, merge: str = "") -> Path:
    """Write the result of a part with date and commit.

    `merge` names a mapping in it that keeps its earlier entries, each with the commit that it was measured at.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{part}.json"
    whole = dict(result)
    stamp = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "commit": read_commit()}
    if merge:
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {**stamp, merge: {}}
        parts = ((before, before[merge]), (stamp, whole[merge]))
        whole[merge] = {
            name: {"commit": origin["commit"], **entry} for origin, entries in parts for name, entry in entries.items()
        }
    path.write_text(json.dumps({**stamp, **whole}, indent=1) + "\n", encoding="utf-8")
    return path


def read_commit() -> str:
    """Return the commit that is measured, with + if files other than results differ from it."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    changes = subprocess.run(
        [*git, "status", "--porcelain", "-uno", "--", ":!bench/results", ":!docs/trust.md"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return (commit.strip() or "unknown") + ("+" if changes.strip() else "")


def format_hostile(result: Result) -> str:
    """Return the section of the hostile corpus."""
    cases = result["cases"]
    slowest = max(cases, key=lambda case: case["seconds"])
    largest = max(cases, key=lambda case: case["memory"])
    families: dict[str, list[Result]] = {}
    for case in cases:
        families.setdefault(case["name"].partition(":")[0], []).append(case)
    lines = [
        f"{len(cases)} classes of hostile files at full size, {result['catalogs']} of contributed signatures, "
        f"{result['requests']} of HTTP requests. Beside or in each file lies a good log; its diagnosis came out in "
        f"{len(cases) - len(result['failed'])} of {len(cases)}. "
        f"The slowest was “{slowest['name']}” ({slowest['seconds']:.0f} s); "
        f"“{largest['name']}” took most memory ({largest['memory']} MiB more than before).",
        "",
        "| kind | classes | slowest | most memory |",
        "|---|---|---|---|",
    ]
    for family, members in sorted(families.items()):
        seconds, memory = max(case["seconds"] for case in members), max(case["memory"] for case in members)
        lines.append(f"| {family} | {len(members)} | {seconds:.1f} s | {memory} MiB |")
    uploads = result["uploads"]
    lines += [
        "",
        f"As uploads to a service, at reduced size: {uploads['sent']} jobs, {len(uploads['problems'])} problems. "
        f"Its processes held {uploads['memory_before']} MiB before, {uploads['memory_after']} MiB after.",
    ]
    lines += ["", *(f"Failed: {name}: {why}" for name, why in result["failed"].items())]
    return "\n".join(lines)


def format_fuzz(result: Result) -> str:
    """Return the section of fuzzing."""
    lines = [
        "| harness | executions | edges of the code | seconds | open findings | commit |",
        "|---|---|---|---|---|---|",
    ]
    for name, counts in result["harnesses"].items():
        numbers = (
            f"{counts['executions']:,} | {counts['coverage']:,} | {counts['seconds']:,} | {len(counts['findings'])}"
        )
        lines.append(f"| {name} | {numbers} | {counts['commit']} |")
    return "\n".join(lines)


def format_table(result: Result) -> str:
    """Return the section of a part that brings its own `head`, `rows` and `notes`."""
    head = [result["head"], ["---"] * len(result["head"])] if result.get("rows") else []
    lines = [f"| {' | '.join(map(str, row))} |" for row in (*head, *result.get("rows", ()))]
    return "\n".join([*lines, "", *result.get("notes", ())]).strip()


SECTIONS: tuple[tuple[str, str, Callable[[Result], str]], ...] = (
    ("hostile", "Hostile input", format_hostile),
    ("fuzz", "Fuzzing", format_fuzz),
    ("drill", "Faults", format_table),
    ("mutate", "Mutation of the code", format_table),
    ("coverage", "What the tests run", format_table),
)


def format_page() -> str:
    """Return the page from the results that exist."""
    parts = [HEAD]
    for name, title, format_section in SECTIONS:
        path = RESULTS / f"{name}.json"
        parts.append(f"## {title}\n")
        if not path.exists():
            parts.append(f"Not measured: run `make {name}`.\n")
            continue
        result = json.loads(path.read_text(encoding="utf-8"))
        parts.append(
            f"{format_section(result).rstrip()}\n\n`make {name}`, {result['date']}, commit {result['commit']}.\n"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(format_page(), encoding="utf-8")
    sys.exit(0)
