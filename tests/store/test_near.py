"""Near clusters: ranked with the words that differ, never merged by themselves, gone for ever once refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.store.making import NOW, unknown
from triage.cli import main
from triage.store import Store

TEXTS = {
    "u-aaaaaa": "SinkError: segment writer lost its lease on the ledger",
    "u-bbbbbb": "SinkError: segment reader lost its lease on the ledger",
    "u-cccccc": "SinkError: hot pages were evicted",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three clusters under one guard, two of them near."""
    pytest.importorskip("sklearn")
    with Store.open(tmp_path / "triage.db") as store:
        for number, (cluster, text) in enumerate(TEXTS.items()):
            store.incidents.add(unknown(cluster, text, cluster), now=NOW + number)
    return tmp_path / "triage.db"


def test_near_clusters_come_with_the_words_that_differ(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text and JSON of a cluster name the near one, how near it is, and the words on either side; and why each
    fingerprint is there.
    """
    assert main(["clusters", "show", "u-aaaaaa", "--store", str(path), "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(item["cluster"], item["only_here"], item["only_there"]) for item in shown["near"]] == [
        ("u-bbbbbb", ["writer"], ["reader"])
    ]
    assert 0.35 < shown["near"][0]["score"] < 1
    assert [key["why"] for key in shown["keys"]] == ["new"]
    assert main(["clusters", "show", "u-bbbbbb", "--store", str(path)]) == 0
    text = capsys.readouterr().out
    assert "- writer" in text
    assert "+ reader" in text
    assert "new: nearest is u-aaaaaa" in text
    assert main(["clusters", "show", "u-bbbbbb", "--store", str(path), "--near", "none"]) == 0
    assert "- writer" not in capsys.readouterr().out


def test_a_refused_pair_does_not_come_back(path: Path) -> None:
    """Also when one of the two gets further fingerprints; taking the refusal back brings it again."""
    with Store.open(path) as store:
        entry = store.moves.reject("u-bbbbbb", "u-aaaaaa", actor="ann")
        assert store.clusters.near("u-aaaaaa") == store.clusters.near("u-bbbbbb") == ()
        store.incidents.add(unknown("more", TEXTS["u-aaaaaa"] + " today", "u-dddddd"))
        assert len(store.clusters.get("u-aaaaaa").keys) == 2
        assert store.clusters.near("u-aaaaaa") == store.clusters.near("u-bbbbbb") == ()
        store.moves.undo(entry, actor="ann")
        assert [near.cluster for near in store.clusters.near("u-aaaaaa")] == ["u-bbbbbb"]


def test_incidents_of_near_clusters_follow_those_of_the_same(path: Path) -> None:
    """What is similar to an unknown failure: its own cluster first, then near ones with how near, and what people did
    then.
    """
    with Store.open(path) as store:
        twin = store.incidents.add(unknown("twin", TEXTS["u-aaaaaa"], "u-aaaaaa"))
        other = store.search.listed()
        reader = next(item for item in other if item.cluster == "u-bbbbbb")
        store.feedback.add(reader.id, "agree", actor="ann", because="restarted the ledger")
        found = store.search.similar(twin.id)
        assert [item.incident.cluster for item in found] == ["u-aaaaaa", "u-bbbbbb"]
        assert found[0].why.startswith("the same cluster")
        assert found[1].why.startswith("near cluster u-bbbbbb, 0.")
        assert "only here writer; only there reader" in found[1].why
        assert found[1].said == ("ann (agree): restarted the ledger",)


def test_without_what_finds_them_a_note_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cluster is shown all the same, and what is similar is found without near ones."""
    monkeypatch.setitem(__import__("sys").modules, "sklearn.feature_extraction.text", None)
    assert main(["clusters", "show", "u-aaaaaa", "--store", str(path)]) == 0
    assert "pip install 'triage-kb[similar]'" in capsys.readouterr().out
    with Store.open(path) as store:
        assert store.search.similar(store.search.listed()[0].id) == []
