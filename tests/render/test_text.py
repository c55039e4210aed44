from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from triage.model.diagnosis import Diagnosis, Remediation, Role
from triage.model.evidence import Evidence, Origin
from triage.model.store import Recurrence
from triage.render import html, json, text
from triage.render.terminal import columns

from .factories import ALL, CAUSE, CLEAN, KNOWN, SYMPTOMS, UNKNOWN, UNKNOWN_ROOT, diagnoses, evidence

widths = st.sampled_from([40, 60, 80, 100, 160])
CODES = re.compile(r"\x1b\[[0-9;]*m")
LABEL = re.compile(r"^\S.*?  ")
"""The name of a section before its first line, as in `What to add  1. Rerun it`."""


@given(diagnoses, widths)
def test_lines_fit_and_hold_no_control(diagnosis: Diagnosis, width: int) -> None:
    """Whatever the logs held, no line but one long word to copy is wider than the terminal, and none steers it."""
    written = text.render(diagnosis, width=width)
    for line in written.splitlines():
        assert columns(line) <= width or len(LABEL.sub("", line).split()) <= 2, line
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", written)


@given(diagnoses, widths)
def test_colour_adds_nothing_but_colour(diagnosis: Diagnosis, width: int) -> None:
    """Without its codes the coloured report is the plain one."""
    assert CODES.sub("", text.render(diagnosis, width=width, color=True)) == text.render(diagnosis, width=width)


@given(diagnoses)
def test_a_saved_report_shows_the_same(diagnosis: Diagnosis) -> None:
    """The text needs nothing that the JSON does not carry."""
    assert text.render(json.read(json.render(diagnosis))) == text.render(diagnosis)


def test_what_the_contract_does_not_carry_is_not_shown() -> None:
    """Process ids, components, offsets and the local rank of a known rank make no difference to the report."""
    item = Evidence(
        "exit",
        "slurm",
        "boom",
        Origin(rank=1, local_rank=0, pid=7, stream="err"),
        "a.log",
        99,
        fields={"signal": "SIGKILL"},
        excerpt="more",
    )
    full = replace(KNOWN, root_cause=replace(CAUSE, ranks=(), hosts=(), evidence=(item,)))
    assert text.render(json.read(json.render(full))) == text.render(full)


def test_the_local_rank_is_shown_without_a_global_rank() -> None:
    """With the host."""
    item = Evidence("exit", "", "boom", Origin(local_rank=3), "a.log", 0)
    root = replace(CAUSE, ranks=(), evidence=(item,))
    assert "local rank 3 on node1, at" in text.render(replace(KNOWN, root_cause=root))


def test_the_whole_report_of_a_known_failure() -> None:
    """Verdict, place, line, action, effects, reasons, losers, ranks, warnings, footer, in this order."""
    first = "ROOT CAUSE  DataLoader worker was killed" + " " * 28 + "data.worker-killed · confidence high (0.9)\n"
    assert (
        text.render(KNOWN, width=110)
        == first
        + """\
rank 1 on node1, at 03:00:26, line job.log:61
  | RuntimeError: DataLoader worker (pid 20274) is killed by signal: Killed.

What to do   Give the job more host memory.
             1. free -g
             2. num_workers=2
             - https://github.com/pytorch/pytorch/issues/8976

It caused    1 more rank shows only consequences of this: gloo.connection-closed-by-peer on rank 0 (2×),
             launch.child-failed

Why          It is the first line in time.

Considered   host.oom: Out of host memory. No line shows it.

Unknown      u-7f3a9c on rank 3, job.log:61: ValueError: shard 7 is bad

In order     03:00:26 rank 1: data.worker-killed
             03:00:27 rank 0: only consequences

Ranks        0-1  FK  < 1
             F failed (1)   K killed (1)   < where it began

Ignored      nccl.advice (3×)

Warnings     - a.tar: ends early (truncated-archive)

llama, 2 ranks on 1 host, torch 2.6.0 · /jobs/7 · 12 files · 3.1 MB · 0.4 s · catalog 2026.11.1 · triage 0.1.0
"""
    )


