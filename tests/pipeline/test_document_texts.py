"""What a text is: the output of a job, a document, a program or data; each threshold from both sides."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from triage.pipeline.document_names import classify_name
from triage.pipeline.document_texts import (
    DOCUMENT_SHARE,
    FEWEST_DOCUMENT,
    FEWEST_OUTPUT,
    MOST_OUTPUT,
    OUTPUT_SHARE,
    classify_text,
)

EVENTS = """LAST SEEN   TYPE      REASON     OBJECT              MESSAGE
4m          Normal    Scheduled  pod/edl-worker-3    Successfully assigned ml/edl-worker-3 to the node of that name
58s         Warning   Evicted    pod/edl-worker-3    The node was low on resource: memory. It uses more than it requests
57s         Normal    Killing    pod/edl-worker-3    Stopping container main as it was asked to do by the kubelet
"""
PROSE = "The administrators of the cluster update its switches every month.\n"
STEP = "[rank0]: step {} loss 2.1\n"
OTHER = "x{}y\n"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("train.py", "written"),
        ("conf/job.sbatch", "written"),
        ("requirements.txt", "written"),
        ("CHANGES.txt", "document"),
        ("gpu_runbook.txt", "document"),
        ("docs/errors.txt", "document"),
        ("known-issues", "document"),
        ("tests/fixtures/crash.log", "fixture"),
        ("venv/lib/site-packages/x/a.log", "fixture"),
        ("archive/2026-04-27/train.log", "fixture"),
        ("old_runs/rank0.log", "fixture"),
        ("archiver/rank0.log", "output"),
        ("rank0.txt", "neutral"),
        ("data.json", "neutral"),
        ("changes.log", "output"),
        ("notes.out", "output"),
        ("vlm.o48377", "output"),
        ("dmesg.txt", "output"),
        ("gpu_usage.bin", "output"),
    ],
)
def test_a_name_says_who_wrote_a_file(name: str, kind: str) -> None:
    """By extension, by the word of a document, by folder; the extension of a log comes first."""
    assert classify_name(name) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (PROSE * 3, "document"),
        ("# Title\n\n## Why\n\n- a card that fell off the bus\n", "document"),
        ("usage: train [-h]\n\noptions:\n  -h   help\n  --on-crash A   what to do\n  --tp N   size\n", "document"),
        ("usage: train [-h]\n  -h\n  --tp N\n  --pp N\ntrain: error: unrecognized arguments: --x\n", "failure"),
        ("import os\n\ndef main():\n    raise RuntimeError('CUDA error')\n\nmain()\n", "program"),
        ("#!/bin/sh\necho 'FATAL: no card'\n", "program"),
        ('{"text": "a", "label": 1}\n' * 3, "data"),
        ('{"text": "a", "label": 1}\n' * 2, "unclear"),
        ('{"text": "a", "level": "error"}\n' * 3, "output"),
        ("text,label\nCUDA error,1\nBus error,2\n", "data"),
        ("time,text\n1,CUDA error\n2,Bus error\n", "unclear"),
        ("index, name, pci.bus_id\n0, H100, 0000:3b\n1, H100, 0000:86\n", "unclear"),
        ("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n", "failure"),
        (PROSE * 3 + "panic: runtime error: index out of range\n", "failure"),
        ("", "unclear"),
        (EVENTS, "output"),
        (re.sub(" +", " ", EVENTS), "document"),
    ],
)
def test_a_text_says_what_it_is(text: str, kind: str) -> None:
    """Headings, lists and paragraphs; definitions; records without a time; or a last line that states a failure."""
    assert classify_text(text.encode()) == kind


@pytest.mark.parametrize(("steps", "kind"), [(FEWEST_OUTPUT, "output"), (FEWEST_OUTPUT - 1, "unclear")])
def test_output_needs_a_share_and_a_few_lines(steps: int, kind: str) -> None:
    """Half of the lines are output, but at least three."""
    text = "".join(map(STEP.format, range(steps))) + "".join(
        map(OTHER.format, "abc"[: round(steps / OUTPUT_SHARE) - steps])
    )
    assert classify_text(text.encode()) == kind
    assert classify_text((text + "z\nzz\n").encode()) == "unclear"


@pytest.mark.parametrize(("lines", "kind"), [(FEWEST_DOCUMENT, "document"), (FEWEST_DOCUMENT - 1, "unclear")])
def test_a_document_without_its_name_has_a_few_lines(lines: int, kind: str) -> None:
    """One line is enough where the name is that of a document; half of the lines must be words."""
    assert classify_text((PROSE * lines).encode()) == kind
    assert classify_text(PROSE.encode(), is_named_document=True) == "document"
    assert classify_text((PROSE * 3 + "xyz\n" * round(3 / DOCUMENT_SHARE - 3)).encode()) == "document"
    assert classify_text((PROSE * 3 + "xyz\n" * 4).encode()) == "unclear"


@pytest.mark.parametrize(("lines", "kind"), [(10 * FEWEST_DOCUMENT, "document"), (8, "unclear")])
def test_a_document_holds_little_output(lines: int, kind: str) -> None:
    """Less than a tenth of its lines has a writer."""
    few = max(1, int(lines * MOST_OUTPUT) - 1) if kind == "document" else 2
    assert classify_text((PROSE * lines + "".join(map(STEP.format, range(few)))).encode()) == kind


@given(st.binary(max_size=400))
def test_any_bytes_are_classified(data: bytes) -> None:
    """Nothing raises."""
    assert classify_text(data)


_COMMIT = "commit 3f0c1d2e4b5a69788796a5b4c3d2e1f001122334\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            f"{_COMMIT}Author: A <a@x>\nDate:   Mon Nov 2 10:00:00 2026 +0100\n\n    Avoid what killed rank 3\n",
            "document",
        ),
        (f"{_COMMIT}\n    Raise if the loss is NaN\n\n M train.py\n?? notes/\n", "document"),
        (
            "On branch main\nYour branch is up to date.\n\nChanges not staged:\n\tmodified:   crash_handler.py\n",
            "document",
        ),
        (
            "diff --git a/a.py b/a.py\nindex 1a2b3c4..5d6e7f8 100644\n--- a/a.py\n+++ b/a.py\n+raise ValueError()\n",
            "document",
        ),
        (f"{_COMMIT}\n    Raise if the loss is NaN\n\nKilled\n", "failure"),
        (f"{_COMMIT}{STEP.format(1)}{STEP.format(2)}{STEP.format(3)}", "output"),
    ],
)
def test_what_git_prints_is_a_document(text: str, kind: str) -> None:
    """Unless other lines follow: a job may print the commit that it runs."""
    assert classify_text(text.encode()) == kind
