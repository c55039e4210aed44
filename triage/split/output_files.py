"""The output directory of a split: the names of its files, and the index of what was written."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from triage.base.errors import OptionError
from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.split.router import UNASSIGNED, WriterKey

INDEX = "split.json"
SCHEMA = "triage.split/1"
UNASSIGNED_LOG = "nobody.log"


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A written file, and the rank whose lines it holds (None: unknown)."""

    name: str
    rank: int | None
    lines: int
    bytes: int
    sources: tuple[str, ...]


def assign_file(
    key: WriterKey, source: str, job: JobMap, stated: Collection[tuple[str, int]] = ()
) -> tuple[int | None, str]:
    """Return the rank and the file name of a writer, once all sources are read.

    `stated` are the (source, rank) pairs that lines state themselves. Nothing orders such lines against those of a
    local rank with the same rank, so the two stay in separate files.
    """
    if key == UNASSIGNED:
        host = job.complete(source, Origin()).host  # the host in the file name
        return None, f"nobody.{_slug(host)}.log" if host else UNASSIGNED_LOG
    rank = key.rank
    origin = job.complete(source, Origin(local_rank=key.local_rank, host=key.host, pid=key.pid))
    if rank is None and (key.local_rank is not None or key.pid is not None) and (source, origin.rank) not in stated:
        rank = origin.rank
    if rank is not None:
        return rank, f"rank_{rank}.log"
    if key.local_rank is not None:
        # Without a host, the same local rank in two files may be two processes.
        return None, f"local_rank_{key.local_rank}.{_slug(origin.host or Path(source).stem)}.log"
    return None, f"writer_{_slug(key.name)}.log"


def sort_key(name: str) -> tuple[str | int, ...]:
    """Return a key that sorts file names by number, with the unassigned lines last."""
    return (name.startswith("nobody."), *(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)))


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text).strip("-.")[:80] or "unnamed"


def prepare_directory(output: Path, force: bool) -> None:
    """Create the directory, or with `force` remove an earlier split from it.

    Raises OptionError when the directory cannot be used, or is not empty and `force` is off.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        if any(output.iterdir()):
            if not force:
                hint = "use an empty or new directory, or --force to replace an earlier split"
                raise OptionError(f"{output} is not empty", hint=hint)
            _remove_earlier_split(output)
    except OSError as error:
        hint = "use a directory that you may write to"
        raise OptionError(f"cannot write to {output}: {error.strerror}", hint=hint) from None


def _remove_earlier_split(output: Path) -> None:
    """Remove the files that the index lists, and nothing else in the directory."""
    try:
        index = json.loads((output / INDEX).read_text("utf-8"))
        names = [str(file["name"]) for file in index["files"]] if index.get("schema") == SCHEMA else []
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return
    for name in names:
        if Path(name).name == name and name.endswith(".log"):
            (output / name).unlink(missing_ok=True)


def write_index(output: Path, files: Iterable[OutputFile]) -> None:
    """Write the index: the name, rank, lines, bytes and sources of every file."""
    (output / INDEX).write_text(
        json.dumps({"schema": SCHEMA, "files": [asdict(file) for file in files]}, indent=1) + "\n", "utf-8"
    )
