"""Compose job directories with a known truth: (fault, layout, dressing, seed) → files, and what they allow to be known.

    job = compose(Plan("out-of-memory", "torchrun-tee", "docker json-file", seed=7))
    job.write(tmp_path)
    judge(job.expected, triage.ingest(tmp_path))

World size, hosts, ranks, scripts, log style, versions, time zone, noise and files that do not matter are drawn from the
seed. Half of the cells (fault and layout) are held out: rules are not written while looking at them.
"""

from __future__ import annotations

from triage.testing.composer.compose import ComposedJob, Plan, compose, is_held_out, list_cells, list_layouts
from triage.testing.composer.judge import Judgement, judge

__all__ = ["ComposedJob", "Judgement", "Plan", "compose", "is_held_out", "judge", "list_cells", "list_layouts"]
