"""Draw hung jobs with a known truth: (fault, form of evidence, seed) → files, and what they allow to be known.

    job = draw_job("skipped-call", "dump-timed", seed=7)
    job.write(tmp_path)
    judge_hang(job.truth, triage.ingest(tmp_path))

A simulator plays the schedule of all ranks by the rules of ProcessGroupNCCL, so that it is known who waits for whom.
HCCL's plogs are a form of evidence as well: its communicators run their calls in order, too.
Half of the cells (fault and form) are held out: nobody looks at them while triage is changed.
"""

from __future__ import annotations

from triage.testing.schedules.jobs import DrawnJob, draw_job, is_held_out, list_cells
from triage.testing.schedules.judge import judge_hang, judge_root

__all__ = ["DrawnJob", "draw_job", "is_held_out", "judge_hang", "judge_root", "list_cells"]
