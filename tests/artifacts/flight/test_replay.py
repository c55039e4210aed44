"""What the ranks called, as a program that can be run again: where it hangs, and what would let it go on."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.artifacts.flight.making import Call, Job, recording
from tests.artifacts.flight.test_analyse import EVAL, broken_jobs, job, pipeline, steps
from tests.artifacts.flight.test_samples import CASES, truth
from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.gather import gather
from triage.artifacts.flight.replay import Replay, replay
from triage.render.repro import script


def replayed(of: Job, **more: int) -> Replay:
    found = recording(of)
    return replay(found, analyse(found), **more)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_recorded_jobs(case: Path) -> None:
    """The program alone hangs unless nothing or the transfer is at fault; with the fix it ends, unless it is open who
    is wrong.
    """
    found, _ = gather([str(case)])
    plan = replay(found, analyse(found))
    rule = truth(case)["rule"]
    assert plan.hangs == (rule not in (None, "stuck-in-collective"))
    assert plan.passes == (plan.hangs and case.name != "half_and_half")
    ast.parse(script(plan, origin=str(case)))


@given(broken_jobs())
@settings(max_examples=60, deadline=None)
def test_any_fault_hangs_again_and_goes_with_the_fix(broken: tuple[Job, str, int, int]) -> None:
    """Whatever the program and the fault."""
    plan = replayed(broken[0])
    assert (plan.hangs, plan.passes) == (True, True)


def test_only_the_last_calls_and_no_half_of_one() -> None:
    """All members of a group begin with the same number."""
    loop = [Call(group="a"), Call(), Call()]
    calls = {rank: loop * 20 if rank < 2 else [Call()] * 40 for rank in range(4)}
    plan = replayed(Job(calls, {"a": [0, 1]}), calls=10)
    first = {rank: next(step.number for step in plan.calls[rank] if step.group == "default_pg") for rank in range(4)}
    assert len(set(first.values())) == 1
    assert max(map(len, plan.calls.values())) <= 10
    assert not plan.hangs


def test_scaled_sizes_stay_equal_or_different() -> None:
    """A mismatch of 1000 against 1001 is one of 100 against 101."""
    found = replayed(job(lambda calls: [*calls[:3], Call(size=(1001,))], count=4), scale=10)
    sizes = [[step.inputs for step in steps_] for steps_ in found.calls.values()]
    assert len(set(map(tuple, sizes))) == 2
    assert max(map(max, sizes)) < 110


def test_pipelines_are_replayed_in_pairs() -> None:
    """Sends and receives keep their peers; a missing receive hangs."""
    plan = replayed(Job(pipeline()), calls=3)
    assert not plan.hangs
    calls = pipeline()
    calls[2] = calls[2][:2]
    assert replayed(Job(calls)).hangs


def test_the_script_holds_no_text_that_a_dump_could_make_code() -> None:
    """Names of functions, files, operations and groups are quoted or in comments."""
    evil = Call(op='x"""\nimport os\n', place=('"""\nos.system("x")\n#', 3, "f\n"), group='g"""\n')
    calls = {rank: [*steps(3), *([evil] if rank else [])] for rank in range(3)}
    text = script(replayed(Job(calls, {'g"""\n': [0, 1, 2]})), origin='a"""b\\', name="r.py")
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


def test_the_script_says_where_each_call_came_from_and_what_to_run() -> None:
    """It begins with the fault and the two command lines."""
    text = script(
        replayed(job(lambda calls: [*calls[:5], Call("gather", place=EVAL), *calls[5:]], ranks=(0,))), origin="dumps/"
    )
    assert "only rank 0 called gather #6 of default_pg at eval.py:88 in evaluate" in text
    assert "torchrun --nproc-per-node 4 repro.py --backend gloo --fix-rank 0" in text
    assert "# #6 eval.py:88 in evaluate" in text
    assert len(text.splitlines()) < 260
