"""Rules about what somebody did not write: ranks that are absent, left, stopped, or missed a collective."""

from __future__ import annotations

from collections.abc import Iterable, Set

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_range, format_ranks
from triage.diagnose.context import LONG_SILENCE, SANE_WORLD, RuleContext, ranks_of
from triage.diagnose.endings import is_stated_ending
from triage.diagnose.graph import CausalGraph, is_status_ending
from triage.diagnose.open_calls import describe_stacks, name_wait, read_job_progress
from triage.diagnose.phrases import agree
from triage.diagnose.rules.waits import calls_differ
from triage.evidence.inference import BLOCKED, HUNG, make_inferences
from triage.model import Evidence, ExitDetail, FlightDetail, InferenceDetail

_STORE_COUNT = lazy_re(
    r"\b(?P<joined>\d{1,7})/(?P<size>\d{1,7}) clients joined"
    r"|Timed out .{0,80}store based barrier.{0,60}_key:1 \(world_size=(?P<world>\d{1,7}), ?"
    r"(?:worker_count|num_workers_joined)=(?P<workers>\d{1,7})\b"
)
_WAITS_AT_STORE = lazy_re(
    r"clients joined|store based barrier on rank:? (?P<rank>\d{1,7})|\[(?P<fetching>\d{1,7})\] is setting up NCCL"
    r"|wait timeout after|DistStoreError: Socket Timeout"
)
_STORE_KEY = lazy_re(r"keys: /\S*?/(\d{1,18})//cpu//\d+/(\d{1,18})\b")
_LONGEST_TEXT = 4000  # characters of a text that are searched for what a store says


def _infer(rule: str, ranks: Iterable[int], text: str, evidence: Evidence) -> list[Evidence]:
    return make_inferences(rule, ranks, text, evidence, basis="absence")


def rank_absent(context: RuleContext) -> list[Evidence]:
    """The store counts fewer clients than ranks, or all others wait there for the address of one rank: it left no
    trace, or it does not create the process group with them.
    """
    counts = (count for count in context.once(_store_counts) if count[0] < count[1])
    if (fewest := min(counts, default=None, key=lambda count: count[:2])) is not None:
        return _infer_from_count(context, *fewest)
    asking = [fact for fact in context.facts_with("//cpu//") if _STORE_KEY.search(fact.text)]
    wanted = {int(match[2]): fact for fact in asking if (match := _STORE_KEY.search(fact.text))}
    if len(wanted) != 1:
        return []
    rank, fact = next(iter(wanted.items()))
    waiting = ranks_of(asking)
    if rank not in context.ranks and rank not in context.failed:
        text = f"every process waits for the address of rank {rank}, and no file is from rank {rank}"
        return _infer("rank-absent", {rank}, text, fact)
    if rank not in waiting and waiting | {rank} == context.all_ranks:
        text = f"{format_ranks(waiting)} {agree(waiting, 'waits', 'wait')} in the creation of a process group"
        return _infer("never-joined", {rank}, f"{text} for the address of rank {rank}, which is elsewhere", fact)
    return []


def _store_counts(context: RuleContext) -> list[tuple[int, int, Evidence]]:
    """Return (processes that joined, size of the world, fact) of all facts with the count of a store."""
    counts = []
    for fact in (*context.facts_with("clients joined"), *context.facts_with("store based barrier")):
        match = _STORE_COUNT.search(fact.text[:_LONGEST_TEXT])
        if match:
            counts.append((int(match["joined"] or match["workers"]), int(match["size"] or match["world"]), fact))
    return counts


