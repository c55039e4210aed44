"""Copy every row that can still be read of a damaged store into a new one.

SQLite reads a table from its root down, so that one damaged page hides all pages below it, and a damaged header hides
everything. Python's sqlite3 has no access to SQLite's own recovery, and that one also returns deleted rows and does not
check what it reads. So the pages are read here, each by itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from triage.store import migrations
from triage.store.salvage import repair
from triage.store.salvage.btree import DamagedPageError, is_btree_page
from triage.store.salvage.page_file import PageFile
from triage.store.salvage.page_walk import DamagedPage, PageWalk, Tree
from triage.store.salvage.report import SalvageReport
from triage.store.salvage.shapes import read_shapes
from triage.store.sqlite import SqliteConnections

TABLES = (
    *("setting", "incident", "report", *repair.DERIVED, "history", "feedback"),
    *("cluster", "cluster_key", "exemplar", "counter", "apart", "cause_work", "cause_comment", "audit"),
    *("saved_view", "visit", "subscription"),
)


def recover_rows(path: Path, connections: SqliteConnections, report: SalvageReport) -> None:
    """Copy the rows of a damaged store into an empty store. Raises StoreError if the file cannot be opened."""
    with PageFile(path, is_btree_page) as file:
        version = file.user_version()
        if version is None:
            report.lost.append("the header of the file is damaged: its tables are taken to be those of this version")
        is_known = version is not None and 0 < version <= migrations.VERSION
        _create_tables(connections, version if is_known else None)
        db = connections.get()
        walk = PageWalk(file, read_shapes(db))
        report.lost += list(_describe_walk(walk))
        triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")  # they write what is rebuilt anyway
        for name in TABLES:
            if name in walk.trees:
                _copy_table(db, walk, walk.trees[name], report)
        for _, sql in triggers:
            db.execute(sql)
    migrations.migrate(connections)
    repair.complete_rows(db, report)
    report.rows |= {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES}


def _create_tables(connections: SqliteConnections, version: int | None) -> None:
    """Create the tables as the damaged store has them, in a file that nobody needs after a crash."""
    db = connections.get()
    for pragma in ("journal_mode = MEMORY", "synchronous = OFF", "foreign_keys = OFF"):
        db.execute(f"PRAGMA {pragma}")
    migrations.apply_steps(connections, migrations.VERSION if version is None else version)


def _copy_table(db: sqlite3.Connection, walk: PageWalk, tree: Tree, report: SalvageReport) -> None:
    lost_pages = [*tree.damaged]
    for number in tree.pages:
        db.execute("SAVEPOINT page")
        try:
            for cell, row in walk.rows_of(tree.shape, walk.parse(number)):
                if row is None:
                    name = f"row {cell.rowid}" if cell.rowid is not None else "a row"
                    report.lost.append(f"table {tree.shape.name}: the rest of {name} is damaged")
                    continue
                _insert_row(db, tree.shape.name, row)
            db.execute("RELEASE page")
        except (DamagedPageError, sqlite3.Error):
            db.execute("ROLLBACK TO page")
            db.execute("RELEASE page")
            lost_pages.append(DamagedPage(number, is_leaf=True))
    report.lost += [_describe_page(tree, page) for page in lost_pages]


def _insert_row(db: sqlite3.Connection, table: str, row: Mapping[str, object]) -> None:
    names = ", ".join(row)
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join(':' + name for name in row)})", row)


def _describe_walk(walk: PageWalk) -> Iterator[str]:
    if walk.free is None and any(tree.may_miss_pages() for tree in walk.trees.values()):
        yield "the list of unused pages is damaged: rows that were deleted may be among the salvaged ones"
    for number, names in walk.ambiguous:
        yield f"page {number} was left out: its rows can belong to {' or '.join(names)}"


def _describe_page(tree: Tree, page: DamagedPage) -> str:
    name = f"table {tree.shape.name}"
    if not page.number:
        return f"{name}: its first page is not known, so its rows were searched for on all pages"
    rows = "" if page.low is None and page.high is None else f", with {_describe_range(tree, page)}"
    end = "" if page.is_leaf else "; the pages below it were searched for"
    again = "; they are written again from the reports" if tree.shape.name in repair.DERIVED else ""
    return f"{name}: page {page.number} is damaged or missing{rows}{end}{again}"


def _describe_range(tree: Tree, page: DamagedPage) -> str:
    if tree.shape.has_rowids:
        low = int(str(page.low[0])) + 1 if page.low else 1
        if page.high is None:
            return f"the rows from {low} on"
        high = int(str(page.high[0]))
        return f"the rows {low} to {high} (at most {high - low + 1})"
    low_key, high_key = (", ".join(map(str, key)) if key else "" for key in (page.low, page.high))
    bounds = [f"after ({low_key})" if low_key else "", f"up to ({high_key})" if high_key else ""]
    return "the rows " + " and ".join(bound for bound in bounds if bound)
