"""Full-text search of incidents by SQLite's FTS5."""

from __future__ import annotations

from typing import Any

from triage.store.fts_index import RANKED, fts_query
from triage.store.interface import Connections, Row, Transaction


class SqliteText:
    """The full-text index `page_fts` over the table `page`; triggers keep it up to date."""

    def write_page(self, db: Transaction, num: int, title: str, names: str, body: str) -> None:
        """Write the indexed text of an incident, in place of its old one."""
        db.execute("DELETE FROM page WHERE num = ?", (num,))
        db.execute("INSERT INTO page (num, title, words, body) VALUES (?, ?, ?, ?)", (num, title, names, body))

    def condition(self, text: str) -> tuple[str, list[Any]]:
        """Return a condition on `i.num` for what a person typed, and its values."""
        query = fts_query(text)
        return ("i.num IN (SELECT rowid FROM page_fts WHERE page_fts MATCH ?)", [query]) if query else ("FALSE", [])

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
        query = fts_query(text, any_word=any_word, last_is_open=last_is_open)
        if query is None:
            return None
        among = connections.dialect.among.format("rowid")
        return connections.read(
            f"""
            WITH newest AS (
                SELECT rowid, rank FROM page_fts WHERE page_fts MATCH :query {among} ORDER BY rowid DESC LIMIT {RANKED}
            ),
            best AS (SELECT rowid, rank FROM newest ORDER BY rank, rowid DESC LIMIT :limit)
            SELECT {columns}, snippet(page_fts, 2, char(2), char(3), '…', 16) AS snippet
            FROM best JOIN page_fts ON page_fts.rowid = best.rowid JOIN {tables.format("best.rowid")}
            WHERE page_fts MATCH :query ORDER BY best.rank, best.rowid DESC
            """,
            {"query": query, "limit": limit},
        )
