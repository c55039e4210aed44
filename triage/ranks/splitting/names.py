"""The output directory: what its files are called, and the index that says what an earlier split wrote there."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from triage.base.errors import OptionError
from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.ranks.splitting.route import NOBODY, Key

INDEX = "split.json"
SCHEMA = "triage.split/1"
NOBODYS = "nobody.log"


@dataclass(frozen=True, slots=True)
class Written:
    """A file of the output and whose lines it holds."""

    name: str
    rank: int | None
    lines: int
    bytes: int
    sources: tuple[str, ...]


def of(key: Key, source: str, job: JobMap, told: Collection[tuple[str, int]] = ()) -> tuple[int | None, str]:
    """The rank and the file of a writer, now that all files have been read.

    `told` are ranks that lines of a source name themselves: nothing orders those lines and such of a local rank, so
    that these stay apart.
    """
    if key == NOBODY:
        host = job.complete(source, Origin()).host  # that the file is named after
        return None, f"nobody.{_slug(host)}.log" if host else NOBODYS
    rank = key.rank
    whole = job.complete(source, Origin(local_rank=key.local_rank, host=key.host, pid=key.pid))
    if rank is None and (key.local_rank is not None or key.pid is not None) and (source, whole.rank) not in told:
        rank = whole.rank
    if rank is not None:
        return rank, f"rank_{rank}.log"
    if key.local_rank is not None:
        # Without a host, the same number in two files need not be the same process.
        return None, f"local_rank_{key.local_rank}.{_slug(whole.host or Path(source).stem)}.log"
    return None, f"writer_{_slug(key.name)}.log"


def order(name: str) -> tuple[str | int, ...]:
    """Ranks by number, nobody last."""
    return (name.startswith("nobody."), *(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)))


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text).strip("-.")[:80] or "unnamed"


def prepare(output: Path, force: bool) -> None:
    """Make the directory ready. Raises OptionError when it cannot be used, or holds something and `force` is not given."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        if any(output.iterdir()):
            if not force:
                raise OptionError(
                    f"{output} is not empty",
                    hint="give an empty or new directory, or --force to replace an earlier split",
                )
            _remove_earlier(output)
    except OSError as error:
        raise OptionError(
            f"cannot write to {output}: {error.strerror}", hint="give a directory that you may write to"
        ) from None


def _remove_earlier(output: Path) -> None:
    """Only what the index names, and only plain names: a directory that holds other things keeps them."""
    try:
        index = json.loads((output / INDEX).read_text("utf-8"))
        named = [str(file["name"]) for file in index["files"]] if index.get("schema") == SCHEMA else []
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return
    for name in named:
        if Path(name).name == name and name.endswith(".log"):
            (output / name).unlink(missing_ok=True)


def write_index(output: Path, files: Iterable[Written]) -> None:
    """Which files were written, with rank, lines, bytes and sources."""
    told = [
        {"name": file.name, "rank": file.rank, "lines": file.lines, "bytes": file.bytes, "sources": list(file.sources)}
        for file in files
    ]
    (output / INDEX).write_text(json.dumps({"schema": SCHEMA, "files": told}, indent=1) + "\n", "utf-8")
