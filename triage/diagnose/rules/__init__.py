"""All rules that experts use, in order, in one place. docs/reasoning.md lists them and shows what each is worth.

- PLACING and READING: which rank a fact is about, before anything is inferred (attribution.py, candidates.py).
- CONCLUDING: inferences from the ranks together. Rules marked `always` run always; the others only where no line
  states a cause, and of those only the first that fires counts, because an error of a rank is better evidence.
- WEIGHING: edges between findings, moved suspicion, findings that are no cause here. Later rules add to earlier ones.
- CHOOSING: which of the findings that nothing explains is the root; the first difference decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

from triage.base.lazy_dataclass import dataclass
from triage.diagnose.attribution import PLACING
from triage.diagnose.candidates import READING, Candidate
from triage.diagnose.causes import CHOOSING
from triage.diagnose.context import RuleContext
from triage.diagnose.graph import CausalGraph
from triage.diagnose.rules import (
    absence,
    calls,
    chains,
    entry_times,
    links,
    machines,
    npu_waits,
    placement,
    ras,
    victims,
    waits,
)
from triage.model.evidence import Evidence

Infer = Callable[[RuleContext], list[Evidence]]
Weigh = Callable[[CausalGraph], None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that makes inferences; `always`: it runs even where a line states a cause.

    `checks`: where dumps or stacks show a cause it runs too, and its inferences are compared with theirs.
    """

    infer: Infer
    always: bool = False
    checks: bool = False

    @property
    def name(self) -> str:
        """Name of the rule."""
        return name_of(self.infer)


# What explains most comes first: an absent rank before a divergent call, a measured number before silence, a wait
# before a lost connection.
CONCLUDING: tuple[Rule, ...] = (
    Rule(placement.split_rendezvous, always=True),
    Rule(placement.shared_device, always=True),
    Rule(placement.killed_while_saving, always=True),
    Rule(placement.same_path_written, always=True),
    Rule(calls.differing_fingerprints, always=True),
    Rule(absence.done_while_others_wait, always=True),
    Rule(entry_times.late_entry, always=True),
    Rule(absence.rank_absent),
    Rule(absence.left_early),
    Rule(absence.one_rank_diverged),
    Rule(absence.compile_skew),
    Rule(absence.uneven_steps),
    Rule(absence.missed_barrier),
    Rule(npu_waits.late_timeout),
    Rule(waits.launched_calls, checks=True),
    Rule(waits.launched_counts, checks=True),
    Rule(waits.open_calls, checks=True),
    Rule(npu_waits.wait_chain),
    Rule(ras.ras_report, checks=True),
    Rule(absence.never_joined),
    Rule(calls.watchdog_starved),
    Rule(waits.same_call),
    Rule(calls.divergent_call),
    Rule(calls.in_another_group),
    Rule(absence.left_first),
)
WEIGHING: tuple[Weigh, ...] = (
    machines.failed_node,
    machines.first_cuda_error,
    links.heartbeat_location,
    links.compared_calls,
    absence.most_awaited,
    chains.catalog_edges,
    chains.stopped_before,
    chains.differing_values,
    chains.shown_by_error,
    chains.reports_follow,
    chains.consequences_follow,
    machines.kill_confirmed,
    victims.inherit_ranks,
)


@dataclass(frozen=True, slots=True)
class InferenceResult:
    """The inferences to go on with, the rules that made them, and (rule, inferences) of the rules that fired later."""

    inferences: tuple[Evidence, ...] = ()
    others: tuple[tuple[str, tuple[Evidence, ...]], ...] = ()
    fired_rules: frozenset[str] = field(default_factory=frozenset)


def infer(
    context: RuleContext, *, has_cause: bool = False, is_measured: bool = False, without: frozenset[str] = frozenset()
) -> InferenceResult:
    """Run the CONCLUDING rules. `has_cause`: a line states a cause, so only rules marked `always` run; `is_measured`: a
    dump or a stack shows one, so rules marked `checks` run too, but add nothing. Where no rule concludes anything, what
    ranks differ in is said.
    """
    inferences: list[Evidence] = []
    others: list[tuple[str, tuple[Evidence, ...]]] = []
    fired_rules = set()
    is_first = not is_measured
    for rule in CONCLUDING:
        if rule.name in without or not (rule.always or not (has_cause or is_measured) or (rule.checks and is_measured)):
            continue
        made = rule.infer(context)
        if not made:
            continue
        if rule.always or is_first:
            inferences += made
            fired_rules.add(rule.name)
            is_first = is_first and rule.always
        else:
            others.append((rule.name, tuple(made)))
    if is_first and not has_cause:
        inferences += ras.describe_differences(context) or waits.describe_differences(context)
    return InferenceResult(tuple(inferences), tuple(others), frozenset(fired_rules))


def weigh(graph: CausalGraph, without: frozenset[str] = frozenset()) -> frozenset[str]:
    """Apply the WEIGHING rules to the candidates, in order; return the names of those that changed something."""
    fired_rules = set()
    for rule in WEIGHING:
        if name_of(rule) not in without:
            before = _snapshot(graph.candidates)
            rule(graph)
            if _snapshot(graph.candidates) != before:
                fired_rules.add(name_of(rule))
    return frozenset(fired_rules)


def _snapshot(candidates: Iterable[Candidate]) -> list[tuple[object, ...]]:
    return [(len(one.explained_by), len(one.why), one.suspects) for one in candidates]


def name_of(rule: Callable[..., object]) -> str:
    """Return `catalog-edges` for `catalog_edges`."""
    return rule.__name__.strip("_").replace("_", "-")


def list_rules() -> list[tuple[str, str, str]]:
    """Return (stage, name, what it says in one sentence) of all rules, in order."""
    stages: list[tuple[str, list[Callable[..., object]]]] = [
        ("attribution", [*PLACING, *READING]),
        ("inference", [rule.infer for rule in CONCLUDING]),
        ("weighing", [*WEIGHING]),
        ("choice", [*CHOOSING]),
    ]
    return [(stage, name_of(rule), " ".join((rule.__doc__ or "").split())) for stage, rules in stages for rule in rules]


__all__ = [
    "CHOOSING",
    "CONCLUDING",
    "PLACING",
    "READING",
    "WEIGHING",
    "InferenceResult",
    "Rule",
    "infer",
    "list_rules",
    "name_of",
    "weigh",
]
