"""Measures `triage serve` with 100,000 incidents: readers of pages and API, alone and while 20 uploads of 50 MB come
in.

A reader is a person or a program that keeps a connection, asks, reads, waits about a second and asks again; readers ask
for lists with
filters, for incidents drawn from all there are, for searches, sums and clusters. Server, workers and client share the
machine. Then the
same readers without any wait say how much the server can give at most. The last line is for machines.
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
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent))

from filled import ready
from memory import of_all

ROOT = Path(__file__).resolve().parents[1]
READERS, THINK, TIMEOUT = 200, 1.0, 30.0
UPLOADS, UPLOAD_BYTES = 20, 50_000_000
PAGE = "text/html,application/xhtml+xml"


@dataclass
class Result:
    """Seconds of each answer by kind, and what was lost."""

    times: dict[str, list[float]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    wall: float = 0.0

    def at(self, part: float, kind: str | None = None) -> float:
        """A quantile in milliseconds, of one kind or of all."""
        found = sorted(
            value for name, values in self.times.items() if kind in (None, name.partition(" ")[0]) for value in values
        )
        return found[min(len(found) - 1, int(len(found) * part))] * 1000 if found else 0.0

    @property
    def count(self) -> int:
        return sum(map(len, self.times.values()))


class Questions:
    """What readers ask: (kind, address)."""

    def __init__(self, store: Path, pages: bool) -> None:
        db = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
        self.ids = [row[0] for row in db.execute("SELECT id FROM incident")]
        self.hosts = [row[0] for row in db.execute("SELECT DISTINCT name FROM host WHERE blamed LIMIT 500")]
        self.clusters = [row[0] for row in db.execute("SELECT id FROM cluster LIMIT 100")]
        db.close()
        self.pages = pages

    def one(self, chance: random.Random) -> tuple[str, str]:
        kind = "page" if self.pages and chance.random() < 0.5 else "api"
        base = "" if kind == "page" else "/api/v1"
        what = chance.choices(
            ("list", "filter", "incident", "search", "stats", "clusters", "similar"), (25, 20, 30, 8, 5, 7, 5)
        )[0]
        if what == "list":
            return f"{kind} list", f"{base}/incidents"
        if what == "filter":
            wanted = chance.choice(
                (
                    "verdict=unknown",
                    "verdict=known&since=7d",
                    f"host={chance.choice(self.hosts)}",
                    "signature=data.worker-killed",
                    "domain=host",
                )
            )
            return f"{kind} filter", f"{base}/incidents?{wanted}"
        if what == "incident":
            return f"{kind} incident", f"{base}/incidents/{chance.choice(self.ids)}"
        if what == "search":
            words = chance.choice(
                ("worker killed", "RuntimeError", f"run-{chance.randrange(100_000)}", "disk quota", "nccl timeout")
            )
            return f"{kind} search", f"{base}/search?q={quote(words)}"
        if what == "similar":
            return "api similar", f"/api/v1/incidents/{chance.choice(self.ids)}/similar"
        if what == "clusters":
            return f"{kind} clusters", "/inbox" if kind == "page" else "/api/v1/clusters"
        return f"{kind} stats", f"{base}/stats"


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str, accept: str) -> int:
    """One request on a connection that stays open; the status. The whole answer is read."""
    writer.write(f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\n\r\n".encode())
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    length = next((int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")), None)
    if length is None:
        raise ConnectionError("no length")
    await reader.readexactly(length)
    return int(head[9:12])


async def read_on(port: int, questions: Questions, result: Result, think: float, until: float, seed: int) -> None:
    """One reader."""
    chance = random.Random(seed)
    await asyncio.sleep(chance.random() * max(think, 0.2))
    reader = writer = None
    while time.monotonic() < until:
        kind, address = questions.one(chance)
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            began = time.perf_counter()
            status = await asyncio.wait_for(
                ask(reader, writer, address, PAGE if kind.startswith("page") else "application/json"), TIMEOUT
            )
            result.times.setdefault(kind, []).append(time.perf_counter() - began)
            if status != 200:
                result.lost.append(f"{status} {address}")
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            result.lost.append(f"{type(error).__name__} {address}")
            if writer is not None:
                writer.close()
            writer = None
        if think:
            await asyncio.sleep(chance.expovariate(1 / think))
    if writer is not None:
        writer.close()


async def readers(port: int, questions: Questions, count: int, think: float, seconds: float, seed: int = 0) -> Result:
    """All of them at once."""
    result, began = Result(), time.monotonic()
    until = began + seconds
    await asyncio.gather(
        *(read_on(port, questions, result, think, until, seed * 10_000 + number) for number in range(count))
    )
    result.wall = time.monotonic() - began
    return result


def upload_file(place: Path, number: int) -> Path:
    """A log of 50 MB with one failure in it."""
    path = place / f"rank{number}.log"
    line = f"[2026-11-21 03:00:00,000] [INFO] step {number} loss 2.3456 grad_norm 1.0 lr 3e-4 tokens/s 123456\n" * 100
    with path.open("w") as file:
        for _ in range(UPLOAD_BYTES // len(line)):
            file.write(line)
        file.write(
            f'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    step()\nRuntimeError: upload {number} broke\n'
        )
    return path


async def upload(port: int, path: Path) -> str:
    """Send a file as a browser does, and follow its task; how it ended."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{path.name}"\r\n\r\n'.encode()
    length = len(head) + path.stat().st_size + len(b"\r\n--b--\r\n")
    writer.write(
        f"POST /api/v1/uploads HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: {length}\r\n\r\n".encode()
    )
    writer.write(head)
    with path.open("rb") as file:
        while piece := file.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    writer.write(b"\r\n--b--\r\n")
    await writer.drain()
    answer = await reader.readuntil(b"\r\n\r\n")
    size = next(
        int(line.partition(b":")[2]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:")
    )
    task = json.loads(await reader.readexactly(size))
    writer.close()
    if b" 202 " not in answer[:20]:
        return f"refused: {task}"
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            f"GET /api/v1/tasks/{task['id']} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
        )
        body = (await reader.read()).partition(b"\r\n\r\n")[2]
        writer.close()
        state = json.loads(body)["state"]
        if state not in ("queued", "running"):
            return str(state)
        await asyncio.sleep(0.5)


