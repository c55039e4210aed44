"""Play one week of a support team on composed jobs, and write docs/team.md.

`make team` plays 500 jobs, the test fewer. Each job is composed, diagnosed and stored as `triage ingest` does it,
and the team works on causes through the store as the pages, the API and `triage causes` do.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

import triage  # noqa: E402
from tests.shared_catalog import OPTIONS, share_catalog  # noqa: E402
from triage.model import Diagnosis  # noqa: E402
from triage.model.store import Cause  # noqa: E402
from triage.store import Store  # noqa: E402
from triage.store.cause_work import WorkChange  # noqa: E402
from triage.store.recurrence import find_recurrence  # noqa: E402
from triage.store.search import Filter  # noqa: E402
from triage.testing.composer import Plan, compose, is_held_out, list_cells  # noqa: E402
from triage.testing.composer.dressings import DRESSINGS  # noqa: E402

PAGE = ROOT / "docs" / "team.md"
JOBS, SEED = 500, 7
DAY = 86400.0
MONDAY = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Half of the failures of a cluster are a few that come again and again; here these, in all layouts.
FREQUENT = ("out-of-memory", "user-error", "host-oom-killer", "xid-79-fallen-off-bus", "batch-skipped-by-one")

INTRODUCTION = """\
{count} composed jobs arrive in one week, half of them with failures that come again and again. `make team` composes
and diagnoses them, does what this page says, and writes it; a test does the same with fewer jobs. On the pages this
is [Causes and Inbox](web.md), in the terminal [`triage causes`](cli.md), for programs [the API](api.md).
Here everybody sees all jobs; [`[visibility]`](operating.md#who-sees-which-incidents) shows each team its own.
"""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job of the week and the second of its failure."""

    plan: Plan
    at: float


def draw_arrivals(count: int) -> list[Arrival]:
    """Return the jobs of the week in the order of their failures; fewer at the weekend, none of a held-out cell."""
    rng = random.Random(SEED)
    cells = [cell for cell in list_cells() if not is_held_out(*cell)]
    frequent = [cell for cell in cells if cell[0] in FREQUENT]
    arrivals = []
    for number in range(count):
        fault, layout = rng.choice(frequent if number % 2 else cells)
        day = rng.choices(range(7), (5, 5, 5, 5, 5, 2, 2))[0]
        plan = Plan(fault, layout, rng.choice(DRESSINGS).name, number)
        arrivals.append(Arrival(plan, MONDAY + day * DAY + rng.uniform(0, DAY)))
    return sorted(arrivals, key=lambda arrival: arrival.at)


def diagnose(arrival: Arrival) -> Diagnosis:
    """Compose and diagnose a job, and move its times to the second of its arrival."""
    with tempfile.TemporaryDirectory() as scratch:
        made = triage.ingest(compose(arrival.plan).write(Path(scratch) / f"job-{arrival.plan.seed}"), options=OPTIONS)
    root, delay = made.root_cause, arrival.at - (made.job.last_time or arrival.at)
    moved = None if root is None or root.first_time is None else dataclasses.replace(root, first_time=arrival.at)
    job = dataclasses.replace(made.job, first_time=(made.job.first_time or arrival.at) + delay, last_time=arrival.at)
    findings = tuple(moved if moved is not None and one == root else one for one in made.findings)
    unknown = tuple(moved if moved is not None and one == root else one for one in made.unknown)
    return dataclasses.replace(made, job=job, root_cause=moved or root, findings=findings, unknown=unknown, timeline=())


class Team:
    """The week: what arrives is stored, and what the team does is written down as a story."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.lines: list[str] = []
        self.verdicts: Counter[str] = Counter()
        self.fixed = self.ignored = ""

    def say(self, *sentences: str) -> None:
        """Add a paragraph to the story."""
        self.lines += [" ".join(filter(None, sentences)), ""]

    def receive(self, day: int, jobs: Sequence[tuple[Arrival, Diagnosis]]) -> None:
        """Store the jobs of a day."""
        today: Counter[str] = Counter()
        for arrival, diagnosis in jobs:
            self.store.incidents.add(diagnosis, now=arrival.at)
            today[diagnosis.verdict] += 1
        self.verdicts += today
        self.lines += [f"## {DAYS[day]}", ""]
        kinds = ", ".join(
            f"{today[kind]} {kind}" for kind in ("known", "unknown", "inconclusive", "clean") if today[kind]
        )
        self.say(f"{_count(len(jobs), 'job')} arrived: {kinds}.")

    def causes(self, day: int) -> list[Cause]:
        """Return the causes on the evening of a day, most failures first."""
        return list(self.store.causes.list_causes(limit=100_000, now=evening(day)).causes)

    def show_causes(self, day: int) -> None:
        """Write the first causes as a table, as `/causes` and `triage causes` list them."""
        self.lines += ["| cause | failures | hosts | status | assignee |", "|---|---|---|---|---|"]
        self.lines += [
            f"| `{cause.id}` {_cell(cause.title)} | {cause.incidents} | {cause.host_count} | {cause.status} "
            f"| {cause.assignee} |"
            for cause in self.causes(day)[:5]
        ]
        self.lines.append("")

    def work(self, day: int, cause: Cause, change: WorkChange) -> None:
        """Change the work on a cause in the evening of a day."""
        self.store.cause_work.change([cause.id], change, actor="mira", now=evening(day))


def evening(day: int) -> float:
    """Return the end of a day of the week."""
    return MONDAY + (day + 1) * DAY - 1


def play(store: Store, jobs: Sequence[tuple[Arrival, Diagnosis]]) -> Team:
    """Play the week on these jobs; return the team with its story."""
    team = Team(store)
    for day, act in enumerate((_assign, _fix, _name, _ignore, _regress, _rest, _sum_up)):
        start = MONDAY + day * DAY
        team.receive(day, [item for item in jobs if start <= item[0].at < start + DAY])
        act(team, day)
    return team


def _assign(team: Team, day: int) -> None:
    team.say("The team opens the causes, not the incidents:")
    team.show_causes(day)
    cause = next(item for item in team.causes(day) if item.kind == "signature")
    team.work(day, cause, WorkChange("acknowledged", assignee="mira", ticket="T-381"))
    team.store.cause_work.comment(cause.id, "Asked the owners of the jobs", actor="mira", now=evening(day))
    team.fixed = cause.id
    team.say(f"Mira takes `{cause.id}`, the most frequent one, acknowledges it, links the ticket and comments.")


def _fix(team: Team, day: int) -> None:
    cause = team.store.causes.get(team.fixed, now=evening(day))
    team.work(day, cause, WorkChange("fixed", "trainer 4.2"))
    team.say(f"`{cause.id}` ended {cause.incidents} jobs. It is fixed in trainer 4.2 from this evening on.")


def _name(team: Team, day: int) -> None:
    clusters = team.store.clusters.list_clusters(now=evening(day))
    if clusters:
        team.store.cluster_actions.name(clusters[0].id, "The failure that Jonas knows", actor="jonas")
        team.say(
            f"In the inbox: {_count(len(clusters), 'cluster')} of failures that no signature knows.",
            f"Jonas knows the first, `{clusters[0].id}`, and names it. All its incidents, also later ones, have it.",
        )


def _ignore(team: Team, day: int) -> None:
    open_ones = [item for item in team.causes(day) if item.status == "open"]
    if open_ones:
        until = evening(5)
        team.ignored = open_ones[0].id
        team.work(day, open_ones[0], WorkChange("ignored", date=until))
        team.say(f"`{open_ones[0].id}` waits for a vendor. The team ignores it until Saturday evening.")


def _regress(team: Team, day: int) -> None:
    cause = team.store.causes.get(team.fixed, now=evening(day))
    if cause.status != "regressed":
        team.say(f"`{cause.id}` did not come back.")
        return
    latest = team.store.search.list_incidents(Filter(cause=cause.id), limit=1)[0]
    recurrence = find_recurrence(team.store, latest.id)
    again = f"The report of the latest says: {recurrence.fix}." if recurrence is not None else ""
    team.say(f"`{cause.id}` comes back: {_count(cause.since_fix, 'failure')} since the fix, so it is regressed.", again)


def _rest(team: Team, day: int) -> None:
    new = [item for item in team.causes(day) if item.first_stored >= MONDAY + day * DAY]
    team.say(f"New today (`triage causes --new 1d`): {_count(len(new), 'cause')}.")


def _sum_up(team: Team, day: int) -> None:
    causes = team.causes(day)
    states = Counter(cause.status for cause in causes)
    kinds = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    failed = sum(count for verdict, count in team.verdicts.items() if verdict in ("known", "unknown"))
    known = team.verdicts["known"]
    ignored = next((cause for cause in causes if cause.id == team.ignored), None)
    team.say(
        f"`{ignored.id}` is {ignored.status} again by itself." if ignored is not None else "",
        f"The week had {_count(len(causes), 'cause')}: {kinds}.",
    )
    team.show_causes(day)
    team.say(
        f"{_count(team.verdicts.total(), 'job')} arrived, {failed} failed in a way the files show,",
        f"and {known} of these ({known / max(failed, 1):.0%}) have a named cause.",
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")[:60]


def write_page(team: Team, count: int) -> str:
    """Return docs/team.md."""
    head = ["# A week of a support team", "", INTRODUCTION.format(count=count)]
    return "\n".join([*head, *team.lines]).rstrip() + "\n"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else JOBS
    arrivals = draw_arrivals(count)
    with share_catalog(), multiprocessing.get_context("fork").Pool() as pool:
        jobs = list(zip(arrivals, pool.imap(diagnose, arrivals, chunksize=4), strict=True))
    with tempfile.TemporaryDirectory() as scratch, Store.open(Path(scratch) / "triage.db") as store:
        PAGE.write_text(write_page(play(store, jobs), count), encoding="utf-8")


if __name__ == "__main__":
    main()
