"""The backtraces of tests/artifacts/backtraces, with the values that must be read (expected.tsv)."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.stacks.forms import FORMS
from triage.stacks.model import Stacks
from triage.stacks.parser import parse_stacks
from triage.stacks.signature import reduce_stacks

CORPUS = Path(__file__).parents[1] / "artifacts" / "backtraces"
EXPECTED = {
    row[0]: row[1:]
    for row in (
        line.split("\t")
        for line in (CORPUS / "expected.tsv").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
}


def read(name: str) -> Stacks:
    """Return the first stacks of a sample."""
    stacks = parse_stacks((CORPUS / f"{name}.txt").read_text(encoding="utf-8"))
    assert stacks, "nothing was values"
    return stacks[0]


@pytest.mark.parametrize("name", EXPECTED)
def test_sample(name: str) -> None:
    """Form, threads, frames of the crashed thread, signal, kind and crash frame of a sample are as expected."""
    form, threads, frames, signal, kind, frame = EXPECTED[name]
    stacks = read(name)
    crash = reduce_stacks(stacks)
    shown = crash.thread or stacks.threads[0]
    crash_ = (stacks.form, str(len(stacks.threads)), str(len(shown.frames)), stacks.signal or "-")
    assert crash_ == (form, threads, frames, signal)
    assert (crash.kind if kind != "-" else "-", crash.frames[0] if crash.frames else "-") == (kind, frame)


@pytest.mark.parametrize("prefix", ["[rank7]: ", "(Worker pid=90125) ", "worker-3  | "])
@pytest.mark.parametrize(
    "name", [name for name in EXPECTED if EXPECTED[name][0] not in ("jvm", "hs-err", "paddle", "memcheck")]
)
def test_prefix_changes_nothing(name: str, prefix: str) -> None:
    """A sample with the prefix of a launcher gives the same stacks."""
    text = (CORPUS / f"{name}.txt").read_text(encoding="utf-8")
    plain, prefixed = parse_stacks(text), parse_stacks("\n".join(prefix + line for line in text.splitlines()))
    if "[rank" in text or "pid=" in text:
        return
    assert [stacks.threads for stacks in prefixed] == [stacks.threads for stacks in plain]


def test_corpus_covers_every_form() -> None:
    """The corpus has at least sixty samples, and one for each form."""
    assert len(EXPECTED) >= 60
    assert {path.stem for path in CORPUS.glob("*.txt")} == set(EXPECTED)
    assert {row[0] for row in EXPECTED.values()} == {form.name for form in FORMS}
