"""The words of an incident for the full-text search, and questions that are safe whatever a person types."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing

from triage.base.lazy_re import lazy_re
from triage.model.diagnosis import Diagnosis
from triage.store import codec

BODY = 2000  # characters of log text a incident
FACT = 400  # characters of one fact
_WORD = lazy_re(r"\w+", re.UNICODE)
MOST_WORDS = 24


def write(db: sqlite3.Connection, num: int, identifier: str, diagnosis: Diagnosis, keys: Iterable[str]) -> None:
    """The page of an incident, in place of the one it had."""
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
    db.execute("DELETE FROM page WHERE num = ?", (num,))
    db.execute(
        "INSERT INTO page (num, title, words, body) VALUES (?, ?, ?, ?)",
        (
            num,
            codec.plain(root.title if root else diagnosis.verdict),
            codec.plain(" ".join(names)),
            codec.plain(_body(diagnosis)),
        ),
    )


def _body(diagnosis: Diagnosis) -> str:
    seen: dict[str, None] = {}
    for item in sorted(codec.placed(diagnosis), key=lambda item: not item.root):
        if item.finding.role != "noise":
            seen.update({item.finding.title: None, **{fact.text[:FACT]: None for fact in item.finding.evidence[:2]}})
    return "\n".join(seen)[:BODY]


def question(text: str, *, any_word: bool = False, last_is_open: bool = True) -> str | None:
    """What FTS5 is asked for a person's words: each quoted, so that none of them is an operator. None when there is no
    word in it.

    Words in double quotes stay together. The last word may go on (`allre` finds all_reduce).
    """
    parts: list[str] = []
    for number, piece in enumerate(text.replace("\0", " ").split('"')):
        words = _WORD.findall(piece)
        if number % 2 and words:
            parts.append(" ".join(words))
        elif not number % 2:
            parts += [" ".join(_WORD.findall(word)) for word in piece.split() if _WORD.search(word)]
    parts = parts[:MOST_WORDS]
    if not parts:
        return None
    quoted = [f'"{part}"' for part in parts]
    if last_is_open and not text.endswith(('"', " ")):
        quoted[-1] += "*"
    return (" OR " if any_word else " ").join(quoted)


class Words:
    """Documents (name, title, body) in memory, to be asked for words again and again by any thread."""

    def __init__(self, documents: Sequence[tuple[str, str, str]]) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute(
            "CREATE VIRTUAL TABLE d USING fts5 (name, title, body, tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        self._db.executemany(
            "INSERT INTO d (rowid, name, title, body) VALUES (?, ?, ?, ?)",
            [(n, *map(codec.plain, item)) for n, item in enumerate(documents)],
        )

    def found(self, text: str, limit: int, *, some: bool = True) -> list[tuple[int, float]]:
        """Those that have all the words, best first, as (number, rank); where there are none, with `some` those that
        have some of them.
        """
        for any_word in (False, True) if some else (False,):
            asked = question(text, any_word=any_word)
            if asked is None:
                return []
            with self._lock:
                rows = self._db.execute(
                    "SELECT rowid, bm25(d, 8, 6, 1) FROM d WHERE d MATCH ? ORDER BY 2, 1 LIMIT ?", (asked, limit)
                ).fetchall()
            if rows:
                return [(row[0], -row[1]) for row in rows]
        return []

    def close(self) -> None:
        """Forget them."""
        self._db.close()


def found(
    documents: Sequence[tuple[str, str, str]], text: str, limit: int, *, some: bool = True
) -> list[tuple[int, float]]:
    """The same for documents that are asked once."""
    with closing(Words(documents)) as words:
        return words.found(text, limit, some=some)
