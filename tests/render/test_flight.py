"""The pictures of a recording: they show every state, stay small, and hold nothing that a dump could smuggle in."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest

from tests.artifacts.flight.factories import Call, Job, recording
from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.view import STATES, View, view
from triage.base.errors import OptionError
from triage.render.flight import MARKS, as_json, as_text
from triage.render.flight_html import COLORS, STATE_MEANINGS, as_html

HANG = Job({rank: [Call()] * (3 if rank == 2 else 6) for rank in range(4)})


def shown(job: Job, **more: Any) -> View:
    recorded = recording(job)
    return view(recorded, analyse(recorded), path="dumps/", **more)


def test_text_shows_the_fault_and_the_window_around_it() -> None:
    """The sentence, the calls side by side, and a row for each kind of rank."""
    text = as_text(shown(HANG), width=100)
    assert "FAULT        never-joined · rank 2 · default_pg #4 all_reduce" in text
    assert re.search(r"^ranks 0-1, 3 +===W$", text, re.MULTILINE)
    assert re.search(r"^rank 2 +===\.$", text, re.MULTILINE)
    assert "train.py:10 in step" in text


@pytest.mark.parametrize("render", [as_text, as_html])
def test_an_uncertain_fault_says_why(render: Any) -> None:
    """Which other explanation the dumps allow; a certain fault says nothing of it."""
    shown_view = shown(HANG)
    (fault,) = shown_view.analysis.faults
    doubtful = replace(fault, uncertainty="either side may be wrong")
    analysis = replace(shown_view.analysis, faults=(doubtful,))
    assert "Not certain" not in render(shown_view)
    assert "Not certain: either side may be wrong." in render(replace(shown_view, analysis=analysis))


def test_a_healthy_job_has_no_fault() -> None:
    """The text names what dumps cannot show."""
    text = as_text(shown(Job({rank: [Call()] * 3 for rank in range(2)})))
    assert text.startswith("No rank waits in a collective")


def test_ranks_that_wait_without_a_fault_are_named() -> None:
    """Ranks with an open call are in the sentence also where the dumps allow to blame nobody."""
    shown_view = shown(HANG)
    text = as_text(replace(shown_view, analysis=replace(shown_view.analysis, faults=())))
    assert text.startswith("Ranks 0-1, 3 wait in calls of default_pg. The dumps do not show for whom.")


def test_the_answer_counts_the_groups_of_all_roots() -> None:
    """Two ranks that left calls of two groups are in one sentence, which does not put both into the first group."""
    groups = {"tp0": [0, 1], "tp1": [2, 3]}
    calls = {rank: [Call(group=f"tp{rank // 2}")] * (4 if rank % 2 else 6) for rank in range(4)}
    text = as_text(shown(Job(calls, groups)))
    answer = " ".join(text.partition("\n\n")[0].split())
    assert answer.startswith("Ranks 1, 3 never joined all_reduce #5 of tp0 (1) and in 1 other group, and 2 ranks wait.")


def test_two_halves_are_one_sentence() -> None:
    """Where each rank made one of two calls, the first sentence says which, and blames nobody."""
    calls = {rank: [Call()] * 3 + [Call(op="broadcast" if rank > 1 else "all_reduce")] for rank in range(4)}
    answer = " ".join(as_text(shown(Job(calls))).partition("\n\n")[0].split())
    assert answer.startswith("Ranks 0-1 called all_reduce ")
    assert ", ranks 2-3 called broadcast " in answer
    assert "as #4 of default_pg. Either side may be wrong." in answer


def test_ranks_with_one_last_call_share_its_stack() -> None:
    """Two absent ranks that stopped at one place are one call site, two that stopped elsewhere are two."""
    alike = Job({rank: [Call()] * (3 if rank in (1, 4) else 6) for rank in range(6)})
    assert "ranks 1, 4: last call: all_reduce" in as_text(shown(alike))
    other = [Call(), Call(), Call(place=("eval.py", 7, "evaluate"))]
    apart = Job({rank: other if rank == 4 else [Call()] * (3 if rank == 1 else 6) for rank in range(6)})
    assert " rank 1: last call: all_reduce" in as_text(shown(apart))


def test_the_rows_of_ranks_at_fault_come_first() -> None:
    """Also behind more rows than are shown; a row that is too long says how many ranks it has."""
    counts = {rank: 40 if rank < 60 else 10 + rank % 30 for rank in range(90)}
    job = Job({rank: [Call(place=None)] * (3 if rank == 89 else count) for rank, count in counts.items()})
    shown_view = shown(job)
    blamed = {rank for fault in shown_view.analysis.faults for rank in fault.ranks}
    text = as_text(shown_view)
    rows = re.findall(r"^(?:[\d,]+ )?ranks? (\d+).{0,24}  +[=W.q?X ]+$", text, re.MULTILINE)
    assert int(rows[0]) in blamed
    scattered = Job({rank: [Call(place=None)] * (3 if rank % 2 else 6) for rank in range(40)})
    assert re.search(r"^20 ranks 1, 3, 5.{0,9}… ", as_text(shown(scattered)), re.MULTILINE)


def test_every_state_has_a_mark_a_colour_and_words() -> None:
    """Nothing is drawn that the key does not explain."""
    assert set(STATES) == set(MARKS) == set(COLORS) == set(STATE_MEANINGS)


def test_json_holds_faults_groups_and_runs() -> None:
    """Runs are given by sequence numbers."""
    document = json.loads(as_json(shown(HANG)))
    assert document["schema"] == "triage.flight/1"
    assert [(fault["rule"], fault["ranks"], fault["seq"]) for fault in document["faults"]] == [("never-joined", [2], 4)]
    (group,) = document["groups"]
    assert group["rows"] == [
        {"ranks": [0, 1, 3], "runs": [[1, 3, "done"], [4, 4, "open"]]},
        {"ranks": [2], "runs": [[1, 3, "done"], [4, 4, "missing"]]},
    ]


def test_html_is_well_formed_and_loads_nothing() -> None:
    """One page, no address in it but that of the SVG's own form."""
    page = as_html(shown(HANG))
    assert not re.search(r"https?://|src=|@import|url\(", page)
    for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ET.fromstring(picture)
    assert page.count("<rect") == 4


