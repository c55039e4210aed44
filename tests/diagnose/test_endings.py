"""Which endings are failures of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import triage
from triage.diagnose.candidates import Candidate
from triage.diagnose.endings import MatchedFacts, read_exceptions, select_endings, split_endings
from triage.diagnose.graph import root_tier
from triage.model.details import EndingDetail
from triage.model.evidence import Evidence

from .factories import exited, fact, raised


def ending(
    text: str, rank: int | None, strength: Literal["strong", "weak", "unlike"], form: str = "x", offset: int = 900
) -> Evidence:
    made = replace(fact(text, rank), kind="ending", offset=offset, end=offset + len(text))
    return replace(made, detail=EndingDetail(form, "any", strength, offset))


def test_a_strong_form_counts_beside_a_failure_of_another_rank() -> None:
    """It is dropped only where its own rank shows a failure."""
    strong = ending("FATAL: gone", 3, "strong")
    assert select_endings([strong], MatchedFacts(), [raised("ValueError: x", 1)]) == [strong]
    assert select_endings([strong], MatchedFacts(), [raised("ValueError: x", 3)]) == []


def test_a_weak_form_counts_only_where_nothing_better_is() -> None:
    """Any other failure with a message comes before it."""
    weak = ending("lease lost", 3, "weak")
    assert select_endings([weak], MatchedFacts(), []) == [weak]
    assert select_endings([weak], MatchedFacts(), [raised("ValueError: x", 1)]) == []


def test_a_process_that_was_stopped_did_not_end_first() -> None:
    """What a shell says of SIGTERM counts only where nothing else reports an end."""
    stopped, status, other = (
        ending(text, rank, "weak", "ended with a status")
        for text, rank in (("Terminated", 3), ("worker-0 exited with code 1", 0), ("Terminated by the host", 0))
    )
    assert select_endings([stopped, status], MatchedFacts(), []) == [status]
    assert select_endings([stopped, other], MatchedFacts(), []) == [other]
    assert select_endings([stopped], MatchedFacts(), []) == [stopped]


def test_a_bare_signal_that_is_known_does_not_hide_the_reason() -> None:
    """`Aborted (core dumped)` is known; the fatal message before it says more."""
    facts = [fact("Aborted (core dumped)", 3), ending("FATAL: gone", 3, "strong")]
    matched = MatchedFacts(frozenset({0}), frozenset({0}), frozenset({0}))
    assert select_endings(facts, matched, []) == [facts[1]]
    assert select_endings(facts, replace(matched, bare_signals=frozenset()), []) == []


def test_a_status_gives_way_to_the_launchers_own_report() -> None:
    """An exit status in last lines is nothing beside the exit of a known rank."""
    status = ending("exit code 7", None, "weak", "ended with a status")
    assert select_endings([status], MatchedFacts(), []) == [status]
    assert select_endings([status], MatchedFacts(), [exited(1, 7)]) == []


def test_a_signal_in_last_lines_is_matched_where_nothing_says_more() -> None:
    """Signatures see the status of a signal; not beside other facts of the last lines, nor a launcher's own report."""
    status = replace(ending("exit code 134", None, "weak", "ended with a status"), fields={"signal": "SIGABRT"})
    alone = replace(status, detail=EndingDetail("ended with a status", "any", "weak", 900, alone=True))
    assert split_endings([alone]) == ([alone], [])
    assert split_endings([status]) == ([], [status])
    assert split_endings([alone, exited(1, 7)]) == ([exited(1, 7)], [alone])
    plain = replace(alone, fields={})
    assert split_endings([plain]) == ([], [plain])


def test_what_is_only_unlike_is_no_failure() -> None:
    """A new shape without a term of failing is never a candidate."""
    assert select_endings([ending("moving pencils", 3, "unlike")], MatchedFacts(), []) == []


def test_weak_endings_are_weak_roots() -> None:
    """A strong form states a cause, a weak one may, a status comes last."""
    tiers = [
        root_tier(Candidate(None, "u-1", [one]))
        for one in (
            ending("FATAL: gone", 3, "strong"),
            ending("lease lost", 3, "weak"),
            ending("rc=7", 3, "weak", "status other than zero"),
            ending("*** Aborted at", 3, "strong", "stack trace"),
        )
    ]
    assert tiers == [1, 3, 4, 2]


def test_a_line_that_a_signature_knows_is_no_ending() -> None:
    """The line of a bare signal itself is known."""
    facts = [fact("Fatal Python error: Segmentation fault", 3, offset=900), ending("Fatal Python error", 3, "strong")]
    matched = MatchedFacts(frozenset({0}), frozenset({0}), frozenset({0}))
    assert select_endings(facts, matched, []) == []