def _infer_from_count(context: RuleContext, joined: int, size: int, fact: Evidence) -> list[Evidence]:
    present = context.ranks
    waiting = context.once(_ranks_at_store)
    if len(present | waiting) < 2 <= joined:
        return []  # the output of one rank alone: those that are missing may have failed before, in other files
    known = next((ranks for ranks in (present, waiting) if len(ranks) == joined), None)
    absent = set(range(min(size, SANE_WORLD))) - known if known is not None else set()
    more = f"; no file is from {format_ranks(absent)}" if absent and not absent & present else ""
    more = more or (f"; {format_ranks(absent)} did not" if absent else "")
    # With ranks beyond the absent ones the world is as large as the job was told.
    is_started = bool(absent) and (max(absent) < max(present, default=-1) or bool(absent & present))
    text = f"{joined} of {size} ranks reached the store{more}"
    return _infer("never-joined" if is_started else "rank-absent", absent, text, fact)


def _ranks_at_store(context: RuleContext) -> frozenset[int]:
    """Return the ranks that gave up waiting at the store, as their lines or their texts say."""
    ranks = set()
    for fact in context.facts:
        match = _WAITS_AT_STORE.search(fact.text[:_LONGEST_TEXT]) if fact.kind != "inference" else None
        if match:
            stated = match["rank"] or match["fetching"]
            ranks.add(int(stated) if stated else fact.origin.rank)
    return frozenset(rank for rank in ranks if rank is not None)


def left_early(context: RuleContext) -> list[Evidence]:
    """Some ranks were done while others still waited for them: they say so, or the launcher's table of failures does
    not list them.
    """
    stuck = context.evidence_of("waiting", "peer-lost")
    if not stuck or context.once(calls_differ):
        return []  # calls that cannot match do not end, whoever left
    waiting, unlisted = context.ranks_with("waiting", "peer-lost"), _find_unlisted(context)
    leaving = {rank for rank in context.all_ranks if context.doing.get(rank) == "leaving"}
    leaving -= ranks_of(fact for fact in context.facts if is_stated_ending(fact) and not is_status_ending(fact))
    left = (set(context.finished) | unlisted | leaving) - waiting - context.failed
    if not left or not waiting - left - context.finished:
        return []
    if _is_further_call(context, waiting, left) and not waiting & context.failed:
        return _infer_further_call(context, waiting, left, stuck[0])
    how = "ended without an error, as the launcher's list of failures shows,"
    if left <= context.finished | leaving:
        how = "finished" if left <= context.finished else "left, as the last lines show,"
    wait = f"still waited for {_them(left)} in {name_wait(context, waiting)}"
    return _infer("left-early", left, f"{format_ranks(left)} {how} while {format_ranks(waiting)} {wait}", stuck[0])


def _is_further_call(context: RuleContext, waiting: Set[int], left: Set[int]) -> bool:
    return len(left) > len(waiting) and left | waiting >= context.all_ranks


def _infer_further_call(context: RuleContext, waiting: Set[int], left: Set[int], stuck: Evidence) -> list[Evidence]:
    """Most ranks are done: the few that still wait are in a call that the others never made."""
    steps = context.last_step
    known = steps.keys() >= waiting | left
    is_further = known and min(steps[rank] for rank in waiting) > max(steps[rank] for rank in left)
    rule = "uneven-steps" if is_further else "rank-conditional" if waiting == {0} else "extra-collective"
    wait = f"{agree(waiting, 'waits', 'wait')} in {name_wait(context, waiting)}"
    text = f"only {format_ranks(waiting)} {wait}; all others had left"
    text += f" at step {_span([steps[rank] for rank in left])} or before" if is_further else ""
    return _infer(rule, waiting, f"{text}: they never made this call", stuck)


def _find_unlisted(context: RuleContext) -> frozenset[int]:
    """Return the ranks that the only launcher does not list among those that failed or that it stopped."""
    ends = [(fact, fact.detail) for fact in context.exits if isinstance(fact.detail, ExitDetail)]
    listed = ranks_of(fact for fact, end in ends if end.exit_code is not None)
    if len(listed) < 2 or not context.one_host:
        return frozenset()
    stopped = [fact for fact, end in ends if end.stopped_by_agent]
    pids = {fact.origin.pid for fact, _ in ends if fact.origin.rank is not None}
    if any(fact.origin.rank is None and fact.origin.pid not in pids for fact in stopped):
        return frozenset()  # one of the ranks that are not listed ran until then
    return context.all_ranks - listed - ranks_of(stopped)


