"""The lists of words in vocabulary.toml."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path


@functools.cache
def load_vocabulary() -> Mapping[str, frozenset[str]]:
    """Return the words of each list of vocabulary.toml."""
    import tomllib

    text = Path(__file__).with_name("vocabulary.toml").read_text(encoding="utf-8")
    return {name: frozenset(listed.split()) for name, listed in tomllib.loads(text).items()}
