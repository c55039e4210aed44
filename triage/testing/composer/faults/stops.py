"""Jobs that somebody or something outside stops: a scheduler, a user, a memory limit, a watchdog of the program."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import echoes, kernel, pod_mark, record, start, steps, traceback

_KNOWN = frozenset({"known"})


def slurm_time_limit(world: World, rng: random.Random) -> Story:
    """Slurm cancels the job at its time limit."""
    return _cancelled(world, rng, " DUE TO TIME LIMIT", frozenset({"slurm.time-limit"}))


def slurm_preemption(world: World, rng: random.Random) -> Story:
    """Slurm cancels the job for another one, and may queue it again."""
    reason = rng.choice((" DUE TO PREEMPTION", " DUE TO PREEMPTION", " DUE TO JOB REQUEUE"))
    return _cancelled(world, rng, reason, frozenset({"slurm.preempted"}))


def slurm_cancelled(world: World, rng: random.Random) -> Story:
    """A user cancels the job with scancel."""
    reason = rng.choice(("", "", " DUE to SIGNAL Terminated"))
    return _cancelled(world, rng, reason, frozenset({"slurm.cancelled", "launch.interrupted"}))


def slurm_out_of_memory(world: World, rng: random.Random) -> Story:
    """The memory limit of a Slurm step kills one rank."""
    rank, count, job = rng.randrange(world.size), rng.randrange(4, 15), rng.randrange(4000, 900_000)
    at = 10.0 + count
    detected = rng.choice((
        f"Detected 1 oom_kill event in StepId={job}.0. Some of the step tasks have been OOM Killed.",
        f"Detected 1 oom-kill event(s) in StepId={job}.0. Some of your processes may have been killed by the cgroup "
        "out-of-memory handler.",
        f"Detected 1 oom-kill event(s) in step {job}.0 cgroup. Some of your processes may have been killed by the "
        f"cgroup "
        "out-of-memory handler.",
    ))  # fmt: skip
    # srun's own line about the task is the layout's: its number is a rank or a node, as the ranks were started.
    scheduler = Line(at + 0.3, Writer("scheduler"), f"slurmstepd: error: {detected}", is_cause=True)
    pid, step = world.pids[rank], f"/slurm/uid_1000/job_{job}/step_0"
    oom = [
        kernel(world, world.node(rank), at, text, is_cause=True)
        for text in (
            f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,mems_allowed=0-1,oom_memcg={step},"
            f"task_memcg={step}/task_{world.local(rank)},task=python3,pid={pid},uid=1000",
            f"Memory cgroup out of memory: Killed process {pid} (python3) total-vm:91402348kB, anon-rss:"
            f"{rng.randrange(40, 60)}402348kB, file-rss:71044kB, shmem-rss:1120kB, UID:1000 pgtables:118260kB "
            f"oom_score_adj:0",
        )
    ]
    others, exits = echoes(world, rng, [rank], at)
    lines = (*start(world, rng), *steps(world, rng, 10, count), scheduler, *(oom * rng.randrange(2)), *others)
    roots = frozenset({"slurm.oom-kill", "host.oom-killer"})
    truth = Truth(_KNOWN, roots, frozenset({rank}), frozenset({world.node(rank)}))
    return Story(lines, truth, (Exit(rank, -9, at), *exits))


def kubernetes_oom_killed(world: World, rng: random.Random) -> Story:
    """The memory limit of a container kills one rank; `kubectl describe pod` shows it."""
    rank, count = rng.randrange(world.size), rng.randrange(4, 15)
    node, at = world.node(rank), 10.0 + count
    others, exits = echoes(world, rng, [rank], at)
    code = 137 if world.per_node == 1 else 1
    state = [
        *_pod(world, node),
        "Containers:",
        "  trainer:",
        "    State:          Terminated",
        "      Reason:       OOMKilled",
        f"      Exit Code:    {code}",
        f"      Started:      {_with_zone(world, 0)}",
        f"      Finished:     {_with_zone(world, at + 3)}",
        "    Ready:          False",
        "    Restart Count:  0",
        "    Limits:",
        f"      memory:          {rng.choice((64, 128, 256))}Gi",
        "      nvidia.com/gpu:  " + str(world.per_node),
    ]
    described = Line(at + 20, Writer("scheduler"), "\n".join(state), "stdout", is_cause=True, says_host=True)
    roots = frozenset({"host.oom-killer"})
    truth = Truth(_KNOWN, roots, frozenset({rank}), frozenset({node}))
    lines = (*start(world, rng), *steps(world, rng, 10, count), described, *others)
    return Story(lines, truth, (Exit(rank, -9, at), *exits))


def kubernetes_eviction(world: World, rng: random.Random) -> Story:
    """The kubelet evicts the pod of one node, which lacks memory."""
    used = rng.randrange(90, 400)
    message = (
        f"The node was low on resource: memory. Threshold quantity: 100Mi, available: {rng.randrange(20, 99)}Mi. "
        f"Container "
        f"trainer was using {used}Gi, request is {used // 2}Gi, has larger consumption of memory. "
    )
    return _evicted(world, rng, message)


def kubernetes_storage_eviction(world: World, rng: random.Random) -> Story:
    """The kubelet evicts a pod that writes more to the disk of its container or to a volume than its limit."""
    limit = rng.choice(("10Gi", "50Gi", "100Gi", "512Mi"))
    message = rng.choice((
        f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}. ",
        f"Container trainer exceeded its local ephemeral storage limit \"{limit}\". "
        f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}. ",
        f"Usage of EmptyDir volume \"{rng.choice(('scratch', 'shm', 'cache'))}\" exceeds the limit \"{limit}\". ",
    ))  # fmt: skip
    return _evicted(world, rng, message)


def _evicted(world: World, rng: random.Random, message: str) -> Story:
    """Return the story of a node whose pod is evicted with this message; the other pods lose their peers."""
    node, count = rng.randrange(len(world.hosts)), rng.randrange(4, 15)
    at, mine = 10.0 + count, list(world.on_node(node))
    state = [
        *_pod(world, node),
        "Status:           Failed",
        "Reason:           Evicted",
        f"Message:          {message}",
        "Events:",
        "  Type     Reason     Age   From     Message",
        "  ----     ------     ----  ----     -------",
        f"  Warning  Evicted    61s   kubelet  {message}",
        "  Normal   Killing    61s   kubelet  Stopping container trainer",
    ]
    described = Line(at + 60, Writer("scheduler"), "\n".join(state), "stdout", is_cause=True, says_host=True)
    others, exits = echoes(world, rng, mine, at)
    truth = Truth(_KNOWN, frozenset({"host.pod-evicted"}), frozenset(mine), frozenset({node}))
    ends = [Exit(rank, -15, at + rank / 1000) for rank in mine]
    return Story((*start(world, rng), *steps(world, rng, 10, count), described, *others), truth, (*ends, *exits))


def keyboard_interrupt(world: World, rng: random.Random) -> Story:
    """A user presses Ctrl-C; every rank prints where it was."""
    count = rng.randrange(4, 30)
    at = 10.0 + count
    library = f"/usr/local/lib/python{world.python}/site-packages/torch"
    places = (
        (f"{library}/autograd/graph.py", 823, "_engine_run_backward"),
        (f"{library}/distributed/distributed_c10d.py", 2806, "all_reduce"),
        (f"{library}/utils/data/dataloader.py", 1243, "_try_get_data"),
        (f"{library}/nn/modules/linear.py", 125, "forward"),
    )
    interrupted = []
    for rank in world.ranks:
        frames = ((world.script, 212, "<module>"), (world.script, 141, "train_step"), rng.choice(places))
        moment = at + rng.uniform(0, 0.2)
        interrupted.append(traceback(world, rank, moment, "KeyboardInterrupt", frames, is_cause=True))
    return _stopped(world, rng, count, interrupted, frozenset({"launch.interrupted"}), "user")


def terminated(world: World, rng: random.Random) -> Story:
    """Somebody outside sends SIGTERM to the launcher and all ranks."""
    count, number = rng.randrange(4, 30), 15
    at = 10.0 + count
    text = rng.choice((
        f"Received signal {number} (SIGTERM), stopping", "Received SIGTERM: 15", f"caught signal {number}, shutting "
        f"down",
    ))  # fmt: skip
    handled = [_cause(record(world, rank, at + rng.uniform(0, 0.2), text, "WARNING")) for rank in world.ranks]
    roots = frozenset({"launch.interrupted", "launch.signal-exception"})
    return _stopped(world, rng, count, handled, roots, "user")


def preempted_after_checkpoint(world: World, rng: random.Random) -> Story:
    """All ranks are asked to stop, save, and end with exit code 0."""
    count, name = rng.randrange(6, 30), rng.choice(("SIGUSR1", "SIGTERM", "SIGUSR2"))
    at, last = 10.0 + count, 10 * rng.randrange(20, 90) + count
    lines = [*start(world, rng), *steps(world, rng, 10, count, number=last - count + 1)]
    notice = rng.choice((
        f"caught {name} (preemption notice), will save and stop after step {last}",
        f"{name} received: the job will be preempted, saving after step {last}",
    ))  # fmt: skip
    for rank in world.ranks:
        lines.append(_cause(record(world, rank, at + rng.uniform(0, 0.3), notice, "WARNING")))
    lines.append(record(world, 0, at + 4, f"saved checkpoint at step {last} to /ckpt/run/step_{last:06d}"))
    lines += [record(world, rank, at + 5 + rank / 1000, f"stopped at step {last}, exit 0") for rank in world.ranks]
    verdicts = frozenset({"clean", "known"})
    return Story(tuple(lines), Truth(verdicts, frozenset({None, "slurm.preempted", "launch.interrupted"})))


def own_watchdog(world: World, rng: random.Random) -> Story:
    """The program's own watchdog, on rank 0, ends the job: one rank has reported no step for too long."""
    stuck = rng.randrange(1, world.size)
    count, limit = rng.randrange(4, 20), rng.choice((300, 600, 900))
    at = 10.0 + count + limit
    message = rng.choice((
        f"watchdog: rank {stuck} has reported no step for {limit} s (last step {count}), killing the job",
        f"heartbeat monitor: no progress of rank {stuck} since step {count} ({limit} s), aborting",
        f"StallDetector: rank={stuck} step={count} age={limit}s exceeds max_age, calling os._exit",
    ))  # fmt: skip
    cause = replace(_cause(record(world, 0, at, message, "ERROR", "stderr")), names_ranks=frozenset({stuck}))
    verdicts = frozenset({"known", "unknown"})
    roots: frozenset[str | None] = frozenset(
        {None, "torch.lagging-rank", "torch.hang-outside-collectives", "hang.stalled-rank-reported"}
    )
    truth = Truth(verdicts, roots, frozenset({stuck}), frozenset({world.node(stuck)}))
    lines = (*start(world, rng), *steps(world, rng, 10, count), cause)
    return Story(lines, truth, (Exit(0, rng.choice((1, 42, -6)), at + 0.2),))


