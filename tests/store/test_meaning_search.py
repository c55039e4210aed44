"""triage.store.meaning_search, without the model (tests/with_torch has the tests of the model)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.store.conftest import Place
from tests.store.factories import DAY, NOW, known_diagnosis, unknown_diagnosis
from triage.base.errors import OptionError
from triage.catalog.load import load
from triage.cli import main
from triage.clusters import meaning
from triage.store import Store, meaning_search


def model_for(term: str) -> meaning_search.Compare:
    """Return a model that only recognizes this term."""
    return lambda _, documents: [float(any(term in passage.lower() for passage in passages)) for passages in documents]


def test_two_rankings_beat_one_first_place() -> None:
    """Reciprocal ranks add up; ties keep the order of the first ranking."""
    assert meaning_search.fuse_rankings([7, 5], [3, 5]) == [5, 3, 7]
    assert meaning_search.fuse_rankings([1, 2], []) == [1, 2]


def test_causes_bring_their_incidents(store: Store) -> None:
    """Signatures and named clusters are found by meaning, incidents by their cause, the latest first."""
    for number in range(5):
        store.incidents.add(known_diagnosis(f"job {number}", at=NOW + number * DAY))
    store.incidents.add(unknown_diagnosis("odd"))
    store.cluster_actions.name("u-7f3a9c", "The tokenizer is torn", actor="ann", note="the copy job of tuesdays")
    shipped, clusters = load().signatures, store.clusters.list_clusters()
    answers = meaning_search.search_by_meaning(shipped, clusters, "qwrtz xyzzy", 3, compare=model_for("tuesdays"))
    assert answers[0].id == "u-7f3a9c"
    # "memory" stands in many signatures and not in the words of the curator, who is as near in meaning, or is not.
    for term, is_first in (("tuesdays", True), ("qwrtz", False)):
        answers = meaning_search.search_by_meaning(shipped, clusters, "memory", 3, compare=model_for(term))
        assert (answers[0].id == "u-7f3a9c") is is_first
    hits = store.search.list_by_cause(["cuda.out-of-memory", "u-7f3a9c", "gpu.fallen-off-bus"], each=2)
    assert [hit.incident.job_name for hit in hits] == ["job 4", "job 3", "odd"]


def test_other_platforms_come_later() -> None:
    """Of equal answers, signatures of a platform that the question does not name come last, and rows of tables."""
    shipped = load().signatures
    for question, first, later in (
        ("qwrtz", "cuda.out-of-memory", "rocm.gpu-hang"),
        ("qwrtz ROCm", "rocm.gpu-hang", "npu.out-of-memory"),
        ("qwrtz", "rocm.gpu-hang", "gpu.xid-44"),
    ):
        known = [item for item in shipped if item.id in (first, later)]
        answers = meaning_search.search_by_meaning(
            sorted(known, key=lambda item: item.id != later),
            (),
            question,
            2,
            compare=lambda _, texts: [1.0] * len(texts),
        )
        assert [item.id for item in answers] == [first, later]


def test_a_question_is_compared_in_both_wordings() -> None:
    """The model gets the question, and the question with the words of the field."""
    wordings: list[str] = []

    def compare(texts: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
        wordings.extend(texts)
        return [0.0] * len(documents)

    answers = meaning_search.search_by_meaning(load().signatures, (), "RAM of the graphics card", 3, compare=compare)
    assert wordings == ["RAM of the graphics card", "RAM of the graphics card GPU device host memory"]
    assert len(answers) == 3


def test_passages_have_no_placeholders() -> None:
    """A passage is a sentence without the places of values."""
    for item in load().signatures:
        assert not any("{" in passage and "}" in passage for passage in meaning_search.passages(item)[2:3]), item.id


@pytest.mark.parametrize(
    "arguments",
    [["search", "--meaning", "graphics card is gone"], ["clusters", "show", "u-7f3a9c", "--near", "meaning"]],
)
def test_a_missing_model_is_an_error(
    arguments: list[str], place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error says what to install, and nothing is downloaded."""
    monkeypatch.setattr(meaning, "PACKAGE", "no_such_model_package")
    with Store.open(place("triage")) as store:
        store.incidents.add(unknown_diagnosis("a", "SinkError: writer lost its lease"))
        store.incidents.add(unknown_diagnosis("b", "SinkError: reader lost its lease", "u-123456"))
    assert main([*arguments, "--store", str(place("triage"))]) == 2
    assert "pip install 'triage-kb[torch]'" in capsys.readouterr().err


def test_the_catalog_is_searched_without_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a store, signatures and guides are found; a named store must exist."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("TRIAGE_STORE", raising=False)
    assert main(["search", "retry", "exceeded"]) == 0
    assert "fabric.ib-retry-exceeded" in capsys.readouterr().out
    assert main(["search", "retry", "--store", str(tmp_path / "none.db")]) == 2
    assert not (tmp_path / "triage").exists()


def test_results_with_all_words_exclude_others(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Incidents or signatures with all words are not mixed with those that have some."""
    with Store.open(place("triage")) as store:
        store.incidents.add(unknown_diagnosis("a", "SinkError: writer lost its lease after retry"))
    for question, there, gone in (
        ("writer lease", "SinkError", "in the catalog"),
        ("retry exceeded mlx5", "in the catalog", "SinkError"),
    ):
        assert main(["search", question, "--store", str(place("triage"))]) == 0
        out = capsys.readouterr().out
        assert there in out.replace("«", "").replace("»", "")
        assert gone not in out.replace("«", "").replace("»", "")


def test_vectors_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors are computed once; a damaged or missing cache costs only time."""
    numpy = pytest.importorskip("numpy")
    encoded: list[str] = []

    class Model:
        def encode(self, texts: Sequence[str], **_: object) -> object:
            encoded.extend(texts)
            rows = numpy.zeros((len(texts), meaning.SIZE), "<f4")
            for row, text in zip(rows, texts, strict=True):
                row[len(text)] = 1.0
            return rows

    monkeypatch.setattr(meaning, "_model_directory", lambda: "m")
    monkeypatch.setattr(meaning, "_model", lambda where: Model())
    monkeypatch.setenv("TRIAGE_CACHE", str(tmp_path))
    assert meaning.similarity("abc", ["xyz", "long text"]) == [1.0, 0.0]
    assert meaning.best_similarity("abc", [["xyz", "long text"], [], ["long text"]]) == [1.0, -1.0, 0.0]
    assert encoded.count("xyz") == encoded.count("long text") == 1
    (cache_file,) = tmp_path.glob("*.vectors")
    assert cache_file.stat().st_mode & 0o077 == 0
    for damage in (cache_file.read_bytes()[:-7], b"\xff" * cache_file.stat().st_size, b""):
        cache_file.write_bytes(damage)
        assert meaning.similarity("abc", ["xyz", "long text"]) == [1.0, 0.0]
    monkeypatch.setenv("TRIAGE_CACHE", "off")
    assert meaning.similarity("abc", ["xyz"]) == [1.0]


def test_the_model_is_loaded_without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that cannot be imported is reported as missing."""
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(OptionError, match="cannot be loaded"):
        meaning._model.__wrapped__("m")
