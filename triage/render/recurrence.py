"""Say that the cause of a failure ended jobs before."""

from __future__ import annotations

import time

from triage.model.store import Recurrence

_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_MOST_HOSTS = 3


def describe_recurrence(recurrence: Recurrence) -> str:
    """Return `Third time this week, on node7 each time; 9 times in all. Last said of it: anna: …`."""
    day = time.strftime("%Y-%m-%d", time.gmtime(recurrence.last_at))
    in_all = recurrence.total + 1
    if recurrence.recent:
        sentence = f"{_ordinal(recurrence.recent + 1)} time in a week".capitalize()
    else:
        sentence = f"{_ordinal(in_all)} time".capitalize() + f"; the last one was on {day}"
    hosts = recurrence.hosts[:_MOST_HOSTS]
    sentence += f", on {' and '.join(hosts)} each time" if hosts else ""
    sentence += f"; {in_all} times in all" if recurrence.recent and recurrence.total > recurrence.recent else ""
    sentence += f". {recurrence.fix}" if recurrence.fix else ""
    return sentence + (f". Last said of it by {recurrence.note}" if recurrence.note else "")


def _ordinal(number: int) -> str:
    if number - 2 < len(_ORDINALS):
        return _ORDINALS[number - 2]
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
