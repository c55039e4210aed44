"""Sentences that a reader needs: what a kill, a link, a stop or an error of all ranks means. None chooses the cause."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.context import RuleContext
from triage.diagnose.graph import CausalGraph
from triage.diagnose.memory_kills import killed_process, may_be_rank, was_killed
from triage.diagnose.phrases import join_names
from triage.model import Evidence

_ADDRESS = lazy_re(r"^\[?([0-9a-fA-F:.]+?)\]?(?:<\d+>)?$")


def add_remarks(graph: CausalGraph) -> None:
    """Add these sentences to the `why` of the candidates that they are about."""
    for remark in (
        _describe_saved_state,
        _describe_silence,
        _describe_late_failures,
        _describe_kills,
        _describe_links,
        _describe_spread,
    ):
        remark(graph)


def _describe_saved_state(graph: CausalGraph) -> None:
    """A job that was stopped from outside had saved its state, as last lines show: then little is lost."""
    context = graph.context
    savers = sorted(rank for rank, action in context.doing.items() if action == "saved")
    steps = [context.last_step[rank] for rank in savers if rank in context.last_step]
    if not savers:
        return
    for stop in graph.candidates:
        if stop.indicates == "outside" or any(fact.kind == "scheduler" for fact in stop.facts):
            step = f" at step {max(steps)}" if steps else ""
            stop.why.append(f"Stopped after saving{step}, as the last lines of {format_ranks(savers)} show")


def _describe_silence(graph: CausalGraph) -> None:
    """A job that is stopped from outside may have hung before: then nothing says yet why."""
    context = graph.context
    for stop in graph.candidates:
        if stop.indicates == "outside" and context.step_times:
            from triage.diagnose.silent_stops import describe_silence  # few jobs are stopped from outside

            sentence = describe_silence(stop, context.step_times, context.last_step, context.ranks)
            stop.doubts += [sentence] if sentence else []


def _describe_late_failures(graph: CausalGraph) -> None:
    """What fails after the line by which its program finished fails in the shutdown: little or nothing is lost."""
    context = graph.context
    for candidate in graph.candidates if context.finish_offsets else ():
        lines = [fact for fact in candidate.facts if fact.kind not in ("inference", "exit")]
        if lines and not candidate.explained_by and all(_is_behind_end(context, fact) for fact in lines):
            candidate.why.append(
                "The program had said that it finished: it failed after that, and its results may be complete"
            )


def _is_behind_end(context: RuleContext, fact: Evidence) -> bool:
    is_of_finished = fact.origin.rank in context.finished if context.finished else len(context.ranks) <= 1
    return is_of_finished and fact.offset > context.finish_offsets.get(fact.source, fact.offset)


def _describe_kills(graph: CausalGraph) -> None:
    """A process that the kernel killed for memory, with an unknown pid, may be a rank that died by SIGKILL on that
    host, or that ran there.
    """
    for candidate in graph.candidates:
        killed = {
            (fact.origin.host or "", *process)
            for fact in candidate.facts
            if fact.origin.rank is None and (process := killed_process(fact))
        }
        for host, pid, program in sorted(killed):
            kernel = f"The kernel of {host}" if host else "The kernel"
            text = f"{kernel} killed process {pid} ({program}), a pid that no file maps to a rank"
            candidate.why.append(text + (_possible_victims(graph.context, host) if may_be_rank(program) else ""))


def _possible_victims(context: RuleContext, host: str) -> str:
    """Return a clause that names the ranks that may have been killed on a host; empty where there are none."""
    here = {rank for rank, hosts in context.hosts.items() if host in hosts}
    dead = {fact.origin.rank for fact in context.exits if fact.origin.rank is not None and was_killed(fact)}
    dead = {rank for rank in dead if not host or rank in here or rank not in context.hosts}
    ranks = dead or here
    if not ranks:
        return ""
    one_of = "one of " if len(ranks) > 1 else ""
    return f": it may be {one_of}{format_ranks(ranks)}, which {'died by SIGKILL' if dead else 'ran'} there"


def _describe_links(graph: CausalGraph) -> None:
    """Where no other rank had failed before, the link is the cause. Its ends and its device are named if known."""
    for link in graph.candidates:
        if link.indicates != "link" or link.explained_by:
            continue
        peers = {value for capture in ("peer", "peer_ip") for value in link.values.get(capture, ())}
        devices = sorted(set(link.values.get("device", ())))
        addresses = graph.context.addresses
        hosts = {host for peer in peers if (match := _ADDRESS.match(peer)) for host in addresses.get(match[1], ())}
        ends = sorted({*link.hosts, *hosts}) if hosts else [*link.hosts[:3], *sorted(peers)[:3]]
        link.why.append(
            "No other rank had failed before, so the link is the cause"
            + (f", between {join_names(ends)}" if len(ends) > 1 else "")
            + (f", device {', '.join(devices[:3])}" if devices else "")
        )


def _describe_spread(graph: CausalGraph) -> None:
    """The same error on all ranks is one of the program, the configuration or shared hardware, not of one rank."""
    world = graph.context.all_ranks
    for candidate in graph.candidates:
        ranks = candidate.observed_ranks
        if candidate.suspects is not None or candidate.role == "symptom" or candidate.is_inferred or len(ranks) < 2:
            continue
        if candidate.indicates == "outside" and set(ranks) >= world:
            candidate.why.append(f"All ranks ({format_ranks(ranks)}) were stopped, so no rank is at fault")
        elif len(ranks) > 2 and set(ranks) >= world and candidate.indicates != "stalled":
            is_of_machine = candidate.domain in ("gpu", "fabric", "host", "slurm")
            fault = "shared hardware" if is_of_machine else "the program or its configuration"
            candidate.why.append(f"All ranks ({format_ranks(ranks)}) show it: a fault of {fault}, not of one rank")
        elif world:
            candidate.why.append(f"{len(ranks)} of {len(world)} ranks show it: {format_ranks(ranks)}")
