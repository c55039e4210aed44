"""The endings and the healthy jobs of tests/endings/data, as dataclasses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.endings.healthy_lines import format_repeated, format_steps

DATA = Path(__file__).resolve().parent / "data"
HEALTHY = DATA / "healthy.yaml"
# What an editor would hide or drop is written as a visible character.
_VISIBLE = str.maketrans({"␛": "\x1b", "␠": " "})


@dataclass(frozen=True)
class Ending:
    """One way in which a program, a launcher or a scheduler ends, as it prints it.

    `telling` is a part of one line of `text`: what an expert quotes as the reason. `inconclusive` says why it is no
    failure for triage: it carries neither a term nor a form of failing, nor a status. Otherwise it is empty.
    """

    name: str
    runtime: str
    telling: str
    text: str
    inconclusive: str = ""


@dataclass(frozen=True)
class HealthyJob:
    """A job in which nothing failed: its files by name.

    `clean` is true where the files prove a good end. Otherwise the log stops at a healthy step: inconclusive.
    """

    name: str
    clean: bool
    files: dict[str, str]


def load_endings() -> tuple[Ending, ...]:
    """Return all endings, in the order of the files' names."""
    paths = sorted(path for path in DATA.glob("*.yaml") if path != HEALTHY)
    return tuple(_make_ending(entry) for path in paths for entry in yaml.safe_load(path.read_text(encoding="utf-8")))


def load_healthy_jobs(path: Path = HEALTHY) -> tuple[HealthyJob, ...]:
    """Return all healthy jobs of a file."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tuple(HealthyJob(entry["name"], entry["clean"], format_files(entry["files"])) for entry in entries)


def format_files(files: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Return the texts of files, by name, from their parts."""
    return {name: "".join(map(_format_part, parts)) for name, parts in files.items()}


def _make_ending(entry: dict[str, str]) -> Ending:
    text = entry["text"].translate(_VISIBLE).rstrip("\n") + "\n"
    return Ending(entry["name"], entry["runtime"], entry["telling"], text, entry.get("inconclusive", ""))


def _format_part(part: dict[str, Any]) -> str:
    """Return the lines of one part of a file: a text, healthy steps, or a line that is repeated."""
    if "text" in part:
        return str(part["text"]).translate(_VISIBLE)
    if "repeat" in part:
        return format_repeated(part["line"], part["repeat"])
    options = {name: value for name, value in part.items() if name != "steps"}
    return format_steps(part["steps"], **options)
