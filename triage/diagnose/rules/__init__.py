"""All rules that experts use, in order, in one place. docs/reasoning.md lists them and shows what each is worth.

- PLACING: who a fact is about, before anything is matched (facts.py, candidates.py).
- CONCLUDING: from the ranks together to an inference. Those that are marked `always` are always heard; the others only
  when no line states
  a cause, and of them the first that speaks, for a rank that raised is better evidence than any silence.
- WEIGHING: edges between findings, moved suspicion, findings that are no cause here. Later ones fill in what earlier
  ones left open.
- CHOOSING: which of the findings that nothing explains is the root; the first difference decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from triage.diagnose.candidates import READING, Candidate
from triage.diagnose.causes import CHOOSING
from triage.diagnose.facts import PLACING
from triage.diagnose.graph import Case
from triage.diagnose.rules import calls, chains, links, machines, placement, silence
from triage.diagnose.scene import Scene
from triage.model.evidence import Evidence

Conclude = Callable[[Scene], list[Evidence]]
Weigh = Callable[[Case], None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A concluding rule; `always`: it is heard even where a line states a cause."""

    conclude: Conclude
    always: bool = False

    @property
    def name(self) -> str:
        return name_of(self.conclude)


# What explains most comes first: an absent rank before a divergent call, a measured number before silence, a wait
# before a lost connection.
CONCLUDING: tuple[Rule, ...] = (
    Rule(placement.split_rendezvous, always=True),
    Rule(placement.single_process, always=True),
    Rule(placement.shared_device, always=True),
    Rule(placement.memory_shared, always=True),
    Rule(placement.killed_while_saving, always=True),
    Rule(placement.same_path_written, always=True),
    Rule(silence.done_while_others_wait, always=True),
    Rule(placement.late_entry),
    Rule(silence.rank_absent),
    Rule(silence.left_early),
    Rule(silence.one_rank_diverged),
    Rule(silence.compile_skew),
    Rule(silence.uneven_steps),
    Rule(silence.missed_barrier),
    Rule(silence.never_joined),
    Rule(calls.odd_operation),
    Rule(calls.odd_group),
    Rule(calls.numbers),
    Rule(calls.rank_conditional),
    Rule(calls.divergent_call),
    Rule(calls.watchdog_starved),
    Rule(silence.log_stopped),
    Rule(silence.left_first),
)
WEIGHING: tuple[Weigh, ...] = (
    machines.failed_node,
    machines.nonfatal,
    machines.inner_error,
    machines.first_cuda_error,
    links.heartbeat_location,
    chains.catalog_edges,
    machines.first_of_burst,
    links.dead_peer,
    chains.stopped_before,
    chains.own_words,
    chains.symptoms_follow,
    chains.outside_after,
    machines.kill_confirmed,
    machines.nameless_kill,
    links.living_peer,
    machines.all_ranks,
)


@dataclass(frozen=True, slots=True)
class Heard:
    """What the concluding rules said: the inferences to go on with, and (rule, inferences) of all that spoke after the
    first.
    """

    inferences: tuple[Evidence, ...] = ()
    others: tuple[tuple[str, tuple[Evidence, ...]], ...] = ()
    spoken: frozenset[str] = field(default_factory=frozenset)


def infer(scene: Scene, *, stated: bool = False, without: frozenset[str] = frozenset()) -> Heard:
    """Ask the concluding rules. `stated`: a line states a cause, or a conclusion was handed in, so that silence is not
    asked.
    """
    heard: list[Evidence] = []
    others: list[tuple[str, tuple[Evidence, ...]]] = []
    spoken = set()
    first = True
    for rule in CONCLUDING:
        if rule.name in without or (stated and not rule.always):
            continue
        found = rule.conclude(scene)
        if not found:
            continue
        if rule.always or first:
            heard += found
            spoken.add(rule.name)
            first = first and rule.always
        else:
            others.append((rule.name, tuple(found)))
    return Heard(tuple(heard), tuple(others), frozenset(spoken))


def weigh(case: Case, without: frozenset[str] = frozenset()) -> frozenset[str]:
    """Apply the weighing rules to the candidates, in order; the names of those that changed something."""
    spoken = set()
    for rule in WEIGHING:
        if name_of(rule) not in without:
            before = _state(case.candidates)
            rule(case)
            if _state(case.candidates) != before:
                spoken.add(name_of(rule))
    return frozenset(spoken)


def _state(candidates: Iterable[Candidate]) -> list[tuple[object, ...]]:
    return [(len(one.explained_by), len(one.why), one.lowered, one.suspects) for one in candidates]


def name_of(rule: Callable[..., object]) -> str:
    """`catalog-edges` of `catalog_edges`."""
    return rule.__name__.strip("_").replace("_", "-")


def every_rule() -> list[tuple[str, str, str]]:
    """(stage, name, what it says in one sentence) of all rules, in order."""
    stages: list[tuple[str, list[Callable[..., object]]]] = [
        ("placing", [*PLACING, *READING]),
        ("concluding", [rule.conclude for rule in CONCLUDING]),
        ("weighing", [*WEIGHING]),
        ("choosing", [*CHOOSING]),
    ]
    return [(stage, name_of(rule), " ".join((rule.__doc__ or "").split())) for stage, rules in stages for rule in rules]


__all__ = [
    "CHOOSING",
    "CONCLUDING",
    "PLACING",
    "READING",
    "WEIGHING",
    "Heard",
    "Rule",
    "every_rule",
    "infer",
    "name_of",
    "weigh",
]
