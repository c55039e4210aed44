"""Tables of sums that the database keeps current by triggers, whoever writes the rows that are summed (SQLite)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database

    from triage.store.interface import Transaction


@dataclass(frozen=True, slots=True)
class SumTables:
    """Some such tables. `triggers` are (name, event on a table, condition, statements). `fill_statements`
    compute all sums.
    """

    names: tuple[str, ...]
    create_statements: str
    triggers: tuple[tuple[str, str, str, str], ...]
    fill_statements: tuple[str, ...]

    def create(self, database: Database) -> None:
        """Create the tables and triggers, and fill them."""
        for statement in self.create_statements.split(";\n"):
            database.execute(statement)
        for name, event, condition, body in self.triggers:
            database.execute(f"CREATE TRIGGER {name} AFTER {event} WHEN {condition} BEGIN {body} END")
        self.fill(database)

    def fill(self, db: Transaction | Database) -> None:
        """Compute all sums again."""
        for table in self.names:
            db.execute(f"DELETE FROM {table}")
        for statement in self.fill_statements:
            db.execute(statement)
