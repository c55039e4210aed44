"""Kernel lines are joined to the rank that they are about."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import triage
from diagnose.factories import fact
from triage.diagnose.memory_kills import is_at_other_time
from triage.testing.jobs import JobBuilder

JOB = Path(__file__).parents[2] / "samples/jobs/sigkill_redirects/job"


def killed_pid(job: Path) -> str:
    """Return the pid of the rank that the launcher's table says was killed."""
    text = "\n".join(path.read_text(errors="replace") for path in job.rglob("*.log"))
    return re.findall(r"exitcode\s+: -9 \(pid: (\d+)\)", text)[0]


def with_dmesg(tmp_path: Path, pid: str) -> triage.Diagnosis:
    """Diagnose the job with a kernel log in which this process was killed for memory."""
    shutil.copytree(JOB, tmp_path / "job")
    line = (
        f"[Sat Nov 21 03:08:20 2026] Memory cgroup out of memory: Killed process {pid} (python3) "
        f"total-vm:9000000kB, anon-rss:8000000kB"
    )
    (tmp_path / "job/dmesg.txt").write_text(line + "\n")
    return triage.ingest(tmp_path / "job")


def test_an_oom_kill_raises_the_sigkill_to_a_cause(tmp_path: Path) -> None:
    """The kernel line names the pid of the killed rank: the cause is the memory, on that rank, and it explains the
    signal.
    """
    alone = triage.ingest(JOB).root_cause
    assert alone is not None
    assert alone.signature == "host.sigkill"
    joined = with_dmesg(tmp_path, killed_pid(JOB))
    assert joined.root_cause is not None
    assert (joined.root_cause.signature, joined.root_cause.ranks) == ("host.oom-killer", alone.ranks)
    assert next(finding for finding in joined.findings if finding.signature == "host.sigkill").explained_by == (
        "host.oom-killer",
    )


def test_another_process_is_no_rank(tmp_path: Path) -> None:
    """A pid that no rank had gives the kernel's line no rank."""
    diagnosis = with_dmesg(tmp_path, "999999")
    assert next(finding for finding in diagnosis.findings if finding.signature == "host.oom-killer").ranks == ()


def test_a_gpu_is_placed_by_its_pci_address(tmp_path: Path) -> None:
    """NCCL says at which address each rank's GPU is, the kernel which address failed: the Xid is that rank's, and no
    other's.
    """
    lines = []
    for rank, bus in enumerate(("1b000", "9b000")):
        lines += [
            f"node1:{400 + rank}:50{rank} [{rank}] NCCL INFO ncclCommInitRank comm 0x5f{rank} rank {rank} nranks "
            f"2 cudaDev {rank} nvmlDev {rank} "
            f"busId {bus} commId 0xabc - Init COMPLETE",
        ]
    (tmp_path / "console.log").write_text("\n".join(lines) + "\n")
    (tmp_path / "dmesg.txt").write_text(
        "[Sat Nov 21 11:59:52 2026] NVRM: Xid (PCI:0000:9b:00): 79, pid=1, name=python, GPU has fallen off the bus.\n"
    )
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("gpu.fallen-off-bus", (1,))


KILL = "[Sat Nov 21 02:30:10 2026] Out of memory: Killed process {} ({}) total-vm:9000000kB, anon-rss:8000000kB"
STEP = "{0}: 2026-11-21 02:30:0{1},000 [rank{0}] INFO trainer: step {1} loss 2.5"


def test_the_only_rank_that_srun_saw_killed_on_the_kernel_s_host_is_the_one(tmp_path: Path) -> None:
    """No pid is of a rank: of two hosts' ranks it is the one that srun saw killed on the kernel's host, and none if it
    saw two.
    """
    steps = [STEP.format(rank, step) for step in range(1, 5) for rank in range(8)]
    for name, task, ranks in (("one", "task 5", (5,)), ("two", "tasks 5-6", ()), ("elsewhere", "", ())):
        (tmp_path / name / "node2").mkdir(parents=True)
        (tmp_path / name / "node2/dmesg.txt").write_text(KILL.format(4242, "python") + "\n")
        ends = [f"srun: error: node2: {task}: Killed"] if task else ["srun: error: node1: task 2: Killed"]
        (tmp_path / name / "slurm-7.out").write_text("\n".join([*steps, *ends]) + "\n")
        root = triage.ingest(tmp_path / name).root_cause
        assert root is not None
        assert (root.signature, root.ranks, root.hosts) == ("host.oom-killer", ranks, ("node2",))
        assert any("it may be one of ranks 5-6, which died by SIGKILL there" in why for why in root.why) == (
            name == "two"
        )


def test_a_killed_rank_of_torchrun_may_have_another_pid_in_a_container(tmp_path: Path) -> None:
    """The table gives the killed rank another pid: it is meant where the host is said and the process is called as
    ranks are.
    """
    for process, ranks in (("python3", (2,)), ("mysqld", ())):
        job = (
            JobBuilder(tmp_path / process, world_size=4).steps(4).elastic_table({2: -9, 0: -15, 1: -15, 3: -15}).write()
        )
        (job / "node1").mkdir()
        (job / "node1/dmesg.txt").write_text(KILL.format(4242, process) + "\n")
        root = triage.ingest(job).root_cause
        assert root is not None
        assert (root.signature, root.ranks) == ("host.oom-killer", ranks)
        assert any("as in a container" in why for why in root.why) == bool(ranks)
        assert any("kernel says why rank 2 was killed" in why for why in root.why) == bool(ranks)


@pytest.mark.parametrize(("minute", "explains"), [("07", True), ("02", False)])
def test_a_kernel_in_another_zone_still_comes_first(tmp_path: Path, minute: str, explains: bool) -> None:
    """The kernel logs two hours later than torch's spawn, whose parent names the killed child by its rank: they are of
    two zones where the rest is a short delay.
    """
    (tmp_path / "node1").mkdir()
    line = f"Nov 21 05:{minute}:31 node1 kernel: Out of memory: Killed process 4242 (python3) total-vm:9000000kB"
    (tmp_path / "node1/kern.log").write_text(line + "\n")
    steps = [f"2026-11-21 03:07:{20 + step} [rank{rank}] step {step}" for step in range(1, 9) for rank in range(3)]
    end = "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL"
    trace = ["Traceback (most recent call last):", '  File "train.py", line 9, in <module>', "    mp.spawn(main)", end]
    stamped = [f"2026-11-21 03:07:32 {line}" for line in trace]
    (tmp_path / "train.log").write_text("\n".join([*steps, *stamped]) + "\n")
    findings = {finding.signature: finding for finding in triage.ingest(tmp_path).findings}
    assert findings["host.oom-killer"].ranks == ((1,) if explains else ())
    assert findings["host.sigkill"].explained_by == (("host.oom-killer",) if explains else ())


@pytest.mark.parametrize(
    ("end", "inherits_time", "is_other"),
    [
        (99.0, False, False),
        (97.0, False, True),
        (219.0, False, False),
        (221.0, False, True),
        (-199.0, True, False),
        (-201.0, True, True),
        (100.0 + 5400 + 30, False, False),
    ],
)
def test_a_launcher_sees_the_end_of_a_killed_process_soon(end: float, inherits_time: bool, is_other: bool) -> None:
    """In another time zone too; a line without a timestamp of its own may be minutes later than the line before it."""
    kill = fact("Out of memory: Killed process 7 (python)", kind="kernel", time=100.0)
    assert is_at_other_time(kill, fact("x", 0, time=end, inherits_time=inherits_time)) == is_other