def test_a_report_of_a_launcher_does_not_hide_the_reason() -> None:
    """The table of torchelastic and the exit of the rank say nothing of why; a known cause does."""
    table = replace(fact("…ChildFailedError: \n=====", 3), component="torchelastic")
    facts = [table, exited(3, 1), ending("FATAL: gone", 3, "strong")]
    matched = MatchedFacts(frozenset({0, 1}))
    assert select_endings(facts, matched, []) == [facts[2]]
    assert select_endings(facts, replace(matched, causing=frozenset({0})), []) == []


def test_a_victim_behind_the_end_does_not_hide_it() -> None:
    """The rank that lost its peer stands among the last lines; before the end, or of the same rank, it covers it."""
    for strength in ("strong", "weak"):
        end = replace(ending("panic: gone", None, strength), end=2000)
        for victim, chosen in ((raised("E: lost", 5, offset=950), [end]), (raised("E: lost", 5, offset=900), [])):
            matched = MatchedFacts(frozenset({0}), lost_peers=frozenset({0}))
            assert select_endings([victim, end], matched, []) == chosen
            assert select_endings([victim, end], MatchedFacts(frozenset({0})), []) == []


def test_a_line_that_is_noise_is_no_ending() -> None:
    """A last line that a signature knows as harmless is no failure; another one is."""
    facts = [fact("[W] reverse DNS failed", 3, offset=900), ending("reverse DNS failed", 3, "weak")]
    assert select_endings(facts, MatchedFacts(noise=frozenset({0})), []) == []
    assert select_endings(facts, MatchedFacts(), []) == [facts[1]]


def test_an_exception_without_its_traceback_is_matched_as_one() -> None:
    """Alone among the last lines it is a fact of its own; a message in its line is matched in its place."""
    alone = ending("OSError: denied", 3, "strong", "exception")
    alone = replace(alone, detail=EndingDetail("exception", "any", "strong", 900, alone=True))
    assert split_endings([fact("x", 1), alone]) == ([fact("x", 1), alone], [])
    assert [one.kind for one in read_exceptions([fact("x", 1), alone], [])] == ["message", "exception"]
    typed = replace(alone, text="io.DiskError: full: 7 files\nOSError: x")
    assert [one.fields["type"] for one in read_exceptions([alone, typed], [])] == ["OSError", "DiskError"]
    beside = replace(fact("OSError: denied", 3), offset=900)
    last = ending("OSError: denied", 3, "strong", "exception")
    assert split_endings([beside, last]) == ([beside], [last])
    assert [one.kind for one in read_exceptions([beside, fact("x", 1)], [last])] == ["exception", "message"]


def test_other_last_lines_are_not_matched() -> None:
    """What signatures know of them was read as other facts, from the same lines."""
    other = ending("FATAL: gone", 3, "strong", "fatal level")
    other = replace(other, detail=EndingDetail("fatal level", "any", "strong", 900, alone=True))
    assert split_endings([other]) == ([], [other])
    assert read_exceptions([replace(fact("FATAL: gone", 3), offset=900)], [other])[0].kind == "message"


def test_what_a_launcher_stopped_later_had_its_own_end() -> None:
    """A process that stated its failure, and was killed afterwards; stopped before, what it wrote is no cause."""
    end = replace(ending("FATAL: gone", 3, "strong"), end=2000)
    for offset, chosen in ((950, [end]), (850, [])):
        facts = [fact("Killing subprocess 412", 3, offset=offset), end]
        assert select_endings(facts, MatchedFacts(frozenset({0}), stops=frozenset({0})), []) == chosen
    assert select_endings(facts, MatchedFacts(frozenset({0})), []) == []


def test_a_launcher_that_stops_all_ranks_does_not_show_who_still_ran() -> None:
    """DeepSpeed's handler kills each process that it started; where only some are stopped, these still ran."""
    weak = replace(ending("ERROR: budget is spent", 3, "weak"), source="rank3.log")
    stops = [fact(f"Killing subprocess 41{rank}", rank, offset=rank) for rank in (2, 3)]
    matched = MatchedFacts(frozenset({0, 1}), stops=frozenset({0, 1}))
    assert select_endings([*stops, weak], matched, []) == [weak]
    peer = fact("Connection closed by peer", 1, offset=50)
    assert select_endings([*stops, weak, peer], matched, []) == []


def test_reports_of_a_failed_run_do_not_hide_a_weak_ending() -> None:
    """A controller repeats that a worker died; the worker's own line says why."""
    died = raised("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", 0)
    facts = [died, fact("Trial task failed for trial a7", None), ending("ERROR: budget is spent", 0, "weak")]
    matched = MatchedFacts(frozenset({0, 1}), bare_signals=frozenset({1}))
    assert select_endings(facts, matched, []) == [facts[2]]
    assert select_endings(facts, MatchedFacts(frozenset({0, 1}), frozenset({1})), []) == []