def done_while_others_wait(context: RuleContext) -> list[Evidence]:
    """Stack dumps show some ranks in a collective, and the only thing known of the others is that they finished: few
    that finished left early, few that wait made a further call.
    """
    details = [(fact, fact.detail) for fact in context.facts if isinstance(fact.detail, InferenceDetail)]
    stuck = [(fact, detail) for fact, detail in details if detail.evidence_kind == "stack"]
    blocked = ranks_of(fact for fact, detail in stuck if detail.rule == BLOCKED)
    waiting = blocked.union(*(detail.waiting for _, detail in stuck)) - context.finished
    left = context.finished - waiting - context.failed
    if not left or not waiting or any(detail.rule not in (BLOCKED, HUNG) for _, detail in stuck):
        return []
    if _is_further_call(context, waiting, left):
        return _infer_further_call(context, waiting, left, stuck[0][0])
    need = f"the stacks of {format_ranks(waiting)} are in {name_wait(context, waiting)}, which needs {_them(left)}"
    return _infer("left-early", left, f"{format_ranks(left)} finished, while {need}", stuck[0][0])


def _is_only_log(context: RuleContext, absent: Set[int]) -> bool:
    """Return whether one rank alone left a trace, so that the silence of the others says nothing."""
    return len(context.ranks) < 2 and not absent & context.ranks


def find_awaited(context: RuleContext) -> tuple[frozenset[int], frozenset[int], Evidence | None]:
    """Return who timed out, the few others that printed no error of their own, and the evidence for that."""
    waiting = context.ranks_with("waiting")
    absent = context.all_ranks - waiting - context.ranks_with("peer-lost") - context.failed - _ranks_in_calls(context)
    first_open = context.once(read_job_progress).first_open
    partners = {entry.partner for rank in waiting for entry in first_open.get(rank, ())}
    if waiting <= first_open.keys() and None not in partners and partners & absent:
        absent &= partners  # only for these does a transfer wait
    if context.may_lack_lines or not waiting or not absent or len(absent) > max(1, len(waiting)):
        return waiting, frozenset(), None
    return waiting, absent, context.evidence_of("waiting")[0]


def _ranks_in_calls(context: RuleContext) -> frozenset[int]:
    """Return the ranks of which numbers or a dump show that they wait in a collective, whatever they wrote."""
    from_dumps = {
        fact.origin.rank for fact in context.facts if isinstance(fact.detail, FlightDetail) and fact.detail.waits
    }
    waiting = from_dumps | context.once(read_job_progress).first_open.keys()
    return frozenset(rank for rank in waiting if rank is not None)


def one_rank_diverged(context: RuleContext) -> list[Evidence]:
    """The ranks that did not come had caught an error before, and went on without the others."""
    waiting, absent, timeout = context.once(find_awaited)
    caught = [fact for fact in context.handled if fact.origin.rank in absent and fact.kind == "exception"]
    if timeout is None or not caught or ranks_of(caught) != absent:
        return []
    error = caught[0].text.split("\n", 1)[0][:120]
    call = name_wait(context, waiting).replace("a collective", "the collective")
    missed = f"did not come to {call}, in which {format_ranks(waiting)} timed out"
    return _infer("one-rank-diverged", absent, f"{format_ranks(absent)} caught {error!r} and {missed}", caught[0])


def compile_skew(context: RuleContext) -> list[Evidence]:
    """The ranks that did not come were compiling, as their last lines say, or the last ones that name no rank."""
    waiting, absent, timeout = context.once(find_awaited)
    if timeout is None or not _were_all(context, absent, "compiling"):
        return []
    if any(context.doing.get(rank) == "compiling" for rank in waiting) and absent & context.last_step.keys():
        return []  # all compiled at the start
    compiling = f"{format_ranks(absent)} {agree(absent, 'was', 'were')} compiling, as the last lines show,"
    timed_out = f"{format_ranks(waiting)} timed out in {name_wait(context, waiting)}"
    return _infer("compile-skew", absent, f"{compiling} while {timed_out}", timeout)


