"""Print, as JSON, the seconds of each stage of one diagnosis; bench/performance.py runs it in a fresh interpreter."""

import gc
import json
import sys
import time
from typing import Any

gc.disable()  # as `triage ingest` does
times: dict[str, float] = {}
begin = time.perf_counter()
import triage.cli.ingest  # noqa: E402, F401 - the import is measured
from triage import pipeline  # noqa: E402
from triage.base.options import Options  # noqa: E402
from triage.pipeline import stages  # noqa: E402
from triage.scan import run  # noqa: E402

times["imports"] = time.perf_counter() - begin


def measure(owner: Any, name: str, stage: str) -> None:
    """Let a function add its time to a stage."""
    function = getattr(owner, name)

    def measured(*arguments: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            times[stage] = times.get(stage, 0.0) + time.perf_counter() - start

    setattr(owner, name, measured)


measure(stages.sources, "discover", "finding files")
measure(stages, "load", "the catalog")
measure(run, "build", "the automaton")
measure(run.Scan, "run", "the scan and its automaton")
measure(stages, "extract_job", "evidence")
measure(stages.compare, "compare_ranks", "comparing ranks")
measure(stages, "diagnose_with_settings", "the diagnosis")
measure(pipeline, "_diagnosis", "line numbers and the report")
pipeline.ingest([sys.argv[1]], Options(fork=True))
times["the scan"] = times.pop("the scan and its automaton") - times["the automaton"]
print(json.dumps(times))
