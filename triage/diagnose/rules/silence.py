"""Rules about who did not speak: ranks that are absent, left, stopped, or did not come to a collective that others
waited in.
"""

from __future__ import annotations

from collections.abc import Set

from triage.base.lazy_re import lazy_re
from triage.diagnose.say import say_ranks
from triage.diagnose.scene import LONG, Scene, conclude, ranks_of
from triage.model.evidence import Evidence

_CLIENTS = lazy_re(r"(\d+)/(\d+) clients joined")
_STORE_KEY = lazy_re(r"keys: /\S*?/(\d+)//cpu//\d+/(\d+)\b")


def rank_absent(scene: Scene) -> list[Evidence]:
    """The store counts fewer clients than the world has ranks, or is asked for the address of a rank that left no
    trace.
    """
    seen = set(scene.ranks)
    for fact in scene.saying("clients joined"):
        clients = _CLIENTS.search(fact.text)
        if clients and int(clients[1]) < int(clients[2]):
            absent = set(range(int(clients[2]))) - seen if len(seen) == int(clients[1]) else set()
            text = f"{clients[1]} of {clients[2]} ranks reached the store" + (
                f"; no file of this job is by {say_ranks(absent)}" if absent else ""
            )
            between = bool(absent) and max(absent) < max(
                seen
            )  # there are ranks beyond it: the world is as large as it was told
            return conclude("never-joined" if between else "rank-absent", absent, fact, text)
    asked = {int(match[2]): fact for fact in scene.saying("//cpu//") if (match := _STORE_KEY.search(fact.text))}
    if len(asked) == 1:
        rank, fact = next(iter(asked.items()))
        if rank not in seen and rank not in scene.failed:
            text = f"every process waits for the address of rank {rank}, and none that left a trace here is rank {rank}"
            return conclude("rank-absent", {rank}, fact, text)
    return []


def left_early(scene: Scene) -> list[Evidence]:
    """Some ranks were done while others still waited for them: they say so, or the launcher's table of failed processes
    leaves them out.
    """
    stuck = scene.evidence_of("waiting", "peer-lost")
    if not stuck:
        return []
    listed = ranks_of(fact for fact in scene.exits if fact.fields.get("exitcode"))
    waiting = scene.ranks_that("waiting", "peer-lost")
    unlisted = scene.everybody - listed if len(listed) > 1 and scene.one_host else set()
    left = (set(scene.finished) | unlisted) - waiting - scene.failed
    if not left or not waiting - left - scene.finished:
        return []
    how = (
        "said that they were done"
        if left <= scene.finished
        else "ended without an error, for the launcher lists no failure of theirs,"
    )
    text = f"{say_ranks(left)} {how} while {say_ranks(waiting)} still expected them in a collective"
    return conclude("left-early", left, stuck[0], text)


def done_while_others_wait(scene: Scene) -> list[Evidence]:
    """Stack dumps show some ranks in a collective, and all that is known of the others is that they said they were
    done.
    """
    seen = [fact for fact in scene.facts if fact.kind == "inference" and fact.fields.get("seen_in") == "stacks"]
    stuck = [fact for fact in seen if fact.fields["rule"] == "blocked-in-collective"]
    waiting = ranks_of(stuck)
    left = set(scene.finished) - waiting - scene.failed
    if not left or not stuck or len(stuck) < len(seen):
        return []
    text = f"{say_ranks(left)} said that they were done, while the stacks of {say_ranks(waiting)} stand in a collective that needs them"
    return conclude("left-early", left, stuck[0], text)


def _waited_for(scene: Scene) -> tuple[frozenset[int], frozenset[int], Evidence | None]:
    """Who timed out, and the few others that printed no error of their own."""
    waiting = scene.ranks_that("waiting")
    absent = scene.everybody - waiting - scene.ranks_that("peer-lost") - scene.failed
    if not waiting or not absent or len(absent) > max(1, len(waiting)):
        return waiting, frozenset(), None
    return waiting, absent, scene.evidence_of("waiting")[0]


def one_rank_diverged(scene: Scene) -> list[Evidence]:
    """The ranks that did not come had caught an error before, and gone on without the others."""
    waiting, absent, basis = scene.once(_waited_for)
    caught = [fact for fact in scene.handled if fact.origin.rank in absent and fact.kind == "exception"]
    if basis is None or not caught or ranks_of(caught) != absent:
        return []
    said = caught[0].text.split("\n", 1)[0][:120]
    text = f"{say_ranks(absent)} caught {said!r} and did not come to the collective in which {say_ranks(waiting)} timed out"
    return conclude("one-rank-diverged", absent, caught[0], text)


