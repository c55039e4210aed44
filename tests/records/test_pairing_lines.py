"""triage.records.pairing_lines"""

from __future__ import annotations

import pytest

from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.ranks.layouts import detect_layout
from triage.records.pairing_lines import Pairing, find_pairings, learn_pairing
from triage.records.text import Text


def pairings(line: str) -> list[Pairing]:
    """Return what one line joins."""
    data = line.encode()
    text = Text("job.log", lambda at, length: data[at : at + length], len(data), 1970, detect_layout(data))
    return list(find_pairings(text, b"", data, 0))


@pytest.mark.parametrize(
    ("line", "origin"),
    [
        ("(Worker pid=403) [Rank 3] started", Origin(rank=3, pid=403)),
        ("(TrainController pid=21) - (ip=10.0.0.1, pid=2395) world_rank=1, local_rank=1, node_rank=0", (1, 1, 2395)),
        ("2026-11-21 03:07:45.372 | INFO     | train:main:30 - rank 2 | pid 402 | started", Origin(rank=2, pid=402)),
        ("rank 3 pid 413 host node1", Origin(rank=3, pid=413)),
        ("INFO [pid 413] Rank 3 ready", Origin(rank=3, pid=413)),
        ("process 413 is rank 3", Origin(rank=3, pid=413)),
        (
            "[WARNING] DISTRIBUTED(413,7fb1,python):2026-11-21-03:07:10.953.088 [b.cc:4] Post] This node 3 rank id: 3",
            Origin(rank=3, pid=413),
        ),
        (
            "node2:412:412 [1] NCCL INFO comm 0xa rank 5 nRanks 8 nNodes 2 localRanks 4 localRank 1 MNNVL 0",
            (5, 1, None),
        ),
        ("root 413 0.0 python -u train.py --local_rank=3", Origin(local_rank=3, pid=413)),
        ("process 413 spawned with command: ['python', '-u', 'train.py', '--local_rank=1']", (None, 1, 413)),
    ],
)
def test_lines_that_pair_a_process_are_read(
    line: str, origin: Origin | tuple[int | None, int | None, int | None]
) -> None:
    """Tags of workers, tables of launchers, NCCL's ranks, and lists of processes."""
    (pairing,) = pairings(line)
    wanted = origin if isinstance(origin, Origin) else Origin(rank=origin[0], local_rank=origin[1], pid=origin[2])
    joined = pairing.origin
    assert (joined.rank, joined.local_rank, joined.pid) == (wanted.rank, wanted.local_rank, wanted.pid)


@pytest.mark.parametrize(
    "line",
    [
        "[rank3]: DataLoader worker (pid 79527) is killed by signal: Killed.",
        "rank 2 killed process 412, pid 412",
        "pid 412 waits, rank 3 local loss 2",
        "pid 412: connection closed by rank 3",
        "[ERROR] HCCL(412,python):2026-11-21-03:07:10.953.088 [a/b.cc:4] this process lost the peer with rank id: 3",
        "rank 1 pid 411, rank 2 pid 412",
        "[pid 412] Traceback (most recent call last): (RANK 2)",
    ],
)
def test_the_pid_of_another_process_is_not_joined(line: str) -> None:
    """A rank that reports on another process is not that process; two pairs in a line are none."""
    assert not [pairing for pairing in pairings(line) if None not in (pairing.origin.pid, pairing.origin.rank)]


def test_the_world_of_deepspeed_gives_every_rank() -> None:
    """Its launcher prints which hosts have which ranks."""
    line = "[INFO] [launch.py:162:main] global_rank_mapping=defaultdict(<class 'list'>, {'n1': [0, 1], 'n2': [2, 3]})"
    assert {(one.origin.host, one.origin.local_rank, one.origin.rank) for one in pairings(line + " nnodes=2")} == {
        ("n1", 0, 0),
        ("n1", 1, 1),
        ("n2", 0, 2),
        ("n2", 1, 3),
    }