def test_an_assertion_of_a_process_manager_gives_way_to_any_program() -> None:
    """It fails when a process is gone; alone it is all there is."""
    manager = ending("[proxy:0:0@n5] HYD_pmcd_pmip_control_cmd_cb: assert (!closed) failed", None, "strong")
    weak = ending("ERROR: host was drained", 3, "weak", offset=100)
    assert select_endings([manager, weak], MatchedFacts(), []) == [weak]
    assert select_endings([manager], MatchedFacts(), []) == [manager]


def test_a_failed_condition_says_more_than_its_signal() -> None:
    """The line is known as an abort; the condition is not."""
    line = "job: pager.cc:61: void Evict(): Assertion `pins == 0' failed."
    for form, chosen in (("failed assertion", True), ("fatal level", False)):
        facts = [fact(line, None, offset=900), ending(line, None, "strong", form)]
        matched = MatchedFacts(frozenset({0}), frozenset({0}), frozenset({0}))
        assert select_endings(facts, matched, []) == (facts[1:] if chosen else [])


def test_a_rank_that_ended_by_itself_was_not_stopped_from_outside() -> None:
    """Its last line counts beside a stop from outside that follows, and not without an exit code of its own."""
    weak, stop = ending("lease lost", 3, "weak", offset=900), fact("Received SIGTERM", None, offset=1000)
    matched = MatchedFacts(frozenset({0}), frozenset({0}), outside=frozenset({0}))
    assert select_endings([stop, weak, exited(3, 1)], matched, []) == [weak]
    assert select_endings([stop, weak, exited(4, 1)], matched, []) == []
    assert select_endings([stop, weak], matched, []) == []
    cause = MatchedFacts(frozenset({0}), frozenset({0}))
    assert select_endings([stop, weak, exited(3, 1)], cause, []) == []


def test_a_stop_from_outside_does_not_hide_an_end_of_an_unknown_rank() -> None:
    """Where a rank ended by itself, a strong form counts without its rank too, unless its source was stopped before."""
    strong = ending("Fatal error in PMPI_Send", None, "strong", offset=900)
    before, behind, elsewhere = (
        fact("Received SIGTERM", None, offset=offset, source=source)
        for offset, source in ((100, "job.log"), (1000, "job.log"), (100, "node2.log"))
    )
    matched = MatchedFacts(frozenset({0}), frozenset({0}), outside=frozenset({0}))
    assert select_endings([elsewhere, strong, exited(3, 1)], matched, []) == [strong]
    assert select_endings([behind, strong, exited(3, 1)], matched, []) == [strong]
    assert select_endings([before, strong, exited(3, 1)], matched, []) == []
    assert select_endings([elsewhere, strong], matched, []) == []


def test_a_timeout_of_ranks_that_waited_does_not_hide_what_ended_before(tmp_path: Path) -> None:
    """The last words of a process without a rank stand before the timeouts of others, and are not explained by them."""
    usual = "".join(f"step {n} loss 2.{n}\n" for n in range(40))
    crash = "Fatal error: exception Mixer.Empty_bucket(5)"
    (tmp_path / "x.log").write_text(f"{usual}{crash}\n{_TIMED_OUT.format(0)}{_TIMED_OUT.format(1)}")
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert root.title == crash


_TIMED_OUT = (
    "[rank{0}]:[E516 11:25:07.167894398 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=4711, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 "
    "milliseconds before timing out.\n"
)


def test_a_table_of_a_signal_does_not_hide_the_reason(tmp_path: Path) -> None:
    """torchelastic's table says that a rank got SIGABRT; what the rank wrote last says why."""
    (tmp_path / "x.log").write_text(_ABORTED.format("[default0]:[FATAL] [graph.cc:140:Visit] cycle through node 7"))
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert root.title == "[FATAL] [graph.cc:140:Visit] cycle through node 7"
    (tmp_path / "x.log").write_text(_ABORTED.format("[default0]:step 7"))
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert root.signature == "crash.abort"


_ABORTED = """\
step 1
{}
E1020 16:08:13.547510242 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -6) local_rank: 0 \
(pid: 82) of binary: /usr/bin/python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-10-20_16:08:13
  host      : n7
  rank      : 4 (local_rank: 0)
  exitcode  : -6 (pid: 82)
  error_file: <N/A>
  traceback : Signal 6 (SIGABRT) received by PID 82
============================================================
"""
