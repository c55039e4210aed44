"""A diagnosis is judged by what the files of its job allow to be known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triage.model import Diagnosis, Finding, Job, Verdict
from triage.testing.composer import judge
from triage.testing.composer.model import Expected

EXPECTED = Expected(
    verdicts=frozenset({"known"}),
    roots=frozenset({"cuda.out-of-memory"}),
    ranks=frozenset({3}),
    hosts=frozenset({"node2.example.org"}),
    true_ranks=frozenset({3}),
    true_hosts=frozenset({"node2.example.org"}),
    all_ranks=frozenset(range(8)),
    all_hosts=frozenset({"node1", "node2.example.org"}),
    host_names={"train-worker-1": "node2.example.org"},
)


def diagnosis(verdict: Verdict, root: Finding | None = None, **more: object) -> Diagnosis:
    return Diagnosis("1", "1", Job("j", "j", "j"), verdict, root, **more)  # type: ignore[arg-type]


def finding(signature: str | None = "cuda.out-of-memory", **parts: object) -> Finding:
    values = {"ranks": (3,), "hosts": ("node2",), **parts}
    return Finding(signature, "title", "cuda", "cause", "fatal", 0.9, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parts", "right"),
    [
        ({}, (True, True, True)),
        ({"signature": "host.sigkill"}, (False, True, True)),
        ({"ranks": (2, 3)}, (True, False, True)),
        ({"hosts": ("train-worker-1",)}, (True, True, True)),
        ({"hosts": ("node1",)}, (True, True, False)),
    ],
)
def test_each_part_is_judged_alone(parts: dict[str, object], right: tuple[bool, ...]) -> None:
    """Root, ranks and hosts are right or wrong independently; domains and names of pods do not matter."""
    made = judge(EXPECTED, diagnosis("known", finding(**parts)))
    assert (made.root, made.ranks, made.hosts) == right
    assert (made.verdict, made.claims_root, made.confidence) == (True, True, 0.9)


def test_unknown_ranks_may_be_left_out_but_not_be_wrong() -> None:
    """Where the files do not show the rank, none and the true one are not counted; another one is wrong."""
    hidden = replace(EXPECTED, ranks=None, hosts=None)
    answers = [judge(hidden, diagnosis("known", finding(ranks=ranks))).ranks for ranks in ((), (3,), (4,))]
    assert answers == [None, None, False]


def test_what_is_nobody_s_may_be_everybody_s() -> None:
    """Where no rank is at fault, all ranks count as right as well, but not some."""
    nobody = replace(EXPECTED, ranks=frozenset(), true_ranks=frozenset())
    answers = [judge(nobody, diagnosis("known", finding(ranks=ranks))).ranks for ranks in ((), tuple(range(8)), (3,))]
    assert answers == [True, True, False]
    hidden = replace(nobody, ranks=None)
    answers = [judge(hidden, diagnosis("known", finding(ranks=ranks))).ranks for ranks in ((), tuple(range(8)), (3,))]
    assert answers == [None, None, False]


def test_independent_failures_are_judged_together() -> None:
    """The ranks of failures alongside the root count with those of the root."""
    both = replace(EXPECTED, ranks=frozenset({3, 5}), true_ranks=frozenset({3, 5}))
    second = finding(None, cluster="u-5", ranks=(5,))
    root = finding(alongside=("u-5",))
    assert judge(both, diagnosis("known", root, unknown=(second,))).ranks is True
    assert judge(both, diagnosis("known", finding(), unknown=(second,))).ranks is False


def test_a_healthy_job_must_be_clean() -> None:
    """Any other verdict is wrong; and a failed job that is called clean is wrong."""
    healthy = replace(EXPECTED, verdicts=frozenset({"clean"}))
    assert judge(healthy, diagnosis("clean")).root
    assert not judge(healthy, diagnosis("known", finding())).verdict
    assert not judge(EXPECTED, diagnosis("clean")).root


def test_a_job_is_right_where_nothing_is_wrong() -> None:
    """What nobody can know does not count; a wrong host does."""
    assert judge(EXPECTED, diagnosis("known", finding())).is_right
    assert judge(replace(EXPECTED, ranks=None, hosts=None), diagnosis("known", finding(ranks=(), hosts=()))).is_right
    assert not judge(EXPECTED, diagnosis("known", finding(hosts=("node1",)))).is_right
