"""Record the sample jobs: run every script of kinds/ under its launcher and store the files that the job left.

    python samples/record/record.py --python /path/to/venv/bin/python -o samples/jobs
    python samples/record/record.py --only segfault --only healthy      # names that contain one of the texts

It needs no packages itself; the jobs need an environment with torch (CPU). Jobs run one after the other and take a
quarter of an hour.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from layouts import LAYOUTS, Launch, free_port
from plan import SAMPLES, Sample
from scrub import Scrubber, find_private_text

HERE = Path(__file__).resolve().parent
MAX_ATTEMPTS = 6  # in a restarted job of torch 2.13 it is a race whether a rank gets the addresses of the first attempt


def main() -> int:
    """Parse the command line, record, and return 1 when a sample could not be recorded or holds private strings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="record samples whose name contains NAME"
    )
    parser.add_argument(
        "--python", type=Path, default=Path(sys.executable), help="a python that has torch (default: this one)"
    )
    parser.add_argument("--truth-only", action="store_true", help="write TRUTH.yaml again and run nothing")
    parser.add_argument("-o", "--output", type=Path, default=HERE.parent / "jobs")
    options = parser.parse_args()
    failed = 0
    for sample in SAMPLES:
        if options.only and not any(text in sample.name for text in options.only):
            continue
        started = time.monotonic()
        problems = record(sample, options.python.absolute(), options.output, run=not options.truth_only)
        failed += bool(problems)
        print(f"{sample.name:45} {time.monotonic() - started:5.1f} s", *problems, sep="\n    ", flush=True)
    return 1 if failed else 0


def record(sample: Sample, python: Path, output: Path, run: bool) -> list[str]:
    """Record one sample into `output`/name and return its problems."""
    target = output / sample.name
    problems: list[str] = []
    for _ in range(MAX_ATTEMPTS if run else 0):
        problems = run_sample(sample, python, target / "job")
        if not problems:
            break
    write_truth(sample, run_program(python, "import torch; print(torch.__version__)"), target / "TRUTH.yaml")
    return problems


def run_sample(sample: Sample, python: Path, target: Path) -> list[str]:
    """Run the job in a scratch directory, write its scrubbed output to `target` and return problems."""
    with tempfile.TemporaryDirectory() as scratch, occupied_port(sample) as port:
        work = Path(scratch).resolve()
        shutil.copy(HERE / "kinds" / f"{sample.kind}.py", work / "train.py")
        shutil.copy(HERE / "kinds" / "trainlib.py", work)
        launch = Launch(sample, work, python, port)
        layout, _, packed = sample.layout.partition("+")
        try:
            LAYOUTS[layout](launch)
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            return [f"not recorded: {error}"]
        base = Path(run_program(python, "import sys; print(sys.base_prefix)"))
        scrubber = Scrubber(
            (
                (work, f"/home/user/jobs/{sample.name}"),
                (python.parent.parent, "/opt/train/venv"),
                (base, "/opt/python/3.11"),
            )
        )
        files = dict(read_scrubbed_files(launch.job, scrubber))
        replace_directory(target, pack(files) if packed else files)
        return find_problems(sample, files)


def find_problems(sample: Sample, files: dict[str, bytes]) -> list[str]:
    """Return the private strings in these files, and the expected text when it is missing."""
    problems = [f"private: {name}: {text}" for name, data in files.items() for text in find_private_text(data)]
    if not any(sample.expect.encode() in data for data in files.values()):
        problems.append(f"missing: {sample.expect}")
    return problems


def read_scrubbed_files(job: Path, scrubber: Scrubber) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the scrubbed content of every file, also of empty ones; node2 wrote node2.log."""
    for path in sorted(job.rglob("*")):
        if path.is_file():
            host = "node2" if path.name == "node2.log" else "node1"
            yield str(path.relative_to(job)), scrubber.scrub(path.read_bytes(), host)


def pack(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files as one archive job.tar.gz."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"job/{name}")
            member.size, member.mode, member.uname, member.mtime = len(data), 0o644, "user", int(time.time())
            archive.addfile(member, io.BytesIO(data))
    return {"job.tar.gz": buffer.getvalue()}


def replace_directory(target: Path, files: dict[str, bytes]) -> None:
    """Replace the directory `target` by these files."""
    if target.exists():
        shutil.rmtree(target)
    for name, data in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def write_truth(sample: Sample, torch: str, path: Path) -> None:
    """Write TRUTH.yaml."""
    truth = sample.truth
    ranks = None if truth.root_ranks is None else list(truth.root_ranks)
    data = {
        "verdict": truth.verdict,
        "root": list(truth.root),
        "root_ranks": ranks,
        "world_size": sample.world_size or sample.ranks,
        "what_happened": truth.what_happened,
        "layout": sample.layout,
        "torch": torch,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(f"{key}: {json.dumps(value)}\n" for key, value in data.items())
    )  # JSON values are YAML, too


def run_program(python: Path, program: str) -> str:
    """Return what a one-line program prints."""
    return subprocess.run([python, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def close_connections(server: socket.socket) -> None:
    """Accept connections and close them, like a server of another protocol."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            connection.recv(64)
            connection.close()


@contextlib.contextmanager
def occupied_port(sample: Sample) -> Iterator[int]:
    """Yield a free port, or a port in use if the sample wants one."""
    if sample.busy_port:
        with socket.create_server(("", 0)) as server:
            threading.Thread(target=close_connections, args=(server,), daemon=True).start()
            yield int(server.getsockname()[1])
    else:
        yield free_port()


if __name__ == "__main__":
    raise SystemExit(main())
