"""Endings of whole sources: telling line, origin, strength, and what is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import triage
from triage.model.diagnosis import Diagnosis

STEPS = "".join(f"step {n}/300 loss {9 / n:.3f}\n" for n in range(1, 301))


def diagnose(tmp_path: Path, text: str) -> Diagnosis:
    (tmp_path / "train.log").write_text(text, encoding="utf-8")
    return triage.ingest(tmp_path)


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("rc=74 stage=feeder elapsed=4411s\n", "rc=74 stage=feeder elapsed=4411s"),
        ("KeyError: 'layers.61.w2'\n", "KeyError: 'layers.61.w2'"),
        (
            "thread 'main' panicked at src/a.rs:8:1:\nindex out of bounds\n",
            "thread 'main' panicked at src/a.rs:8:1: index out of bounds",
        ),
        (
            "Error in solve(A) : \n  system is singular\nExecution halted\n",
            "Error in solve(A) : system is singular",
        ),
        ("feeder: ERROR: lost the lease\nrank 0: giving up\n", "feeder: ERROR: lost the lease"),
        ("mount /data is not ready\nagent[8]: rank 0: giving up\n", "mount /data is not ready"),
        ("rank 0: giving up\n", "rank 0: giving up"),
        ("[agent] run 7 has used 9 of 9 hours\n[agent] stopping\n", "[agent] run 7 has used 9 of 9 hours"),
        ("[agent] run 7 has used 9 of 9 hours\n[feeder] stopping\n", "[feeder] stopping"),
        ("[agent] step 7 loss 2.3 of this run\n[agent] stopping\n", "[agent] stopping"),
        ("[RT][ERROR][8] queue 3 is stalled\n[RT][FATAL][8] context lost\n", "[RT][ERROR][8] queue 3 is stalled"),
        ("[IO][ERROR][8] queue 3 is stalled\n[RT][FATAL][8] context lost\n", "[RT][FATAL][8] context lost"),
        (
            "[RT][FATAL][8] context lost\nsrun: error: n7: tasks 0-7: Aborted\n",
            "[RT][FATAL][8] context lost",
        ),
        ("lease of rank 3 was lost\nsrun: Terminating StepId=7.0\n", "lease of rank 3 was lost"),
        (
            "lease of rank 3 was lost\n2026-08-12 20:00:42,324 sagemaker-training-toolkit ERROR    Reporting FAILURE\n",
            "lease of rank 3 was lost",
        ),
        ("/bin/sh: 67: DATA_ROOT: parameter not set\nexit status 2\n", "/bin/sh: 67: DATA_ROOT: parameter not set"),
        (
            "At line 7 of file src/nml.f90 (unit = 3)\nFortran runtime error: End of file\n",
            "At line 7 of file src/nml.f90 (unit = 3) Fortran runtime error: End of file",
        ),
        (
            "srun: error: n7: task 3: lost the fabric\nsrun: error: n7: exited with code 3\n",
            "srun: error: n7: task 3: lost the fabric",
        ),
        ("~~~~ ring collapsed, 7/8 neighbours left ~~~~\n", "~~~~ ring collapsed, 7/8 neighbours left ~~~~"),
    ],
)
def test_the_headline_is_the_telling_line(tmp_path: Path, text: str, headline: str) -> None:
    """A job whose end nobody listed is an unknown failure with that line."""
    diagnosis = diagnose(tmp_path, STEPS + text)
    assert diagnosis.verdict == "unknown"
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.title == headline
    assert diagnosis.root_cause.remediation.steps


def test_what_a_heading_announces_stands_right_behind_it(tmp_path: Path) -> None:
    """The lines before it come after those behind it, so that no other writer's line is taken for its sentence."""
    text = f"{STEPS}worker 5 listens on 8080\nFatal error:\n44 particles left their cell\n"
    root = diagnose(tmp_path, text).root_cause
    assert root is not None
    lines = ["Fatal error:", "44 particles left their cell", "worker 5 listens on 8080"]
    assert root.evidence[0].text.split("\n") == lines


def test_an_exception_object_in_a_record_is_an_exception_of_its_rank(tmp_path: Path) -> None:
    """structlog's dictionaries become a traceback, with the rank from the record."""
    frames = [{"filename": "train.py", "lineno": 9, "name": "main"}]
    error = {"exc_type": "AttributeError", "exc_value": "no attribute 'x'", "frames": frames}
    records = [{"rank": 1, "event": f"step {n}", "level": "info"} for n in range(40)]
    records.append({"rank": 1, "event": "failed", "level": "error", "exception": [error]})
    diagnosis = diagnose(tmp_path, "".join(json.dumps(record) + "\n" for record in records))
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.title == "AttributeError: no attribute 'x'"
    assert diagnosis.root_cause.ranks == (1,)


def test_an_ending_before_a_good_end_is_none(tmp_path: Path) -> None:
    """What stands before the proof of a good end did not end the job."""
    assert diagnose(tmp_path, STEPS + "ERROR: could not draw the curve\nTraining complete\n").verdict == "clean"


