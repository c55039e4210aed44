"""The page docs/accuracy.md, from the outcomes of composed jobs and of recorded jobs in other dressings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from public_cases import RESULTS

from triage.testing.composer import Judgement, Plan, is_held_out

CONFIDENCES = ((0.0, 0.5), (0.5, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.01))
PARTS = ("verdict", "root", "ranks", "hosts")
HIGH, SURE = 0.7, 0.9


@dataclass(frozen=True, slots=True)
class Outcome:
    """One composed job: its plan, how right the answer was, and the expected and the given answer in short."""

    plan: Plan
    judgement: Judgement
    wanted: str
    got: str

    @property
    def is_held_out(self) -> bool:
        """Whether its cell is held out."""
        return is_held_out(self.plan.fault, self.plan.layout)

    @property
    def is_right(self) -> bool:
        """Whether nothing that is known is wrong."""
        return all(getattr(self.judgement, part) is not False for part in PARTS)

    @property
    def is_right_claim(self) -> bool:
        """Whether the root and, as far as they can be known, its ranks are right."""
        return self.judgement.root and self.judgement.ranks is not False

    @property
    def is_sure_and_wrong(self) -> bool:
        """Whether a wrong root has a high confidence."""
        return not self.judgement.root and (self.judgement.confidence or 0.0) >= HIGH


@dataclass(frozen=True, slots=True)
class Dressed:
    """A recorded job in one dressing: whether the answer is that of the job as recorded, else how it differs."""

    job: str
    dressing: str
    difference: str


_OF_PODS = frozenset(("kubectl --prefix", "stern", "Fluent Bit"))
# Dressings, starts of names of jobs, and why the answer differs.
EXPLANATIONS = (
    (
        _OF_PODS,
        ("ib_", "kernel_names", "env_nccl_algo", "single_process"),
        "The name of the pod hides the host that the line is from.",
    ),
    (
        frozenset(("docker compose", "stern", "GitHub Actions", "moreutils ts", "aws logs get-log-events")),
        ("hccl_late_rank", "hccl_tls_mismatch"),
        "A file of one line does not show what wraps it.",
    ),
)
HEAD = """# How often triage is right

Written by `make accuracy` on {date}, with triage {version} and catalog {catalog}; do not edit.

Most of these jobs are composed: `triage.testing.composer` draws a fault, a launcher with its way of keeping output,
and a dressing of the log files, and everything that must not matter: world size, hosts, ranks, scripts, log styles,
versions, time zones, noise and other files. It knows the truth, and what of it the files show. A *cell* is a fault in
a layout. Half of the cells are *held out*: nobody looks at their jobs while rules are written.

*Verdict*, *root*, *ranks* and *hosts* are the shares of jobs in which that part is right. Ranks and hosts count where
the files show them; where they do not, naming a wrong one counts as wrong, and naming none is not counted. All roots
that an expert would accept count as right. *Sure and wrong*: a wrong root with a confidence of at least {high}.

{summary}

The same people wrote the composer and the rules, though not the same hands.
"""


RULES = """
## Rules

In how many jobs (a composed one of every cell, two drawn hangs of every fault in every form of evidence, and the
samples) a rule of [reasoning.md](reasoning.md) fired, in how many it kept quiet, in how many the answer changes
without it, and how many need it: right with the rule, wrong without.
"""

PUBLIC = """
## Public cases

