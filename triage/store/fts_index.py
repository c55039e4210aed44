"""The full-text index of incidents, and queries that are safe for any input."""

from __future__ import annotations

import re
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Sequence
from contextlib import closing

from triage.base.lazy_re import lazy_re
from triage.model.diagnosis import Diagnosis
from triage.store import codec

BODY = 2000  # characters of log text of one incident
FACT = 400  # characters of one fact
_TERM = lazy_re(r"\w+", re.UNICODE)
MOST_WORDS = 24
RANKED = 500  # of more hits than this, only the newest are ranked


def page_of(identifier: str, diagnosis: Diagnosis, keys: Iterable[str]) -> tuple[str, str, str]:
    """Return (title, words, body), the indexed text of an incident."""
    root, job = diagnosis.root_cause, diagnosis.job
    signatures = dict.fromkeys(
        finding.signature for finding in diagnosis.findings if finding.signature and finding.role != "noise"
    )
    clusters = dict.fromkeys(finding.cluster for finding in diagnosis.unknown if finding.cluster)
    names = [
        identifier,
        job.id,
        job.name,
        *signatures,
        *clusters,
        *keys,
        *list(job.hosts)[:64],
        *(f"{k} {v}" for k, v in job.versions.items()),
    ]
    return (
        codec.without_surrogates(root.title if root else diagnosis.verdict),
        codec.without_surrogates(" ".join(names)),
        codec.without_surrogates(_body(diagnosis)),
    )


def _body(diagnosis: Diagnosis) -> str:
    texts: dict[str, None] = {}
    for item in sorted(codec.place_findings(diagnosis), key=lambda item: not item.root):
        if item.finding.role != "noise":
            texts.update({item.finding.title: None, **{fact.text[:FACT]: None for fact in item.finding.evidence[:2]}})
    return "\n".join(texts)[:BODY]


def fts_query(text: str, *, any_word: bool = False, last_is_open: bool = True) -> str | None:
    """Return an FTS5 query for what a person typed; None when it has no words.

    Each word is quoted, so that none is an operator. The last word may be the beginning of one (`allre` finds
    all_reduce).
    """
    parts = split_query(text)
    if not parts:
        return None
    quoted = [f'"{part}"' for part in parts]
    if last_is_open and may_continue(text):
        quoted[-1] += "*"
    return (" OR " if any_word else " ").join(quoted)


def may_continue(text: str) -> bool:
    """Whether the last word of what a person typed may be the beginning of one."""
    return not text.endswith(('"', " "))


def split_query(text: str) -> list[str]:
    """Return the words of what a person typed; those in double quotes stay together."""
    parts: list[str] = []
    for number, piece in enumerate(text.replace("\0", " ").split('"')):
        terms = _TERM.findall(piece)
        if number % 2 and terms:
            parts.append(" ".join(terms))
        elif not number % 2:
            parts += [" ".join(_TERM.findall(part)) for part in piece.split() if _TERM.search(part)]
    return parts[:MOST_WORDS]


class TextIndex:
    """A full-text index of documents (name, title, body) in memory, for any thread."""

    def __init__(self, documents: Sequence[tuple[str, str, str]]) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._db.close)  # a cache may drop an index that another thread still searches
        self._db.execute(
            "CREATE VIRTUAL TABLE d USING fts5 (name, title, body, tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        self._db.executemany(
            "INSERT INTO d (rowid, name, title, body) VALUES (?, ?, ?, ?)",
            [(n, *map(codec.without_surrogates, item)) for n, item in enumerate(documents)],
        )

    def search(self, text: str, limit: int, *, some: bool = True) -> list[tuple[int, float]]:
        """Return (number, score) of the documents with all words, best first.

        Where there are none, with `some`, those with some of the words.
        """
        for any_word in (False, True) if some else (False,):
            query = fts_query(text, any_word=any_word)
            if query is None:
                return []
            with self._lock:
                rows = self._db.execute(
                    "SELECT rowid, bm25(d, 8, 6, 1) FROM d WHERE d MATCH ? ORDER BY 2, 1 LIMIT ?", (query, limit)
                ).fetchall()
            if rows:
                return [(row[0], -row[1]) for row in rows]
        return []

    def close(self) -> None:
        """Free the index."""
        self._db.close()


def search_documents(
    documents: Sequence[tuple[str, str, str]], text: str, limit: int, *, some: bool = True
) -> list[tuple[int, float]]:
    """Search documents once, as `TextIndex.search` does."""
    with closing(TextIndex(documents)) as index:
        return index.search(text, limit, some=some)