def test_a_new_shape_without_a_failure_is_no_failure(tmp_path: Path) -> None:
    """Lines that are only unlike leave the job inconclusive."""
    assert diagnose(tmp_path, STEPS + "moving the pencils to the other drawer\n").verdict == "inconclusive"


def test_a_status_names_the_last_activity_of_its_rank(tmp_path: Path) -> None:
    """Beside an exit code stands what the rank wrote last."""
    log = "".join(f"[rank3]: step {n} loss 1.0\n" for n in range(40))
    diagnosis = diagnose(tmp_path, log + "srun: error: gpu07: task 3: Exited with exit code 7\n")
    assert diagnosis.root_cause is not None
    assert "step 39" in diagnosis.root_cause.title
    assert any("step 39" in sentence for sentence in diagnosis.root_cause.why)


@pytest.mark.parametrize(("items", "is_list"), [(2, True), (6, False)])
def test_numbered_lines_are_a_list_among_other_lines(tmp_path: Path, items: int, is_list: bool) -> None:
    """`0: …` behind an error are its causes, unless most lines have such a prefix: then they are the ranks of srun."""
    causes = "".join(f"    {number}: superblock {number} is newer than this reader\n" for number in range(items))
    diagnosis = diagnose(tmp_path, "Error: failed to mount corpus\n\nCaused by:\n" + causes)
    assert diagnosis.root_cause is not None
    shown = "".join(fact.text for fact in diagnosis.root_cause.evidence if fact.text.startswith("Error: failed"))
    assert (f"superblock {items - 1}" in shown) == is_list


def test_a_question_about_success_is_no_good_end(tmp_path: Path) -> None:
    """An exception with the words of a good end is a failure."""
    text = "Exception: Node temp_dir was not found in NodeInfo. did the node's raylet start successfully?\n"
    assert diagnose(tmp_path, STEPS + text).verdict == "unknown"


def test_the_handled_exception_is_quoted(tmp_path: Path) -> None:
    """Where a handler fails itself, the root cause quotes the exception that was being handled."""
    frame = '  File "/srv/job/read.py", line 41, in read\n    read_shard(17)\n'
    header = "Traceback (most recent call last):\n"
    middle = "\nDuring handling of the above exception, another exception occurred:\n\n"
    text = f"{header}{frame}ValueError: shard 17 has 41 rows\n{middle}{header}{frame}KeyError: 'rows'\n"
    root = diagnose(tmp_path, STEPS + text).root_cause
    assert root is not None
    assert root.title == "KeyError: 'rows'"
    assert root.evidence[0].text == "KeyError: 'rows'\nraised while handling ValueError: shard 17 has 41 rows"


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("04:11:52|n0113|kr6|9|mixer is unreachable|-", "unknown"),
        ("04:11:52|n0113|kr6|9|unreachable mixer|-", "inconclusive"),
    ],
)
def test_a_cell_of_three_words_is_a_sentence(tmp_path: Path, line: str, verdict: str) -> None:
    """In a row of many columns a term of failing counts in a cell of three words, not in one of two."""
    assert diagnose(tmp_path, STEPS + line + "\n").verdict == verdict


@pytest.mark.parametrize(("line", "is_failure"), [("overlayfs: not supported here", False), ("Kernel panic", True)])
def test_the_last_lines_of_a_kernel_are_no_ends_of_the_job(tmp_path: Path, line: str, is_failure: bool) -> None:
    """A kernel goes on, so only lines that always mean a failure count."""
    times = "".join(f"[Sat Nov 21 03:0{n}:45 2026] eth{n}: link becomes ready\n" for n in range(1, 9))
    (tmp_path / "kern.log").write_text(f"{times}[Sat Nov 21 03:09:45 2026] {line} - not syncing: fatal\n")
    (tmp_path / "train.log").write_text(STEPS)
    root = triage.ingest(tmp_path).root_cause
    assert (root is not None) is is_failure


VICTIM = (
    "Traceback (most recent call last):\n"
    '  File "a.py", line 3, in f\n    g()\n'
    "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.10]:36200\n"
)


@pytest.mark.parametrize(
    "text", ["panic: send on closed channel\ngoroutine 7 [running]:\n", "agent FATAL: refused the token\nnote 7\n"]
)
def test_the_traceback_of_a_victim_does_not_hide_the_end_before_it(tmp_path: Path, text: str) -> None:
    """Both stand in one stream: the panic is the cause, the rank that lost its peer is not."""
    diagnosis = diagnose(tmp_path, STEPS + text + VICTIM)
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.title == text.split("\n", 1)[0]


@pytest.mark.parametrize(
    ("between", "is_cause"),
    [
        ("".join(f"[rank{rank}]: {line}\n" for rank in range(8) for line in VICTIM.splitlines()), True),
        ("[INFO] [launch.py:319:sigkill_handler] Killing subprocess 412\n" * 8, True),
        ("srun: error: n7: task 3: Exited with exit code 1\n" * 25, True),
        ("".join(f"note of part {chr(97 + n)} {'x' * n}\n" for n in range(19)), True),
        ("".join(f"note of part {chr(97 + n)} {'x' * n}\n" for n in range(20)), False),
    ],
)
def test_what_launchers_and_victims_write_is_no_distance(tmp_path: Path, between: str, is_cause: bool) -> None:
    """A weak form counts however much of that follows, but in no more than twenty other lines."""
    diagnosis = diagnose(tmp_path, f"{STEPS}cannot open the index of part 7\n{between}")
    root = diagnosis.root_cause
    assert (root is not None and root.title == "cannot open the index of part 7") is is_cause


