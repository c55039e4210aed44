"""Measure a store in PostgreSQL under two web nodes and a worker, while one of them is killed every few seconds.

Readers keep a connection to a node, as behind a load balancer: they go to the other node when theirs dies. Writers are
processes that ingest into the database. At the end every incident that a writer reported must be there, and every task
that was accepted must have ended. Server, nodes, writers and readers share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import httpx  # noqa: E402
import service  # noqa: E402
from filled import prepare_store  # noqa: E402
from service import PAGE, RandomRequests, send_request  # noqa: E402

from tests.store.postgres_server import PostgresServer, find_programs  # noqa: E402
from triage.store import Store, copying, maintenance  # noqa: E402

WRITER = """
import sys, time
from tests.store.factories import known_diagnosis, unknown_diagnosis
from triage.store import Store
with Store.open(sys.argv[1]) as store:
    number = 0
    while True:
        make = known_diagnosis if number % 2 else unknown_diagnosis
        began = time.monotonic()
        stored = store.incidents.add(make(f"{sys.argv[2]} {number}"))
        print(stored.id, time.monotonic() - began, flush=True)
        number += 1
        time.sleep(float(sys.argv[3]))
"""
WARM_UP = 15.0  # seconds in which nodes load what they keep; responses do not count yet
FAILURE = "[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: nothing in shard {}\n"


class Node:
    """A `triage serve` that is started again after it was killed."""

    def __init__(self, url: str, directory: Path, name: str, workers: int) -> None:
        self.url, self.directory, self.name, self.workers = url, directory, name, workers
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start it, on the port that it had before."""
        self.log = (self.directory / f"{self.name}-{time.monotonic_ns()}.log").open("w+b")
        environment = {
            **os.environ,
            "TRIAGE_STORE": self.url,
            "TRIAGE_CONFIG": "",
            "PYTHONPATH": str(ROOT),
            "TRIAGE_WEB_LOG_REQUESTS": "0",
            "TRIAGE_TASKS_UPLOADS": str(self.directory / "uploads"),
            "TRIAGE_WEB_REQUESTS_A_MINUTE": "1000000",
            "PYTHONDONTWRITEBYTECODE": "",  # an installed package is compiled
            "TRIAGE_WEB_CLIENT_CONNECTIONS": "900",  # all people come from one address here
            "TRIAGE_TASKS_CLIENT_OPEN_UPLOADS": "64",
        }
        command = [sys.executable, "-m", "triage", "serve", "--port", str(self.port), "--workers", str(self.workers)]
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log)

    def wait(self) -> None:
        """Wait until it listens."""
        while True:
            for line in Path(self.log.name).read_text().splitlines():
                if line.startswith("{") and (event := json.loads(line))["event"] == "triage serves":
                    self.port = int(event["address"].rstrip("/").rpartition(":")[2])
                    return
            assert self.process.poll() is None, Path(self.log.name).read_text()[-2000:]
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it and its children, as a machine that loses its power."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self.process.kill()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        self.process.wait()

    def count_ended_processes(self) -> int:
        """Return how many of its processes ended by themselves; a kill leaves no such line."""
        return sum(log.read_text().count('"process ended"') for log in self.directory.glob(f"{self.name}-*.log"))


