"""Record hangs in every form of evidence: DIR/NAME/FORM/… for the hangs of plan.py.

Run with a python that has torch (CPU); py-spy and gdb must be installed:

    python samples/record/hangs/record.py -o build/hangs [NAME …]
    python samples/record/hangs/record.py -o build/hangs --samples samples/jobs     # copies those that are samples

Every job runs twice: once with a long timeout, while py-spy, faulthandler, gdb and the Flight Recorder show where it
stands, and once, also with TORCH_DISTRIBUTED_DEBUG=DETAIL, with a short timeout for what torch itself logs.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
import time
from pathlib import Path

from plan import HANGS, SAMPLES, Hang
from private_paths import store
from runs import Launcher, Run, is_alive
from tools import collect

SHORT_S, LONG_S, STACKS_AFTER_S = 5, 600, 8


def record_logs(hang: Hang, launcher: Launcher, target: Path) -> None:
    """Run the job until its ranks have timed out, as it is and with DETAIL at the same time, and store both logs."""
    with tempfile.TemporaryDirectory() as scratch:
        shared = {"DIST_TIMEOUT_S": str(SHORT_S)}
        runs = {
            name: Run(hang, Path(scratch) / name, launcher, **shared, **environment)
            for name, environment in (("log", {}), ("detail", {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}))
        }
        try:
            for run in runs.values():
                run.wait_for(run.ready)
            time.sleep(SHORT_S + 1)
            for run in runs.values():
                run.wait_for(lambda run=run: not all(map(is_alive, run.pids)), 40)
                run.wait_until_still(4)
        finally:
            for run in runs.values():
                run.end()
        for name, run in runs.items():
            store(target / name / "job.log", run.log.read_bytes(), run.work)


def record_stacks(hang: Hang, launcher: Launcher, py_spy: str, target: Path) -> None:
    """Run the job until it hangs, and store what each tool shows."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Run(hang, Path(scratch) / "job", launcher, DIST_TIMEOUT_S=str(LONG_S), STACKS_AFTER_S=str(STACKS_AFTER_S))
        try:
            if not run.wait_for(run.ready):
                print("   not all ranks joined")
            time.sleep(6 if hang.name == "compiles" else 3)
            (run.work / "write_dumps").touch()
            run.wait_for(lambda: len(list((run.work / "dumps").glob("*[0-9]"))) == hang.size, 30)
            time.sleep(0.5)
            if all(map(is_alive, run.pids)):
                for name, data in collect(run, py_spy):
                    store(target / name, data, run.work)
                compose(hang, target)
            else:
                print(f"{hang.name}: ranks ended, there is nothing to attach to")
        finally:
            run.end()


def compose(hang: Hang, target: Path) -> None:
    """Write the forms that are made of others: several processes in one file, one process alone, all together."""
    at_fault = min(hang.ranks[0], default=0)
    for name, source in (("pyspy-merged", "pyspy"), ("faulthandler-merged", "faulthandler-signal")):
        text = b"".join(path.read_bytes() for path in sorted((target / source).iterdir(), key=rank_of))
        (target / name).mkdir()
        (target / name / "stacks.txt").write_bytes(text)
    (target / "pyspy-single").mkdir()
    shutil.copy(target / f"pyspy/rank{at_fault}.txt", target / "pyspy-single/dump.txt")
    for name in ("pyspy", "faulthandler", "gdb", "dump"):
        if (target / name).exists():
            shutil.copytree(target / name, target / "all" / name)
    shutil.copy(target / "joblog/job.log", target / "all/job.log")


def rank_of(path: Path) -> int:
    """Return the rank of rank3.txt."""
    return int(re.findall(r"\d+", path.name)[0])


def write_samples(recorded: Path, target: Path) -> None:
    """Copy the forms that SAMPLES names to `target`/NAME/job, with their truth."""
    for sample in SAMPLES:
        hang = next(hang for hang in HANGS if hang.name == sample.hang)
        name = f"hung_{hang.name}_{sample.form}".replace("-", "_")
        shutil.rmtree(target / name, ignore_errors=True)
        shutil.copytree(recorded / hang.name / sample.form, target / name / "job")
        truth = {
            "verdict": "known",
            "root": list(hang.ids),
            "root_ranks": list(hang.ranks[0]),
            "world_size": hang.size,
            "what_happened": sample.what_happened,
            "layout": f"hang-{sample.form}",
            "torch": "2.13.0+cpu",
        }
        lines = (f"{key}: {json.dumps(value)}\n" for key, value in truth.items())  # JSON values are YAML, too
        (target / name / "TRUTH.yaml").write_text("".join(lines))


def main() -> None:
    """Record the hangs that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--py-spy", default="py-spy", help="the program (default: py-spy)")
    parser.add_argument("--missing", action="store_true", help="only the hangs that are not in the output yet")
    parser.add_argument("--samples", type=Path, metavar="DIR", help="record nothing, copy the samples to DIR")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if options.samples:
        return write_samples(options.output, options.samples)
    launcher = Launcher()
    for hang in HANGS:
        target = options.output.absolute() / hang.name
        if (not options.names or hang.name in options.names) and not (options.missing and target.exists()):
            began = time.monotonic()
            record(hang, launcher, options.py_spy, target)
            print(f"{hang.name:24} {time.monotonic() - began:5.1f} s", flush=True)
    return None


def record(hang: Hang, launcher: Launcher, py_spy: str, target: Path) -> None:
    """Record one hang into the directory `target`, which appears when it is complete."""
    scratch = target.with_suffix(".part")
    for old in (scratch, target):
        shutil.rmtree(old, ignore_errors=True)
    record_logs(hang, launcher, scratch)
    if hang.hangs:
        record_stacks(hang, launcher, py_spy, scratch)
    scratch.rename(target)


if __name__ == "__main__":
    main()