@pytest.mark.parametrize(
    ("diagnosis", "first"),
    [
        (UNKNOWN_ROOT, "UNKNOWN FAILURE  began on rank 3: ValueError: shard 7 is bad"),
        (SYMPTOMS, "SYMPTOMS ONLY  suspects: rank 2"),
        (CLEAN, "CLEAN  no failure found in 3 files; last line at 03:01:00"),
    ],
)
def test_the_first_line_is_the_verdict(diagnosis: Diagnosis, first: str) -> None:
    """The verdict kind and one sentence."""
    assert text.render(diagnosis).splitlines()[0].startswith(first)


def test_what_is_to_be_copied_is_not_broken() -> None:
    """An address of the advice stays whole in the narrowest terminal."""
    address = "https://docs.example/a/rather/long/address/of/a/page.html"
    root = replace(CAUSE, remediation=Remediation("Do it.", (), (address,)))
    assert address in text.render(replace(KNOWN, root_cause=root), width=40)


def test_the_line_of_symptoms_names_its_writer() -> None:
    """The line of a victim is not shown as a line of the suspect."""
    assert text.render(SYMPTOMS).splitlines()[1] == "first symptom on rank 0, at 03:00:26, line job.log:61"


def test_a_report_of_symptoms_lists_what_to_collect() -> None:
    """What to collect next time is a numbered list of its own, and is not repeated as a reason."""
    report = text.render(SYMPTOMS)
    assert "Next time    1. Keep the log of every rank\n             2. Run py-spy\n" in report
    assert report.count("py-spy") == 1


def test_a_clean_report_shows_earlier_failures() -> None:
    """Findings of a job that finished in the end have their own heading."""
    assert "Earlier      gloo.connection-closed-by-peer on rank 0 (2×)" in text.render(CLEAN)


def test_a_huge_log_line_is_cut_in_the_middle() -> None:
    """Both ends of a long line and the count of what is missing are shown, in three rows."""
    long = "head-" + "x" * 5000 + "-tail"
    lines = text.quoted(long, 80)
    assert len(lines) <= 4
    assert "head-" in lines[0]
    assert lines[-1].endswith("-tail")
    assert "more characters" in "".join(lines)


def test_many_lines_are_cut_in_the_middle() -> None:
    """A traceback of a hundred lines shows its start and its end."""
    lines = text.quoted("\n".join(f"line {number}" for number in range(100)), 80)
    assert len(lines) == 13
    assert lines[4] == "  | … 88 more lines …"
    assert lines[-1] == "  | line 99"


def test_escape_sequences_in_a_log_do_not_reach_the_terminal() -> None:
    """A log that rewrites the window title is shown without doing so, in colour too."""
    root = replace(CAUSE, title="t\x1b]0;owned\x07", evidence=(evidence("boom\x1b[2J\x1b[1;1H"),))
    written = text.render(replace(KNOWN, root_cause=root, findings=(root,)), color=True)
    assert "\x1b]" not in written
    assert "\x1b[2J" not in written
    assert "owned" not in written


def test_markup_like_text_is_shown_as_it_is() -> None:
    """`[rank0]` in a log is no markup."""
    root = replace(CAUSE, evidence=(evidence("[rank0]: [bold]x[/bold]"),))
    assert "  | [rank0]: [bold]x[/bold]" in text.render(replace(KNOWN, root_cause=root))


@pytest.mark.parametrize("diagnosis", ALL)
def test_no_line_ends_in_a_space(diagnosis: Diagnosis) -> None:
    """Copying from the terminal brings no trailing space."""
    assert not re.search(r" $", text.render(diagnosis), re.MULTILINE)


def test_another_unknown_failure_shows_its_reasons() -> None:
    """In the text and in the page."""
    candidate = replace(UNKNOWN, why=("Began 7 s after cuda.out-of-memory",))
    report = replace(KNOWN, unknown=(candidate,))
    assert ". Began 7 s after cuda.out-of-memory." in " ".join(text.render(report, width=200).split())
    assert ". Began 7 s after cuda.out-of-memory." in html.render(report)


@pytest.mark.parametrize("diagnosis", ALL)
def test_nothing_is_printed_twice(diagnosis: Diagnosis) -> None:
    """No line, reason or title of a report occurs a second time."""
    report = " ".join(text.render(diagnosis, width=160).split())
    findings = [*diagnosis.findings, *diagnosis.unknown]
    findings += [diagnosis.root_cause] if diagnosis.root_cause is not None else []
    texts = [text for finding in findings for text in (finding.title, *finding.why, *finding.remediation.steps)]
    texts += [item.text for finding in findings for item in finding.evidence]
    assert [text for text in texts if report.count(text) > 1 and len(text) > 12] == []


