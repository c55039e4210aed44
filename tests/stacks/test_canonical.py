"""Stacks as text and back."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.stacks import canonical
from triage.stacks.model import Frame, Stacks, Thread

TEXT = st.text(max_size=20)
NUMBER = st.none() | st.integers(0, 1 << 63)
FRAMES = st.builds(Frame, TEXT, TEXT, NUMBER, NUMBER, TEXT, st.none() | st.integers(0, 9999), TEXT, NUMBER, TEXT)
THREADS = st.builds(
    Thread,
    st.lists(FRAMES, max_size=3).map(tuple),
    TEXT,
    st.none() | st.integers(0, 1 << 22),
    NUMBER,
    TEXT,
    TEXT,
    st.booleans(),
)
STACKS = st.builds(
    Stacks,
    st.sampled_from(["gdb", "c10"]),
    st.lists(THREADS, max_size=3).map(tuple),
    TEXT,
    st.none() | st.integers(-6, 128),
    NUMBER,
    TEXT,
    TEXT,
)


@given(STACKS)
def test_what_is_written_is_read(stacks: Stacks) -> None:
    """Nothing is lost on the way through text."""
    assert canonical.read(canonical.write(stacks)) == stacks


@pytest.mark.parametrize(
    "text", ["", "triage stacks 1\n", "triage stacks 1\nprocess form=1x", 'triage stacks 1\nprocess form="a"\nfoo']
)
def test_damage_has_a_line(text: str) -> None:
    """What is damaged says where."""
    with pytest.raises(canonical.StacksError) as caught:
        canonical.read(text)
    assert caught.value.line


@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    """Damage is an error of ours, never another."""
    with contextlib.suppress(canonical.StacksError):
        assert canonical.read("triage stacks 1\nprocess " + text).form
