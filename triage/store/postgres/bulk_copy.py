"""Copy many rows in one transaction without the triggers that keep sums.

Each of them updates the same few rows again and again, and within one transaction every old version of a row stays and
is read again: the time of a copy would grow with the square of its size. So the sums are computed at the end.
"""

from __future__ import annotations

from triage.store.interface import Transaction

_TABLES = ("incident", "host", "fact", "cause_part", "cluster_key", "audit")
_IS_OWNER = (
    "SELECT bool_and(pg_has_role(relowner, 'USAGE')) FROM pg_class WHERE relkind = 'r' AND relname = ANY(?) "
    "AND relnamespace = CAST(current_schema() AS regnamespace)"
)
_ROOT = "coalesce(i.signature, i.key)"
# The same sums as those of steps/0002.sql and 0007.sql.
_SUMS = (
    f"INSERT INTO cause_part SELECT {_ROOT}, p.kind, p.name, count(*) FROM incident i JOIN cause_parts p "
    f"ON p.num = i.num WHERE {_ROOT} IS NOT NULL GROUP BY 1, 2, 3",
    f"INSERT INTO cause_day SELECT {_ROOT}, CAST(trunc(i.at / 86400) AS BIGINT), count(*) FROM incident i "
    f"WHERE {_ROOT} IS NOT NULL GROUP BY 1, 2",
    "INSERT INTO cause_sum (cause, incidents, first_at, last_at, first_stored, last_stored, title, domain, severity) "
    f"SELECT {_ROOT}, count(*), min(i.at), max(i.at), min(i.stored_at), max(i.stored_at), max(i.title), "
    f"max(i.domain), max(i.severity) FROM incident i WHERE {_ROOT} IS NOT NULL GROUP BY 1",
    "UPDATE cause_sum SET hosts = n.hosts, jobs = n.jobs FROM (SELECT cause, count(*) FILTER (WHERE kind = 'host') AS "
    "hosts, count(*) FILTER (WHERE kind = 'job') AS jobs FROM cause_part GROUP BY cause) n WHERE n.cause = "
    "cause_sum.cause",
    "INSERT INTO incident_sum SELECT verdict, domain, signature, key, count(*) FROM incident GROUP BY 1, 2, 3, 4",
    "INSERT INTO facet_sum SELECT 'host', name, count(*) FROM host WHERE blamed = 1 GROUP BY name",
    "INSERT INTO facet_sum SELECT 'fact.' || name, value, count(*) FROM fact GROUP BY name, value",
    "UPDATE generation SET number = number + 1",
)


def stop_triggers(db: Transaction) -> bool:
    """Stop the triggers for this transaction; return whether they stand: only the owner of the tables may."""
    row = db.execute(_IS_OWNER, (list(_TABLES),)).fetchone()
    if row is None or not row[0]:
        return False
    for table in _TABLES:
        db.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    return True


def compute_sums(db: Transaction) -> None:
    """Do at once what the triggers would have done, and start them again."""
    for statement in _SUMS:
        db.execute(statement)
    db.execute("SET CONSTRAINTS ALL IMMEDIATE")  # a table cannot be altered while a check of its references waits
    for table in _TABLES:
        db.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
