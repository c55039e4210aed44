"""When a failure is reported, and when it is held back."""

from __future__ import annotations

import itertools
import re

from hypothesis import given, strategies as st

from triage.model.diagnosis import Diagnosis, Finding, Job
from triage.watch.policy import CLEAN, Announcement, NotificationTiming, Policy, cause_key

JOB = Job("j", "job", "job")


def diagnosis(signature: str | None, *ranks: int, effects: int = 0) -> Diagnosis:
    """Return a diagnosis with this root cause; None stands for a healthy job."""
    if signature is None:
        return Diagnosis("1", "1", JOB, "clean", None)
    root = Finding(signature or None, signature or "an exception", "cuda", "cause", "fatal", 0.9, ranks)
    others = tuple(
        Finding("torch.store-lost", "x", "torch", "symptom", "error", 0.9, (rank,), count=2) for rank in range(effects)
    )
    return Diagnosis("1", "1", JOB, "known" if signature else "unknown", root, (root, *others))


def test_a_known_failure_is_reported_once_after_a_second() -> None:
    """It is not reported at once, because lines that follow may show the cause."""
    policy = Policy()
    failure = diagnosis("cuda.out-of-memory", 3, effects=2)
    events = [policy.decide(now, now, failure, calm=0.0) for now in (0.0, 0.5, 1.0, 1.5, 100.0)]
    assert [event.kind if event else None for event in events] == [None, None, "failure", None, None]


def test_a_handled_exception_is_not_reported() -> None:
    """The diagnosis is clean again before the failure is due."""
    policy = Policy()
    assert policy.decide(0.0, 0.0, diagnosis("cuda.out-of-memory", 3), calm=0.0) is None
    assert policy.decide(5.0, 5.0, diagnosis(None), calm=5.0) is None
    assert not policy.has_failed


def test_an_unknown_exception_of_one_rank_waits_while_steps_follow() -> None:
    """It is reported `isolated_wait` seconds after the steps end."""
    policy, failure = Policy(), diagnosis("", 3)
    assert not any(policy.decide(float(now), 0.0, failure, calm=0.0, busy=True) for now in range(60))
    assert not any(policy.decide(float(now), 0.0, failure, calm=0.0) for now in range(3))
    assert policy.decide(30.0, 0.0, failure, calm=30.0) is not None


def test_a_report_of_an_earlier_run_is_not_repeated() -> None:
    """A failure that was reported before a restart is not reported again."""
    failure = diagnosis("cuda.out-of-memory", 3)
    policy = Policy(announced={0: Announcement(cause_key(failure))})
    assert policy.has_failed
    assert policy.decide(0.0, 0.0, failure, calm=100.0, final=True) is None


def test_an_unconfirmed_report_is_repeated_as_the_same_message() -> None:
    """After a kill during a report the failure keeps the time of its first report; a recovery withdraws it."""
    failure = diagnosis("cuda.out-of-memory", 3)
    for current, kind in ((failure, "failure"), (diagnosis(None), "recovered")):
        policy = Policy()
        policy.restore({0: Announcement(cause_key(failure), 0, 77.0)}, {0})
        event = policy.decide(10.0, 88.0, current, calm=10.0, since=5.0)
        assert event is not None
        assert (event.kind, policy.announced[0].first_at) == (kind, 77.0)


@given(
    st.lists(st.tuples(st.sampled_from((None, "a.a", "b.b", "c.c")), st.integers(0, 3), st.floats(0, 40)), max_size=80)
)
def test_never_more_than_two_revisions(looks: list[tuple[str | None, int, float]]) -> None:
    """For any sequence of diagnoses, a failure has at most two revisions and no event repeats the one before."""
    policy, now, events = Policy(NotificationTiming()), 0.0, []
    for signature, rank, passed in looks:
        now += passed
        event = policy.decide(now, now, diagnosis(signature, rank), calm=passed, idle=passed)
        events += [event] if event else []
    kinds = "".join(event.kind[:3] + " " for event in events)
    assert re.fullmatch(r"(fai (rev ){0,2}(rec |$))*", kinds)
    keys = [cause_key(event.diagnosis) if event.diagnosis else CLEAN for event in events]
    assert all(one != other for one, other in itertools.pairwise(keys))


def test_a_failure_that_the_job_recovered_from_is_not_reported_again_while_it_runs() -> None:
    """The same handled error a second time is reported only when no lines follow it."""
    policy, failure = Policy(), diagnosis("cuda.out-of-memory", 3)
    events = [
        policy.decide(0.0, 0.0, failure, calm=0.0),
        policy.decide(2.0, 0.0, failure, calm=2.0),
        policy.decide(20.0, 0.0, diagnosis(None), calm=20.0),
    ]
    assert [event.kind if event else None for event in events] == [None, "failure", "recovered"]
    assert not any(policy.decide(30.0 + now, 0.0, failure, calm=1.0, idle=1.0) for now in range(100))
    assert policy.decide(140.0, 0.0, failure, calm=16.0, idle=16.0) is not None
