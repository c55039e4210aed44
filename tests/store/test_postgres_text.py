"""triage.store.postgres.text and statements: the words, results and snippets of SQLite's full-text search."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.store.factories import known_diagnosis
from tests.store.postgres_server import PostgresServer
from triage.store import Store, fts_index
from triage.store.postgres.statements import translate
from triage.store.postgres.text import lexemes_of, query_of, snippet_of, tokens_of
from triage.store.search import Filter

PAGES = (
    ("Out of memory", "i-1 node-17 torch 2.6.0", "CUDA error: out of memory in all_reduce at /jobs/a.py:12"),
    ("Retry exceeded", "i-2 node-1 nccl 2.21.5", "mlx5_0: Got completion with error 12, été, Größe, İstanbul"),
    ("Shard is bad", "i-3 node-2", "ValueError: shard 7 is bad 日本語 текст"),
    ("", "i-4", "all reduce finished"),
)
QUERIES = (
    *("memory", "MEMORY out", '"out of memory"', "all_reduce", "allre", "node-17", "2.6.0", "mlx5_0", "ete"),
    "grosse",
    *(
        "größe",
        "shard 7",
        '"7 is"',
        "日本語",
        "текст",
        "zebra",
        "a.py:12",
        "/jobs/a",
        "istanbul",
        '"memory i"',
        "error",
    ),
)


@pytest.mark.parametrize(
    ("sql", "translated"),
    [
        ("SELECT ? WHERE a LIKE 'x%?' AND b = :name_1", "SELECT %s WHERE a LIKE 'x%%?' AND b = %(name_1)s"),
        ("SELECT a::text, 'it''s :no', b % 2", "SELECT a::text, 'it''s :no', b %% 2"),
    ],
)
def test_placeholders(sql: str, translated: str) -> None:
    """Placeholders are translated; texts in quotes and casts stay."""
    assert translate(sql) == translated


def test_results_are_those_of_sqlite(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each query finds the same pages in both databases, in lists and in searches, with any or all of the words."""
    places = [str(tmp_path_factory.mktemp("text") / "a.db"), postgres_server.create_database()]
    answers = []
    for place in places:
        with Store.open(place) as store:
            for number, page in enumerate(PAGES):
                stored = store.incidents.add(known_diagnosis(f"job {number}"))
                num = store.incidents.find_number(stored.id)
                with store.connections.write() as db:
                    store.connections.dialect.text.write_page(db, num, *page)
            listed = [{item.job_name for item in store.search.list_incidents(Filter(text=query))} for query in QUERIES]
            some = [{hit.incident.job_name for hit in store.search.search_text(query)} for query in QUERIES]
            marks = [sorted(hit.snippet.count("\x02") for hit in store.search.search_text(query)) for query in QUERIES]
            answers.append(list(zip(QUERIES, listed, some, marks, strict=True)))
    for in_file, in_server in zip(*answers, strict=True):
        assert in_file == in_server


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=60))
def test_words_are_those_of_fts5(text: str) -> None:
    """The words of a text in the alphabets that logs use are those that FTS5 cuts."""
    text = "".join(sign for sign in text if ord(sign) < 0x250).replace("\0", "")
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'unicode61 remove_diacritics 2')")
        db.execute("CREATE VIRTUAL TABLE v USING fts5vocab (t, instance)")
        db.execute("INSERT INTO t VALUES (?)", (text,))
        expected = [row[0] for row in db.execute("SELECT term FROM v ORDER BY offset")]
    assert [token for token, _, _ in tokens_of(text)] == expected


def test_bounds_of_an_index() -> None:
    """A text longer than a tsvector may count, a long word, and one that comes very often are stored."""
    assert lexemes_of("a b", "a") == "'a':1,4 'b':2"
    assert lexemes_of("x " * 300).count(",") == 254
    assert lexemes_of(" ".join(map(str, range(17_000)))).endswith("'16999':16383")
    assert len(lexemes_of("y" * 5000)) == 2046 + 4
    assert query_of("...") is None
    assert query_of('"a b" c') == "('a' <-> 'b') & ('c':*)"
    assert query_of("a b", any_word=True, last_is_open=False) == "('a') | ('b')"


@pytest.mark.parametrize(
    ("body", "phrases", "is_open", "snippet"),
    [
        ("one two three", [["two"]], False, "one \x02two\x03 three"),
        ("one two three", [["tw"]], True, "one \x02two\x03 three"),
        ("one two three", [["tw"]], False, "one two three"),
        ("one two, three", [["two", "three"]], False, "one \x02two, three\x03"),
        ("", [["a"]], True, ""),
        (" ".join(f"w{n}" for n in range(40)), [["w30"]], False, None),
    ],
)
def test_snippets(body: str, phrases: list[list[str]], is_open: bool, snippet: str | None) -> None:
    """The matches are marked, phrases as one; of a long text the part with the matches is shown."""
    text = snippet_of(body, phrases, is_open)
    if snippet is None:
        assert text.startswith("…w24 w25")
    else:
        assert text == snippet


def test_queries_of_both_have_the_same_words() -> None:
    """What is no word for one is none for the other."""
    for query in QUERIES:
        assert (query_of(query) is None) == (fts_index.fts_query(query) is None)
