"""Saved views: filters of the list of causes or of incidents, under a name, personal or shared with everybody.

The audit log has each view that is saved or deleted.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from triage.base.errors import NotFoundError, OptionError
from triage.evidence.redact import redact
from triage.store import audit, codec
from triage.store.interface import Connections

if TYPE_CHECKING:
    from sqlite_utils import Database

ViewPage = Literal["causes", "incidents"]
MOST_NAME, MOST_QUERY, MOST_VIEWS = 100, 4000, 200
_CREATE = """
CREATE TABLE saved_view (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL,
    page TEXT NOT NULL CHECK (page IN ('causes', 'incidents')), query TEXT NOT NULL, at REAL NOT NULL,
    actor TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE visit (person TEXT PRIMARY KEY, seen_at REAL NOT NULL, previous_at REAL) WITHOUT ROWID;
CREATE TABLE subscription (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, target TEXT NOT NULL, cause TEXT, filter TEXT NOT NULL, at REAL NOT NULL
) WITHOUT ROWID
"""


def create_tables(database: Database) -> None:
    """Create the tables of views, visits and subscriptions. PostgreSQL's are in `postgres/steps/0004.sql`."""
    for statement in _CREATE.split(";\n"):
        database.execute(statement)


@dataclass(frozen=True, slots=True)
class SavedView:
    """A filter under a name. `query` has the parameters of the list's address; `owner` is empty for a shared view."""

    id: str
    owner: str
    name: str
    page: ViewPage
    query: Mapping[str, str]
    at: float
    actor: str

    @property
    def is_shared(self) -> bool:
        """Whether everybody sees the view."""
        return not self.owner


class SavedViews:
    """The saved views of a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def list_views(self, person: str, page: ViewPage | None = None) -> list[SavedView]:
        """Return the shared views and those of a person, by name."""
        rows = self._db.read("SELECT * FROM saved_view WHERE owner IN ('', ?) ORDER BY name, owner, page", (person,))
        return [_view(row) for row in rows if page in (None, row["page"])]

    def get(self, identifier: str, person: str) -> SavedView:
        """Return a shared view, or one of this person. Raises NotFoundError."""
        row = self._db.read_one("SELECT * FROM saved_view WHERE id = ? AND owner IN ('', ?)", (identifier, person))
        if row is None:
            raise NotFoundError(f"there is no view {identifier}", hint="/views and GET /api/v1/views list the views")
        return _view(row)

    def save(
        self,
        name: str,
        page: ViewPage,
        query: Mapping[str, str],
        *,
        actor: str,
        is_shared: bool = False,
        now: float | None = None,
    ) -> SavedView:
        """Save a view; one of the same name, page and owner is replaced. Raises OptionError."""
        when, owner = time.time() if now is None else now, "" if is_shared else actor
        name = codec.without_surrogates(" ".join(redact(name).split()))
        body = codec.without_surrogates(json.dumps(dict(sorted(query.items())), ensure_ascii=False))
        if not name or len(name) > MOST_NAME or len(body) > MOST_QUERY:
            limits = f"at most {MOST_NAME} characters, and filters of at most {MOST_QUERY}"
            raise OptionError(f"a view needs a name of {limits}", hint="choose a shorter name or fewer filters")
        digest = hashlib.sha256(json.dumps([owner, page, name]).encode()).hexdigest()
        view = SavedView(f"v-{digest[:12]}", owner, name, page, dict(query), when, actor)
        with self._db.write() as db:
            (count,) = db.execute("SELECT count(*) FROM saved_view WHERE owner = ?", (owner,)).fetchone()
            if count >= MOST_VIEWS:
                raise OptionError(f"there are {MOST_VIEWS} views already", hint="delete some at /views")
            db.execute(
                "INSERT INTO saved_view (id, owner, name, page, query, at, actor) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET query = excluded.query, at = excluded.at, actor = excluded.actor",
                (view.id, owner, name, page, body, when, actor),
            )
            audit.write_entry(db, when, actor, "save view", view.id, _details(view))
        return view

    def delete(self, identifier: str, person: str, *, now: float | None = None) -> SavedView:
        """Delete a shared view, or one of this person. Raises NotFoundError."""
        view = self.get(identifier, person)
        with self._db.write() as db:
            db.execute("DELETE FROM saved_view WHERE id = ?", (view.id,))
            when = time.time() if now is None else now
            audit.write_entry(db, when, person, "delete view", view.id, _details(view))
        return view


def _details(view: SavedView) -> dict[str, object]:
    return {"name": view.name, "page": view.page, "query": dict(view.query), "shared": view.is_shared}


def _view(row: Any) -> SavedView:
    query = json.loads(row["query"])
    return SavedView(row["id"], row["owner"], row["name"], row["page"], query, row["at"], row["actor"])
