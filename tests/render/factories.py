"""Diagnoses to render: one of each verdict, and any by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from triage.model.diagnosis import (
    Diagnosis,
    FinalLine,
    Finding,
    Inconclusive,
    Job,
    Moment,
    RankState,
    Remediation,
    Stats,
)
from triage.model.evidence import Evidence, Origin, Warning

NOON = 1_763_694_000.0  # 2025-11-21 03:00:00 UTC


def evidence(text: str, rank: int | None = 1, **more: object) -> Evidence:
    """Return one line of /jobs/7/job.log, written by a rank of node1."""
    values: dict[str, object] = {"source": "/jobs/7/job.log", "line": 61, "end_line": 61, **more}
    origin = Origin(rank=rank, host="node1", time=NOON + 26)
    return Evidence(kind="exception", component="", text=text, origin=origin, offset=0, **values)  # type: ignore[arg-type]


CAUSE = Finding(
    signature="data.worker-killed",
    title="DataLoader worker was killed",
    domain="data",
    role="cause",
    severity="fatal",
    confidence=0.9,
    ranks=(1,),
    hosts=("node1",),
    first_time=NOON + 26,
    revision=1,
    fingerprint="f00d",
    why=("It is the first line in time.", "explains gloo.connection-closed-by-peer"),
    captures={"pid": "20274"},
    evidence=(evidence("RuntimeError: DataLoader worker (pid 20274) is killed by signal: Killed."),),
    remediation=Remediation(
        "Give the job more host memory.",
        ("free -g", "num_workers=2"),
        ("https://github.com/pytorch/pytorch/issues/8976",),
    ),
)
ECHO = Finding(
    signature="gloo.connection-closed-by-peer",
    title="A Gloo peer closed its connection",
    domain="gloo",
    role="symptom",
    severity="error",
    confidence=0.9,
    ranks=(0,),
    count=2,
    explained_by=("data.worker-killed",),
)
SECOND_ECHO = Finding(
    "launch.child-failed",
    "A child failed",
    "launch",
    "symptom",
    "error",
    0.5,
    explained_by=("gloo.connection-closed-by-peer",),
)
LOST = Finding("host.oom", "Out of host memory", "host", "either", "fatal", 0.5, why=("No line shows it.",))
NOISE = Finding("nccl.advice", "Advice", "nccl", "noise", "info", 0.5, count=3)
UNKNOWN = Finding(
    None,
    "ValueError: shard 7 is bad",
    "unknown",
    "cause",
    "error",
    0.0,
    ranks=(3,),
    cluster="u-7f3a9c",
    evidence=(evidence("ValueError: shard 7 is bad", 3),),
)
JOB = Job("j-1", "llama", "/jobs/7", 2, (0, 1), {"node1": (0, 1)}, NOON, NOON + 60, {"torch": "2.6.0"})
STATES = (RankState(0, "node1", "failed", 3, NOON + 27), RankState(1, "node1", "killed", 3, NOON + 26))
KNOWN = Diagnosis(
    tool_version="0.1.0",
    catalog_version="2026.11.1",
    job=JOB,
    verdict="known",
    root_cause=CAUSE,
    findings=(CAUSE, ECHO, SECOND_ECHO, LOST, NOISE),
    unknown=(UNKNOWN,),
    timeline=(
        Moment(NOON + 26, 1, "killed", "data.worker-killed"),
        Moment(NOON + 27, 0, "closed", "gloo.connection-closed-by-peer"),
    ),
    ranks=STATES,
    warnings=(Warning("truncated-archive", "/jobs/7/a.tar", "ends early"),),
    stats=Stats(12, 3_100_000, 5, 0.4, 1 << 20),
)
UNKNOWN_ROOT = Diagnosis("0.1.0", "2026.11.1", JOB, "unknown", UNKNOWN, (), (UNKNOWN,), stats=Stats(1, 10))
SUSPECTS = Finding(
    None,
    "Symptoms only",
    "unknown",
    "symptom",
    "fatal",
    0.3,
    ranks=(2,),
    why=("All others wait.", "To find the cause next time: keep the log of every rank; run py-spy"),
    evidence=(evidence("timeout", 0),),
)
SYMPTOMS = Diagnosis("0.1.0", "2026.11.1", JOB, "unknown", SUSPECTS, (ECHO,))
CLEAN = Diagnosis("0.1.0", "2026.11.1", JOB, "clean", None, (ECHO,), stats=Stats(files=3))
INCONCLUSIVE = Diagnosis(
    "0.1.0",
    "2026.11.1",
    JOB,
    "inconclusive",
    None,
    (ECHO,),
    stats=Stats(files=3),
    inconclusive=Inconclusive(
        why=("No line says that the job finished", "Rank 3 stopped first, at 10:00:03, 12 s before the others"),
        last_lines=(
            FinalLine(3, "/jobs/7/rank3.log", 299, 1_795_230_465.0, "step 299 loss 2.1"),
            FinalLine(None, "/jobs/7/console.log", None, None, "step 300 loss 2.0"),
        ),
        unusual_lines=(FinalLine(3, "/jobs/7/rank3.log", 298, None, "plink plonk 77"),),
        looked_for=("12 signatures of the catalog",),
        next_steps=("Add the output of the launcher",),
    ),
)
ALL = (KNOWN, UNKNOWN_ROOT, SYMPTOMS, INCONCLUSIVE, CLEAN)

NASTY = (
    "\x00\x07\x08\t\r\n\x1b[]\x7f\x85\x9b\u061c\u200b\u200e\u2028"
    "\u202e\u2066\ufeff`*_<>&@#!|~$\\-+=1.):/中é\u0301😀\U000e0041"
)
texts = st.text(st.one_of(st.sampled_from(NASTY), st.characters(codec="utf-8")), max_size=60)
times = st.none() | st.integers(0, 4_000_000_000_000_000).map(lambda count: count / 1_000_000)
numbers = st.none() | st.integers(0, 100_000)
ranks = st.lists(st.integers(0, 99_999), max_size=5).map(tuple)
several = st.lists(texts, max_size=3).map(tuple)
named = st.dictionaries(texts, texts, max_size=3)
signatures = st.none() | st.sampled_from(["cuda.out-of-memory", "nccl.remote-error", "host.oom"])


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    """What the contract carries of an evidence, and nothing else."""
    rank = draw(numbers)
    origin = Origin(
        rank=rank,
        local_rank=None if rank is not None else draw(numbers),
        host=draw(st.none() | texts),
        time=draw(times),
    )
    return Evidence(draw(texts), "", draw(texts), origin, draw(texts), 0, line=draw(numbers), end_line=draw(numbers))


findings = st.builds(
    Finding,
    signature=signatures,
    title=texts,
    domain=texts,
    role=st.sampled_from(["cause", "symptom", "either", "confirmation", "noise"]),
    severity=st.sampled_from(["fatal", "error", "warning", "info"]),
    confidence=st.floats(0, 1),
    ranks=ranks,
    hosts=several,
    count=st.integers(1, 10**9),
    first_time=times,
    revision=numbers,
    fingerprint=st.none() | texts,
    cluster=st.none() | texts,
    explained_by=st.lists(signatures.filter(bool), max_size=2).map(tuple),
    why=several,
    captures=named,
    evidence=st.lists(evidences(), max_size=3).map(tuple),
    remediation=st.builds(Remediation, texts, several, several),
)
unknowns = st.builds(
    Finding,
    signature=st.none(),
    title=texts,
    domain=st.just("unknown"),
    role=st.just("cause"),
    severity=st.just("error"),
    confidence=st.just(0.0),
    ranks=ranks,
    count=st.integers(1, 99),
    cluster=st.none() | texts,
    evidence=st.lists(evidences(), max_size=2).map(tuple),
)
states = st.builds(
    RankState,
    st.integers(0, 99_999),
    st.none() | texts,
    st.sampled_from(["failed", "stalled", "killed", "ok", "silent", "unclear"]),
    numbers,
    times,
)
jobs = st.builds(
    Job, texts, texts, texts, numbers, ranks, st.dictionaries(texts, ranks, max_size=2), times, times, named
)
final_lines = st.lists(st.builds(FinalLine, numbers, texts, numbers, times, texts), max_size=2).map(tuple)
diagnoses = st.builds(
    Diagnosis,
    tool_version=texts,
    catalog_version=texts,
    job=jobs,
    verdict=st.sampled_from(["known", "unknown", "inconclusive", "clean"]),
    root_cause=st.none() | findings,
    findings=st.lists(findings, max_size=3).map(tuple),
    unknown=st.lists(unknowns, max_size=2).map(tuple),
    timeline=st.lists(st.builds(Moment, times, numbers, texts, signatures), max_size=4).map(tuple),
    ranks=st.lists(states, max_size=5).map(tuple),
    warnings=st.lists(st.builds(Warning, texts, st.none() | texts, texts), max_size=3).map(tuple),
    stats=st.builds(
        Stats,
        st.integers(0, 10**6),
        st.integers(0, 10**15),
        st.integers(0, 10**9),
        st.floats(0, 1e6),
        st.integers(0, 10**12),
    ),
    inconclusive=st.none() | st.builds(Inconclusive, several, final_lines, final_lines, several, several),
)