def _were_all(context: RuleContext, absent: Set[int], action: str) -> bool:
    """Whether this is the last thing that the absent ranks did. Where their own last lines do not show it, as many
    lines that name no rank must say so as ranks are absent; a compiler writes more than one.
    """
    if any(rank in context.doing for rank in absent):
        return all(context.doing.get(rank) == action for rank in absent)
    count = context.unplaced.get(action, 0)
    return count == len(absent) or (action == "compiling" and count > 0)


def uneven_steps(context: RuleContext) -> list[Evidence]:
    """The ranks that did not come had finished their epoch, as their last lines say. Rank 0 alone may just have more to
    do.
    """
    waiting, absent, timeout = context.once(find_awaited)
    if timeout is None or absent == {0} or not _were_all(context, absent, "epoch-over"):
        return []
    if any(context.doing.get(rank) == "epoch-over" for rank in waiting):
        return []
    further = f"{format_ranks(waiting)} timed out in {name_wait(context, waiting)} of a further batch"
    return _infer("uneven-steps", absent, f"{format_ranks(absent)} had finished the epoch, while {further}", timeout)


def missed_barrier(context: RuleContext) -> list[Evidence]:
    """Ranks say that they reached a monitored barrier, where rank 0 waited in vain for those that do not say so. Those
    that gave up waiting in a call of their own, or missed others themselves, are not absent.
    """
    reports = [
        fact for fact in context.facts_with("successfully reached monitoredBarrier") if fact.origin.rank is not None
    ]
    if not reports:
        return []
    reached = ranks_of(reports)
    missed = context.all_ranks - reached - {0} - context.finished - context.ranks_with("waiting", "awaited")
    if not missed or len(missed) > len(reached) or _is_only_log(context, missed):
        return []
    text = f"{format_ranks(reached)} reached the monitored barrier where rank 0 waited; {format_ranks(missed)} did not"
    return _infer("missed-barrier", missed, text, reports[0])


def most_awaited(graph: CausalGraph) -> None:
    """A line that names more than half of the ranks as missing shows no rank at fault: those that came may have made a
    call too many. Neither are missing ranks that gave up waiting in a call of their own: if all ranks of the job
    did, it is a symptom.
    """
    all_wait = graph.context.all_ranks <= graph.context.ranks_with("waiting", "awaited")
    waiting = graph.context.ranks_with("waiting")
    for candidate in graph.candidates:
        if candidate.indicates != "awaited" or candidate.is_inferred:
            continue
        missing = set(candidate.suspects or ())
        ranks = graph.context.all_ranks | missing
        total = len(ranks) + (ranks == missing)  # who wrote the line came too, even where nothing says its rank
        if len(missing) * 2 > total:
            either = f"{format_ranks(missing)} of {total} ranks did not come, so those that did may be at fault"
            graph.set_suspects(candidate, (), either)
        elif elsewhere := missing & waiting:
            calls = agree(elsewhere, "a call of its own", "calls of their own")
            why = f"{format_ranks(elsewhere)} gave up waiting in {calls}"
            graph.set_suspects(candidate, missing - elsewhere, why)
        candidate.is_symptom = all_wait and total > 1 and candidate.suspects == ()


def never_joined(context: RuleContext) -> list[Evidence]:
    """Some ranks timed out in a collective, the others show no error of their own: they are the ones waited for."""
    waiting, absent, timeout = context.once(find_awaited)
    if timeout is None or _is_only_log(context, absent):
        return []
    joined = f"{format_ranks(absent)} {_describe_silence(context, absent)}did not join it{_unseen(context, absent)}"
    text = f"{format_ranks(waiting)} timed out in {name_wait(context, waiting)}; {joined}"
    text += describe_stacks(context, absent) + _compare_steps(context, absent, waiting)
    return _infer("never-joined", absent, text, timeout)