def _cancelled(world: World, rng: random.Random, reason: str, roots: frozenset[str | None]) -> Story:
    """Return a job that Slurm cancels; steps and job each have their line."""
    count, job = rng.randrange(6, 40), rng.randrange(4000, 900_000)
    at = 10.0 + count
    stamp, host = world.stamp(at, "%Y-%m-%dT%H:%M:%S"), world.hosts[0]
    texts = [
        f"slurmstepd: error: *** JOB {job} ON {host} CANCELLED AT {stamp}{reason} ***",
        f"slurmstepd: error: *** STEP {job}.0 ON {host} CANCELLED AT {stamp}{reason} ***",
    ]
    if rng.random() < 0.3:
        texts.insert(1, "srun: forcing job termination\nsrun: got SIGCONT")
    causes = [
        Line(at + index / 100, Writer("scheduler"), text, is_cause="CANCELLED" in text)
        for index, text in enumerate(texts)
    ]
    return _stopped(world, rng, count, causes, roots, "scheduler")


def _stopped(
    world: World, rng: random.Random, count: int, causes: Iterable[Line], roots: frozenset[str | None], by: str
) -> Story:
    """Return a job that goes well until all its processes are ended; nobody is at fault in it."""
    lines = (*start(world, rng), *steps(world, rng, 10, count), *causes)
    return Story(lines, Truth(_KNOWN, roots), stopped_by="user" if by == "user" else "scheduler")


