"""triage.split.prefix_automaton"""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from triage.split.prefix_automaton import ANY_DIGIT, LONGEST_PREFIX, PrefixAutomaton

STEPS = st.lists(st.sampled_from([*b"ab1[", ANY_DIGIT]), min_size=1, max_size=5)


def matches(prefix: list[int], line: bytes) -> bool:
    return len(line) >= len(prefix) and all(
        byte in b"0123456789" if step == ANY_DIGIT else byte == step for step, byte in zip(prefix, line, strict=False)
    )


@given(st.lists(STEPS, max_size=8), st.lists(st.text("ab12[", max_size=8).map(str.encode), max_size=20))
def test_the_longest_known_prefix_is_found(prefixes: list[list[int]], lines: list[bytes]) -> None:
    """It finds what a search with each known prefix finds."""
    automaton = PrefixAutomaton()
    known = {index: prefix for index, prefix in enumerate(prefixes) if automaton.add(prefix, index)}
    data = b"".join(line + b"\n" for line in lines) + bytes(LONGEST_PREFIX + 1)
    starts = np.cumsum([0, *(len(line) + 1 for line in lines)])[:-1].astype(np.int32)
    entry, end = automaton.run(np.frombuffer(data, np.uint8), starts)
    for line, start, index, stop in zip(lines, starts.tolist(), entry.tolist(), end.tolist(), strict=True):
        longest = max((prefix for prefix in known.values() if matches(prefix, line)), key=len, default=None)
        assert (index >= 0) == (longest is not None)
        if longest is not None:
            assert known[index] == longest or matches(known[index], line)
            assert stop - start == len(longest)


def test_adding_a_prefix_twice_is_no_conflict() -> None:
    """A prefix can be added again with the same entry, not with another one."""
    automaton = PrefixAutomaton()
    assert automaton.add([*b"[a]"], 0)
    assert automaton.add([*b"[a]"], 0)
    assert not automaton.add([*b"[a]"], 1)
