"""Search by meaning with the model itself, without a network. `make test-torch`."""

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
OFF_THE_NET = ["unshare", "--map-root-user", "--user", "--net"]

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not PYTHON, reason="TRIAGE_TORCH names no Python with torch; make test-torch does"),
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors are made once for all tests here."""
    return tmp_path_factory.mktemp("cache")


def run(cache: Path, *arguments: object) -> str:
    """What the program prints where it has the model, and no network where that can be taken from it."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TRIAGE_", "HF_"))
    }
    environment |= {"TRIAGE_CACHE": str(cache), "PYTHONPATH": str(ROOT), "HOME": str(cache)}
    probe = subprocess.run([*OFF_THE_NET, "true"], capture_output=True, check=False)
    command = [*(OFF_THE_NET if probe.returncode == 0 else []), PYTHON, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment, cwd=ROOT, check=False)
    if "language model, which is not installed" in done.stderr:
        pytest.skip("this Python has torch and no sentence model; make test-torch makes one that has")
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_questions_in_own_words_are_answered_better_than_by_full_text(cache: Path) -> None:
    """Of 60 questions at least three quarters find their signature among the first five, and more than by full text in
    the same run.
    """
    last = run(cache, "bench/meaning.py").splitlines()[-1]
    found = {name: float(value) for name, value in (pair.split("=") for pair in last.removeprefix("BENCH ").split())}
    assert found["meaning_top5"] >= 0.75
    assert found["meaning_top1"] > found["fulltext_top1"]
    assert found["meaning_top5"] > found["fulltext_top5"]


def test_a_description_brings_the_incidents(cache: Path, tmp_path: Path) -> None:
    """The command finds the signature, a cluster by its name, and incidents that either caused."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        memory = store.incidents.add(known_diagnosis("memory"))
        torn = store.incidents.add(unknown_diagnosis("torn", "ReadError: shard is torn"))
        store.cluster_actions.name("u-7f3a9c", "A file of the tokenizer is damaged", actor="ann")
    for words, incident, cause in (
        ("training ran out of graphics memory", memory.id, "cuda.out-of-memory"),
        ("the vocabulary file was broken", torn.id, "u-7f3a9c"),
    ):
        found = json.loads(
            run(cache, "-m", "triage", "search", "--meaning", words, "--store", path, "--format", "json")
        )
        assert cause in [item["id"] for item in found["catalog"][:5]]
        assert incident in [item["id"] for item in found["incidents"]]


def test_near_clusters_by_meaning(cache: Path, tmp_path: Path) -> None:
    """The same engine ranks near clusters, behind the interface of the letters."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        for cluster, text in (
            ("u-aaaaaa", "SinkError: the disk has no room left for writing"),
            ("u-bbbbbb", "SinkError: storage is full, cannot save"),
        ):
            store.incidents.add(unknown_diagnosis(cluster, text, cluster))
    shown = json.loads(
        run(
            cache,
            "-m",
            "triage",
            "clusters",
            "show",
            "u-aaaaaa",
            "--near",
            "meaning",
            "--store",
            path,
            "--format",
            "json",
        )
    )
    assert [item["cluster"] for item in shown["near"]] == ["u-bbbbbb"]