class Load:
    """What readers, uploads and the killer saw."""

    def __init__(self, nodes: list[Node], requests: RandomRequests, think: float) -> None:
        self.nodes, self.requests, self.think = nodes, requests, think
        self.times: list[float] = []
        self.kinds: dict[str, list[float]] = {}
        self.failures: Counter[str] = Counter()
        self.tasks: list[str] = []
        self.uploads: Counter[str] = Counter()
        self.kills = 0
        self.counts_from = self.end = 0.0

    async def read(self, number: int) -> None:
        """Read until the end: random requests, a pause after each."""
        chance = random.Random(number)
        node = number % 2
        writer = None
        await asyncio.sleep(chance.random() * self.think)
        while time.monotonic() < self.end:
            kind, address = self.requests.draw(chance)
            accept = PAGE if kind.startswith("page") else "application/json"
            try:
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", self.nodes[node].port)
                began = time.monotonic()
                status = await asyncio.wait_for(send_request(reader, writer, address, accept), 30)
                if status == 200 and began > self.counts_from:
                    self.times.append(time.monotonic() - began)
                    self.kinds.setdefault(kind, []).append(self.times[-1])
                elif status != 200:
                    self.failures[str(status)] += 1
            except (OSError, EOFError, asyncio.IncompleteReadError, TimeoutError) as error:
                self.failures[name_failure(error)] += 1
                if writer is not None:
                    writer.close()
                writer = None
                node = 1 - node
            await asyncio.sleep(self.think * (0.5 + chance.random()))

    async def upload(self) -> None:
        """Upload a small job now and then."""
        async with httpx.AsyncClient(timeout=20, trust_env=False) as client:
            for number in range(10**6):
                if time.monotonic() >= self.end:
                    return
                files = {"file": ("rank0.log", FAILURE.format(number).encode())}
                try:
                    port = self.nodes[number % 2].port
                    answer = await client.post(f"http://127.0.0.1:{port}/api/v1/uploads", files=files)
                    if answer.status_code == 202:
                        self.tasks.append(answer.json()["id"])
                except httpx.HTTPError as error:
                    self.failures[f"upload {type(error).__name__}"] += 1
                await asyncio.sleep(2)

    async def upload_files(self, paths: list[Path]) -> None:
        """Upload large files, all at once, and follow their tasks; the run lasts until they are done."""
        await asyncio.sleep(WARM_UP)
        states = await asyncio.gather(
            *(service.upload(self.nodes[number % 2].port, path) for number, path in enumerate(paths))
        )
        self.uploads = Counter(states)
        self.end = time.monotonic()

    async def kill(self, seconds: float) -> None:
        """Kill a node or the worker, in turn, and start it again at once."""
        while seconds and time.monotonic() < self.end - seconds:
            await asyncio.sleep(seconds)
            node = (self.nodes[0], self.nodes[2], self.nodes[1], self.nodes[2])[self.kills % 4]
            await asyncio.to_thread(node.kill)
            node.start()
            self.kills += 1

    async def run(self, readers: int, seconds: float, kill_every: float, files: list[Path]) -> None:
        """Run everything at once: with files to upload until they are done, else for so many seconds."""
        self.counts_from = time.monotonic() + WARM_UP
        self.end = self.counts_from + (seconds if not files else 3600)
        others = [self.upload_files(files)] if files else [self.upload(), self.kill(kill_every)]
        await asyncio.gather(*(self.read(number) for number in range(readers)), *others)


def name_failure(error: BaseException) -> str:
    """Return the name of an error; of an answer that did not come whole, whether any of it came."""
    if isinstance(error, asyncio.IncompleteReadError):
        return f"{type(error).__name__} {'within' if error.partial or error.expected else 'before'} the answer"
    return type(error).__name__


def quantile(values: list[float], part: float) -> float:
    """Return a quantile in milliseconds."""
    return round(sorted(values)[min(len(values) - 1, int(len(values) * part))] * 1000, 1) if values else 0.0


