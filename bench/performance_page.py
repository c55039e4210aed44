"""The text of docs/performance.md, from the rows that bench/performance.py measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from table import as_markdown

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "img" / "flame.svg"
Rows = Mapping[str, Mapping[str, Any]]

HEAD = """# Performance

`make bench` writes this page; `python bench/performance.py PART` measures a part of it again. Each row says when, at
which commit and at which load of the machine it was measured: rows of a busy machine (a load above 1) are too slow.
Wall times are the fastest of up to three runs, after one that warms the page cache and the cache of the catalog.
Memory is the peak of all processes together.
"""
SECTIONS: Sequence[tuple[str, str, str]] = (
    ("floor", "The floor", "What reading the same bytes costs, without looking for anything, and for one plain word."),
    (
        "stages",
        "Where the time goes",
        "The stages of one diagnosis of the same job. The automaton depends on the catalog only, the scan on the "
        "bytes, the evidence on the lines that were hit. Loading "
        "what comes after the scan (0.03 s) while it runs would gain nothing, since the scan uses "
        "all cores.\n\n![Flame graph of a diagnosis](img/flame.svg)",
    ),
    (
        "tools",
        "Beside other tools",
        "`job` has 0.05 % failure lines, `storm` 30 %. ripgrep gets every pattern of the catalog (`rg -f`) and only "
        "prints lines; triage does the whole diagnosis. The loop over lines and Drain3 got a part of the job: compare "
        "their MB/s.",
    ),
    ("size", "Growth with the size", "GiB of logs of 64 ranks in eight files, with `--exact`."),
    ("ripgrep", "ripgrep on the same sizes", "All patterns of the catalog."),
    (
        "ranks",
        "Growth with the number of ranks",
        "One file of 300 steps for each rank, with `--exact`. Most of it is the reading of each file, in many small "
        "functions. triage has no compiled extension: compiled with Cython, the fifteen modules that need most of this "
        "time needed 2.9 to 3.0 s for 1,000 files, and 2.9 to 3.1 s as they are (2026-11-29).",
    ),
    (
        "again",
        "The second time",
        "An ingest of the same job: the first, the second, and one after a line was added to each file. See "
        "[Reading again](cli.md#reading-again).",
    ),
)


def format_page(rows: Rows) -> str:
    """Return the page; a part without rows says how to measure it."""
    parts = [HEAD]
    machines = sorted({str(row["machine"]) for row in rows.values()})
    parts.append("".join(f"Machine{f' {number}' if len(machines) > 1 else ''}: {machine}.\n"
                         for number, machine in enumerate(machines, 1)))  # fmt: skip
    for part, title, text in SECTIONS:
        own = {name.removeprefix(part).strip(): row for name, row in rows.items() if name.split()[0] == part}
        parts.append(f"## {title}\n\n{text}\n")
        parts.append(_format_table(own, machines) if own else f"Not measured: `python bench/performance.py {part}`.\n")
    return "\n".join(parts)


def _format_table(rows: Rows, machines: Sequence[str]) -> str:
    head = ["", "size", "seconds", "MB/s", "memory", "measured", "load"]
    lines = []
    for name, row in sorted(rows.items(), key=_order):
        size, seconds = row["bytes"] / 1e6, row["seconds"]
        memory = f"{row['memory']} MB" if row.get("memory") else ""
        machine = f", machine {machines.index(row['machine']) + 1}" if len(machines) > 1 else ""
        lines.append([name, f"{size:,.0f} MB", f"{seconds:.2f}", f"{size / seconds:,.0f}" if seconds else "", memory,
                      f"{row['date']}, {row['commit']}{machine}", f"{row['load']}"])  # fmt: skip
    return as_markdown(head, lines)


def _order(item: tuple[str, Mapping[str, Any]]) -> tuple[float, float]:
    """Numbers ascending, names as they were measured."""
    name, _ = item
    try:
        return float(name), 0.0
    except ValueError:
        return 0.0, 0.0