def compile_skew(scene: Scene) -> list[Evidence]:
    """The ranks that did not come were compiling, as their last lines say."""
    waiting, absent, basis = scene.once(_waited_for)
    if basis is None or any(scene.doing.get(rank) != "compiling" for rank in absent):
        return []
    text = f"the last lines of {say_ranks(absent)} are about compiling, while {say_ranks(waiting)} timed out waiting in a collective"
    return conclude("compile-skew", absent, basis, text)


def uneven_steps(scene: Scene) -> list[Evidence]:
    """The ranks that did not come had finished their epoch, as their last lines say; rank 0 alone may simply have more
    to do than others.
    """
    waiting, absent, basis = scene.once(_waited_for)
    if basis is None or absent == {0} or any(scene.doing.get(rank) != "epoch-over" for rank in absent):
        return []
    if any(scene.doing.get(rank) == "epoch-over" for rank in waiting):
        return []
    text = f"{say_ranks(absent)} had come to the end of the epoch, while {say_ranks(waiting)} timed out in a collective of a further batch"
    return conclude("uneven-steps", absent, basis, text)


def missed_barrier(scene: Scene) -> list[Evidence]:
    """Ranks say that they reached a monitored barrier and were let down by rank 0, which waited for those that say
    nothing.
    """
    told = [fact for fact in scene.saying("successfully reached monitoredBarrier") if fact.origin.rank is not None]
    reached = ranks_of(told)
    missed = scene.everybody - reached - {0} - scene.finished
    if not told or not missed or len(missed) > len(reached):
        return []
    text = f"{say_ranks(reached)} reached the monitored barrier, where rank 0 waited in vain; {say_ranks(missed)} did not say so"
    return conclude("missed-barrier", missed, told[0], text)


def never_joined(scene: Scene) -> list[Evidence]:
    """Some ranks timed out in a collective, the others show no error of their own: they are the ones waited for."""
    waiting, absent, basis = scene.once(_waited_for)
    if basis is None:
        return []
    steps = _steps(scene, absent, waiting)
    said = "printed no error and" if not absent & scene.complaining else "did not say so and"
    text = f"{say_ranks(waiting)} timed out waiting in a collective; {say_ranks(absent)} {said} did not join it{steps}"
    return conclude("never-joined", absent, basis, text)


def log_stopped(scene: Scene) -> list[Evidence]:
    """The log of a few ranks stops while the others, who complain of a lost peer, go on to later steps."""
    lost = scene.evidence_of("peer-lost")
    others = scene.ranks_that("peer-lost")
    if (
        not lost
        or scene.evidence_of("waiting")
        or len(others) < 2
        or any(rank not in scene.last_step for rank in others)
    ):
        return []
    least = min(scene.last_step[rank] for rank in others)
    behind = (
        {rank for rank, step in scene.last_step.items() if rank not in others and step < least}
        - scene.failed
        - scene.finished
    )
    behind = {rank for rank in behind if all(_long_before(scene, rank, other) is not False for other in others)}
    if not behind or len(behind) > len(others) // 2:
        return []
    text = f"the log of {say_ranks(behind)} stops at step {_span([scene.last_step[rank] for rank in behind])}, the others went on to {least} or later"
    return conclude("log-stopped", behind, lost[0], text)


def left_first(scene: Scene) -> list[Evidence]:
    """Everybody complains of a lost peer except a few: those are the peers that were lost."""
    lost = scene.evidence_of("peer-lost")
    losing = scene.ranks_that("peer-lost")
    absent = scene.everybody - losing - scene.ranks_that("waiting") - scene.failed
    if not losing or not absent or len(absent) > max(1, len(losing)) or scene.evidence_of("waiting"):
        return []
    text = f"{say_ranks(losing)} lost the connection to a peer; {say_ranks(absent)} reported no lost connection, so it went first"
    return conclude("left-first", absent, lost[0], text)


def _long_before(scene: Scene, rank: int, other: int) -> bool | None:
    """Did the rank fall silent long before the other? None: their times cannot be compared."""
    mine, theirs = scene.last_time.get(rank), scene.last_time.get(other)
    if mine is None or theirs is None or mine[0] != theirs[0]:
        return None
    return mine[1] < theirs[1] - LONG


def _steps(scene: Scene, absent: Set[int], waiting: Set[int]) -> str:
    """How far the absent ranks came, where that is less than the others."""
    mine = [scene.last_step[rank] for rank in absent if rank in scene.last_step]
    theirs = [scene.last_step[rank] for rank in waiting if rank in scene.last_step]
    if not mine or not theirs or max(mine) >= min(theirs):
        return ""
    return f"; its last step is {_span(mine)}, that of the others {_span(theirs)}"


def _span(numbers: list[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}-{high}"
