"""Full-text search of incidents by tsvector, with the words and results of SQLite's FTS5.

PostgreSQL's parser cuts paths, versions and host names in its own way, by the locale of the server. So the words are
cut here, as FTS5's unicode61 does (runs of letters and digits, without case and accents), and stored with their
positions.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from triage.store.fts_index import RANKED, may_continue, split_query
from triage.store.interface import Connections, Row, Transaction

MOST_POSITION = 16_383  # of a tsvector; all later words have this one
MOST_BYTES = 2046  # of a lexeme
MOST_PLACES = 255  # of a lexeme in one tsvector
SNIPPET_TOKENS = 16
BEGIN, END, MORE = "\x02", "\x03", "…"
Token = tuple[str, int, int]
"""A folded word, and where it begins and ends in the text."""


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the words of a text, folded."""
    begin: int | None = None
    for place, sign in enumerate(text):
        is_part = sign.isalnum() or (begin is not None and unicodedata.category(sign) == "Mn")
        if is_part and begin is None:
            begin = place
        elif not is_part and begin is not None:
            yield _fold(text[begin:place]), begin, place
            begin = None
    if begin is not None:
        yield _fold(text[begin:]), begin, len(text)


def _fold(text: str) -> str:
    """Return a word without case and accents, at most as long as a lexeme may be."""
    if not text.isascii():
        lower = "".join(sign.casefold() if len(sign.casefold()) == 1 else sign.lower() for sign in text)
        parts = unicodedata.normalize("NFD", lower)
        text = unicodedata.normalize("NFC", "".join(sign for sign in parts if unicodedata.category(sign) != "Mn"))
    return text.lower().encode()[:MOST_BYTES].decode("utf-8", "ignore")


def lexemes_of(*columns: str) -> str:
    """Return the words of some columns as the text of a tsvector. No phrase reaches from one column into the next."""
    places: dict[str, list[int]] = {}
    position = 0
    for text in columns:
        for token, _, _ in tokens_of(text):
            position += 1
            places.setdefault(token, []).append(min(position, MOST_POSITION))
        position += 1
    return " ".join(f"'{token}':{','.join(map(str, where[:MOST_PLACES]))}" for token, where in places.items())


def query_of(text: str, *, any_word: bool = False, last_is_open: bool = True) -> str | None:
    """Return the text of a tsquery for what a person typed; None when it has no words."""
    phrases = [[token for token, _, _ in tokens_of(part)] for part in split_query(text)]
    phrases = [phrase for phrase in phrases if phrase]
    if not phrases:
        return None
    parts = [" <-> ".join(f"'{token}'" for token in phrase) for phrase in phrases]
    if last_is_open and may_continue(text):
        parts[-1] += ":*"
    return (" | " if any_word else " & ").join(f"({part})" for part in parts)


class PostgresText:
    """The full-text index in the column `page.lexemes`."""

    def write_page(self, db: Transaction, num: int, title: str, names: str, body: str) -> None:
        """Write the indexed text of an incident, in place of its old one."""
        db.execute(
            "INSERT INTO page (num, title, words, body, lexemes) VALUES (?, ?, ?, ?, CAST(? AS tsvector)) "
            "ON CONFLICT (num) DO UPDATE SET title = excluded.title, words = excluded.words, body = excluded.body, "
            "lexemes = excluded.lexemes",
            (num, title, names, body, lexemes_of(title, names, body)),
        )

    def condition(self, text: str) -> tuple[str, list[Any]]:
        """Return a condition on `i.num` for what a person typed, and its values."""
        query = query_of(text)
        if query is None:
            return "FALSE", []
        return "i.num IN (SELECT num FROM page WHERE lexemes @@ CAST(? AS tsquery))", [query]

    def find(
        self,
        connections: Connections,
        columns: str,
        tables: str,
        text: str,
        limit: int,
        *,
        any_word: bool,
        last_is_open: bool,
    ) -> list[Row] | None:
        """Return rows of `columns` and `snippet`, best first; None when the text has no words."""
        query = query_of(text, any_word=any_word, last_is_open=last_is_open)
        if query is None:
            return None
        rows = connections.read(
            f"""
            WITH newest AS MATERIALIZED (
                SELECT num, lexemes FROM page WHERE lexemes @@ CAST(:query AS tsquery) ORDER BY num DESC LIMIT {RANKED}
            ),
            best AS (
                SELECT num, ts_rank(lexemes, CAST(:query AS tsquery), 1) AS rank FROM newest
                ORDER BY rank DESC, num DESC LIMIT :limit
            )
            SELECT {columns}, page.body AS snippet
            FROM best JOIN page ON page.num = best.num JOIN {tables.format("best.num")}
            ORDER BY best.rank DESC, best.num DESC
            """,
            {"query": query, "limit": limit},
        )
        is_open = last_is_open and may_continue(text)
        phrases = [[token for token, _, _ in tokens_of(part)] for part in split_query(text)]
        return [{**dict(row), "snippet": snippet_of(row["snippet"], phrases, is_open)} for row in rows]


def snippet_of(body: str, phrases: Sequence[Sequence[str]], last_is_open: bool) -> str:
    """Return the words around the matches, which are between \\x02 and \\x03: the window with the most of them."""
    tokens = list(tokens_of(body))
    matches = _matches([token for token, _, _ in tokens], [phrase for phrase in phrases if phrase], last_is_open)
    if not tokens:
        return ""
    starts = [max(0, min(match[0] - 2, len(tokens) - SNIPPET_TOKENS)) for match in matches] or [0]
    first = max(
        starts, key=lambda start: (sum(start <= match[0] < start + SNIPPET_TOKENS for match in matches), -start)
    )
    last = min(first + SNIPPET_TOKENS, len(tokens))
    opens, closes = {match[0] for match in matches}, {match[1] for match in matches}
    pieces = [MORE] if first else []
    place = tokens[first][1] if first else 0
    for number in range(first, last):
        _, begin, end = tokens[number]
        pieces += [body[place:begin], BEGIN * (number in opens), body[begin:end], END * (number in closes)]
        place = end
    return "".join([*pieces, MORE if last < len(tokens) else body[place:]])


def _matches(tokens: Sequence[str], phrases: Sequence[Sequence[str]], last_is_open: bool) -> list[tuple[int, int]]:
    """Return the numbers of the first and the last token of each match; those that overlap are one."""
    matches: list[tuple[int, int]] = []
    for first, last in sorted(_phrase_matches(tokens, phrases, last_is_open)):
        if matches and first <= matches[-1][1]:
            matches[-1] = (matches[-1][0], max(last, matches[-1][1]))
        else:
            matches.append((first, last))
    return matches


def _phrase_matches(
    tokens: Sequence[str], phrases: Sequence[Sequence[str]], last_is_open: bool
) -> Iterator[tuple[int, int]]:
    for count, phrase in enumerate(phrases, 1):
        is_open = last_is_open and count == len(phrases)
        for first in range(len(tokens) - len(phrase) + 1):
            window = tokens[first : first + len(phrase)]
            same_last = window[-1].startswith(phrase[-1]) if is_open else window[-1] == phrase[-1]
            if same_last and list(window[:-1]) == list(phrase[:-1]):
                yield first, first + len(phrase) - 1