def _describe_silence(context: RuleContext, absent: Set[int]) -> str:
    """Return that ranks printed no error, where all of them have lines and the last of these are usual ones."""
    ended = ranks_of(fact for fact in context.facts if fact.kind == "ending")
    is_silent = absent <= context.ranks and not absent & (context.complaining | ended)
    return "printed no error and " if is_silent else ""


def _unseen(context: RuleContext, absent: Set[int]) -> str:
    """Return a clause about the ranks that must exist by the size of the world, or since there are higher ones."""
    unseen = absent - context.ranks
    of_world = f"; no line or file is from {format_ranks(unseen)} of {context.world_size} ranks"
    return of_world if unseen else ""


def left_first(context: RuleContext) -> list[Evidence]:
    """Everybody complains of a lost peer except a few: those are the peers that were lost. If some of these wrote of no
    later step while all others did, it is they.
    """
    return _find_stopped_logs(context) or find_not_complaining(context)


def _find_stopped_logs(context: RuleContext) -> list[Evidence]:
    lost, others = context.evidence_of("peer-lost"), context.ranks_with("peer-lost")
    if not lost or context.evidence_of("waiting") or len(others) < 2 or not context.last_step.keys() >= others:
        return []
    least = min(context.last_step[rank] for rank in others)
    behind = {rank for rank, step in context.last_step.items() if rank not in others and step < least}
    behind -= context.failed | context.finished
    behind = {
        rank for rank in behind if all(_silent_long_before(context, rank, other) is not False for other in others)
    }
    if not behind or len(behind) > len(others) // 2:
        return []
    step, logs = _span([context.last_step[rank] for rank in behind]), agree(behind, "log", "logs")
    stops = agree(behind, "stops", "stop")
    text = f"the {logs} of {format_ranks(behind)} {stops} at step {step}; the others reached step {least} or later"
    return _infer("log-stopped", behind, text, lost[0])


def find_not_complaining(context: RuleContext) -> list[Evidence]:
    """Find the few ranks that do not complain of a lost peer."""
    losing = context.ranks_with("peer-lost")
    absent = context.all_ranks - losing - context.ranks_with("waiting") - context.failed
    if not losing or not absent or len(absent) > max(1, len(losing)) or context.evidence_of("waiting"):
        return []
    if context.may_lack_lines or _is_only_log(context, absent):
        return []
    they = agree(absent, "it", "they")
    text = f"{format_ranks(losing)} lost the connection to a peer; {format_ranks(absent)} did not, so {they} went first"
    return _infer("left-first", absent, text, context.evidence_of("peer-lost")[0])


def _silent_long_before(context: RuleContext, rank: int, other: int) -> bool | None:
    """Return whether the rank went silent long before the other; None where their times cannot be compared."""
    mine, theirs = context.last_time.get(rank), context.last_time.get(other)
    if mine is None or theirs is None or mine[0] != theirs[0]:
        return None
    return mine[1] < theirs[1] - LONG_SILENCE


def _compare_steps(context: RuleContext, absent: Set[int], waiting: Set[int]) -> str:
    """Return a clause with the last steps, where the absent ranks are behind the others."""
    mine = [context.last_step[rank] for rank in absent if rank in context.last_step]
    theirs = [context.last_step[rank] for rank in waiting if rank in context.last_step]
    if not mine or not theirs or max(mine) >= min(theirs):
        return ""
    return f"; {agree(absent, 'its', 'their')} last step is {_span(mine)}, that of the others {_span(theirs)}"


def _them(ranks: Set[int]) -> str:
    return agree(ranks, "it", "them")


def _span(numbers: list[int]) -> str:
    return format_range(min(numbers), max(numbers))
