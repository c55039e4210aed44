"""Dumps of one real hang by every tool: four ranks of a gloo job on torchrun.

Ranks 0, 1 and 3 are in all_reduce, rank 2 writes a checkpoint to a pipe that nobody reads. The files of dumps/ are the
anonymised output of the tools.
"""

from __future__ import annotations

import json
import shutil
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import triage
from tests.artifacts.stacks.factories import compare
from triage import artifacts
from triage.artifacts.interface import Artifact, ArtifactError
from triage.artifacts.stacks.comparison import format_label
from triage.artifacts.stacks.reader import parse_processes
from triage.cli import main
from triage.model.evidence import Source
from triage.sources.classify import classify, needs_more
from triage.stacks.live import kernel
from triage.stacks.live.model import Call, Process, format_state
from triage.stacks.live.native import to_process
from triage.stacks.live.states import state_of
from triage.stacks.parser import parse_stacks

DUMPS = Path(__file__).parent / "dumps"
STATES = [
    # tool, state of ranks 0, 1 and 3, state of rank 2
    ("py-spy", "in all_reduce at train.py:17", "in save_checkpoint at train.py:10"),
    ("faulthandler", "in all_reduce at train.py:17", "in save_checkpoint at train.py:10"),
    ("gdb", "in all_reduce", "in write"),
    ("eu-stack", "in all_reduce", "in write"),
    ("strace", "in futex", "in write to /mnt/ckpt.pt (fd 11, since 11:20:30.097205, for at least 4.0 s)"),
    ("strace-plain", "in futex", "in write to file descriptor 11"),
    ("proc", "in futex", "in write to /mnt/ckpt.pt (fd 11)"),
    ("kernel-stack", "in futex", "in write to a pipe"),
    ("wchan", "in futex", "in a pipe"),
]


