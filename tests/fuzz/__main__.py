"""Fuzz the harnesses, one after the other: `python -m tests.fuzz SECONDS [NAME ...]` (`make fuzz TIME=600`).

With FUZZ_RUNS=1000000 in the environment each ends after so many executions, if SECONDS have not passed before; a run
that was stopped (Ctrl+C) goes on with its counts at the same commit. Needs atheris (the extra `fuzz`). Each harness
runs in a process of its own, with its seeds and with the corpus of earlier runs in build/fuzz. An input that breaks it
is left in build/fuzz/findings; made small and put below tests/fuzz/findings it is replayed by every test run. The
counts are written to bench/results/fuzz.json.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.trust import RESULTS, Result, read_commit, write_result

if TYPE_CHECKING:
    from tests.fuzz.harnesses import Harness

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "fuzz"
LIMITS = ("-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1", "-verbosity=1")
_EXECUTIONS = re.compile(r"stat::number_of_executed_units: +(\d+)")
_COVERAGE = re.compile(r"cov: (\d+)")


def fuzz(name: str) -> None:
    """Fuzz one harness in this process until libFuzzer ends it."""
    import atheris

    with atheris.instrument_imports(include=["triage"]):
        from tests.fuzz.harnesses import HARNESSES

    harness = next(harness for harness in HARNESSES if harness.name == name)
    atheris.Setup([sys.argv[0], *sys.argv[3:]], lambda data: harness.run(data))
    atheris.Fuzz()


def prepare(harness: Harness) -> tuple[Path, Path]:
    """Write the seeds and the tokens of a harness; return the directory of its corpus and the file of its tokens."""
    from tests.fuzz.seeds import list_seeds

    corpus = WORK / "corpus" / harness.name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(list_seeds(harness)):
        (corpus / f"seed{number}").write_bytes(data)
    dictionary = WORK / f"{harness.name}.dict"
    escaped = ("".join(f"\\x{byte:02x}" for byte in token.encode()) for token in harness.tokens)
    dictionary.write_text("".join(f'"{token}"\n' for token in escaped))
    return corpus, dictionary


def run(harness: Harness, seconds: int, runs: int, earlier: Result) -> dict[str, Any]:
    """Fuzz one harness for so many seconds or executions, in a process of its own. Returns its counts and findings.

    `earlier` has the counts of a run that was stopped, and is empty without one.
    """
    name = harness.name
    corpus, dictionary = prepare(harness)
    findings = WORK / "findings" / name
    findings.mkdir(parents=True, exist_ok=True)
    before, started = set(findings.iterdir()), time.monotonic()
    executions, coverage = earlier.get("executions", 0), earlier.get("coverage", 0)
    while (left := int(seconds - (time.monotonic() - started))) > 0 and executions < runs:
        options = (
            *LIMITS,
            f"-max_len={harness.longest}",
            f"-max_total_time={left}",
            f"-runs={runs - executions}",
            f"-dict={dictionary}",
            f"-artifact_prefix={findings}/",
            str(corpus),
        )
        command = [sys.executable, "-m", "tests.fuzz", "--one", name, *options]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
        executions += sum(map(int, _EXECUTIONS.findall(ended.stderr)))
        coverage = max([coverage, *map(int, _COVERAGE.findall(ended.stderr))])
        if ended.returncode:
            (WORK / f"{name}.log").write_text(ended.stderr)
            break
    new = sorted(path.name for path in set(findings.iterdir()) - before)
    seconds_used = round(time.monotonic() - started) + earlier.get("seconds", 0)
    return {"executions": executions, "coverage": coverage, "seconds": seconds_used, "findings": new}


def read_stopped_run(path: Path, name: str, commit: str, runs: int) -> Result:
    """Return what a harness did at this commit, if it found nothing and did fewer executions than asked."""
    result: Result = json.loads(path.read_text("utf-8"))["harnesses"].get(name, {}) if path.exists() else {}
    is_stopped = result.get("commit") == commit and not result["findings"] and result["executions"] < runs
    return result if is_stopped else {}


def main(arguments: list[str]) -> int:
    """Fuzz the named harnesses, or all, and write the result. Returns the exit status: 1 if anything was found."""
    from tests.fuzz.harnesses import HARNESSES

    seconds, names, runs = int(arguments[0]), arguments[1:], int(os.environ.get("FUZZ_RUNS", 1 << 31))
    results: dict[str, Any] = {}
    for harness in HARNESSES:
        if not names or harness.name in names:
            earlier = read_stopped_run(RESULTS / "fuzz.json", harness.name, read_commit(), runs)
            results[harness.name] = run(harness, seconds, runs, earlier)
            write_result("fuzz", {"harnesses": results}, merge="harnesses")
            print(f"{harness.name}: {json.dumps(results[harness.name])}", flush=True)
    return int(any(result["findings"] for result in results.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        fuzz(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1:]))
