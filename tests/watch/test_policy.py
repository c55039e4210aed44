"""When a failure is said, and when it is held back."""

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from triage.model.diagnosis import Diagnosis, Finding, Job
from triage.watch.policy import CLEAN, Manners, Policy, Said, key_of

JOB = Job("j", "job", "job")


def diagnosis(signature: str | None, *ranks: int, effects: int = 0) -> Diagnosis:
    """A diagnosis with this root; None is a job that is well."""
    if signature is None:
        return Diagnosis("1", "1", JOB, "clean", None)
    root = Finding(signature or None, signature or "an exception", "cuda", "cause", "fatal", 0.9, ranks)
    others = tuple(
        Finding("torch.store-lost", "x", "torch", "symptom", "error", 0.9, (rank,), count=2) for rank in range(effects)
    )
    return Diagnosis("1", "1", JOB, "known" if signature else "unknown", root, (root, *others))


def test_a_known_failure_is_said_after_a_second() -> None:
    """Not at first sight, for its storm may bring the cause; then once."""
    policy = Policy()
    found = diagnosis("cuda.out-of-memory", 3, effects=2)
    told = [policy.judge(now, now, found, calm=0.0) for now in (0.0, 0.5, 1.0, 1.5, 100.0)]
    assert [news.kind if news else None for news in told] == [None, None, "failure", None, None]


def test_a_failure_that_was_not_one_is_never_said() -> None:
    """An exception that is known to be handled a moment later."""
    policy = Policy()
    assert policy.judge(0.0, 0.0, diagnosis("cuda.out-of-memory", 3), calm=0.0) is None
    assert policy.judge(5.0, 5.0, diagnosis(None), calm=5.0) is None
    assert not policy.failed


def test_an_unknown_exception_alone_waits_until_its_rank_is_heard_no_more() -> None:
    """While steps follow it nothing is said; without them it is said after `alone`."""
    policy, found = Policy(), diagnosis("", 3)
    assert not any(policy.judge(float(now), 0.0, found, calm=0.0, busy=True) for now in range(60))
    assert not any(policy.judge(float(now), 0.0, found, calm=0.0) for now in range(3))
    assert policy.judge(30.0, 0.0, found, calm=30.0) is not None


def test_an_earlier_run_is_not_repeated() -> None:
    """What was said before a restart of the watch is not said again."""
    found = diagnosis("cuda.out-of-memory", 3)
    policy = Policy(said={0: Said(key_of(found))})
    assert policy.failed
    assert policy.judge(0.0, 0.0, found, calm=100.0, final=True) is None


def test_what_may_not_have_been_told_is_told_as_the_same_message() -> None:
    """Killed while it told: the failure is said again, with the time of its first saying; a job that went on instead
    takes it back.
    """
    found = diagnosis("cuda.out-of-memory", 3)
    for now_is, kind in ((found, "failure"), (diagnosis(None), "recovered")):
        policy = Policy()
        policy.recall({0: Said(key_of(found), 0, 77.0)}, {0})
        news = policy.judge(10.0, 88.0, now_is, calm=10.0, since=5.0)
        assert news is not None
        assert (news.kind, policy.said[0].first) == (kind, 77.0)


@given(
    st.lists(st.tuples(st.sampled_from((None, "a.a", "b.b", "c.c")), st.integers(0, 3), st.floats(0, 40)), max_size=80)
)
def test_never_more_than_two_revisions(looks: list[tuple[str | None, int, float]]) -> None:
    """Whatever the diagnoses say one after the other: after a failure at most two revisions, and no news that repeats
    the one before.
    """
    policy, now, told = Policy(Manners()), 0.0, []
    for signature, rank, passed in looks:
        now += passed
        news = policy.judge(now, now, diagnosis(signature, rank), calm=passed, idle=passed)
        told += [news] if news else []
    kinds = "".join(news.kind[:3] + " " for news in told)
    assert re.fullmatch(r"(fai (rev ){0,2}(rec |$))*", kinds)
    keys = [key_of(news.diagnosis) if news.diagnosis else CLEAN for news in told]
    assert all(one != other for one, other in itertools.pairwise(keys))


def test_what_the_job_got_over_once_is_not_said_again_while_it_goes_on() -> None:
    """The same handled error a second time: only when nothing follows it any more."""
    policy, found = Policy(), diagnosis("cuda.out-of-memory", 3)
    told = [
        policy.judge(0.0, 0.0, found, calm=0.0),
        policy.judge(2.0, 0.0, found, calm=2.0),
        policy.judge(20.0, 0.0, diagnosis(None), calm=20.0),
    ]
    assert [news.kind if news else None for news in told] == [None, "failure", "recovered"]
    assert not any(policy.judge(30.0 + now, 0.0, found, calm=1.0, idle=1.0) for now in range(100))
    assert policy.judge(140.0, 0.0, found, calm=16.0, idle=16.0) is not None
