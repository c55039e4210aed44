"""Hosts, days and failures after a fix of many causes at once: a constant number of queries for a page of causes."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from triage.model.store import Cause
from triage.store.interface import Connections, Row

TREND_DAYS = 28
MOST_HOSTS = 3
T = TypeVar("T")
BATCH = 100  # causes in one query: databases limit its values and its parts
Roots = Mapping[str, Sequence[str]]
"""The signature or the fingerprints of each cause."""


def add_details(db: Connections, causes: Iterable[Cause], roots: Roots, today: int) -> tuple[Cause, ...]:
    """Return causes with their hosts and days, counted once where fingerprints share them."""
    detailed: list[Cause] = []
    for batch in _batches(list(causes)):
        chosen = {cause.id: roots[cause.id] for cause in batch}
        # The sums of a reader of a part are computed by each query, so one query asks for those of all causes.
        single = {cause: own for cause, own in chosen.items() if len(own) == 1 and not db.dialect.among}
        several = {cause: own for cause, own in chosen.items() if cause not in single}
        hosts = _most_hosts(db, single) | _most_hosts_of_several(db, several)
        days, times, counts = (
            _days(db, chosen, today),
            _latest_times(db, chosen),
            _part_counts(db, {cause: own for cause, own in several.items() if len(own) > 1}),
        )
        for cause in batch:
            counted = counts.get(cause.id)
            detailed.append(
                dataclasses.replace(
                    cause,
                    jobs=cause.jobs if counted is None else counted["job"],
                    host_count=cause.host_count if counted is None else counted["host"],
                    hosts=tuple(hosts.get(cause.id, ())),
                    days=tuple(days[cause.id][day] for day in range(today - TREND_DAYS + 1, today + 1)),
                    last_has_time=times.get(cause.id, (0.0, True))[1],
                )
            )
    return tuple(detailed)


def count_since(db: Connections, fixes: Mapping[str, float], roots: Roots) -> dict[str, int]:
    """Return how many failures with a time each cause had after its time in `fixes`; causes without one are left out.

    A row of VALUES for each fingerprint lets the database look up all of them by one index.
    """
    counts: Counter[str] = Counter()
    pairs = [(cause, root, at) for cause, at in fixes.items() for root in roots[cause]]
    for batch in _batches(pairs):
        rows = db.read(
            f"WITH fixed (cause, root, fixed_at) AS (VALUES {_rows('(?, ?, CAST(? AS DOUBLE PRECISION))', batch)}) "
            "SELECT fixed.cause, count(*) AS n FROM fixed JOIN incident i ON coalesce(i.signature, i.key) = fixed.root "
            "AND i.at > fixed.fixed_at AND i.has_time = 1 GROUP BY fixed.cause",
            [value for pair in batch for value in pair],
        )
        counts.update({row["cause"]: int(row["n"]) for row in rows})
    return dict(counts)


def _most_hosts(db: Connections, roots: Roots) -> dict[str, list[str]]:
    """Return the hosts with the most failures of causes with one root each: an index has them in this order."""
    if not roots:
        return {}
    one = (
        "SELECT * FROM (SELECT cause, name, incidents FROM cause_part WHERE cause = ? AND kind = 'host' "
        f"ORDER BY incidents DESC, name LIMIT {MOST_HOSTS}) AS most"
    )
    rows = db.read(" UNION ALL ".join([one] * len(roots)), [own[0] for own in roots.values()])
    of = {own[0]: cause for cause, own in roots.items()}
    return _group_names((of[row["cause"]], row) for row in rows)


def _most_hosts_of_several(db: Connections, roots: Roots) -> dict[str, list[str]]:
    """Return the hosts with the most failures of causes whose fingerprints may share hosts."""
    if not roots:
        return {}
    members, values = _members(roots)
    rows = db.read(
        f"{members} SELECT cause, name, incidents FROM (SELECT m.cause, p.name, sum(p.incidents) AS incidents, "
        "row_number() OVER (PARTITION BY m.cause ORDER BY sum(p.incidents) DESC, p.name) AS place FROM member m "
        "JOIN cause_part p ON p.cause = m.root AND p.kind = 'host' GROUP BY m.cause, p.name) AS ranked "
        "WHERE place <= ?",
        (*values, MOST_HOSTS),
    )
    return _group_names((row["cause"], row) for row in rows)


def _group_names(rows: Iterable[tuple[str, Row]]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for cause, row in sorted(rows, key=lambda item: (-item[1]["incidents"], item[1]["name"])):
        names.setdefault(cause, []).append(row["name"])
    return names


def _part_counts(db: Connections, roots: Roots) -> dict[str, Counter[str]]:
    """Return how many different jobs and hosts causes have whose fingerprints may share them."""
    if not roots:
        return {}
    members, values = _members(roots)
    rows = db.read(
        f"{members} SELECT m.cause, p.kind, count(DISTINCT p.name) AS n FROM member m JOIN cause_part p "
        "ON p.cause = m.root GROUP BY m.cause, p.kind",
        values,
    )
    counts: dict[str, Counter[str]] = {cause: Counter() for cause in roots}
    for row in rows:
        counts[row["cause"]][row["kind"]] = int(row["n"])
    return counts


def _days(db: Connections, roots: Roots, today: int) -> dict[str, Counter[int]]:
    """Return the failures of each day of the trend."""
    of = {root: cause for cause, own in roots.items() for root in own}
    rows = db.read(
        f"SELECT cause, day, incidents FROM cause_day WHERE cause IN ({_rows('?', of)}) AND day > ? AND day <= ?",
        (*of, today - TREND_DAYS, today),
    )
    days: dict[str, Counter[int]] = {cause: Counter() for cause in roots}
    for row in rows:
        days[of[row["cause"]]][row["day"]] += int(row["incidents"])
    return days


def _latest_times(db: Connections, roots: Roots) -> dict[str, tuple[float, bool]]:
    """Return the time of the last failure of each cause, and whether its files had it."""
    of = {root: cause for cause, own in roots.items() for root in own}
    by_index = (
        "SELECT s.cause, s.last_at, min(i.has_time) AS has_time FROM cause_sum s JOIN incident i "
        f"ON coalesce(i.signature, i.key) = s.cause AND i.at = s.last_at WHERE s.cause IN ({_rows('?', of)}) "
        "GROUP BY s.cause, s.last_at"
    )
    in_one_pass = (
        "SELECT cause, at AS last_at, min(has_time) AS has_time FROM (SELECT coalesce(i.signature, i.key) AS cause, "
        "i.at, i.has_time, rank() OVER (PARTITION BY coalesce(i.signature, i.key) ORDER BY i.at DESC) AS place "
        f"FROM incident i WHERE coalesce(i.signature, i.key) IN ({_rows('?', of)})) AS ranked WHERE place = 1 "
        "GROUP BY cause, at"
    )
    rows = db.read(in_one_pass if db.dialect.among else by_index, list(of))
    latest: dict[str, tuple[float, bool]] = {}
    for row in sorted(rows, key=lambda row: (row["last_at"], row["cause"])):
        latest[of[row["cause"]]] = row["last_at"], bool(row["has_time"])
    return latest


def _members(roots: Roots) -> tuple[str, list[str]]:
    """Return a WITH clause that has the roots of causes as rows of `member`, and its values."""
    pairs = [(cause, root) for cause, own in roots.items() for root in own]
    return f"WITH member (cause, root) AS (VALUES {_rows('(?, ?)', pairs)})", [text for pair in pairs for text in pair]


def _rows(row: str, values: Iterable[object]) -> str:
    """Return the text of one row for each value, with commas."""
    return ", ".join(row for _ in values)


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for begin in range(0, len(items), BATCH):
        yield items[begin : begin + BATCH]