Threads in which people posted a failure. An expert wrote what is right, as far as the posted text shows, before it was
diagnosed. A report of symptoms only is right where the symptom that it lists first is. *Acceptable* is an honest
symptom or "unknown" where the text allows no more, or a neighbour of the right cause; *missed* is "unknown" where the
text does state the cause. `bench/public-cases.tsv` has the addresses and answers, not the texts. Half of them are set
aside: nobody looks at their texts while rules are written.
"""


def page(
    outcomes: Sequence[Outcome],
    recorded: Sequence[Outcome],
    dressed: Sequence[Dressed],
    rules: Sequence[Sequence[Any]],
    public: Sequence[Sequence[Any]],
    **stated: str,
) -> str:
    """Return the whole page. `recorded` are sample jobs as they are, `rules` and `public` the rows of
    the tables of rules and public cases.

    `stated` has date, version and catalog.
    """
    held = [one for one in outcomes if one.is_held_out]
    groups = [
        ("composed, held out", held),
        ("composed, others", [one for one in outcomes if not one.is_held_out]),
        ("composed, healthy", [one for one in outcomes if one.judgement.is_healthy]),
        ("recorded samples", recorded),
    ]
    header = ["jobs", "number", *PARTS, "sure and wrong"]
    summary = _table(header, [[name, str(len(jobs)), *_shares(jobs), _sure_and_wrong(jobs)] for name, jobs in groups])
    return "\n".join(
        [
            HEAD.format(summary=summary, high=HIGH, **stated),
            "## Confidence\n",
            "Claims are answers that name a cause. A claim is right if its root is right and its ranks are, where they "
            "can be known.\n\n### Held out\n",
            _confidence_table(held),
            "\n### All composed jobs\n",
            _confidence_table(outcomes),
            _dressed_section(dressed),
            PUBLIC,
            _table(["category", "cases", *RESULTS], public),
            RULES,
            _table(["stage", "rule", "fired", "quiet", "changed", "needed"], rules),
            "\n## By fault, held out\n",
            _breakdown("fault", held, lambda one: one.plan.fault),
            "\n## By layout, held out\n",
            _breakdown("layout", held, lambda one: one.plan.layout),
            "\n## By dressing, held out\n",
            _breakdown("dressing", held, lambda one: one.plan.dressing),
            "",
        ]
    )  # fmt: skip


def share(outcomes: Iterable[Outcome], part: str) -> str:
    """Return `97.1 % (340/350)` of the outcomes in which this part can be known."""
    values = [value for one in outcomes if (value := getattr(one.judgement, part)) is not None]
    return f"{100 * sum(values) / len(values):.1f} % ({sum(values)}/{len(values)})" if values else "-"


def totals(outcomes: Sequence[Outcome]) -> str:
    """Return one line about these outcomes, for a terminal."""
    parts = ", ".join(f"{part} {share(outcomes, part)}" for part in PARTS)
    sure = [one for one in outcomes if (one.judgement.confidence or 0.0) >= SURE]
    healthy = [one for one in outcomes if one.judgement.is_healthy]
    return (
        f"{parts}; sure and wrong {_sure_and_wrong(outcomes)}; claims >= {SURE} right "
        f"{sum(one.is_right_claim for one in sure)}/{len(sure)}; healthy clean {share(healthy, 'verdict')}"
    )


def _shares(outcomes: Sequence[Outcome]) -> list[str]:
    return [share(outcomes, part) for part in PARTS]


def _sure_and_wrong(outcomes: Sequence[Outcome]) -> str:
    return f"{sum(one.is_sure_and_wrong for one in outcomes)}/{len(outcomes)}"


def _confidence_table(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for low, high in CONFIDENCES:
        claims = [one for one in outcomes if (stated := one.judgement.confidence) is not None and low <= stated < high]
        if claims:
            right = sum(one.is_right_claim for one in claims)
            mean = sum(one.judgement.confidence or 0.0 for one in claims) / len(claims)
            numbers = [str(len(claims)), str(right), f"{right / len(claims):.3f}", f"{mean:.3f}"]
            rows.append([f"{low} to {min(high, 1.0)}", *numbers])
    return _table(["confidence", "claims", "right", "share right", "mean confidence"], rows)


def _breakdown(name: str, outcomes: Sequence[Outcome], key: Callable[[Outcome], str]) -> str:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[key(one)].append(one)
    rows = [[group, str(len(jobs)), *_shares(jobs), _sure_and_wrong(jobs)] for group, jobs in sorted(groups.items())]
    return _table([name, "jobs", *PARTS, "sure and wrong"], rows)


def _dressed_section(dressed: Sequence[Dressed]) -> str:
    same = sum(not one.difference for one in dressed)
    percent = f"{100 * same / len(dressed):.2f}" if dressed else "-"
    lines = [
        "\n## Recorded jobs in other dressings\n",
        f"Each recorded job in each dressing gives the verdict, the root and the ranks of the job as recorded in "
        f"{percent} % of all pairs ({same} of {len(dressed)}).\n",
    ]
    rows = [[one.job, one.dressing, one.difference, explain(one)] for one in dressed if one.difference]
    return "\n".join(lines) + ("\n" + _table(["job", "dressing", "difference", "reason"], rows) if rows else "")


def explain(one: Dressed) -> str:
    """Return why an answer differs, as far as somebody looked."""
    for dressings, jobs, reason in EXPLANATIONS:
        if one.dressing in dressings and one.job.startswith(jobs):
            return reason
    return "not explained yet"


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
