"""Near clusters: ranked with the differing words, never merged automatically, gone after a rejection."""

from __future__ import annotations

import json

import pytest

from tests.store.conftest import Place
from tests.store.factories import NOW, unknown_diagnosis
from triage.cli import main
from triage.store import Store

TEXTS = {
    "u-aaaaaa": "SinkError: segment writer lost its lease on the ledger",
    "u-bbbbbb": "SinkError: segment reader lost its lease on the ledger",
    "u-cccccc": "SinkError: hot pages were evicted",
}


@pytest.fixture
def path(place: Place) -> str:
    """A store with three clusters under one guard, two of them near."""
    pytest.importorskip("sklearn")
    with Store.open(place("triage")) as store:
        for number, (cluster, text) in enumerate(TEXTS.items()):
            store.incidents.add(unknown_diagnosis(cluster, text, cluster), now=NOW + number)
    return place("triage")


def test_near_clusters_have_the_differing_words(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Text and JSON of a cluster name the near one, its score, the differing words, and each fingerprint's reason."""
    assert main(["clusters", "show", "u-aaaaaa", "--store", path, "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(item["cluster"], item["only_here"], item["only_there"]) for item in shown["near"]] == [
        ("u-bbbbbb", ["writer"], ["reader"])
    ]
    assert 0.35 < shown["near"][0]["score"] < 1
    assert [key["why"] for key in shown["keys"]] == ["new"]
    assert main(["clusters", "show", "u-bbbbbb", "--store", path]) == 0
    text = capsys.readouterr().out
    assert "- writer" in text
    assert "+ reader" in text
    assert "new: nearest is u-aaaaaa" in text
    assert main(["clusters", "show", "u-bbbbbb", "--store", path, "--near", "none"]) == 0
    assert "- writer" not in capsys.readouterr().out


def test_a_rejected_pair_is_not_suggested_again(path: str) -> None:
    """Also not with further fingerprints; undoing the rejection suggests it again."""
    with Store.open(path) as store:
        entry = store.cluster_actions.reject("u-bbbbbb", "u-aaaaaa", actor="ann")
        assert store.clusters.find_near("u-aaaaaa") == store.clusters.find_near("u-bbbbbb") == ()
        store.incidents.add(unknown_diagnosis("more", TEXTS["u-aaaaaa"] + " today", "u-dddddd"))
        assert len(store.clusters.get("u-aaaaaa").keys) == 2
        assert store.clusters.find_near("u-aaaaaa") == store.clusters.find_near("u-bbbbbb") == ()
        store.cluster_actions.undo(entry, actor="ann")
        assert [near.cluster for near in store.clusters.find_near("u-aaaaaa")] == ["u-bbbbbb"]


def test_similar_incidents_of_near_clusters_come_last(path: str) -> None:
    """Incidents of the same cluster come first, then those of near ones, with their feedback."""
    with Store.open(path) as store:
        twin = store.incidents.add(unknown_diagnosis("twin", TEXTS["u-aaaaaa"], "u-aaaaaa"))
        other = store.search.list_incidents()
        reader = next(item for item in other if item.cluster == "u-bbbbbb")
        store.feedback.add(reader.id, "agree", actor="ann", because="restarted the ledger")
        similar = store.search.find_similar(twin.id)
        assert [item.incident.cluster for item in similar] == ["u-aaaaaa", "u-bbbbbb"]
        assert similar[0].why.startswith("the same cluster")
        assert similar[1].why.startswith("near cluster u-bbbbbb, 0.")
        assert "only here writer; only there reader" in similar[1].why
        assert similar[1].feedback_notes == ("ann (agree): restarted the ledger",)


def test_a_missing_package_is_noted(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the package the cluster and similar incidents are shown, without near ones."""
    monkeypatch.setitem(__import__("sys").modules, "sklearn.feature_extraction.text", None)
    assert main(["clusters", "show", "u-aaaaaa", "--store", path]) == 0
    assert "pip install 'triage-kb[similar]'" in capsys.readouterr().out
    with Store.open(path) as store:
        assert store.search.find_similar(store.search.list_incidents()[0].id) == []
