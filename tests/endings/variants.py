"""How an ending stands in a log: alone, behind healthy steps, behind a prefix on each line, in a JSON record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from tests.endings.corpus import Ending
from tests.endings.healthy_lines import compute_loss, format_steps
from tests.endings.json_forms import JSON_FORMS, Render

STEPS = 300
FEW_STEPS = 60
JSON_FORMS_PER_ENDING = 2

# The prefix of a line, by its number, of each launcher or container runtime.
PREFIXES: dict[str, Callable[[int], str]] = {
    "torch": lambda number: "[rank1]: ",
    "torchrun": lambda number: "[default1]:",
    "srun": lambda number: "1: ",
    "mpirun": lambda number: "[1,1]<stderr>:",
    "container": lambda number: f"2026-03-02T04:{number // 60 % 60:02d}:{number % 60:02d}.118231000Z ",
}


def make_variants(ending: Ending) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each log that ends with this ending."""
    yield "alone", ending.text
    yield "behind steps", format_steps(STEPS) + ending.text
    lines = format_steps(FEW_STEPS).splitlines() + ending.text.splitlines()
    for name, prefix in PREFIXES.items():
        yield f"prefix of {name}", "".join(f"{prefix(number)}{line}\n" for number, line in enumerate(lines))
    for name in choose_json_forms(ending.name):
        yield f"JSON of {name}", _in_json(ending, JSON_FORMS[name])


def choose_json_forms(name: str) -> list[str]:
    """Return the JSON forms in which this ending is tried: the same in every run, spread over all forms."""
    return sorted(JSON_FORMS, key=lambda form: hashlib.sha256(f"{name} {form}".encode()).digest())[
        :JSON_FORMS_PER_ENDING
    ]


def _in_json(ending: Ending, render: Render) -> str:
    """Return a log of records, the last of which has level error and the ending as its exception."""
    records = [
        render("info", f"step {number} loss {compute_loss(number):.4f}", None, 1, number)
        for number in range(1, FEW_STEPS + 1)
    ]
    records.append(render("error", "it ended", ending.text, 1, FEW_STEPS + 1))
    return "\n".join(records) + "\n"
