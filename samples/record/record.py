"""Record the sample jobs: run every script of kinds/ under its launcher and keep what the job left behind.

    python samples/record/record.py --python /path/to/venv/bin/python -o samples/jobs
    python samples/record/record.py --only segfault --only healthy      # names that contain one of the words

It needs nothing itself, and an environment with torch (CPU) for the jobs. Jobs run one after the other: a quarter of an
hour.
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
from scrub import Scrubber, leaks

HERE = Path(__file__).resolve().parent
TRIES = 6  # a restarted job of torch 2.13 may or may not meet the addresses of the attempt before: a race


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
        if options.only and not any(word in sample.name for word in options.only):
            continue
        began = time.monotonic()
        wrong = record(sample, options.python.absolute(), options.output, run=not options.truth_only)
        failed += bool(wrong)
        print(f"{sample.name:45} {time.monotonic() - began:5.1f} s", *wrong, sep="\n    ", flush=True)
    return 1 if failed else 0


def record(sample: Sample, python: Path, output: Path, run: bool) -> list[str]:
    """Record one sample into `output`/name and return what is wrong with it."""
    target = output / sample.name
    wrong: list[str] = []
    for _ in range(TRIES if run else 0):
        wrong = run_sample(sample, python, target / "job")
        if not wrong:
            break
    write_truth(sample, ask(python, "import torch; print(torch.__version__)"), target / "TRUTH.yaml")
    return wrong


def run_sample(sample: Sample, python: Path, target: Path) -> list[str]:
    """Run the job in a scratch directory and keep its cleaned output in `target`."""
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
        base = Path(ask(python, "import sys; print(sys.base_prefix)"))
        scrubber = Scrubber(
            (
                (work, f"/home/user/jobs/{sample.name}"),
                (python.parent.parent, "/opt/train/venv"),
                (base, "/opt/python/3.11"),
            )
        )
        files = dict(cleaned(launch.job, scrubber))
        keep(pack(files) if packed else files, target)
        return problems(sample, files)


def problems(sample: Sample, files: dict[str, bytes]) -> list[str]:
    """Return what is private in these files, and what is missing from them."""
    found = [f"private: {name}: {leak}" for name, data in files.items() for leak in leaks(data)]
    if not any(sample.expect.encode() in data for data in files.values()):
        found.append(f"missing: {sample.expect}")
    return found


def cleaned(job: Path, scrubber: Scrubber) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the cleaned content of every file, empty ones too; node2.log was written by node2."""
    for path in sorted(job.rglob("*")):
        if path.is_file():
            host = "node2" if path.name == "node2.log" else "node1"
            yield str(path.relative_to(job)), scrubber.clean(path.read_bytes(), host)


def pack(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files as one job.tar.gz, as a colleague would mail it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"job/{name}")
            member.size, member.mode, member.uname, member.mtime = len(data), 0o644, "user", int(time.time())
            archive.addfile(member, io.BytesIO(data))
    return {"job.tar.gz": buffer.getvalue()}


def keep(files: dict[str, bytes], target: Path) -> None:
    """Replace `target` by these files."""
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


def ask(python: Path, program: str) -> str:
    """Return what a one-line program prints."""
    return subprocess.run([python, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def refuse_politely(server: socket.socket) -> None:
    """Accept and close, as a server does that understands nothing of what it hears."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            connection.recv(64)
            connection.close()


@contextlib.contextmanager
def occupied_port(sample: Sample) -> Iterator[int]:
    """Yield a free port, or one that is taken where the sample wants that."""
    if sample.busy_port:
        with socket.create_server(("", 0)) as server:
            threading.Thread(target=refuse_politely, args=(server,), daemon=True).start()
            yield int(server.getsockname()[1])
    else:
        yield free_port()


if __name__ == "__main__":
    raise SystemExit(main())
