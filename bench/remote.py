"""Diagnose one job from an object store and from the disk: time, memory, bytes, and what a plain download takes.

    python bench/remote.py [objects=200] [mib=5] [rate=0.05] [server=files] [rounds=1] [directory=/tmp/…]

The store is a process of its own on loopback, with the credentials of nobody: `server=files` is bench/object_server.py,
which costs little; `server=moto` is moto's, which costs more than reading does. The same client that only downloads all
objects shows how fast it is. Server and client share the machine. `rate` of the requests of a last run fail.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
SERVER = """
import sys, time, logging
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
time.sleep(100000)
"""
INGEST = """
import gc, json, resource, sys, triage.pipeline as pipeline, triage.render.json as report
gc.disable()  # as `triage ingest` does
options = pipeline.Options(addresses=True, fork=True)
diagnosis = pipeline.ingest([sys.argv[1]], options)
print(json.dumps([diagnosis.stats.seconds, diagnosis.stats.peak_memory_bytes, diagnosis.job.id,
    [diagnosis.stats.remote.requests, diagnosis.stats.remote.retries, diagnosis.stats.remote.bytes]
    if diagnosis.stats.remote else None, sorted(w.code for w in diagnosis.warnings),
    sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))]))
"""
DOWNLOAD = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from triage.remote.session import current_session
session = current_session()
began = time.monotonic()
items = list(session.list_objects(sys.argv[1]))
runs = [(item, cell) for item in items for cell in range(0, -(-item.size // (1 << 18)), 16)]
with ThreadPoolExecutor(12) as pool:
    fetch = lambda item, cell: session._fetch(item, cell << 18, min(item.size, (cell + 16) << 18))
    size = sum(pool.map(lambda run: len(fetch(*run)), runs))
print([time.monotonic() - began, time.process_time(), size])
"""


def build(directory: Path, objects: int, size: int) -> None:
    """Write the log of one rank for each object; rank 7 fails."""
    numbers = random.Random(7)
    lines, length = list[str](), 0
    while length < size:
        step = len(lines)
        time_of_day = f"12:{step // 60 % 60:02d}:{step % 60:02d}"
        lines.append(f"2026-03-01 {time_of_day} [rank0] step {step} loss {numbers.random():.6f}\n")
        length += len(lines[-1])
    text = "".join(lines)
    failure = 'Traceback (most recent call last):\n  File "t.py", line 3, in f\nValueError: no tokens\n'
    for rank in range(objects):
        own = text.replace("[rank0]", f"[rank{rank}]")
        (directory / f"rank_{rank}.log").write_text(own + failure * (rank == 7))


def run(code: str, *arguments: str, **environment: str) -> Any:
    """Return what a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        check=True,
        cwd=ROOT,
    )
    return json.loads(done.stdout)


def upload(directory: Path, url: str) -> None:
    """Store all files in the bucket."""
    import boto3

    client = boto3.client("s3", endpoint_url=url)
    client.create_bucket(Bucket="bench")

    def put(path: Path) -> None:
        client.put_object(Bucket="bench", Key=f"job/{path.name}", Body=path.read_bytes())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, sorted(directory.iterdir())))


@contextlib.contextmanager
def serve(local: Path, kind: str) -> Iterator[tuple[str, int]]:
    """Serve the files of a directory below s3://bench/job/; give the address and the process id of the server."""
    if kind == "files":
        command = [sys.executable, str(Path(__file__).with_name("object_server.py")), str(local), "job/"]
    else:
        command = [sys.executable, "-c", SERVER]
    small = {"MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": "65536"}  # larger objects wait on the disk
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **small})
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        if kind != "files":
            upload(local, url)
        yield url, server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def main() -> None:
    """Measure, and print the keys for the benchmark."""
    options = {"objects": "200", "mib": "5", "rate": "0.05", "server": "files", "rounds": "1"}
    options.update(pair.split("=", 1) for pair in sys.argv[1:])
    objects, size = int(options["objects"]), int(float(options["mib"]) * (1 << 20))
    os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="none", AWS_DEFAULT_REGION="us-east-1")
    with tempfile.TemporaryDirectory(dir=options.get("directory")) as directory:
        local = Path(directory) / "job"
        local.mkdir()
        build(local, objects, size)
        with serve(local, options["server"]) as (url, server):
            measure(local, url, server, float(options["rate"]), int(options["rounds"]))


def processor_time(pid: int) -> float:
    """Return the seconds of processor time that a running process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_with_server(server: int, code: str, address: str, url: str) -> tuple[Any, float]:
    """Return what a fresh interpreter prints, and the processor time that the server used meanwhile."""
    before = processor_time(server)
    return run(code, address, AWS_ENDPOINT_URL=url), processor_time(server) - before


def measure(local: Path, url: str, server: int, rate: float, rounds: int) -> None:
    """Diagnose from the disk and from the store in turns, download, and diagnose with faults."""
    from tests.remote.faulty_proxy import FaultyProxy, choose_some

    address = "s3://bench/job/"
    run(INGEST, str(local))
    from_store = [(server, code, address, url) for code in (INGEST, DOWNLOAD)]
    turns = [(run(INGEST, str(local)), *itertools.starmap(run_with_server, from_store)) for _ in range(rounds)]
    (disk, disk_memory, disk_id, _, disk_warnings, disk_cpu) = min(turn[0] for turn in turns)
    (remote, memory, remote_id, cost, remote_warnings, cpu), remote_server = min(turn[1] for turn in turns)
    (download, download_cpu, size), download_server = min(turn[2] for turn in turns)
    print(
        f"disk {disk:.1f} s, {disk_memory >> 20} MiB; download only {download:.1f} s ({size / download / 1e6:.0f} MB/s)"
    )
    print(f"remote {remote:.1f} s, {memory >> 20} MiB, {cost[0]} requests, {cost[2] / size:.3f} of the bytes")
    print(
        f"processor time: disk {disk_cpu:.1f} s, remote {cpu:.1f} s and server {remote_server:.1f} s, "
        f"download only {download_cpu:.1f} s and server {download_server:.1f} s; load {os.getloadavg()[0]:.1f}"
    )
    keys: dict[str, Any] = {"remote_vs_disk": round(remote / disk, 2), "remote_cpu_vs_disk": round(cpu / disk_cpu, 2)}
    keys["remote_vs_download"] = round(remote / download, 2)
    keys |= {"remote_mb": memory >> 20, "remote_same": disk_id == remote_id and disk_warnings == remote_warnings}
    if rate:
        with FaultyProxy(url, choose_some(rate)) as proxy:
            faulty, memory, faulty_id, cost, warnings, _ = run(INGEST, address, AWS_ENDPOINT_URL=proxy.url)
        print(f"with {rate:.0%} faults {faulty:.1f} s, {memory >> 20} MiB, {cost[1]} requests repeated")
        keys |= {"faulty_mb": memory >> 20, "faulty_same": faulty_id == disk_id and warnings == disk_warnings}
    print("BENCH " + json.dumps(keys))


if __name__ == "__main__":
    main()
