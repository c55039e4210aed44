"""Measure `triage flight` on Flight Recorder dumps, compared with torchfrtrace on the same files.

256 ranks with 2,000 calls each, in one group and in two (the world and groups of eight), then 1,024 ranks, then twice
the calls. torchfrtrace is measured if it is in .venv-torch (`make test-torch` makes it) or at TORCHFRTRACE. The dumps
are synthetic, in the bytes that torch's pickler writes; one rank stops early. The last line is machine-readable.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE / "data" / "flight"
START = 1_795_000_000_000_000_000
NAME = "9999"


class TorchPickler(pickle._Pickler):  # type: ignore[name-defined]
    """Writes protocol 2 as torch's C++ pickler does."""

    def memoize(self, obj: Any) -> None:
        """Put strings, tuples and frames into the memo."""
        if isinstance(obj, (str, tuple)) or (isinstance(obj, dict) and "filename" in obj):
            super().memoize(obj)

    def _batch_appends(self, items: Iterable[Any], *_: Any) -> None:
        self.write(pickle.MARK)
        for item in items:
            self.save(item)
        self.write(pickle.APPENDS)

    def _batch_setitems(self, items: Iterable[tuple[Any, Any]], *_: Any) -> None:
        self.write(pickle.MARK)
        for key, value in items:
            self.save(key)
            self.save(value)
        self.write(pickle.SETITEMS)


def format_padded(ranks: Iterable[int]) -> str:
    """Return a list of ranks as text whose length does not depend on the ranks."""
    return "[" + ", ".join(f"{rank:5d}" for rank in ranks) + "]"


def template(ranks: int, entries: int, groups: int, *, waits: bool) -> bytes:
    """Return the dump of a rank in the group NAME with members 99992 to 99999; `make_dumps` replaces both.

    The last of an even number of calls is one of the world. `waits`: it has started and is not finished.
    """
    frames = [
        {"name": sys.intern(f"function_{i}"), "filename": sys.intern(f"/opt/train/module_{i}.py"), "line": 100 + i}
        for i in range(40)
    ]
    world, small = ("0", "default_pg"), (NAME, "dp")
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(ranks)))}}
    if groups == 2:
        config[NAME] = {"name": NAME, "desc": "dp", "ranks": format_padded(range(99992, 100000))}
    dtype, name, state = "Float", "nccl:all_reduce", "completed"
    calls = []
    for index in range(entries):
        second = groups == 2 and index % 2 == 0
        calls.append(
            {
                "frames": [frames[(index * 7 + depth) % 40] for depth in range(5)],
                "record_id": index,
                "pg_id": int(second),
                "process_group": small if second else world,
                "thread_name": "pt_main_thread",
                "thread_id": "4711",
                "collective_seq_id": index // groups + 1,
                "p2p_seq_id": 0,
                "op_id": index // groups + 1,
                "profiling_name": name,
                "time_created_ns": START + index * 1_000_000,
                "input_sizes": [[1024, 4096]],
                "input_dtypes": [dtype],
                "output_sizes": [[1024, 4096]],
                "output_dtypes": [dtype],
                "state": state,
                "time_discovered_started_ns": START + index * 1_000_000 + 9,
                "time_discovered_completed_ns": START + index * 1_000_000 + 99,
                "retired": True,
                "timeout_ms": 600000,
                "is_p2p": False,
            }
        )
    if waits:
        calls[-1] |= {"state": "started", "retired": False, "time_discovered_completed_ns": None}
    status = {}
    for number in range(groups):
        of_group = [call for call in calls if call["pg_id"] == number]
        completed = sum(call["state"] == "completed" for call in of_group)
        counts = {"enqueued": len(of_group), "started": len(of_group), "completed": completed}
        status[str(number)] = {f"last_{name}_collective": count for name, count in counts.items()}
    target = io.BytesIO()
    dump = {"version": "2.10", "pg_config": config, "comm_lib_version": "2.27.3", "pg_status": status, "entries": calls}
    TorchPickler(target, 2).dump(_share_strings(dump))
    return target.getvalue()