class Server:
    """`triage serve` on a copy of the store."""

    def __init__(self, place: Path, store: Path, processes: int, workers: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = {
            "TRIAGE_CONFIG": "",
            "TRIAGE_STORE": str(store),
            "TRIAGE_TASKS_UPLOADS": str(place / "uploads"),
            "TRIAGE_WEB_PROCESSES": str(processes),
            "TRIAGE_WEB_REQUESTS_A_MINUTE": "1000000",
            "TRIAGE_WEB_CHANGES_A_MINUTE": "100000",
        }
        command = [sys.executable, "-m", "triage", "serve", "--port", str(self.port), "--workers", str(workers)]
        self.log = (place / "serve.log").open("wb")
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **settings}, stdout=self.log, stderr=self.log
        )
        self.peak = 0.0
        for _ in range(240):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 0.5):
                break
            time.sleep(0.25)

    def memory(self) -> float:
        """MB that the processes of the server have for themselves now (proportional set size); the peak is kept."""
        total = of_all(self.process.pid) / 1e6
        self.peak = max(self.peak, total)
        return total

    async def watch(self) -> None:
        while True:
            await asyncio.to_thread(self.memory)
            await asyncio.sleep(1.0)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.log.close()


def has_pages(port: int) -> bool:
    import urllib.request

    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            f"http://127.0.0.1:{port}/incidents", timeout=30
        ) as answer:
            return "html" in answer.headers.get("content-type", "")
    except OSError:
        return False


def show(name: str, result: Result) -> None:
    print(
        f"{name}: {result.count} answers in {result.wall:.0f} s ({result.count / result.wall:.0f}/s), {len(result.lost)} lost"
    )
    for kind in sorted(result.times):
        found = sorted(result.times[kind])
        print(
            f"  {kind:<15} {len(found):>6}  median {found[len(found) // 2] * 1000:7.1f} ms  p95 {found[int(len(found) * 0.95)] * 1000:7.1f} ms"
        )
    print(
        f"  {'all':<15} {result.count:>6}  median {result.at(0.5):7.1f} ms  p95 {result.at(0.95):7.1f} ms  p99 {result.at(0.99):7.1f} ms"
    )
    for said in result.lost[:5]:
        print(f"  lost: {said}")


async def measure(server: Server, questions: Questions, place: Path, args: argparse.Namespace) -> str:
    watching = asyncio.create_task(server.watch())
    await readers(
        server.port, questions, 20, 0.1, 5, seed=1
    )  # warms the caches of the file system, as any day before this one
    alone = await readers(server.port, questions, READERS, args.think, args.seconds, seed=2)
    show(f"{READERS} readers", alone)
    paths = [upload_file(place, number) for number in range(UPLOADS)]
    began = time.monotonic()
    reading = asyncio.create_task(readers(server.port, questions, READERS, args.think, args.seconds, seed=3))
    sending = [asyncio.create_task(upload(server.port, path)) for path in paths]
    during = await reading
    ends = await asyncio.gather(*sending)
    print(
        f"{UPLOADS} uploads of {UPLOAD_BYTES / 1e6:.0f} MB: {ends.count('done')} done after {time.monotonic() - began:.0f} s"
    )
    show(f"{READERS} readers while they come", during)
    most = await readers(server.port, questions, READERS, 0.0, 10, seed=4)
    show(f"{READERS} readers that never wait", most)
    watching.cancel()
    print(f"memory of the server at its peak: {server.peak:.0f} MB")
    keys = {
        "service_api_p95_ms": alone.at(0.95, "api"),
        "service_page_p95_ms": alone.at(0.95, "page"),
        "service_upload_api_p95_ms": during.at(0.95, "api"),
        "service_upload_page_p95_ms": during.at(0.95, "page"),
        "service_lost": len(alone.lost) + len(during.lost) + len(most.lost),
        "service_uploads_done": ends.count("done"),
        "service_most_per_s": most.count / most.wall,
        "service_peak_mb": server.peak,
    }
    return " ".join(f"{name}={value:.0f}" for name, value in keys.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--incidents", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each turn")
    parser.add_argument(
        "--think", type=float, default=THINK, help="seconds that a reader waits between two questions, on average"
    )
    parser.add_argument("--processes", type=int, default=2, help="processes that answer")
    parser.add_argument(
        "--store",
        type=Path,
        help="a store to copy; default: the one that the benchmarks share, made when it is not there",
    )
    args = parser.parse_args()
    path = args.store or ready(args.incidents)
    with tempfile.TemporaryDirectory(prefix="triage-bench-") as scratch_place:
        place = Path(scratch_place)
        copy = Path(shutil.copy(path, place / "triage.db"))
        server = Server(place, copy, args.processes, 1)
        try:
            questions = Questions(copy, has_pages(server.port))
            if not questions.pages:
                print("there are no pages: only the API is asked")
            last = asyncio.run(measure(server, questions, place, args))
        finally:
            server.stop()
    print("BENCH", last)


if __name__ == "__main__":
    main()