def _cause(line: Line, *, says_rank: bool = False) -> Line:
    return Line(line.at, line.writer, line.text, line.stream, is_cause=True, says_rank=says_rank)


def _pod(world: World, node: int) -> list[str]:
    """Return the head of `kubectl describe pod`; the layout puts the name of the pod in the place of its mark."""
    return [
        f"Name:             {pod_mark(node)}",
        "Namespace:        training",
        f"Node:             {world.hosts[node]}/10.0.{node}.{10 + node}",
        f"Start Time:       {_with_zone(world, -20)}",
    ]


def _with_zone(world: World, at: float) -> str:
    """Return a time as kubectl writes it: local, with its distance from UTC."""
    hours, seconds = divmod(abs(world.zone), 3600)
    sign = "-" if world.zone < 0 else "+"
    return f"{world.stamp(at, '%a, %d %b %Y %H:%M:%S')} {sign}{hours:02d}{seconds // 60:02d}"


FAULTS = (
    Fault("slurm-time-limit", slurm_time_limit, scheduler="slurm"),
    Fault("slurm-preemption", slurm_preemption, scheduler="slurm"),
    Fault("slurm-cancelled", slurm_cancelled, scheduler="slurm"),
    Fault("slurm-out-of-memory", slurm_out_of_memory, scheduler="slurm"),
    Fault("kubernetes-oom-killed", kubernetes_oom_killed, scheduler="kubernetes"),
    Fault("kubernetes-eviction", kubernetes_eviction, scheduler="kubernetes", least_nodes=2),
    Fault("kubernetes-storage-eviction", kubernetes_storage_eviction, scheduler="kubernetes", least_nodes=2),
    Fault("keyboard-interrupt", keyboard_interrupt),
    Fault("terminated-from-outside", terminated),
    Fault("preempted-after-checkpoint", preempted_after_checkpoint),
    Fault("own-watchdog", own_watchdog),
)