def _share_strings(value: Any, strings: dict[str, str] | None = None) -> Any:
    """Replace equal strings by one object."""
    strings = {} if strings is None else strings
    if isinstance(value, str):
        return strings.setdefault(value, value)
    if isinstance(value, list):
        value[:] = [_share_strings(item, strings) for item in value]
    elif isinstance(value, dict) and "filename" not in value:
        for key in list(value):
            value[strings.setdefault(key, key)] = _share_strings(value.pop(key), strings)
    return value


def make_dumps(ranks: int, entries: int, groups: int) -> Path:
    """Write a directory of dumps; the last rank misses its last call."""
    directory = DATA / f"{ranks}x{entries}x{groups}"
    if directory.exists():
        return directory
    print(f"writing {directory} …", flush=True)
    part = directory.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    waiting, stopped = template(ranks, entries, groups, waits=True), template(ranks, entries - 1, groups, waits=False)
    for rank in range(ranks):
        first = rank - rank % 8
        data = stopped if rank == ranks - 1 else waiting
        data = data.replace(
            format_padded(range(99992, 100000)).encode(), format_padded(range(first, first + 8)).encode()
        )
        data = data.replace(NAME.encode(), f"{rank // 8 + 1000:4d}".encode())
        (part / f"nccl_trace_rank_{rank}").write_bytes(data)
    part.rename(directory)
    return directory


def measure(command: list[str]) -> tuple[float, float, float]:
    """Return wall seconds, peak MB of all its processes together, and processor seconds of one run."""
    with open(os.devnull, "wb") as out:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=out)
        peak, ended = 0.0, 0
        while not ended:
            peak = max(peak, memory_of(process.pid))
            time.sleep(0.05)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"bench: {' '.join(command[:4])} … ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - start, max(peak, usage.ru_maxrss / 1024), usage.ru_utime + usage.ru_stime


def memory_of(pid: int) -> float:
    """Return the MB of a process and its children, shared memory counted once; 0 without /proc."""
    total, todo = 0.0, [str(pid)]
    while todo:
        process = Path("/proc") / todo.pop()
        with contextlib.suppress(OSError, StopIteration):
            lines = (process / "smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
            todo += (process / "task" / process.name / "children").read_text().split()
    return total


def measure_triage(directory: Path) -> tuple[float, float, float]:
    """Measure `triage flight`, and print the result."""
    result = measure([sys.executable, "-m", "triage", "flight", str(directory), "--format", "json"])
    print(
        f"{directory.name}: triage flight {result[0]:.2f} s ({result[2]:.2f} s of processors), {result[1]:.0f} MB",
        flush=True,
    )
    return result


def measure_torchfrtrace(directory: Path) -> tuple[float, float, float] | None:
    """Measure torchfrtrace, and print the result; None where it is not installed."""
    program = os.environ.get("TORCHFRTRACE") or str(HERE.parent / ".venv-torch" / "bin" / "torchfrtrace")
    if not Path(program).exists():
        print("torchfrtrace is not installed (`make test-torch` makes .venv-torch), so only triage is measured")
        return None
    result = measure([program, str(directory), "-p", "nccl_trace_rank_"])
    print(
        f"{directory.name}: torchfrtrace {result[0]:.2f} s ({result[2]:.2f} s of processors), {result[1]:.0f} MB",
        flush=True,
    )
    return result


def main() -> None:
    """Run the benchmark."""
    keys = []
    for groups, name in ((1, "one"), (2, "two")):
        directory = make_dumps(256, 2000, groups)
        mine = min(measure_triage(directory), measure_triage(directory))
        theirs = measure_torchfrtrace(directory)
        if theirs:
            keys += [
                f"flight_{name}_speed={theirs[0] / mine[0]:.1f}",
                f"flight_{name}_memory={theirs[1] / mine[1]:.1f}",
            ]
        else:
            keys += [f"flight_{name}_s={mine[0]:.1f}", f"flight_{name}_mb={mine[1]:.0f}"]
    large = measure_triage(make_dumps(1024, 2000, 2))
    few, many = measure_triage(make_dumps(256, 4000, 2)), measure_triage(make_dumps(256, 8000, 2))
    keys += [
        f"flight_1024_s={large[0]:.1f}",
        f"flight_1024_mb={large[1]:.0f}",
        f"flight_growth={many[0] / few[0] / 2:.2f}",
    ]
    shutil.rmtree(DATA, ignore_errors=True)
    print("BENCH", *keys)


if __name__ == "__main__":
    main()
