"""Backtraces inside of logs: one fact, with the frame that matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.evidence import extract_text

CORPUS = Path(__file__).parents[1] / "artifacts" / "backtraces"


@pytest.mark.parametrize(
    ("name", "frame", "signal"),
    [
        ("gdb-core-bt", "decode_shard", "SIGSEGV"),
        ("gdb-all-threads", "Cache::evict", "SIGABRT"),
        ("openmpi-segv", "mca_btl_vader_poll", "SIGSEGV"),
        ("systemd-journal", "decode_png", ""),  # the signal stands in the line before, a record of its own,
    ],
)
@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
def test_a_backtrace_is_a_crash(name: str, frame: str, signal: str, prefix: str) -> None:
    """A crash in a log names its frame and signal, behind a rank's prefix too, and then its rank."""
    text = (CORPUS / f"{name}.txt").read_text(encoding="utf-8")
    facts = [
        fact for fact in extract_text("\n".join(prefix + line for line in text.splitlines())) if fact.kind == "crash"
    ]
    assert facts
    assert (facts[0].fields["frame"], facts[0].fields.get("signal", "")) == (frame, signal)
    assert facts[0].fields["crash_signature"].startswith("c-")
    assert facts[0].origin.rank == (3 if prefix else None)


def test_a_look_at_a_living_process_is_no_crash() -> None:
    """Stacks that somebody took of a running process are kept, and are no failure."""
    facts = extract_text((CORPUS / "pstack-live.txt").read_text(encoding="utf-8"))
    assert {fact.kind for fact in facts} <= {"stack", "message"}


def test_interleaved_ranks() -> None:
    """Two ranks that print their stacks at once: each its own."""
    one, other = (
        (CORPUS / f"{name}.txt").read_text(encoding="utf-8").splitlines() for name in ("gdb-core-bt", "gdb-paged")
    )
    lines = []
    for step in range(max(len(one), len(other))):
        lines += [f"[rank{rank}]: {text[step]}" for rank, text in ((0, one), (1, other)) if step < len(text)]
    facts = {fact.origin.rank: fact for fact in extract_text("\n".join(lines)) if fact.kind == "crash"}
    assert {rank: fact.fields["frame"] for rank, fact in facts.items()} == {0: "decode_shard", 1: "reduce_bucket"}
