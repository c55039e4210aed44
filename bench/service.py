"""Measure `triage serve` with 100,000 incidents: readers of pages and API, alone and during 20 uploads of 50 MB.

A reader keeps a connection, sends a request, reads the response, waits about a second and repeats. Requests are for
filtered lists, random incidents, searches, statistics and clusters. Then the same readers without waiting measure the
capacity of the server. Server, workers and client share the machine. The last line is for programs.
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

from filled import prepare_store
from memory import process_memory

ROOT = Path(__file__).resolve().parents[1]
READERS, THINK, TIMEOUT = 200, 1.0, 30.0
UPLOADS, UPLOAD_BYTES = 20, 50_000_000
PAGE = "text/html,application/xhtml+xml"


@dataclass
class Result:
    """Seconds of each response by kind, and failed requests."""

    times: dict[str, list[float]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    wall: float = 0.0

    def quantile(self, part: float, kind: str | None = None) -> float:
        """Return a quantile in milliseconds, of one kind (`api`, `page`) or of all."""
        seconds = sorted(
            value for name, values in self.times.items() if kind in (None, name.partition(" ")[0]) for value in values
        )
        return seconds[min(len(seconds) - 1, int(len(seconds) * part))] * 1000 if seconds else 0.0

    @property
    def count(self) -> int:
        """Return the number of responses."""
        return sum(map(len, self.times.values()))


class RandomRequests:
    """The requests of readers."""

    def __init__(self, store: Path, pages: bool) -> None:
        db = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
        self.ids = [row[0] for row in db.execute("SELECT id FROM incident")]
        self.hosts = [row[0] for row in db.execute("SELECT DISTINCT name FROM host WHERE blamed LIMIT 500")]
        self.clusters = [row[0] for row in db.execute("SELECT id FROM cluster LIMIT 100")]
        db.close()
        self.pages = pages

    def draw(self, generator: random.Random) -> tuple[str, str]:
        """Return (kind, address) of a random request."""
        kind = "page" if self.pages and generator.random() < 0.5 else "api"
        base = "" if kind == "page" else "/api/v1"
        subject = generator.choices(
            ("list", "filter", "incident", "search", "stats", "clusters", "similar"), (25, 20, 30, 8, 5, 7, 5)
        )[0]
        if subject == "list":
            return f"{kind} list", f"{base}/incidents"
        if subject == "filter":
            query = generator.choice(
                (
                    "verdict=unknown",
                    "verdict=known&since=7d",
                    f"host={generator.choice(self.hosts)}",
                    "signature=data.worker-killed",
                    "domain=host",
                )
            )
            return f"{kind} filter", f"{base}/incidents?{query}"
        if subject == "incident":
            return f"{kind} incident", f"{base}/incidents/{generator.choice(self.ids)}"
        if subject == "search":
            query = generator.choice(
                ("worker killed", "RuntimeError", f"run-{generator.randrange(100_000)}", "disk quota", "nccl timeout")
            )
            return f"{kind} search", f"{base}/search?q={quote(query)}"
        if subject == "similar":
            return "api similar", f"/api/v1/incidents/{generator.choice(self.ids)}/similar"
        if subject == "clusters":
            return f"{kind} clusters", "/inbox" if kind == "page" else "/api/v1/clusters"
        return f"{kind} stats", f"{base}/stats"


async def send_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str, accept: str) -> int:
    """Send a request on an open connection and read the whole response. Returns the status."""
    writer.write(f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\n\r\n".encode())
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    length = next((int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")), None)
    if length is None:
        raise ConnectionError("no length")
    await reader.readexactly(length)
    return int(head[9:12])


async def run_reader(
    port: int, requests: RandomRequests, result: Result, think: float, until: float, seed: int
) -> None:
    """Run one reader until a time."""
    generator = random.Random(seed)
    await asyncio.sleep(generator.random() * max(think, 0.2))
    reader = writer = None
    while time.monotonic() < until:
        kind, address = requests.draw(generator)
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            started = time.perf_counter()
            status = await asyncio.wait_for(
                send_request(reader, writer, address, PAGE if kind.startswith("page") else "application/json"), TIMEOUT
            )
            result.times.setdefault(kind, []).append(time.perf_counter() - started)
            if status != 200:
                result.lost.append(f"{status} {address}")
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            result.lost.append(f"{type(error).__name__} {address}")
            if writer is not None:
                writer.close()
            writer = None
        if think:
            await asyncio.sleep(generator.expovariate(1 / think))
    if writer is not None:
        writer.close()


async def run_readers(
    port: int, requests: RandomRequests, count: int, think: float, seconds: float, seed: int = 0
) -> Result:
    """Run all readers at once."""
    result, started = Result(), time.monotonic()
    until = started + seconds
    await asyncio.gather(
        *(run_reader(port, requests, result, think, until, seed * 10_000 + number) for number in range(count))
    )
    result.wall = time.monotonic() - started
    return result


def make_log(directory: Path, number: int) -> Path:
    """Write a log of 50 MB with one failure."""
    path = directory / f"rank{number}.log"
    line = f"[2026-11-21 03:00:00,000] [INFO] step {number} loss 2.3456 grad_norm 1.0 lr 3e-4 tokens/s 123456\n" * 100
    with path.open("w") as file:
        for _ in range(UPLOAD_BYTES // len(line)):
            file.write(line)
        file.write(
            'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    step()\n'
            f"RuntimeError: upload {number} broke\n"
        )
    return path


async def upload(port: int, path: Path) -> str:
    """Send a file as a browser does, and follow its task. Returns its final state."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{path.name}"\r\n\r\n'.encode()
    length = len(head) + path.stat().st_size + len(b"\r\n--b--\r\n")
    writer.write(
        b"POST /api/v1/uploads HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: multipart/form-data; boundary=b\r\n" + f"Content-Length: {length}\r\n\r\n".encode()
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

    def __init__(self, directory: Path, store: Path | str, processes: int, workers: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = {
            "TRIAGE_CONFIG": "",
            "TRIAGE_STORE": str(store),
            "TRIAGE_TASKS_UPLOADS": str(directory / "uploads"),
            "TRIAGE_WEB_PROCESSES": str(processes),
            "TRIAGE_WEB_REQUESTS_A_MINUTE": "1000000",
            "TRIAGE_WEB_CHANGES_A_MINUTE": "100000",
        }
        command = [sys.executable, "-m", "triage", "serve", "--port", str(self.port), "--workers", str(workers)]
        self.log = (directory / "serve.log").open("wb")
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **settings}, stdout=self.log, stderr=self.log
        )
        self.peak = 0.0
        for _ in range(240):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 0.5):
                break
            time.sleep(0.25)
        else:
            sys.exit(f"the server does not listen: {(directory / 'serve.log').read_text()[-1000:]}")

    def measure_memory(self) -> float:
        """Return the MB of all processes of the server (proportional set size), and remember the peak."""
        total = process_memory(self.process.pid) / 1e6
        self.peak = max(self.peak, total)
        return total

    async def watch_memory(self) -> None:
        """Measure the memory each second."""
        while True:
            await asyncio.to_thread(self.measure_memory)
            await asyncio.sleep(1.0)

    def stop(self) -> None:
        """Stop the server."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.log.close()


def has_pages(port: int) -> bool:
    """Return whether the server has pages."""
    import urllib.request

    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            f"http://127.0.0.1:{port}/incidents", timeout=30
        ) as answer:
            return "html" in answer.headers.get("content-type", "")
    except OSError:
        return False


def print_result(name: str, result: Result) -> None:
    """Print the quantiles of each kind."""
    print(
        f"{name}: {result.count} responses in {result.wall:.0f} s ({result.count / result.wall:.0f}/s), "
        f"{len(result.lost)} failed"
    )
    for kind in sorted(result.times):
        seconds = sorted(result.times[kind])
        print(
            f"  {kind:<15} {len(seconds):>6}  median {seconds[len(seconds) // 2] * 1000:7.1f} ms"
            f"  p95 {seconds[int(len(seconds) * 0.95)] * 1000:7.1f} ms"
        )
    print(
        f"  {'all':<15} {result.count:>6}  median {result.quantile(0.5):7.1f} ms"
        f"  p95 {result.quantile(0.95):7.1f} ms  p99 {result.quantile(0.99):7.1f} ms"
    )
    for failure in result.lost[:5]:
        print(f"  failed: {failure}")


async def measure(server: Server, requests: RandomRequests, directory: Path, args: argparse.Namespace) -> str:
    """Run all measurements. Returns the last line."""
    watching = asyncio.create_task(server.watch_memory())
    await run_readers(server.port, requests, 20, 0.1, 5, seed=1)  # fills the caches of the file system
    alone = await run_readers(server.port, requests, READERS, args.think, args.seconds, seed=2)
    print_result(f"{READERS} readers", alone)
    paths = [make_log(directory, number) for number in range(UPLOADS)]
    started = time.monotonic()
    reading = asyncio.create_task(run_readers(server.port, requests, READERS, args.think, args.seconds, seed=3))
    sending = [asyncio.create_task(upload(server.port, path)) for path in paths]
    during = await reading
    ends = await asyncio.gather(*sending)
    print(
        f"{UPLOADS} uploads of {UPLOAD_BYTES / 1e6:.0f} MB: {ends.count('done')} done "
        f"after {time.monotonic() - started:.0f} s"
    )
    print_result(f"{READERS} readers during the uploads", during)
    capacity = await run_readers(server.port, requests, READERS, 0.0, 10, seed=4)
    print_result(f"{READERS} readers without waiting", capacity)
    watching.cancel()
    print(f"peak memory of the server: {server.peak:.0f} MB")
    keys = {
        "service_api_p95_ms": alone.quantile(0.95, "api"),
        "service_page_p95_ms": alone.quantile(0.95, "page"),
        "service_upload_api_p95_ms": during.quantile(0.95, "api"),
        "service_upload_page_p95_ms": during.quantile(0.95, "page"),
        "service_lost": len(alone.lost) + len(during.lost) + len(capacity.lost),
        "service_uploads_done": ends.count("done"),
        "service_most_per_s": capacity.count / capacity.wall,
        "service_peak_mb": server.peak,
    }
    return " ".join(f"{name}={value:.0f}" for name, value in keys.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--incidents", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each measurement")
    parser.add_argument(
        "--think", type=float, default=THINK, help="average seconds that a reader waits between two requests"
    )
    parser.add_argument("--processes", type=int, default=2, help="web processes")
    parser.add_argument(
        "--store",
        type=Path,
        help="a store to copy; default: the store that the benchmarks share, made if it is missing",
    )
    args = parser.parse_args()
    path = args.store or prepare_store(args.incidents)
    with tempfile.TemporaryDirectory(prefix="triage-bench-") as scratch:
        directory = Path(scratch)
        copy = Path(shutil.copy(path, directory / "triage.db"))
        server = Server(directory, copy, args.processes, 1)
        try:
            requests = RandomRequests(copy, has_pages(server.port))
            if not requests.pages:
                print("the server has no pages: measuring the API only")
            summary = asyncio.run(measure(server, requests, directory, args))
        finally:
            server.stop()
    print("BENCH", summary)


if __name__ == "__main__":
    main()
