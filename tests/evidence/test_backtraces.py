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


@pytest.mark.parametrize(
    "head",
    [
        "==344==WARNING: MemorySanitizer: use-of-uninitialized-value",
        "==344==ERROR: AddressSanitizer: heap-use-after-free on address 0x60 at pc 0x7f\nSCARINESS: 26 (read)",
        "==344==ERROR: LeakSanitizer: detected memory leaks\n\nDirect leak of 32 byte(s) in 1 object(s)",
    ],
)
def test_every_sanitizer_names_its_crash_point(head: str) -> None:
    """Two findings of one kind in two functions are two failures."""
    frames = (
        "\n    #0 0x55d9e5b2f89e in {}(float) /app/r.cpp:27:7\n    #1 0x55afb50a6f0b in a::main() /app/i.cpp:163:12\n"
    )
    points = {extract_text(head + frames.format(name))[0].fields["crash_point"] for name in ("a::pack", "a::fill")}
    assert len(points) == 2


@pytest.mark.parametrize(
    "head",
    [
        "Invalid __global__ read of size 4",
        "Uninitialized __global__ memory read of size 4",
        "Barrier error detected. Divergent thread(s) in block",
    ],
)
def test_findings_of_compute_sanitizer_name_their_kernel(head: str) -> None:
    """A record without a number in its frames, whatever it reports."""
    text = f"========= {head}\n=========     at {{}}(float *)+0x1f0 in /a/g.cu:37\n=========     by thread (32,0,0)\n"
    points = {extract_text(text.format(name))[0].fields["crash_point"] for name in ("tile", "scan")}
    assert len(points) == 2