def test_details_are_shown_on_request() -> None:
    """Without them neither references, nor the order of events, nor what was considered is there; -v is named."""
    long, short = (text.render(KNOWN, verbose=verbose) for verbose in (True, False))
    assert "- https://" in long
    assert "- https://" not in short
    assert "In order" not in short
    assert "-v for details" in short
    assert "-v for details" not in long
    assert "-v for details" not in text.render(replace(CLEAN, findings=(), timeline=()), verbose=False)


@pytest.mark.parametrize(
    ("confidence", "role", "explained_by", "is_shown"),
    [
        (0.75, "cause", (), True),
        (0.74, "cause", (), False),  # much less sure
        (0.95, "confirmation", (), False),
        (0.95, "either", (CAUSE.signature or "",), False),
    ],
)
def test_what_may_have_begun_the_failure_too_is_shown_without_details(
    confidence: float, role: Role, explained_by: tuple[str, ...], is_shown: bool
) -> None:
    """An unexplained cause that is about as sure as the root stands in the short report."""
    root = replace(CAUSE, confidence=0.9)
    other = replace(CAUSE, signature="gpu.other", confidence=confidence, role=role, explained_by=explained_by)
    made = replace(KNOWN, root_cause=root, findings=(root, other))
    assert ("gpu.other" in text.render(made, verbose=False).partition("Considered")[2]) is is_shown


def test_what_was_seen_before_stands_above_the_advice() -> None:
    """It is one sentence between the quoted line and what to do."""
    written = text.render(KNOWN, verbose=False, recurrence=Recurrence(2, 2, 0.0, ("node7",)))
    before, _, behind = written.partition("Seen before  Third time in a week, on node7 each time")
    assert "ROOT CAUSE" in before
    assert "What to do" in behind


@given(diagnoses)
def test_the_advice_begins_on_the_first_screen(diagnosis: Diagnosis) -> None:
    """At 80 columns the verdict, the line and the start of the advice are among the first 24 lines."""
    lines = text.render(diagnosis, width=80, verbose=False, recurrence=Recurrence(2, 2, 0.0, ("node7",))).splitlines()
    assert all(number < 24 for number, line in enumerate(lines) if line.startswith("What to do"))


def with_places(*places: str) -> Diagnosis:
    """Return a diagnosis whose root cause was read at line 7 of these files, by ranks 0, 1, …"""
    facts = [Evidence("exception", "", "boom", Origin(rank=rank), name, 0, line=7) for rank, name in enumerate(places)]
    return replace(KNOWN, root_cause=replace(CAUSE, evidence=tuple(facts)))


@pytest.mark.parametrize("letters", [30, 70, 200])
def test_a_place_is_in_one_piece(letters: int) -> None:
    """A path that does not fit behind its rank has a line of its own, wider than the terminal if it must be."""
    path = "a" * letters
    lines = text.render(with_places(path), width=80).splitlines()
    assert any(f"{path}:7" in line for line in lines) == (letters + len(":7") <= text.COPIED)
    assert (f"{path}:7" in lines) == (letters == 70)


def test_other_places_are_whole_or_counted() -> None:
    """As many of three as fit in two rows; where none fits, how many there are, and of which ranks."""
    assert "also b.log:7 (rank 1), c.log:7 (rank 2)\n" in text.render(with_places("a", "b.log", "c.log"), width=80)
    fitting, wide = "b" * 50, "c" * 90
    assert f"also {fitting}:7 (rank 1) and 1 more\n" in text.render(with_places("a", fitting, wide), width=80)
    assert "also in 2 other places (ranks 1-2)\n" in text.render(with_places("a", wide, f"{wide}d"), width=80)
    many = text.render(with_places("a", *(f"{name}.log" for name in "bcdef")), width=80)
    assert "d.log:7 (rank 3) and 2 more\n" in many


def test_the_path_of_a_job_stands_once_and_in_one_piece() -> None:
    """A path that is only a name is not repeated; one longer than a row stays whole, to be copied."""
    bare = replace(KNOWN, job=replace(KNOWN.job, name="run-7", path="run-7"))
    assert text.render(bare, width=80).count("run-7") == 1
    path = "/scratch/" + "long-directory/" * 6 + "run-7"
    assert path in text.render(replace(bare, job=replace(bare.job, path=path)), width=80)
