"""triage.records.identity_lines"""

from __future__ import annotations

import pytest

from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.records.identity_lines import learn_from_line, learn_from_text


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("INFO hello from rank 5 of 12 (host node1)", {12}),
        ("2026-07-17 00:55:25 | rank 3 | rank 3 of 12 on gpu-128, pid 3052", {12}),
        ("process rank 3/8 is up", {8}),
        ("init done | rank=3 | world=16 | device=cuda:3", {16}),
        ("world_size: 4", {4}),
        ("tp rank 3 of 8", set()),
        ("local rank 3 of 8", set()),
        ("rank 12 of 8", set()),
        ("rank 3 of 100 % done", set()),
        ("hello world 16", set()),
    ],
)
def test_world_sizes_are_read(text: str, sizes: set[int]) -> None:
    """Lines that state how many ranks there are; the size of a group is none."""
    job = JobMap()
    learn_from_text(job, "job.log", f"first\n{text}\n")
    assert job.sizes == sizes


def test_the_table_of_an_agent_gives_its_ranks_and_the_world() -> None:
    """torchelastic prints it on each node after each rendezvous."""
    job = JobMap()
    lines = ["restart_count=1", "group_rank=1", "group_world_size=2", "local_ranks=[0, 1]", "role_ranks=[2, 3]"]
    lines += ["global_ranks=[2, 3]", "role_world_sizes=[4, 4]", "global_world_sizes=[4, 4]"]
    text = "\n  ".join(["[default] Rendezvous complete for workers. Result:", *lines])
    assert learn_from_line(job, "job.log", Origin(host="n2"), text) == "rendezvous 1"
    assert job.sizes == {4}
    assert job.by_local == {("n2", 0): {2}, ("n2", 1): {3}}
