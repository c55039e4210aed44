"""triage.evidence.job_facts: what schedulers, variables and users say of a job, and what is no fact of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from triage.base.errors import OptionError
from triage.base.options import Options
from triage.evidence import job_facts
from triage.evidence.job_facts import find_facts, parse_labels
from triage.render import json as json_report, json_reader

SCONTROL = b"""JobId=1234 JobName=llama
   UserId=anna(1001) GroupId=ml(100) MCS_label=N/A
   Priority=1 Nice=0 Account=llm QOS=normal
   JobState=FAILED Reason=NonZeroExitCode Dependency=(null)
   Partition=a100 AllocNode:Sid=login1:77
"""
SACCT = b"""JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
------------ ---------- ---------- ---------- ---------- ---------- --------
1234              train       a100        llm         64     FAILED      1:0
1234.batch        batch                   llm         64     FAILED      1:0
"""
DESCRIBED = b"""Name:             trainer-0
Namespace:        vision
Node:             gpu-144/10.0.0.10
Labels:           app=trainer
                  team=vision
                  example.org/project=llm
Containers:
  pytorch:
    Image:         registry.example.org/train:2.5
    Image ID:      docker-pullable://x
"""
PARSABLE = b"JobID|User|Cluster|State\n1234|anna|alps|FAILED\n1234.0||alps|FAILED\n"
SPEC = b'kind: Pod\nspec:\n  containers:\n  - image: "nvcr.io/nvidia/pytorch:24.10-py3"\n    name: x\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SCONTROL, {"partition": ("a100",), "project": ("llm",), "qos": ("normal",), "user": ("anna",)}),
        (SACCT, {"partition": ("a100",), "project": ("llm",)}),
        (PARSABLE, {"cluster": ("alps",), "user": ("anna",)}),
        (
            DESCRIBED,
            {
                "image": ("registry.example.org/train:2.5",),
                "namespace": ("vision",),
                "project": ("llm",),
                "team": ("vision",),
            },
        ),
        (SPEC, {"image": ("nvcr.io/nvidia/pytorch:24.10-py3",)}),
        (b"+ export SLURM_JOB_PARTITION=h100\nstep 1 loss 2.0\n", {"partition": ("h100",)}),
        (b"loaded image: train:2 with Account=llm\nepoch JobID 7\n", {}),
        (b"SLURM_JOB_USER=root\nUserId=root(0)\n", {}),
    ],
)
def test_each_source_of_facts(text: bytes, expected: dict[str, tuple[str, ...]]) -> None:
    """Each form of output gives its facts; words that only resemble one give none."""
    assert find_facts([], [text]) == expected


def test_jobs_of_others_in_a_table_say_nothing() -> None:
    """Of a table with several jobs only what all share is a fact; a value that sacct cut off is none."""
    table = b"JobID|User|Account|Partition\n1|anna|llm|a100\n2|ben|llm|a100\n"
    assert find_facts([], [table]) == {"partition": ("a100",), "project": ("llm",)}
    assert find_facts([], [b"JobID|User|Account\n1|anna|very-lo+\n"]) == {"user": ("anna",)}


def test_the_scheduler_comes_before_variables_and_these_before_the_login() -> None:
    """A better source hides the others; USER is read in dumps only."""
    dump = b"PATH=/bin\nUSER=worker\nSLURM_JOB_USER=ben\n"
    assert find_facts([dump], [SCONTROL])["user"] == ("anna",)
    assert find_facts([dump], [])["user"] == ("ben",)
    assert find_facts([b"PATH=/bin\nUSER=worker\n"], [])["user"] == ("worker",)
    assert find_facts([], [b"SLURM_X=1 USER=worker\n"]) == {}


def test_labels_are_parsed_or_refused() -> None:
    """A name may have several values; a text without value, a strange name or a long value is an error."""
    assert parse_labels(["team=vision", "team=llm", "run=a=b"]) == {"team": ("vision", "llm"), "run": ("a=b",)}
    parse_labels(["a=" + "x" * job_facts.LONGEST_VALUE])
    for wrong in ("team", "team=", "=x", "a b=c", "a=" + "x" * (job_facts.LONGEST_VALUE + 1)):
        with pytest.raises(OptionError, match="label"):
            parse_labels([wrong])
    with pytest.raises(OptionError, match="more than"):
        parse_labels([f"a{number}=b" for number in range(job_facts.MOST_LABELS + 1)])


def test_a_report_has_the_facts_and_a_label_wins(tmp_path: Path) -> None:
    """The diagnosis has what the files say, with a label in place of it, and the report reads back."""
    (tmp_path / "job.txt").write_bytes(SCONTROL)
    (tmp_path / "rank0.log").write_text("[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: torn\n")
    plain = triage.ingest(tmp_path)
    assert plain.job.facts["user"] == ("anna",)
    labelled = triage.ingest(tmp_path, Options(labels=parse_labels(["user=ben", "team=vision"])))
    assert (labelled.job.facts["user"], labelled.job.facts["team"]) == (("ben",), ("vision",))
    assert json_reader.read(json_report.render(labelled)).job.facts == labelled.job.facts