def test_a_line_that_announces_a_traceback_is_no_end_of_its_own(tmp_path: Path) -> None:
    """`CRITICAL: unhandled exception` belongs to the traceback below."""
    diagnosis = diagnose(tmp_path, STEPS + "CRITICAL: unhandled exception\n" + VICTIM)
    assert diagnosis.root_cause is None or "unhandled" not in diagnosis.root_cause.title


def test_the_error_of_a_record_stands_behind_its_message(tmp_path: Path) -> None:
    """zap writes the error beside the message; a record without one keeps its message."""
    record = {"level": "fatal", "msg": "cannot load manifest", "error": "/d/feed.json: checksum 9, want 8"}
    for fields, title in (
        (record, "cannot load manifest: /d/feed.json: checksum 9, want 8"),
        ({**record, "error": None}, "cannot load manifest"),
    ):
        usual = "".join(json.dumps({"level": "info", "msg": f"step {n}"}) + "\n" for n in range(40))
        diagnosis = diagnose(tmp_path, usual + json.dumps(fields) + "\n")
        assert diagnosis.root_cause is not None
        assert diagnosis.root_cause.title == title


def test_a_fatal_line_that_only_closes_leaves_the_word_to_the_error_before(tmp_path: Path) -> None:
    """`exiting` gives no reason in any level; with a reason behind it the fatal line is the headline."""
    usual = "".join(f'ts={n} level=info msg="step {n}"\n' for n in range(40))
    error = 'ts=41 level=error msg="upload failed" err="403 AccessDenied"\n'
    for end, title in (("exiting", "upload failed"), ("exiting: no lease left", "exiting: no lease left")):
        diagnosis = diagnose(tmp_path, usual + error + f'ts=42 level=fatal msg="{end}" code=3\n')
        assert diagnosis.root_cause is not None
        assert title in diagnosis.root_cause.title


@pytest.mark.parametrize(
    ("before", "has_reason"), [("mesh file has no boundary 'inlet'", True), ("step 2 of 9", False)]
)
def test_the_line_before_an_abort_of_mpi_says_why(tmp_path: Path, before: str, has_reason: bool) -> None:
    """The program prints its reason and calls MPI_Abort, which adds a notice; progress is no reason."""
    abort = "Abort(1) on node 2 (rank 2 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 2"
    steps = "".join(f"[{rank}] step {step} of 9\n" for step in range(3) for rank in range(3))
    diagnosis = diagnose(tmp_path, f"{steps}[2] {before}\n[2] {abort}\n")
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.ranks == (2,)
    assert (diagnosis.root_cause.title == before) is has_reason


def test_one_failure_of_many_hosts_is_no_usual_output(tmp_path: Path) -> None:
    """pdsh mixes the stacks of all hosts, whose lines repeat; so do rules behind timestamps."""
    stack = "panic: send on closed channel\n\ngoroutine 7 [running]:\na.dev/x.Run(0x1)\n\t/src/x.go:7 +0x8\n"
    ends = "".join(f"node{n}: {line}\n" for n in range(1, 5) for line in stack.split("\n"))
    diagnosis = diagnose(tmp_path, ends + "pdsh@login: node1: ssh exited with exit code 2\n")
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.title == "panic: send on closed channel"


@pytest.mark.parametrize("behind", ["", "[proxy:0:1@n7] main (pm/pmip.c:206): demux engine error waiting for event\n"])
def test_reports_of_an_end_give_way_to_what_says_why(tmp_path: Path, behind: str) -> None:
    """A workflow, a shell or Hydra words the end of a part of the job in its own way."""
    ends = f"{behind}run.sh: training failed with status 1\nExit_status=1\nWorkflow failed.\n"
    diagnosis = diagnose(tmp_path, f"{STEPS}sampler: window 7 is closed, giving up\n{ends}")
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.title == "sampler: window 7 is closed, giving up"


@pytest.mark.parametrize(
    ("before", "is_cause"),
    [
        ("restore: error: 3 parts are lost", True),
        ("restore: error: stopped by:", False),
        ("2026-01-01 12:00:00,123 ERROR trainer: fit has failed", False),
    ],
)
def test_a_message_right_before_the_traceback_of_another_is_its_own(
    tmp_path: Path, before: str, is_cause: bool
) -> None:
    """A program's message stays; a line that a logger wrote, or that ends with a colon, announces the traceback."""
    lost = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:4711"
    traceback = f'Traceback (most recent call last):\n  File "a.py", line 7, in f\n    g()\n{lost}\n'
    root = diagnose(tmp_path, f"{STEPS}{before}\n{traceback}").root_cause
    assert root is not None
    assert (root.title == before) is is_cause