def main() -> None:
    """Measure, print, and fail if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--incidents", type=int, default=100_000)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--think", type=float, default=1.0, help="mean pause of a reader and of a writer in seconds")
    parser.add_argument("--kill-every", type=float, nargs="+", default=[0, 5], help="one run for each; 0: no kills")
    parser.add_argument("--uploads", type=int, default=0, help="a last run, without kills, beside so many of 50 MB")
    parser.add_argument("--file", action="store_true", help="a store in SQLite instead, to compare")
    args = parser.parse_args()
    programs = find_programs()
    assert programs is not None, "PostgreSQL is not installed"
    filled = prepare_store(args.incidents)
    server = PostgresServer(programs)
    with tempfile.TemporaryDirectory() as name:
        try:
            reports = list(measure(server, filled, Path(name), args))
        finally:
            server.close()
    sys.exit(
        any(
            any(report[name] for name in ("lost_incidents", "lost_tasks", "problems", "ended_processes"))
            or set(report["uploads"]) - {"done"}
            for report in reports
        )
    )


def measure(
    server: PostgresServer, filled: Path, directory: Path, args: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield and print what was measured, for each interval of kills."""
    url = str(directory / "triage.db") if args.file else server.create_database()
    began = time.monotonic()
    if args.file:
        shutil.copy(filled, url)
    else:
        with Store.open(filled) as source, Store.open(url) as target:
            copying.copy_store(source.connections, target.connections)
        server.execute("ANALYZE", url.partition("?")[0].rpartition("/")[2])
    print(f"copied in {time.monotonic() - began:.0f} s", flush=True)
    runs: list[tuple[float, list[Path]]] = [(kill_every, []) for kill_every in args.kill_every]
    if args.uploads:
        (directory / "files").mkdir()
        runs.append((0, [service.make_log(directory / "files", number) for number in range(args.uploads)]))
    for kill_every, files in runs:
        report = {"kill_every": kill_every, **run(url, filled, directory, args, kill_every, files)}
        if files:
            report |= {"upload_mb": service.UPLOAD_BYTES // 1_000_000, "upload_files": len(files)}
        print(json.dumps(report, indent=2), flush=True)
        yield report


def run(
    url: str, filled: Path, directory: Path, args: argparse.Namespace, kill_every: float, files: list[Path]
) -> dict[str, Any]:
    """Return what was measured in one run."""
    directory = Path(tempfile.mkdtemp(dir=directory))
    with contextlib.ExitStack() as ends:
        nodes = [Node(url, directory, name, workers) for name, workers in (("web0", 0), ("web1", 0), ("worker", 1))]
        for node in nodes:
            ends.callback(node.kill)
            node.wait()
        report = load_nodes(nodes, url, filled, args, kill_every, files)
        return report | {"ended_processes": sum(node.count_ended_processes() for node in nodes)}


def load_nodes(
    nodes: list[Node], url: str, filled: Path, args: argparse.Namespace, kill_every: float, files: list[Path]
) -> dict[str, Any]:
    """Read, write, upload and kill for a while, and return what was measured."""
    arguments = [sys.executable, "-c", WRITER, url]
    writers = [
        subprocess.Popen(
            [*arguments, f"writer {kill_every} {len(files)} {n}", str(args.think)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for n in range(args.writers)
    ]
    load = Load(nodes, RandomRequests(filled, pages=True), args.think)
    try:
        asyncio.run(load.run(args.readers, args.seconds, kill_every, files))
    finally:
        for writer in writers:
            writer.kill()
    stored = []
    for writer in writers:
        stored += [line.split() for line in writer.communicate()[0].splitlines(keepends=True) if line.endswith("\n")]
    with Store.open(url) as store:
        deadline = time.monotonic() + 120
        while store.tasks.counts().keys() & {"queued", "running"} and time.monotonic() < deadline:
            time.sleep(0.2)
        lost_tasks = [task for task in load.tasks if store.tasks.get(task).state != "done"]
        num = {row["id"] for row in store.connections.read("SELECT id FROM incident")}
        problems = maintenance.check_store(store.connections)
    return {
        "incidents": args.incidents,
        "readers": args.readers,
        "writers": args.writers,
        "seconds": args.seconds,
        "kills": load.kills,
        "reads": len(load.times),
        "read_ms": {part: quantile(load.times, float(part)) for part in ("0.5", "0.95", "0.99")},
        "read_p95_ms_by_kind": {kind: quantile(values, 0.95) for kind, values in sorted(load.kinds.items())},
        "write_ms": {part: quantile([float(line[1]) for line in stored], float(part)) for part in ("0.5", "0.95")},
        "writes": len(stored),
        "lost_incidents": len({line[0] for line in stored} - num),
        "tasks": len(load.tasks),
        "lost_tasks": len(lost_tasks),
        "uploads": dict(load.uploads),
        "failed_requests": dict(load.failures),
        "problems": problems[:5],
    }


if __name__ == "__main__":
    main()
