"""The calls of the ranks as a program: where it hangs, and the calls with which it ends."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.artifacts.flight.factories import Call, Job, recording
from tests.artifacts.flight.test_analyse import EVAL, broken_jobs, job, pipeline, steps
from tests.artifacts.flight.test_samples import CASES, truth
from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.dump_files import read_dump_files
from triage.artifacts.flight.replay import Replay, replay
from triage.render.repro_script import script


def replay_job(job_: Job, **options: int) -> Replay:
    """Replay a simulated job."""
    recorded = recording(job_)
    return replay(recorded, analyse(recorded), **options)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_recorded_jobs(case: Path) -> None:
    """The program of a sample hangs if the program is at fault, and ends with the fix if the fault is certain."""
    recorded, _ = read_dump_files([str(case)])
    plan = replay(recorded, analyse(recorded))
    rule = truth(case)["rule"]
    assert plan.hangs == (rule not in (None, "stuck-in-collective"))
    assert plan.passes == (plan.hangs and case.name != "half_and_half")
    ast.parse(script(plan, origin=str(case)))


def test_a_rank_that_never_made_its_group_is_a_member_of_it() -> None:
    """Where dumps list only the ranks that entered a group, the replay waits there for the rank at fault too."""
    recorded, _ = read_dump_files([str(next(case for case in CASES if case.name == "never_in_group"))])
    analysis = analyse(recorded)
    group = analysis.faults[0].group
    assert replay(recorded, analysis).groups[group] == (0, 1, 2)


@given(broken_jobs())
@settings(max_examples=60, deadline=None)
def test_any_fault_hangs_again_and_ends_with_the_fix(broken: tuple[Job, str, int, int]) -> None:
    """Every simulated fault hangs in the replay, and the fix lets it end."""
    plan = replay_job(broken[0])
    assert (plan.hangs, plan.passes) == (True, True)


def test_no_rank_replays_half_of_a_collective() -> None:
    """All members of a group begin with the same sequence number."""
    loop = [Call(group="a"), Call(), Call()]
    calls = {rank: loop * 20 if rank < 2 else [Call()] * 40 for rank in range(4)}
    plan = replay_job(Job(calls, {"a": [0, 1]}), calls=10)
    first = {rank: next(step.number for step in plan.calls[rank] if step.group == "default_pg") for rank in range(4)}
    assert len(set(first.values())) == 1
    assert max(map(len, plan.calls.values())) <= 10
    assert not plan.hangs


def test_scaled_sizes_stay_equal_or_different() -> None:
    """Scaled sizes that differ still differ, and equal ones stay equal."""
    plan = replay_job(job(lambda calls: [*calls[:3], Call(size=(1001,))], count=4), scale=10)
    sizes = [[step.inputs for step in steps_] for steps_ in plan.calls.values()]
    assert len(set(map(tuple, sizes))) == 2
    assert max(map(max, sizes)) < 110


def test_sends_and_receives_are_paired() -> None:
    """A replayed pipeline ends, and hangs with a missing receive."""
    plan = replay_job(Job(pipeline()), calls=3)
    assert not plan.hangs
    calls = pipeline()
    calls[2] = calls[2][:2]
    assert replay_job(Job(calls)).hangs


def test_script_quotes_all_names() -> None:
    """Names from a dump never become code of the script."""
    hostile = Call(op='x"""\nimport os\n', place=('"""\nos.system("x")\n#', 3, "f\n"), group='g"""\n')
    calls = {rank: [*steps(3), *([hostile] if rank else [])] for rank in range(3)}
    text = script(replay_job(Job(calls, {'g"""\n': [0, 1, 2]})), origin='a"""b\\', name="r.py")
    names = {
        node.func.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert "system" not in names
    assert [node.names[0].name for node in ast.parse(text).body if isinstance(node, ast.Import)] == [
        "argparse",
        "os",
        "threading",
        "time",
        "torch",
        "torch.distributed",
    ]


def test_script_names_fault_places_and_commands() -> None:
    """The script begins with the fault and its command lines, and names the place of each call."""
    text = script(
        replay_job(job(lambda calls: [*calls[:5], Call("gather", place=EVAL), *calls[5:]], ranks=(0,))), origin="dumps/"
    )
    assert "only rank 0 called gather #6 of default_pg at eval.py:88 in evaluate" in text
    assert "torchrun --nproc-per-node 4 repro.py --backend gloo --fix-rank 0" in text
    assert "# #6 eval.py:88 in evaluate" in text
    assert len(text.splitlines()) < 260
