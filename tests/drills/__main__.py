"""`make drill`: run every drill N times and write bench/results/drill.json."""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.trust import write_result
from tests.drills import DRILLS
from tests.drills.site import Drill, DrillSite


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the drills; the exit status is 1 if anything was lost, 2 if there is no such drill."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="runs of each drill")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the first round")
    parser.add_argument("--only", default="", help="only drills whose name contains this; writes no result")
    options = parser.parse_args(arguments)
    chosen = [drill for drill in DRILLS if options.only in drill.__name__]
    if not chosen:
        print(f"no drill has {options.only!r} in its name: " + ", ".join(drill.__name__ for drill in DRILLS))
        return 2
    results = [repeat_drill(drill, options.rounds, options.seed) for drill in chosen]
    summary = summarize(results, options.rounds, options.seed)
    if not options.only:
        write_result("drill", summary)
    print(" ".join(map(str, summary["notes"])))
    return 1 if summary["losses"] else 0


def repeat_drill(drill: Drill, rounds: int, seed: int) -> dict[str, Any]:
    """Run a drill with one seed after the other; return its name, faults, survived faults and losses."""
    start, faults, survived, losses = time.monotonic(), 0, 0, []
    for number in range(seed, seed + rounds):
        with tempfile.TemporaryDirectory(prefix="triage-drill-") as place:
            site = DrillSite(Path(place), number)
            drill(site)
        faults += site.faults
        survived += max(0, site.faults - len(site.losses))
        losses += [f"seed {number}: {loss}" for loss in site.losses]
    print(f"{drill.__name__:18} {faults:6} faults {len(losses):4} losses {time.monotonic() - start:8.1f} s", flush=True)
    for loss in losses:
        print(f"  {loss}", file=sys.stderr)
    summary = " ".join((drill.__doc__ or "").split())
    return {"name": drill.__name__, "summary": summary, "faults": faults, "survived": survived, "losses": losses}


def summarize(results: Sequence[Mapping[str, Any]], rounds: int, seed: int) -> dict[str, Any]:
    """Return the sums, and `head`, `rows` and `notes` for docs/trust.md."""
    faults, survived = (sum(item[name] for item in results) for name in ("faults", "survived"))
    losses = sum(len(item["losses"]) for item in results)
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) >> 10
    note = f"{faults} faults, {survived} survived, {losses} losses; {rounds} rounds of each drill from seed {seed}."
    return {
        "rounds": rounds,
        "seed": seed,
        "faults": faults,
        "survived": survived,
        "losses": losses,
        "peak_mib": peak,
        "drills": list(results),
        "head": ["drill", "faults", "losses", "what must hold"],
        "rows": [[item["name"], item["faults"], len(item["losses"]), item["summary"]] for item in results],
        "notes": [note, f"The largest process took {peak} MiB."],
    }


if __name__ == "__main__":
    sys.exit(main())
