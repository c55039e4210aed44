"""triage.ranks.splitting.automaton"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from triage.ranks.splitting.automaton import ANY_DIGIT, LONGEST, Automaton

STEPS = st.lists(st.sampled_from([*b"ab1[", ANY_DIGIT]), min_size=1, max_size=5)


def matches(path: list[int], line: bytes) -> bool:
    return len(line) >= len(path) and all(
        byte in b"0123456789" if step == ANY_DIGIT else byte == step for step, byte in zip(path, line, strict=False)
    )


@given(st.lists(STEPS, max_size=8), st.lists(st.text("ab12[", max_size=8).map(str.encode), max_size=20))
def test_the_longest_known_prefix_is_found(paths: list[list[int]], lines: list[bytes]) -> None:
    """Exactly as trying each known prefix would, for all that could be learned."""
    automaton = Automaton()
    known = {index: path for index, path in enumerate(paths) if automaton.add(path, index)}
    data = b"".join(line + b"\n" for line in lines) + bytes(LONGEST + 1)
    starts = np.cumsum([0, *(len(line) + 1 for line in lines)])[:-1].astype(np.int32)
    entry, end = automaton.run(np.frombuffer(data, np.uint8), starts)
    for line, start, index, stop in zip(lines, starts.tolist(), entry.tolist(), end.tolist(), strict=True):
        longest = max((path for path in known.values() if matches(path, line)), key=len, default=None)
        assert (index >= 0) == (longest is not None)
        if longest is not None:
            assert known[index] == longest or matches(known[index], line)
            assert stop - start == len(longest)


def test_the_same_prefix_twice_is_one() -> None:
    """Learning it again is no conflict; learning another meaning for it is."""
    automaton = Automaton()
    assert automaton.add([*b"[a]"], 0)
    assert automaton.add([*b"[a]"], 0)
    assert not automaton.add([*b"[a]"], 1)