@pytest.mark.parametrize(
    ("line", "node"),
    [
        ("+ torchrun --nnodes 2 --node_rank 1 --nproc_per_node 4 train.py", (1, 4, 2)),
        ("+ accelerate launch --num_machines 2 --machine_rank 1 train.py", (1, -1, 2)),
        ("SLURM_NODEID=1 SLURM_NNODES=2 SLURM_NTASKS_PER_NODE=4", (1, 4, 2)),
        ("I0831 15:26:16.482000 69 torch/distributed/elastic/agent/server/api.py:525]   group_rank=1", (1, -1, -1)),
        (
            "[2026-07-28 18:21:58,076] torch.distributed.elastic.agent.server.api: [INFO]   group_world_size=2",
            (-1, -1, 2),
        ),
        ("[INFO] [launch.py:145:main] nnodes=2, num_local_procs=2, node_rank=1", (1, 2, 2)),
    ],
)
def test_commands_and_settings_state_the_node(line: str, node: tuple[int, int, int]) -> None:
    """Index of the node, processes on it, number of nodes; -1 is unknown."""
    (pairing,) = pairings(line)
    assert (pairing.node, pairing.node_size, pairing.nodes) == node


def test_an_agent_of_hccl_is_a_member_of_its_communicator() -> None:
    """Its rank is one of the job only if no communicator is larger."""
    (pairing,) = pairings(
        "[INFO] HCCL(271,python):2026-11-21-03:07:45.372.001 [x.cc:1][4]SetupAgent, rankId[5], rankSize[8]"
    )
    assert (pairing.origin.rank, pairing.origin.pid, pairing.members) == (5, 271, 8)


@pytest.mark.parametrize(
    ("line", "pid"),
    [
        ("(RayTrainWorker pid=81) global rank 3 ready, local rank 1", 81),
        ("(RayTrainWorker pid=81) local rank 1: rank 3 is up, world size 8", 81),
        ("(RayTrainWorker pid=81) rank 3 died, local rank 1", None),  # about another, perhaps
        ("Nov 21 03:07:45 node1 train[77]: global rank 3 ready, local rank 1", None),  # the pid of a collector
    ],
)
def test_the_pid_of_a_worker_is_that_of_its_rank(line: str, pid: int | None) -> None:
    """Where the line introduces its writer, and the prefix is that of a worker."""
    (pairing,) = pairings(line)
    assert (pairing.origin.rank, pairing.origin.local_rank, pairing.origin.pid) == (3, 1, pid)


def test_a_prefix_with_a_local_rank_joins_a_rank_behind_it() -> None:
    """torchrun's tee before the record of a logger."""
    (pairing,) = pairings("[default1]:2026-06-28 06:36:54,319 [rank 9] INFO trainer: loading")
    assert (pairing.origin.rank, pairing.origin.local_rank) == (9, 1)


@pytest.mark.parametrize(
    ("line", "joined"),
    [
        ("rank 3 of 8 on node1", Origin(rank=3, host="node1")),
        ("[3]<stderr>:started, hostname: node1", Origin(rank=3, host="node1")),
        ("rank 3 of 8 on node1, pid 412", Origin(rank=3, pid=412, host="node1")),
        ("=   RANK 3 PID 412 RUNNING AT node1", Origin(rank=3, pid=412, host="node1")),
        ("[node1:99] MCW rank 3 bound to socket 0", Origin(rank=3, host="node1")),
    ],
)
def test_a_rank_is_joined_with_the_host_that_it_names(line: str, joined: Origin) -> None:
    """A process introduces itself, or a launcher lists it."""
    (pairing,) = pairings(line)
    assert (pairing.origin.rank, pairing.origin.pid, pairing.origin.host) == (joined.rank, joined.pid, joined.host)


def test_the_host_of_another_process_is_not_joined() -> None:
    """A rank that connects to a store does not run there; its pid is read all the same."""
    assert not pairings("rank 3: connecting to the store, host: node1")
    for action in ("connecting to the store", "listening", "reading from the leader"):
        (pairing,) = pairings(f"pid 412 rank 3: {action}, host=node1")
        assert pairing.origin == Origin(rank=3, pid=412)


@pytest.mark.parametrize(
    "line",
    [
        "[rank3]: CUDA out of memory. GPU 0 is full. Process 412 has 57.35 GiB memory in use.",
        "[rank3]: pid 412 has 12 GiB on this GPU",
        "[rank3]: pid: 412 uses 4000 MiB",
    ],
)
def test_a_process_of_which_a_rank_says_how_much_memory_it_has_is_another(line: str) -> None:
    """The lists of the users of a GPU name all processes there."""
    assert not [pairing for pairing in pairings(line) if None not in (pairing.origin.pid, pairing.origin.rank)]


def test_lines_of_places_do_not_crowd_out_those_of_processes() -> None:
    """Many ranks write warnings that name a place; a pid stands between them."""
    noise = b"[1,mpirank:3,algo-1]<stderr>:weights are read at once\n" * 200
    data = noise + b"[1,mpirank:3,algo-1]<stdout>:[rank 3] pid=412 ready\n" + noise
    text = Text("job.log", lambda at, length: data[at : at + length], len(data), 1970, detect_layout(data))
    assert 412 in {pairing.origin.pid for pairing in find_pairings(text, b"", data, 0)}


