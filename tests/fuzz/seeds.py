"""Inputs to begin with: small valid files of each format, and every finding of earlier runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.artifacts.flight.factories import Call, Job, as_pickle
from tests.artifacts.flight.test_load import HOSTILE
from tests.artifacts.test_mutated_cores import make_notes_core
from tests.fuzz.harnesses import Harness
from tests.hostile.artifacts import REGISTERS
from tests.hostile.build import good_log
from tests.hostile.catalogs import CASES as CATALOGS
from tests.sources.factories import COMPRESSIONS, make_zip, tar

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ("prefixes", "records", "backtraces", "json")
FINDINGS = Path(__file__).parent / "findings"
MOST = 4096


def list_seeds(harness: Harness) -> list[bytes]:
    """Return the seeds of a harness: what it reads, as long as its inputs may be, and its findings."""
    own = SEEDS[harness.name]()
    if harness.name in TEXTS:
        own = [part for text in own for part in (text[: harness.longest], text[-harness.longest :])]
    return [*dict.fromkeys(own), *list_findings(harness.name)]


def list_findings(name: str) -> list[bytes]:
    """Return the inputs that broke a harness once."""
    return [path.read_bytes() for path in sorted((FINDINGS / name).glob("*")) if path.is_file()]


def _logs() -> list[bytes]:
    """Return the starts and the ends of recorded logs, of which each has another layout."""
    jobs = sorted((ROOT / "samples" / "jobs").glob("*/job"))[::4]
    logs = [path.read_bytes() for job in jobs for path in sorted(job.rglob("*.log"))[:1]]
    return [good_log(), *(log[:1500] for log in logs), *(log[-1500:] for log in logs)]


def _backtraces() -> list[bytes]:
    texts = sorted((ROOT / "tests" / "artifacts" / "backtraces").rglob("*.txt"))[::3]
    dumps = sorted((ROOT / "tests" / "artifacts" / "stacks" / "dumps").rglob("*"))[::3]
    return [path.read_bytes()[:3000] for path in (*texts, *dumps) if path.is_file()]


def _flight() -> list[bytes]:
    calls = [Call(place=("train.py", line, "step")) for line in range(2)]
    dump = Job({rank: list(calls) for rank in range(2)}).dumps()[0]
    hostile = [data for data, _ in HOSTILE.values() if len(data) < MOST]
    return [as_pickle(dump), json.dumps(dump).encode(), *hostile]


def _cores() -> list[bytes]:
    return [
        make_notes_core(machine, REGISTERS, threads, xnum)
        for machine in (62, 183)
        for threads, xnum in ((1, False), (3, True))
    ]


def _signatures() -> list[bytes]:
    shipped = sorted((ROOT / "signatures").rglob("*.yaml"))[::25]
    small = [path.read_bytes() for path in shipped if path.stat().st_size < MOST]
    return [*small, *(case.content for case in CATALOGS if len(case.content) < MOST)]


def _archives() -> list[bytes]:
    text = b"[rank0]: step 1\n" * 9
    plain = [tar({"a.log": text, "b/c.log": text}), make_zip({"a.log": text}), make_zip({"a.log": text}, 0)]
    packed = [pack(data) for pack in COMPRESSIONS.values() for data in (text, plain[1])]
    wide = [("\ufeff" + text.decode()).encode(code) for code in ("utf-16-le", "utf-16-be", "utf-32-le")]
    return [*plain, *packed, *wide, b"==> a.log <==\n" + text + b"==> b.log <==\n" + text, b"     1\ta\n     2\tb\n"]


def _json() -> list[bytes]:
    error = {
        "message": {
            "message": "ValueError: x",
            "extraInfo": {"py_callstack": "Traceback (most recent call last):\n", "timestamp": "1"},
        }
    }
    structured = {
        "level": "ERROR",
        "message": "x",
        "exception": {"type": "ValueError", "value": "y", "stacktrace": ["a", "b"]},
    }
    journal = {"MESSAGE": [97, 98], "__REALTIME_TIMESTAMP": "1795228200000000", "_PID": "7", "_HOSTNAME": "node1"}
    docker = {
        "log": "[rank0]: Traceback (most recent call last):\n",
        "stream": "stderr",
        "time": "2026-11-21T02:30:00Z",
    }
    return [json.dumps(item).encode() + b"\n" for item in (error, structured, journal, docker)]


SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "prefixes": _logs,
    "records": _logs,
    "backtraces": _backtraces,
    "flight": _flight,
    "elf": _cores,
    "catalog": _signatures,
    "archives": _archives,
    "json": _json,
}