@pytest.mark.parametrize(("tool", "usual", "odd"), STATES, ids=[row[0] for row in STATES])
def test_every_tool_shows_the_odd_rank(tool: str, usual: str, odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The dumps of each tool give two groups, their states, and rank 2 as the one that never joined."""
    assert main(["stacks", str(DUMPS / tool), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [[member["rank"] for member in group["members"]] for group in report["groups"]] == [[0, 1, 3], [2]]
    assert report["groups"][0]["text"].startswith(usual)
    assert report["groups"][1]["text"] == odd
    assert (report["conclusions"][0]["rule"], report["conclusions"][0]["ranks"]) == ("never-joined", [2])


@pytest.mark.parametrize("tool", [row[0] for row in STATES])
def test_ingest_names_the_rank_that_never_joined(tool: str) -> None:
    """The diagnosis names rank 2 for the dumps of each tool."""
    diagnosis = triage.ingest(DUMPS / tool)
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("torch.rank-never-joined", (2,))


def test_dumps_of_several_tools_are_combined(tmp_path: Path) -> None:
    """A rank with several dumps has the line from its stack and the file from the kernel."""
    for tool in ("py-spy", "gdb", "proc"):
        for rank in range(4):
            target = tmp_path / f"rank{rank}.pid{17427 + rank}" / f"{tool}.txt"
            target.parent.mkdir(exist_ok=True)
            shutil.copy(DUMPS / tool / f"rank{rank}.txt", target)
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.ranks == (2,)
    text = diagnosis.root_cause.evidence[0].text
    assert text.startswith(
        "Rank 2 is in save_checkpoint, in write to /mnt/ckpt.pt at train.py:10 (fd 11), "
        "while ranks 0-1, 3 are in all_reduce"
    )
    assert diagnosis.root_cause.evidence[0].source.endswith("py-spy.txt")


def test_ps_table() -> None:
    """The table of ps gives the state of each process, by its wait channel."""
    processes = parse_processes((DUMPS / "ps.txt").read_bytes(), "ps.txt")
    assert {each.pid: state_of(each).phrase for each in processes} == {
        17427: "in futex", 17428: "in futex", 17429: "in a pipe", 17430: "in futex",
    }  # fmt: skip


def test_kernel_stack_alone(tmp_path: Path) -> None:
    """A file with only a kernel stack is read, although it begins with a bracket like JSON."""
    for rank, function in enumerate(
        ("futex_do_wait+0x46/0x90", "hrtimer_nanosleep+0x74/0xf0", "futex_do_wait+0x46/0x90")
    ):
        (tmp_path / f"rank{rank}.txt").write_text(f"[<0>] {function}\n[<0>] do_syscall_64+0x71/0x280\n")
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.ranks, [warning.code for warning in diagnosis.warnings]) == ((1,), [])


@pytest.mark.parametrize(
    ("rest", "kind"),
    [
        ("", "live-stacks"),
        (
            "=== Rank 1: http://node:5000/dump ===\n\nThread 0x7f01 (most recent call first):\n  <no Python frame>\n",
            "live-stacks",
        ),
        ("step 12 loss 2.0\n", "text"),  # a log
        ("rank 1: RuntimeError: CUDA error\n", "text"),
        ("Fatal Python error: Aborted\n", "text"),  # a process that died
    ],
)
def test_faulthandler_below_headings(rest: str, kind: str) -> None:
    """Dumps of faulthandler are dumps of live processes if headings and such dumps are all there is."""
    dump = 'Timeout (0:05:00)!\nThread 0x7f01 (most recent call first):\n  File "/w/train.py", line 8 in step\n'
    heading = "=== rank 0 (pid 4711) ===\n"
    assert classify(f"{heading}{dump}{rest}".encode())[0] == kind
    assert classify(f"{dump}{rest}".encode())[0] == "text"  # without a heading it is read as a log
    assert needs_more(f"{heading}{dump}".encode())


def test_dumps_are_classified_by_their_first_lines() -> None:
    """Dumps of live processes are recognised; a core's backtrace, a log and C code are text."""
    kinds = {path.parent.name: classify(path.read_bytes()[:4096])[0] for path in sorted(DUMPS.glob("*/rank2.*"))}
    assert kinds.pop("py-spy") == "py-spy"
    assert kinds.pop("faulthandler") == "text"  # the log of a rank continues after its dump
    assert set(kinds.values()) == {"live-stacks"}
    python = b"Thread 1 (Thread 0x7f0 (LWP 11)):\nTraceback (most recent call first):\n  (optimized out)\n"
    assert classify(python)[0] == "live-stacks"
    assert classify(python.replace(b"first", b"last"))[0] == "text"
    for text in (
        "[New LWP 12]\n[New LWP 13]\nCore was generated by `./x'.\n"
        "Program terminated with signal SIGSEGV, Segmentation fault.\n#0  0x1 in f ()\n",
        "Thread 1 started\n#0 step 1\n",
        'main(argc, argv) = 0\nprintf("x")\n',
        "write(fd, buffer) failed\nread(fd) failed\n",
        "step 1 loss 2\n",
        "PID USER COMMAND\n1 root init\n",
    ):
        assert classify(text.encode())[0] == "text", text


def test_crash_in_a_dump_is_a_crash(tmp_path: Path) -> None:
    """A dump with the frame of a signal handler is a crash, even without the name of the signal."""
    lines = [
        "Thread 1 (Thread 0x7f01 (LWP 12)):",
        "#0  0x00007f01 in raise () from /lib/libc.so.6",
        "#1  <signal handler called>",
    ]
    (tmp_path / "rank1.txt").write_text(
        "\n".join([*lines, "#2  0x00007f02 in decode (p=0x0) at decode.c:7", "#3  0x00007f03 in main ()"]) + "\n"
    )
    result = artifacts.read_artifacts(
        [Artifact(Source("rank1.txt", "live-stacks"), (tmp_path / "rank1.txt").read_bytes())]
    )
    assert [(fact.kind, fact.fields["frame"], fact.origin.rank) for fact in result.evidence] == [("crash", "decode", 1)]


TIMER_DUMP = """Timeout (0:05:00)!
Thread 0x00007f01 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait
  File "/usr/lib/python3.11/queue.py", line 171 in get
  File "/usr/lib/python3.11/threading.py", line 982 in run
Thread 0x00007f02 (most recent call first):
  File "{file}", line 3252 in {function}
  File "/w/train.py", line {line} in <module>
"""
C10D = "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


def timer_dump(function: str, file: str = "/w/data.py", line: int = 60) -> str:
    return TIMER_DUMP.format(file=file, function=function, line=line)


def test_faulthandler_in_logs(tmp_path: Path) -> None:
    """Of the faulthandler dumps in a log, the main thread of the last two counts."""
    moving = [timer_dump("forward", line=50), timer_dump("all_reduce", C10D), timer_dump("all_reduce", C10D)]
    for rank in range(4):
        dumps = moving if rank != 1 else [timer_dump("read_shard", line=40)] * 2
        text = "\n".join(f"step {step} loss 2.0\n{dump}" for step, dump in enumerate(dumps))
        (tmp_path / f"rank{rank}.log").write_text(f"start\n{text}")
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("torch.rank-never-joined", (1,))
    assert "in read_shard at data.py:3252" in diagnosis.root_cause.evidence[0].text


def test_dump_before_the_end_is_ignored(tmp_path: Path) -> None:
    """A rank that finished after its dump is not at fault."""
    for rank in range(3):
        dump = timer_dump("all_reduce", C10D) if rank else timer_dump("compile_model")
        (tmp_path / f"rank{rank}.log").write_text(
            f"{dump}step 1 loss 2.0\nstep 2 loss 1.9\nstep 3 loss 1.8\ntraining finished\n"
        )
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.verdict == "clean"


@pytest.mark.parametrize("later", ["step 8 loss 1.0", "training finished"])
def test_rank_that_continued_after_its_dump_is_not_blamed(tmp_path: Path, later: str) -> None:
    """A stack is outdated when its rank printed a step or its end afterwards."""
    for rank in range(4):
        dump = timer_dump("all_reduce", C10D) if rank != 2 else timer_dump("save_model") + later + "\n"
        (tmp_path / f"rank{rank}.log").write_text(f"step 7 loss 2.0\n{dump}")
    diagnosis = triage.ingest(tmp_path)
    assert "torch.rank-never-joined" not in {finding.signature for finding in diagnosis.findings}
    assert "hang.collective" in {finding.signature for finding in diagnosis.findings}


def test_rank_that_finished_early(tmp_path: Path) -> None:
    """A rank without a dump whose log shows its end left early."""
    for rank in range(4):
        (tmp_path / f"rank{rank}.log").write_text(
            f"[rank {rank}] world_size=4\nstep 1 loss 2\n" + ("training finished\n" if rank == 1 else "")
        )
        if rank != 1:
            shutil.copy(DUMPS / "py-spy" / "rank0.txt", tmp_path / f"rank{rank}.dump.txt")
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("launch.rank-left-early", (1,))


def test_states_of_kernel_calls() -> None:
    """The state of a system call names file, device, file system, descriptor and duration."""
    states = {
        format_state(kernel.state_of(call)): call
        for call in (
            Call("fsync", 7, "/mnt/nfs/ckpt.pt", ("rpc_wait_bit_killable", "nfs_file_fsync"), "D"),
            Call("ioctl", 9, "/dev/nvidia0", (), "D"),
            Call("", wait=("folio_wait_bit_common", "ll_readpage", "__x64_sys_read"), run="D"),
            Call("recvfrom", 12, "TCP:[10.0.0.1:5->10.0.0.2:6]", since="10:00:00", seconds=601.0),
            Call("futex"),
            Call("", wait=("mem_cgroup_out_of_memory",), run="D"),
            Call("flock", 4, "/home/u/.cache/lock"),
            Call("write", 11, "/mnt/x", ended=True),
            Call("", run="Z"),
        )
    }
    assert list(states) == [
        "in fsync of /mnt/nfs/ckpt.pt, waiting for NFS (fd 7, uninterruptible)",
        "in the GPU driver (fd 9, uninterruptible)",
        "in read, waiting for Lustre (uninterruptible)",
        "waiting for the network (fd 12, since 10:00:00, for at least 10 min)",
        "in futex",
        "waiting for free memory (uninterruptible)",
        "waiting for a file lock (fd 4)",
        "making system calls, in write to /mnt/x the last (fd 11)",
        "dead, but not reaped by its parent",
    ]


@pytest.mark.parametrize(
    ("line", "phrase"),
    [
        ('openat(AT_FDCWD, "/mnt/data/x.tar", O_RDONLY <unfinished ...>', "in openat of /mnt/data/x.tar"),
        (
            'connect(7, {sa_family=AF_INET, sin_port=htons(29500), sin_addr=inet_addr("10.0.0.1")}, '
            "16 <unfinished ...>",
            "waiting for the network",
        ),
        ("restart_syscall(<... resuming interrupted nanosleep ...> <unfinished ...>", "asleep"),
        ("wait4(-1,  <unfinished ...>", "waiting for a subprocess"),
        ("fdatasync(5</mnt/log> <unfinished ...>", "in fdatasync of /mnt/log"),
    ],
)
def test_states_of_strace_calls(line: str, phrase: str) -> None:
    """The state of a call is read from strace with every prefix."""
    for prefix in ("", "4711 ", "[pid  4711] ", "4711 1700000000.123456 ", "10:00:00 "):
        (process,) = parse_processes((prefix + line + "\n").encode(), "rank0.strace")
        assert state_of(process).phrase == phrase


def test_gil_is_recognised_without_python_frames() -> None:
    """A stack of gdb shows that a thread waits for the GIL."""
    text = (
        "Thread 1 (Thread 0x7f01 (LWP 7)):\n#0  0x00007f01 in futex_wait () from /lib/libc.so.6\n"
        "#1  0x00007f02 in take_gil (tstate=0x1) at ceval_gil.h:230\n"
    )
    assert state_of(to_process(parse_stacks(text)[0])).phrase.startswith("waiting for the GIL")


@given(st.sampled_from(sorted(DUMPS.glob("*/rank2.*"))), st.integers(0, 4000), st.text(max_size=60), st.integers(1, 60))
def test_processes_only_contain_text_of_the_dump(path: Path, start: int, noise: str, cut: int) -> None:
    """A changed dump is read or refused, and all names that are read are in its text."""
    text = (whole := path.read_text("utf-8"))[:start] + noise + whole[start + cut :]
    try:
        processes = parse_processes(text.encode(), "rank2.txt")
    except ArtifactError:
        return
    assert_in_text(processes, text)


def assert_in_text(processes: list[Process], text: str) -> None:
    """Check that names, files and numbers are in the text, and that the comparison has every process once."""
    text += text.replace("\n", "")  # lines that a pager broke are joined
    for each in processes:
        for thread in each.threads:
            frames = [(frame.function, frame.file, frame.line) for frame in thread.frames]
            call = (thread.call.path, thread.call.name, *thread.call.wait) if thread.call else ()
            values = (thread.tid, *chain(*frames), *call)
            # Normalised names have <T> for template arguments, and of a cut frame they lack what looked like arguments.
            assert [value for value in values if value and str(value).partition("<T>")[0][:20] not in text] == []
    comparison = compare(processes)
    members = [
        member.label for member in (*chain(*(group.members for group in comparison.groups)), *comparison.helpers)
    ]
    assert sorted(members) == sorted(set(map(format_label, processes)))