def test_a_table_of_a_launcher_joins_rank_pid_and_host() -> None:
    """Intel MPI's, without the words `rank` and `pid`."""
    (pairing,) = pairings("[0] MPI startup(): 3       412   node1      {0,1,2}")
    assert pairing.origin == Origin(rank=3, pid=412, host="node1")


@pytest.mark.parametrize(
    ("line", "host", "is_other"),
    [
        ("local_rank=1 pid=412 node=node3", "node3", True),
        ("local_rank=1 pid=412", None, True),
        ("local_rank=1 pid=412 rank=5 node=node3", "node3", False),
    ],
)
def test_a_line_without_a_rank_lists_another_process(line: str, host: str | None, is_other: bool) -> None:
    """As `ps` does; with its host if the line names one."""
    (pairing,) = pairings(line)
    assert (pairing.origin.host, pairing.is_other) == (host, is_other)


def test_each_line_is_read_alone() -> None:
    """Two ranks with their pids in neighbouring lines, the last one without an end."""
    assert {(one.origin.rank, one.origin.pid) for one in pairings("rank 3 pid 413\nrank 4 pid 414")} == {
        (3, 413),
        (4, 414),
    }


@pytest.mark.parametrize(("before", "after", "is_read"), [(63, 64, True), (64, 63, True), (64, 64, False)])
def test_64_lines_of_a_kind_at_each_end_are_read(before: int, after: int, is_read: bool) -> None:
    """Of a file with more of them the middle is left out."""
    noise = b"rank of a process\n"
    data = noise * before + b"rank 3 pid 413\n" + noise * after
    text = Text("job.log", lambda at, length: data[at : at + length], len(data), 1970, detect_layout(data))
    assert (413 in {one.origin.pid for one in find_pairings(text, b"", data, 0)}) is is_read


def test_what_a_line_joins_is_learned() -> None:
    """A process of the job, a member of a communicator, or a process that another one lists."""
    job = JobMap()
    for line in ("rank 3 pid 413", "local_rank=1 pid=412 node=node3", "SLURM_NODEID=1 SLURM_NNODES=2 host=node3"):
        (pairing,) = pairings(line)
        learn_pairing(job, "job.log", pairing)
    learn_pairing(job, "job.log", Pairing(Origin(rank=5, pid=271, host="n1"), members=8))
    job.resolve()
    assert job.complete("job.log", Origin(pid=413)).rank == 3
    assert job.complete("job.log", Origin(pid=271, host="n1")).rank == 5
    assert (job.world_size(), job.nodes.counts, dict(job.nodes.stated)) == (8, {2}, {"node3": {1}})


@pytest.mark.parametrize(
    ("ranks", "placed"), [({0: "n0", 1: "n0", 2: "n1", 3: "n1"}, (1, 3)), ({2: "n1", 3: "n1", 0: "n0"}, (None, 3))]
)
def test_lines_behind_a_stated_host_do_not_say_theirs(ranks: dict[int, str], placed: tuple[int | None, int]) -> None:
    """Each file is of one node: of ranks with one local rank, a line is of that in its file, if two of it are known."""
    job = JobMap()
    for rank, host in ranks.items():
        learn_pairing(job, f"pod-{rank // 2}.log", Pairing(Origin(rank=rank, local_rank=rank % 2, host=host)))
    job.resolve()
    assert tuple(job.place(f"pod-{pod}.log", Origin(local_rank=1))[0].rank for pod in (0, 1)) == placed


def test_lines_of_several_nodes_in_one_file() -> None:
    """Where a file has ranks of two nodes, a local rank alone names none of them."""
    job = JobMap()
    for rank in range(4):
        learn_pairing(job, "job.log", Pairing(Origin(rank=rank, local_rank=rank % 2, host=f"n{rank // 2}")))
    job.resolve()
    assert job.place("job.log", Origin(local_rank=1))[0].rank is None


def test_a_line_about_nodes_names_no_process() -> None:
    """Not that of the rank in the name of its file either: a launcher writes such lines too."""
    job = JobMap()
    (pairing,) = pairings("SLURM_NODEID=1 SLURM_NNODES=2 host=node3")
    learn_pairing(job, "rank_3.log", pairing)
    assert (job.ranks, dict(job.nodes.stated)) == (set(), {"node3": {1}})
