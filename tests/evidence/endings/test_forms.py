"""Forms of endings: each matches its example, and none can hang."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from triage.evidence.endings import FORMS
from triage.evidence.endings.classification import UNLIKE, classify, classify_raw, strip_box
from triage.evidence.endings.interface import LONGEST_LINE, STATUS, Form

ROOT = Path(__file__).resolve().parents[3]
HEALTHY = (
    "step 3/9 loss 2.1 grad_norm 0.4",
    "val_error 0.141, 0 failures",
    "step 40 failed_samples=0 nan_count=0 timeout_rate=0.0",
    "config: error_on_nan: true, on_failure: abort, max_failures: 3",
    "connect to 10.4.0.17:7077: Connection refused, trying again",
    "prefetch worker 2 was killed, respawning",
    "preflight result: PASS (0 failed, 0 errors, 2 warnings)",
    "no NaN in 291 parameters",
    "result=ok state: UP outcome: completed",
    "run-summary success=true healthy=1",
    "0 of 9000 steps left",
    "nodes are available",
    "  Normal   Scheduled         94s   default-scheduler  Successfully assigned ml/llm-0 to gpu07",
    "evaluate(model, split) -> 81 of 100",
    "ncclCommInitRank(comm, 8, id) returned 0 (success)",
    "CEE3204I The system was started",
    "/opt/acme/attn.py:88: UserWarning: the slow path is used",
    "ResourceWarning: Enable tracemalloc to get the object allocation traceback",
    "trainer-1 exited with code 0",
    "|errors |      1|none  |     0|acc   |",
    "resource_tracker: There appear to be 12 leaked semaphore objects to clean up at shutdown",
)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.runtime}-{form.name}")
def test_a_form_matches_its_example(form: Form) -> None:
    """The example of each form is classified as a failure of that strength or a stronger one."""
    assert form.pattern.search(strip_box(form.example))
    found_form = classify(form.example)
    assert found_form is not UNLIKE
    assert found_form.weight >= form.weight


@pytest.mark.parametrize("line", HEALTHY)
def test_healthy_lines_have_no_form(line: str) -> None:
    """Counts of zero, settings, retries, tables and noise of a teardown are no failures."""
    assert classify_raw(line, line) is UNLIKE


def test_lines_of_healthy_jobs_have_no_form() -> None:
    """Of the lines of healthy jobs in the catalog only ends that went well and two warnings have a form."""
    lines = (ROOT / "signatures" / "healthy.txt").read_text().splitlines()
    texts = [line for line in lines if line and not line.startswith("#")]
    assert len(texts) > 1000
    assert {line.split(":")[0] for line in texts if classify_raw(line, line) is not UNLIKE} == {
        "A module that was compiled using NumPy 1.x cannot be run in",  # some modules fail, others go on
        "FutureWarning",  # a job may be run so that warnings are errors
        "Training finished in 10",
        "exit code 0",
    }


@pytest.mark.parametrize(
    "line", ["\t[C]: in function 'error'", "route.lua:12: in function 'pick'", "main.lua:8: in main chunk"]
)
def test_frames_of_lua_say_nothing(line: str) -> None:
    """They stand below the message: `[C]` is no level, and the place is no message."""
    assert classify_raw(line, line) is UNLIKE


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("stage-in.sh: line 88: the list names 412 files, 409 arrived", "place in a script"),
        ("stage-in.sh: line 88:  4411 Killed    ./fit", "killed process"),
        ("fit: line 88 of the plan is read", "unlike"),
    ],
)
def test_what_a_shell_says_at_a_line_of_its_script(line: str, name: str) -> None:
    """Any sentence counts there, but not the signal of a process."""
    assert classify(line).name == name


def test_a_place_in_an_installed_package_is_no_place_of_a_script() -> None:
    """Libraries print warnings behind their own place, programs print errors behind theirs."""
    line = "/data_connector.py:424: The loader does not have many workers"
    assert classify(f"/srv/train{line}").strength == "strong"
    assert classify(f"/opt/conda/lib/python3.11/site-packages/lightning{line}") is UNLIKE


@pytest.mark.parametrize(
    ("line", "announces"),
    [
        ('But when I run "python3 main.py" the following error occurs.', True),
        ("I get the following error when I start it:", True),
        ("We see these failures after an hour of training:", True),
        ("The following error occurred: the queue is corrupted", False),
        ("I get this error: queue is corrupted", False),
        ("We failed to open the queue:", False),
    ],
)
def test_a_sentence_that_announces_an_error_is_none(line: str, announces: bool) -> None:
    """What it announces stands behind it: in the next lines, or behind its own colon."""
    assert (classify(line) is UNLIKE) is announces


@pytest.mark.parametrize(
    ("line", "is_status"),
    [
        ("srun: error: node7: task 3: Exited with exit code 1", True),
        ("[ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python', 'a.py'] exits with return code = 3", True),
        ("slurmstepd: error: *** STEP 1.0 ON node7 CANCELLED AT 2026-01-02T03:04:05 ***", True),
        ("Error in rule fit:", True),
        ("Error in solve(A) :", False),
        ("make: *** [Makefile:3: fit] Error 1", True),
        ("make: *** No rule to make target 'fit'.  Stop.", False),
        ("trainer@0.service: Failed with result 'exit-code'.", True),
        ("ERROR: cannot open /d/x, exiting with code 3", False),
        ("srun: error: node7: cannot create step: exited with code 3 of the plugin", False),
    ],
)
def test_a_status_behind_prefixes_says_no_more(line: str, is_status: bool) -> None:
    """A launcher's report of an end gives way to any reason; a reason with a status does not."""
    assert (classify_raw(line, line).weight == STATUS) == is_status


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("[plan_cache] Error: No plan was built successfully.", "error of a program"),
        ("[plan_cache] Error: the plan could not be loaded successfully", "error of a program"),
        ("[plan_cache] Error: plan 3 is stale, plan 4 was built successfully", "unlike"),
    ],
)
def test_the_error_of_a_part_of_a_program(line: str, name: str) -> None:
    """A part in brackets states it; a success takes it back, unless it is denied itself."""
    assert classify(line).name == name


def test_a_level_below_error_takes_a_weak_form_back() -> None:
    """The same words at WARNING are no ending; at ERROR they are."""
    text = "lease of partition 4 lost"
    assert classify_raw(f"2026-03-02 04:11:52 WARNING {text}", text) is UNLIKE
    assert classify_raw(f"2026-03-02 04:11:52 ERROR {text}", text).name == "error level"


@given(st.text(max_size=300), st.sampled_from(["", "error", "fatal", "low"]))
def test_any_line_is_classified(text: str, level: str) -> None:
    """No text raises."""
    assert classify(text, level).strength in ("strong", "weak", "unlike")


@pytest.mark.parametrize(
    "unit", ["Error: ", "a.", "exit code ", "File x line ", "= ", "(", "error at ", "A::", "fail "]
)
def test_long_lines_are_classified_quickly(unit: str) -> None:
    """A line of one repeated piece takes no longer than its length allows."""
    started = time.perf_counter()
    classify(unit * (LONGEST_LINE // len(unit) + 1))
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize(("level", "form"), [("error", "unlike"), ("fatal", "fatal level")])
def test_an_error_that_is_tried_again_is_no_end(level: str, form: str) -> None:
    """The level of its logger alone makes it no failure, unless the level is fatal."""
    assert classify("metrics of the gateway, trying again in 30 s", level).name == form
    assert classify("metrics of the gateway", "error").name == "error level"
