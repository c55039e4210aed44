"""How sure an inference is that names another explanation, or that other evidence contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from diagnose.factories import candidate, fact, unknown_failure
from triage.diagnose.candidates import Candidate
from triage.diagnose.confidence import GUESS, OTHER_STORY, rate_confidence
from triage.evidence.inference import make_inferences
from triage.model.details import Basis, ExitDetail
from triage.model.evidence import Evidence


def inferred(ranks: Sequence[int], kind: str = "message", uncertainty: str = "") -> tuple[Candidate, list[Evidence]]:
    """Return a cause that follows from this kind of evidence, and its inferences."""
    inferences = make_inferences(
        "lagging-rank", ranks, f"ranks {ranks} lag", fact("x", kind=kind), uncertainty=uncertainty
    )
    cause = candidate("torch.lagging-rank")
    return Candidate(cause.signature, None, inferences), inferences


@pytest.mark.parametrize(("uncertainty", "is_sure"), [("", True), ("either may be wrong", False)])
def test_an_inference_with_another_explanation_is_not_sure(uncertainty: str, *, is_sure: bool) -> None:
    """It says which explanation, and its confidence stays below 0.7."""
    root, _ = inferred([2], uncertainty=uncertainty)
    assert (rate_confidence(root, (), [root]) > OTHER_STORY) == is_sure
    assert any(uncertainty in why for why in root.why) or not uncertainty


@pytest.mark.parametrize(
    ("kind", "ranks", "sentence"),
    [
        ("flight", [3], "The dumps and the watchdog lines do not agree; the lines say: Ranks [3] lag"),
        ("stack", [3], "The stacks and the watchdog lines do not agree; the lines say: Ranks [3] lag"),
        ("message", [3], "Weaker evidence points to rank 3 instead: Ranks [3] lag"),
        ("flight", [2, 3], ""),
        ("flight", [], ""),
    ],
)
def test_other_evidence_that_names_other_ranks_lowers_the_confidence(
    kind: str, ranks: Sequence[int], sentence: str
) -> None:
    """The report says what each shows; where both name a rank they agree, and evidence that names none fits any."""
    root, _ = inferred([2], kind)
    alone = rate_confidence(inferred([2], kind)[0], (), [root])
    _, lines = inferred(ranks)
    confidence = rate_confidence(root, (), [root], [("open-calls", lines)])
    assert (sentence in root.why) == bool(sentence)
    assert (confidence <= OTHER_STORY) == bool(sentence)
    assert (confidence == alone) == (not sentence)


@pytest.mark.parametrize(("uncertainty", "is_sure"), [("", False), ("either may be wrong", True)])
def test_certain_lines_that_contradict_confirmed_dumps_cap_the_confidence(uncertainty: str, *, is_sure: bool) -> None:
    """However many sources confirm the dump; lines with another explanation do not cap it."""
    root, _ = inferred([2], "flight")
    exits = [fact("exitcode 1", 2, kind="exit", detail=ExitDetail(1)), fact("x", 2), fact("y", 3)]
    effect = candidate("crash.abort", "symptom")
    effect = Candidate(effect.signature, None, exits, explained_by=["torch.lagging-rank"])
    _, lines = inferred([3], uncertainty=uncertainty)
    assert (rate_confidence(root, (), [root, effect], [("open-calls", lines)]) > OTHER_STORY) == is_sure


@pytest.mark.parametrize(("basis", "most"), [("measured", OTHER_STORY), ("absence", GUESS)])
def test_what_only_silence_suggests_is_a_guess_beside_another_story(basis: Basis, most: float) -> None:
    """However many sources confirm it: the other explanation is as likely."""
    inferences = make_inferences("divergent-call", [2], "x", fact("x"), basis=basis, uncertainty="others passed")
    root = Candidate(candidate("torch.collective-order-mismatch").signature, None, inferences)
    effects = [fact("x", 2), fact("y", 3), fact("exitcode 1", 2, kind="exit", detail=ExitDetail(1))]
    effect = Candidate(candidate("crash.abort", "symptom").signature, None, effects, explained_by=[root.id])
    assert rate_confidence(root, (), [root, effect]) == most


def test_the_first_of_several_contradicting_inferences_is_quoted() -> None:
    """Of weaker evidence that names other ranks."""
    root, _ = inferred([2])
    lines = [*inferred([3])[1], *inferred([4])[1]]
    rate_confidence(root, (), [root], [("open-calls", lines)])
    assert "Weaker evidence points to ranks 3-4 instead: Ranks [3] lag" in root.why


def test_an_unknown_failure_is_a_little_less_sure() -> None:
    """Than a known one that the same line shows."""
    known, unknown = candidate("a.one", ranks=[0]), unknown_failure("u-1", [0])
    assert rate_confidence(known, (), [known]) > rate_confidence(unknown, (), [unknown]) > GUESS


def test_noise_confirms_nothing_and_hides_no_confirmation() -> None:
    """Whatever stands before it, an effect that another source shows is a source."""
    root = candidate("a.one", ranks=[0])
    noise = candidate("c.noise", "noise", [1])
    effect = candidate("b.two", "symptom", [1])
    for one in (noise, effect):
        one.explained_by.append("a.one")
    alone = rate_confidence(candidate("a.one", ranks=[0]), (), [root, noise])
    assert rate_confidence(candidate("a.one", ranks=[0]), (), [root]) == alone
    assert rate_confidence(root, (), [noise, effect, root]) > alone


@pytest.mark.parametrize(
    ("name", "ranks", "source", "is_sure"),
    [
        ("b.two", [3], "other.log", False),
        ("b.two", [3], "job.log", True),
        ("b.two", [2], "other.log", True),
        ("crash.abort", [3], "other.log", True),
    ],
)
def test_a_cause_that_may_have_come_first_caps_the_confidence(
    name: str, ranks: list[int], source: str, *, is_sure: bool
) -> None:
    """As strong, on another rank, and in another file without a common clock."""
    root, exit_fact = candidate("a.one", ranks=[2]), fact("exitcode 1", 2, kind="exit", detail=ExitDetail(1))
    root.facts.append(exit_fact)
    other = candidate(name, "either" if name == "crash.abort" else "cause", ranks)
    other.facts = [replace(one, source=source) for one in other.facts]
    assert (rate_confidence(root, (other,), [root, other]) > OTHER_STORY) == is_sure


@pytest.mark.parametrize(("rank", "is_confirmed"), [(2, True), (3, False)])
def test_only_the_end_of_its_own_ranks_confirms_a_cause(rank: int, *, is_confirmed: bool) -> None:
    """The launcher reports how a rank ended: that of another rank is no second source."""
    root = candidate("a.one", ranks=[2])
    effect = candidate("b.two", "symptom", [rank])
    effect.facts = [fact("exitcode 1", rank, kind="exit", detail=ExitDetail(1))]
    effect.explained_by.append("a.one")
    rate_confidence(root, (), [root, effect])
    assert ("Confirmed by this rank's log and the launcher" in root.why) == is_confirmed
    assert ("Only one source shows this" in root.why) != is_confirmed


def test_two_sources_that_allow_another_story_are_not_sure_together() -> None:
    """A dump and watchdog lines agree that two ranks differ, and neither shows which one is wrong."""
    lines, _ = inferred([0, 8], uncertainty="either may be wrong")
    dump = make_inferences(
        "lagging-rank", [0, 8], "they differ; either side may be wrong", fact("x", kind="flight"), basis="absence",
        uncertainty="either side may be wrong",
    )  # fmt: skip
    root = Candidate(lines.signature, None, [*dump, *lines.facts])
    assert rate_confidence(root, (), [root]) <= OTHER_STORY
    assert root.why.count("Not certain: either may be wrong") == 1
    assert "Not certain: either side may be wrong" not in root.why  # the text of the dump has it


@pytest.mark.parametrize(("stalled", "waiting", "is_sure"), [([0, 1], [], False), ([0, 1], [2], True), ([0], [], True)])
def test_a_stall_of_all_ranks_that_wait_is_not_sure(
    stalled: Sequence[int], waiting: Sequence[int], *, is_sure: bool
) -> None:
    """It names nobody who began, unless another rank only waits, or one rank alone shows it."""
    root = candidate("torch.heartbeat-timeout", "either", stalled)
    others = [candidate("torch.collective-timeout", "symptom", waiting)] if waiting else []
    assert (rate_confidence(root, (), [root, *others]) > GUESS) == is_sure
    assert any("does not say which rank began" in why for why in root.why) != is_sure
