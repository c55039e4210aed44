"""Near neighbours: sentences of one function are causes of their own, and a sentence that a release rewords is one."""

from __future__ import annotations

import pytest

from tests.clusters.measure import score
from tests.clusters.neighbours import Sentence, sentences
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


@pytest.mark.parametrize(("set_aside", "recall"), [(False, 0.85), (True, 0.65)])
def test_causes_of_one_function_stay_apart_and_most_wordings_meet(set_aside: bool, recall: float) -> None:
    """No two causes are in one cluster."""
    chosen, clusters = choose(set_aside=set_aside), Clusters()
    names = [clusters.assign(fingerprint(one.fact())).cluster for one in chosen]
    result = score([one.cause for one in chosen], [clusters.resolve(name) for name in names])
    assert result.precision == 1
    assert result.recall >= recall
