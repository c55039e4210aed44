"""Run by the Python that has torch: what torchfrtrace says of each directory of dumps, as one JSON object on standard
output.

Each directory is read twice, as recorded and mended: with the groups that Gloo leaves out of `pg_config`, states taken
from what is retired,
and `gloo:` called `nccl:`. Files come in the order of their ranks, because the answer depends on it. Its JSON twins are
left out, at which it stops.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

MOST = 3
"""Findings of one directory that are told."""


def mended(dumps: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """What torchfrtrace expects of NCCL. Of the default group all ranks are members, of others those that have calls in
    it.
    """
    seen: dict[tuple[str, str], set[int]] = {}
    for rank, dump in dumps.items():
        for entry in dump["entries"]:
            seen.setdefault(entry["process_group"], set()).add(rank)
    size = 1 + max(rank for dump in dumps.values() for rank in [*dumps, *_stated(dump)])
    members = {group: list(range(size)) if group[1] == "default_pg" else sorted(ranks) for group, ranks in seen.items()}
    for rank, dump in dumps.items():
        dump["pg_config"] = {
            name: {"name": name, "desc": desc, "ranks": str(ranks)}
            for (name, desc), ranks in members.items()
            if rank in ranks
        }
        for entry in dump["entries"]:
            entry["state"] = "completed" if entry["retired"] else "started"
            entry["profiling_name"] = entry["profiling_name"].replace("gloo:", "nccl:")
    return dumps


def _stated(dump: dict[str, Any]) -> list[int]:
    return [int(rank) for group in dump["pg_config"].values() for rank in re.findall(r"\d+", group["ranks"])]


def short(lines: list[str]) -> str:
    """Its findings in one line."""
    found: list[str] = []
    for line in lines:
        if number := re.match(r"Not all ranks joining collective, sequence number: (\d+)", line):
            found.append(f"#{number[1]} not all joined")
        elif number := re.match(r"Collective sequence number: (\d+) has errors", line):
            found.append(f"#{number[1]} has errors")
        elif line.startswith("missing ranks: ") and found:
            found[-1] = found[-1].replace("not all joined", "missing " + line.removeprefix("missing ranks: "))
        elif line.startswith("error msg: ") and found:
            ranks = ", ".join(sorted(set(re.findall(r"Culprit rank \d+", line))))
            kinds = ", ".join(dict.fromkeys(re.findall(r"Error type: (\w+)", line)))
            found[-1] = found[-1].replace("has errors", f"{ranks}, {kinds}")
    return "; ".join(found[:MOST]) + (" …" if len(found) > MOST else "") if found else "prints nothing"


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += record.getMessage().splitlines()


def ask(dumps: dict[int, dict[str, Any]]) -> str:
    """What torchfrtrace says of these dumps, or how it ends."""
    from torch.distributed.flight_recorder.components.fr_logger import FlightRecorderLogger
    from torch.distributed.flight_recorder.fr_trace import main

    heard, logger = _Lines(), FlightRecorderLogger().logger
    logger.handlers[:] = [heard]
    with tempfile.TemporaryDirectory() as directory:
        for rank, dump in dumps.items():
            (Path(directory) / f"fr_rank_{rank}").write_bytes(pickle.dumps(dump, 2))
        try:
            main([directory, "-p", "fr_rank_"])
        except Exception as error:
            missing = re.search(r"Missing dump files from ranks (\{.*\})", str(error))
            return type(error).__name__ + (f", no dump of {missing[1]}" if missing else "")
    return short(heard.lines)


def load(directory: Path) -> dict[int, dict[str, Any]]:
    """The dumps of our own samples; they hold plain data."""
    paths = [path for path in directory.glob("fr_rank_*") if path.suffix != ".json"]
    ordered = sorted((int(path.name.rpartition("_")[2]), path) for path in paths)
    return {rank: pickle.loads(path.read_bytes()) for rank, path in ordered}  # noqa: S301 - as torchfrtrace does


if __name__ == "__main__":
    walk = os.walk
    os.walk = lambda top: ((root, sorted(dirs), sorted(files)) for root, dirs, files in walk(top))  # type: ignore[assignment,misc]
    told = {name: (ask(load(Path(name))), ask(mended(load(Path(name))))) for name in sys.argv[1:]}
    sys.stdout.write(json.dumps({Path(name).name: pair for name, pair in told.items()}))
