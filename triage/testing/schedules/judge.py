"""Judge the answer for a drawn job: right, honest or wrong."""

from __future__ import annotations

from typing import Literal

from triage.model import Diagnosis, Finding
from triage.testing.schedules import kinds
from triage.testing.schedules.truth import Truth

SURE = 0.7
Judgement = Literal["right", "honest", "wrong"]


def judge_hang(truth: Truth, diagnosis: Diagnosis) -> Judgement:
    """Return "right" if kind and ranks are, "wrong" if something else is claimed with confidence, else "honest".

    Honest are unknown and inconclusive verdicts without a confident rank, all with a confidence below SURE, symptoms
    that name only ranks that wait, and the right ranks as being behind. Where nothing hangs, all but a confident
    cause is right.
    """
    return judge_root(truth, diagnosis.root_cause)


def judge_root(truth: Truth, root: Finding | None) -> Judgement:
    """Judge the finding to act on, as `judge_hang` does."""
    if root is None:
        return "honest" if truth.is_hang else "right"
    ranks = frozenset(root.ranks)
    if not truth.is_hang:
        is_claim = root.confidence >= SURE and not _is_symptom(truth, root.signature, ranks)
        is_true_then = bool(ranks) and ranks <= truth.allowed and kinds.is_one_of(root.signature, truth.kinds)
        return "wrong" if is_claim and not is_true_then else "right"
    is_rank_right = _are_right(truth, ranks)
    if is_rank_right and (root.signature is None or kinds.is_one_of(root.signature, truth.kinds)):
        return "right"
    if is_rank_right and kinds.is_one_of(root.signature, kinds.BEHIND):
        return "honest"  # the right rank; only how it came there is not seen
    if root.confidence < SURE or _is_symptom(truth, root.signature, ranks):
        return "honest"
    return "wrong" if ranks or root.signature is not None else "honest"


def _are_right(truth: Truth, ranks: frozenset[int]) -> bool:
    if not ranks:
        return truth.may_omit_ranks
    return bool(ranks & truth.guilty) and ranks <= truth.allowed


def _is_symptom(truth: Truth, signature: str | None, ranks: frozenset[int]) -> bool:
    return kinds.is_one_of(signature, kinds.SYMPTOMS) and ranks <= truth.waiting | truth.allowed
