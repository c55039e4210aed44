"""Search by meaning with the real model, without a network (`make test-torch`)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.store.factories import known_diagnosis, unknown_diagnosis
from triage.store import Store

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("TRIAGE_TORCH", "")
WITHOUT_NETWORK = ["unshare", "--map-root-user", "--user", "--net"]

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not PYTHON, reason="TRIAGE_TORCH names no Python with torch; make test-torch does"),
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache directory, so that all tests here compute the vectors once."""
    return tmp_path_factory.mktemp("cache")


def run(cache: Path, *arguments: object) -> str:
    """Return the program's output with the model; without a network where `unshare` is allowed."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TRIAGE_", "HF_"))
    }
    environment |= {"TRIAGE_CACHE": str(cache), "PYTHONPATH": str(ROOT), "HOME": str(cache)}
    probe = subprocess.run([*WITHOUT_NETWORK, "true"], capture_output=True, check=False)
    command = [*(WITHOUT_NETWORK if probe.returncode == 0 else []), PYTHON, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment, cwd=ROOT, check=False)
    if "language model, which is not installed" in done.stderr:
        pytest.skip("this Python has torch but no sentence model; `make test-torch` installs one")
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_search_by_meaning_beats_full_text(cache: Path) -> None:
    """At least 75 % of the questions find their signature among the first five results, more than by full text."""
    last = run(cache, "bench/meaning.py").splitlines()[-1]
    rates = {name: float(value) for name, value in (pair.split("=") for pair in last.removeprefix("BENCH ").split())}
    assert rates["meaning_top5"] >= 0.75
    assert rates["aside_top5"] >= 0.75
    assert rates["meaning_top1"] > rates["fulltext_top1"]
    assert rates["meaning_top5"] > rates["fulltext_top5"]


def test_a_description_finds_signature_cluster_and_incidents(cache: Path, tmp_path: Path) -> None:
    """`triage search --meaning` finds the signature, a cluster by its name, and their incidents."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        memory = store.incidents.add(known_diagnosis("memory"))
        torn = store.incidents.add(unknown_diagnosis("torn", "ReadError: shard is torn"))
        store.cluster_actions.name("u-7f3a9c", "A file of the tokenizer is damaged", actor="ann")
    for question, incident, cause in (
        ("training ran out of graphics memory", memory.id, "cuda.out-of-memory"),
        ("the vocabulary file was broken", torn.id, "u-7f3a9c"),
    ):
        answer = json.loads(
            run(cache, "-m", "triage", "search", "--meaning", question, "--store", path, "--format", "json")
        )
        assert cause in [item["id"] for item in answer["catalog"][:5]]
        assert incident in [item["id"] for item in answer["incidents"]]


def test_near_clusters_by_meaning(cache: Path, tmp_path: Path) -> None:
    """`triage clusters show --near meaning` lists a cluster with the same meaning in other words."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        for cluster, text in (
            ("u-aaaaaa", "SinkError: the disk has no room left for writing"),
            ("u-bbbbbb", "SinkError: storage is full, cannot save"),
        ):
            store.incidents.add(unknown_diagnosis(cluster, text, cluster))
    command = ["-m", "triage", "clusters", "show", "u-aaaaaa", "--near", "meaning", "--store", path, "--format", "json"]
    shown = json.loads(run(cache, *command))
    assert [item["cluster"] for item in shown["near"]] == ["u-bbbbbb"]