@pytest.mark.parametrize("render", [as_text, as_html, as_json])
def test_names_from_dumps_steer_nothing(render: Any) -> None:
    """Escape sequences and markup in functions, files and operations are text."""
    evil = Call(op="<script>alert(1)</script>\x1b[31m", place=("x\x1b]0;t\x07.py<b>", 3, "</pre><img onerror=1>"))
    output = render(shown(Job({rank: [Call()] * 2 + [evil] * (rank == 1) for rank in range(3)})))
    assert "\x1b" not in output
    assert "\x07" not in output
    if render is as_html:
        assert "<script>alert" not in output
        assert "<img" not in output


def test_a_thousand_ranks_make_a_small_picture() -> None:
    """Rows that look alike are one; cells in one state are one."""
    calls = {rank: [Call(place=None)] * (90 if rank == 512 else 100) for rank in range(1000)}
    assert len(as_html(shown(Job(calls)))) < 12_000


def test_the_row_of_the_rank_at_fault_comes_first() -> None:
    """Among thousands of rows it is the one that is seen without moving; the numbers are there for the labels of the
    zoomed picture.
    """
    calls = {rank: [Call(place=None)] * (90 if rank == 30 else 100) for rank in range(40)}
    page = as_html(shown(Job(calls)))
    assert re.findall(r'<text class="r"[^>]*><title>([^<]*)', page)[0] == "rank 30"
    assert 'data-seqs="1-91"' in page


def test_a_group_and_a_range_can_be_selected() -> None:
    """Others are left out; the error for an unknown group lists the known ones."""
    tp = {"tp0": [0, 1], "tp1": [2, 3]}
    calls = {rank: [Call(group=f"tp{rank // 2}"), Call()] * 60 for rank in range(4)}
    selected = shown(Job(calls, tp), group="tp1", around=30)
    assert [(lane.group, lane.seqs[0], lane.seqs[-1]) for lane in selected.lanes] == [("tp1 (2)", 10, 50)]
    with pytest.raises(OptionError, match="no group is called 'pp'"):
        shown(Job(calls, tp), group="pp")
