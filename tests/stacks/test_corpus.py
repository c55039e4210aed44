"""The written backtraces of tests/artifacts/backtraces: every form, with what must be read out of it (expected.tsv)."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.stacks import FORMS, Stacks, canonical, parse, reduce

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
    stacks = parse((CORPUS / f"{name}.txt").read_text(encoding="utf-8"))
    assert stacks, "nothing was found"
    return stacks[0]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_is_read(name: str) -> None:
    """Form, threads, frames of the crashed thread, signal, kind and crash frame are those that a person reads there."""
    form, threads, frames, signal, kind, frame = EXPECTED[name]
    stacks = read(name)
    crash = reduce(stacks)
    shown = crash.thread or stacks.threads[0]
    found = (stacks.form, str(len(stacks.threads)), str(len(shown.frames)), stacks.signal or "-")
    assert found == (form, threads, frames, signal)
    assert (crash.kind if kind != "-" else "-", crash.frames[0] if crash.frames else "-") == (kind, frame)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_printed_is_read_again(name: str) -> None:
    """parse → print → parse changes nothing, for every stack in a sample."""
    for stacks in parse((CORPUS / f"{name}.txt").read_text(encoding="utf-8")):
        assert canonical.read(canonical.write(stacks)) == stacks


@pytest.mark.parametrize("prefix", ["[rank7]: ", "(Worker pid=90125) ", "worker-3  | "])
@pytest.mark.parametrize(
    "name", [name for name in EXPECTED if EXPECTED[name][0] not in ("jvm", "hs-err", "paddle", "memcheck")]
)
def test_a_prefix_changes_nothing(name: str, prefix: str) -> None:
    """The same stacks come out behind the prefix of a launcher."""
    text = (CORPUS / f"{name}.txt").read_text(encoding="utf-8")
    plain, behind = parse(text), parse("\n".join(prefix + line for line in text.splitlines()))
    if "[rank" in text or "pid=" in text:
        return
    assert [stacks.threads for stacks in behind] == [stacks.threads for stacks in plain]


def test_the_corpus_covers_every_form() -> None:
    """At least sixty samples; no form goes without one."""
    assert len(EXPECTED) >= 60
    assert {path.stem for path in CORPUS.glob("*.txt")} == set(EXPECTED)
    assert {row[0] for row in EXPECTED.values()} == {form.name for form in FORMS}
