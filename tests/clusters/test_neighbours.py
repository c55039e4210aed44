"""Near neighbours: sentences of one function are causes of their own, and a sentence that a release rewords is one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.clusters.measure import Score, score
from tests.clusters.neighbours import ONE_FUNCTION, RELEASES, Sentence, sentences
from triage.clusters import Clusters, fingerprint


def choose(*, set_aside: bool) -> list[Sentence]:
    return [one for one in sentences() if one.is_set_aside is set_aside]


def test_there_are_enough_functions_and_half_is_set_aside() -> None:
    """At least 20 functions with two or more causes, and 20 causes in two wordings; about half by their places."""
    places = {one.place for one in sentences()}
    causes = [one.cause for one in sentences()]
    assert len(places) >= 20
    assert sum(causes.count(cause) > 1 for cause in set(causes)) >= 20
    assert all(len({one.cause for one in sentences() if one.place == place}) > 1 for place in places)
    share = len({one.place for one in choose(set_aside=True)}) / len(places)
    assert 0.4 <= share <= 0.6


@pytest.mark.parametrize(("set_aside", "precision", "recall"), [(False, 1, 0.85), (True, 0.96, 0.75)])
def test_causes_of_one_function_stay_apart_and_most_wordings_meet(
    set_aside: bool, precision: float, recall: float
) -> None:
    """No two causes of visible functions are in one cluster, and hardly two of the half that is set aside."""
    result = score_all(choose(set_aside=set_aside))
    assert result.precision >= precision
    assert result.recall >= recall


def test_most_sentences_of_two_releases_meet() -> None:
    """Of free rewordings more than half join, and none with another cause."""
    result = score_all(sentences(RELEASES))
    assert result.precision == 1
    assert result.recall >= 0.6


def test_causes_in_similar_words_stay_apart() -> None:
    """Of 119 causes of 15 functions, two pairs are taken for one: only more words are said there."""
    assert len({one.cause for one in sentences(ONE_FUNCTION)}) == 119
    assert len(set(assign_all(sentences(ONE_FUNCTION)))) >= 117


def score_all(chosen: Sequence[Sentence]) -> Score:
    return score([one.cause for one in chosen], assign_all(chosen))


def assign_all(chosen: Sequence[Sentence]) -> list[str]:
    clusters = Clusters()
    names = [clusters.assign(fingerprint(one.fact())).cluster for one in chosen]
    return [clusters.resolve(name) for name in names]
