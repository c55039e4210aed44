"""Run torchfrtrace on directories of dumps and print its findings as one JSON object; needs the Python with torch.

Each directory is read twice: as recorded, and adapted to NCCL (with the groups that Gloo omits from `pg_config`, states
derived from `retired`, and `gloo:` renamed to `nccl:`). Files are read in the order of their ranks, because the result
depends on it. JSON copies of dumps are left out, because torchfrtrace fails on them.
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

MOST = 3  # findings per directory in the result


def adapt_to_nccl(dumps: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Change the dumps to what torchfrtrace expects of NCCL, and return them.

    All ranks are members of the default group; members of another group are the ranks that have calls in it.
    """
    callers: dict[tuple[str, str], set[int]] = {}
    for rank, dump in dumps.items():
        for entry in dump["entries"]:
            callers.setdefault(entry["process_group"], set()).add(rank)
    size = 1 + max(rank for dump in dumps.values() for rank in [*dumps, *_configured_ranks(dump)])
    members = {
        group: list(range(size)) if group[1] == "default_pg" else sorted(ranks) for group, ranks in callers.items()
    }
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


def _configured_ranks(dump: dict[str, Any]) -> list[int]:
    return [int(rank) for group in dump["pg_config"].values() for rank in re.findall(r"\d+", group["ranks"])]


def summarise(lines: list[str]) -> str:
    """Return torchfrtrace's findings in one line."""
    findings: list[str] = []
    for line in lines:
        if number := re.match(r"Not all ranks joining collective, sequence number: (\d+)", line):
            findings.append(f"#{number[1]} not all joined")
        elif number := re.match(r"Collective sequence number: (\d+) has errors", line):
            findings.append(f"#{number[1]} has errors")
        elif line.startswith("missing ranks: ") and findings:
            findings[-1] = findings[-1].replace("not all joined", "missing " + line.removeprefix("missing ranks: "))
        elif line.startswith("error msg: ") and findings:
            ranks = ", ".join(sorted(set(re.findall(r"Culprit rank \d+", line))))
            kinds = ", ".join(dict.fromkeys(re.findall(r"Error type: (\w+)", line)))
            findings[-1] = findings[-1].replace("has errors", f"{ranks}, {kinds}")
    return "; ".join(findings[:MOST]) + (" …" if len(findings) > MOST else "") if findings else "prints nothing"


class _LineRecorder(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += record.getMessage().splitlines()


def run_torchfrtrace(dumps: dict[int, dict[str, Any]]) -> str:
    """Return torchfrtrace's findings in these dumps, or the error with which it ends."""
    from torch.distributed.flight_recorder.components.fr_logger import FlightRecorderLogger
    from torch.distributed.flight_recorder.fr_trace import main

    recorder, logger = _LineRecorder(), FlightRecorderLogger().logger
    logger.handlers[:] = [recorder]
    with tempfile.TemporaryDirectory() as directory:
        for rank, dump in dumps.items():
            (Path(directory) / f"fr_rank_{rank}").write_bytes(pickle.dumps(dump, 2))
        try:
            main([directory, "-p", "fr_rank_"])
        except Exception as error:
            missing = re.search(r"Missing dump files from ranks (\{.*\})", str(error))
            return type(error).__name__ + (f", no dump of {missing[1]}" if missing else "")
    return summarise(recorder.lines)


def load(directory: Path) -> dict[int, dict[str, Any]]:
    """Return the dumps of one of the project's own samples, which hold plain data."""
    paths = [path for path in directory.glob("fr_rank_*") if path.suffix != ".json"]
    ordered = sorted((int(path.name.rpartition("_")[2]), path) for path in paths)
    return {rank: pickle.loads(path.read_bytes()) for rank, path in ordered}  # noqa: S301 - as torchfrtrace does


if __name__ == "__main__":
    walk = os.walk
    os.walk = lambda top: ((root, sorted(dirs), sorted(files)) for root, dirs, files in walk(top))  # type: ignore[assignment,misc]
    results = {
        name: (run_torchfrtrace(load(Path(name))), run_torchfrtrace(adapt_to_nccl(load(Path(name)))))
        for name in sys.argv[1:]
    }
    sys.stdout.write(json.dumps({Path(name).name: pair for name, pair in results.items()}))
