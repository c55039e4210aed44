"""One real hang, seen by every tool: four ranks of a gloo job on torchrun, ranks 0, 1 and 3 in all_reduce, rank 2
writing a checkpoint to a
pipe that nobody reads. The files of dumps/ are what the tools printed of it, made anonymous."""

from __future__ import annotations

import json
import shutil
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import triage
from triage import artifacts
from triage.artifacts.interface import Artifact, ArtifactError
from triage.artifacts.stacks.board import board, label_of
from triage.artifacts.stacks.reader import processes
from triage.cli import main
from triage.model.evidence import Source
from triage.sources.classify import classify
from triage.stacks import parse
from triage.stacks.live import kernel
from triage.stacks.live.model import Call, Process, phrase
from triage.stacks.live.native import process
from triage.stacks.live.states import state_of

DUMPS = Path(__file__).parent / "dumps"
TOLD = [
    # tool, what ranks 0, 1 and 3 are in, what rank 2 is in
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


@pytest.mark.parametrize(("tool", "usual", "odd"), TOLD, ids=[row[0] for row in TOLD])
def test_every_tool_finds_the_odd_rank_out(tool: str, usual: str, odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two groups, the states in words, and rank 2 named as the one that is not there."""
    assert main(["stacks", str(DUMPS / tool), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [[member["rank"] for member in group["members"]] for group in found["groups"]] == [[0, 1, 3], [2]]
    assert found["groups"][0]["text"].startswith(usual)
    assert found["groups"][1]["text"] == odd
    assert (found["conclusions"][0]["rule"], found["conclusions"][0]["ranks"]) == ("never-joined", [2])


@pytest.mark.parametrize("tool", [row[0] for row in TOLD])
def test_ingest_names_the_rank_that_never_joined(tool: str) -> None:
    """Whatever the tool, the diagnosis is the same: rank 2 did not come."""
    found = triage.ingest(DUMPS / tool)
    assert found.root_cause is not None
    assert (found.root_cause.signature, found.root_cause.ranks) == ("torch.rank-never-joined", (2,))


def test_all_tools_together_say_more_than_one(tmp_path: Path) -> None:
    """Stacks say which line, the kernel says which file: one member a rank, with both."""
    for tool in ("py-spy", "gdb", "proc"):
        for rank in range(4):
            target = tmp_path / f"rank{rank}.pid{17427 + rank}" / f"{tool}.txt"
            target.parent.mkdir(exist_ok=True)
            shutil.copy(DUMPS / tool / f"rank{rank}.txt", target)
    found = triage.ingest(tmp_path)
    assert found.root_cause is not None
    assert found.root_cause.ranks == (2,)
    text = found.root_cause.evidence[0].text
    assert text.startswith(
        "rank 2 is in save_checkpoint, in write to /mnt/ckpt.pt at train.py:10 (fd 11), while ranks 0, 1, 3 are in all_reduce"
    )
    assert found.root_cause.evidence[0].source.endswith("py-spy.txt")


def test_the_table_of_ps() -> None:
    """ps shows every process of a node with its wait channels; who is which rank it does not know."""
    dumped = processes((DUMPS / "ps.txt").read_bytes(), "ps.txt")
    assert {each.pid: state_of(each).words for each in dumped} == {
        17427: "in futex", 17428: "in futex", 17429: "in a pipe", 17430: "in futex",
    }  # fmt: skip


def test_a_kernel_stack_alone(tmp_path: Path) -> None:
    """`cat /proc/PID/stack` begins with a bracket like JSON, and is none."""
    for rank, function in enumerate(
        ("futex_do_wait+0x46/0x90", "hrtimer_nanosleep+0x74/0xf0", "futex_do_wait+0x46/0x90")
    ):
        (tmp_path / f"rank{rank}.txt").write_text(f"[<0>] {function}\n[<0>] do_syscall_64+0x71/0x280\n")
    found = triage.ingest(tmp_path)
    assert found.root_cause is not None
    assert (found.root_cause.ranks, [warning.code for warning in found.warnings]) == ((1,), [])


def test_what_a_dump_is_told_by() -> None:
    """Each file is known by its first lines; a core's backtrace, a log and C code are none of them."""
    kinds = {path.parent.name: classify(path.read_bytes()[:4096])[0] for path in sorted(DUMPS.glob("*/rank2.*"))}
    assert kinds.pop("py-spy") == "py-spy"
    assert kinds.pop("faulthandler") == "text"  # a rank's log goes on behind its dump
    assert set(kinds.values()) == {"live-stacks"}
    for text in (
        "[New LWP 12]\n[New LWP 13]\nCore was generated by `./x'.\nProgram terminated with signal SIGSEGV, Segmentation fault.\n#0  0x1 in f ()\n",
        "Thread 1 started\n#0 step 1\n",
        'main(argc, argv) = 0\nprintf("x")\n',
        "write(fd, buffer) failed\nread(fd) failed\n",
        "step 1 loss 2\n",
        "PID USER COMMAND\n1 root init\n",
    ):
        assert classify(text.encode())[0] == "text", text


def test_a_crash_in_such_a_file_is_a_crash(tmp_path: Path) -> None:
    """All threads of a core, printed without a word of its signal: the handler's frame shows that it crashed."""
    lines = [
        "Thread 1 (Thread 0x7f01 (LWP 12)):",
        "#0  0x00007f01 in raise () from /lib/libc.so.6",
        "#1  <signal handler called>",
    ]
    (tmp_path / "rank1.txt").write_text(
        "\n".join([*lines, "#2  0x00007f02 in decode (p=0x0) at decode.c:7", "#3  0x00007f03 in main ()"]) + "\n"
    )
    found = artifacts.read([Artifact(Source("rank1.txt", "live-stacks"), (tmp_path / "rank1.txt").read_bytes())])
    assert [(fact.kind, fact.fields["frame"], fact.origin.rank) for fact in found.evidence] == [("crash", "decode", 1)]


FAULT = """Timeout (0:05:00)!
Thread 0x00007f01 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait
  File "/usr/lib/python3.11/queue.py", line 171 in get
  File "/usr/lib/python3.11/threading.py", line 982 in run
Thread 0x00007f02 (most recent call first):
  File "{file}", line 3252 in {function}
  File "/w/train.py", line {line} in <module>
"""
C10D = "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


def fault(function: str, file: str = "/w/data.py", line: int = 60) -> str:
    return FAULT.format(file=file, function=function, line=line)


def test_faulthandler_in_logs(tmp_path: Path) -> None:
    """A timer's dumps stand in the ranks' logs among other lines; the main thread counts, and of repeated dumps the
    last two.
    """
    moving = [fault("forward", line=50), fault("all_reduce", C10D), fault("all_reduce", C10D)]
    for rank in range(4):
        dumps = moving if rank != 1 else [fault("read_shard", line=40)] * 2
        text = "\n".join(f"step {step} loss 2.0\n{dump}" for step, dump in enumerate(dumps))
        (tmp_path / f"rank{rank}.log").write_text(f"start\n{text}")
    found = triage.ingest(tmp_path)
    assert found.root_cause is not None
    assert (found.root_cause.signature, found.root_cause.ranks) == ("torch.rank-never-joined", (1,))
    assert "in read_shard at data.py:3252" in found.root_cause.evidence[0].text


def test_a_dump_before_the_end_says_nothing(tmp_path: Path) -> None:
    """A rank that was dumped while it compiled, and went on, is not blamed."""
    for rank in range(3):
        dump = fault("all_reduce", C10D) if rank else fault("compile_model")
        (tmp_path / f"rank{rank}.log").write_text(
            f"{dump}step 1 loss 2.0\nstep 2 loss 1.9\nstep 3 loss 1.8\ntraining finished\n"
        )
    found = triage.ingest(tmp_path)
    assert found.verdict == "clean"


@pytest.mark.parametrize("later", ["step 8 loss 1.0", "training finished"])
def test_a_rank_that_went_on_behind_its_dump_is_not_blamed(tmp_path: Path, later: str) -> None:
    """Its stack is an old one: the others hang, and it is not said to be there."""
    for rank in range(4):
        dump = fault("all_reduce", C10D) if rank != 2 else fault("save_model") + later + "\n"
        (tmp_path / f"rank{rank}.log").write_text(f"step 7 loss 2.0\n{dump}")
    found = triage.ingest(tmp_path)
    assert "torch.rank-never-joined" not in {finding.signature for finding in found.findings}
    assert "hang.collective" in {finding.signature for finding in found.findings}


def test_ranks_that_were_done_while_others_waited(tmp_path: Path) -> None:
    """No process is left of a rank that has finished, so no dump names it: its log does."""
    for rank in range(4):
        (tmp_path / f"rank{rank}.log").write_text(
            f"[rank {rank}] world_size=4\nstep 1 loss 2\n" + ("training finished\n" if rank == 1 else "")
        )
        if rank != 1:
            shutil.copy(DUMPS / "py-spy" / "rank0.txt", tmp_path / f"rank{rank}.dump.txt")
    found = triage.ingest(tmp_path)
    assert found.root_cause is not None
    assert (found.root_cause.signature, found.root_cause.ranks) == ("launch.rank-left-early", (1,))


def test_calls_of_the_kernel_in_words() -> None:
    """Descriptor, file, device, file system and since when; a call that has ended shows that the thread moves."""
    told = {
        phrase(kernel.state_of(call)): call
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
    assert list(told) == [
        "in fsync of /mnt/nfs/ckpt.pt, waiting for NFS (fd 7, not to be interrupted)",
        "in the GPU driver (fd 9, not to be interrupted)",
        "in read, waiting for Lustre (not to be interrupted)",
        "waiting for the network (fd 12, since 10:00:00, for at least 10 min)",
        "in futex",
        "waiting for free memory (not to be interrupted)",
        "waiting for a file lock (fd 4)",
        "making system calls, in write to /mnt/x the last (fd 11)",
        "dead, and not yet buried by its parent",
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('openat(AT_FDCWD, "/mnt/data/x.tar", O_RDONLY <unfinished ...>', "in openat of /mnt/data/x.tar"),
        (
            'connect(7, {sa_family=AF_INET, sin_port=htons(29500), sin_addr=inet_addr("10.0.0.1")}, 16 <unfinished ...>',
            "waiting for the network",
        ),
        ("restart_syscall(<... resuming interrupted nanosleep ...> <unfinished ...>", "asleep"),
        ("wait4(-1,  <unfinished ...>", "waiting for a subprocess"),
        ("fdatasync(5</mnt/log> <unfinished ...>", "in fdatasync of /mnt/log"),
    ],
)
def test_calls_of_strace(line: str, words: str) -> None:
    """Every way in which strace names a file, and a call that it found interrupted."""
    for prefix in ("", "4711 ", "[pid  4711] ", "4711 1700000000.123456 ", "10:00:00 "):
        (found,) = processes((prefix + line + "\n").encode(), "rank0.strace")
        assert state_of(found).words == words


def test_the_gil_and_compiling_show_without_python_frames() -> None:
    """gdb alone: who waits for the GIL, and which collective a thread of gloo carries out."""
    text = "Thread 1 (Thread 0x7f01 (LWP 7)):\n#0  0x00007f01 in futex_wait () from /lib/libc.so.6\n#1  0x00007f02 in take_gil (tstate=0x1) at ceval_gil.h:230\n"
    assert state_of(process(parse(text)[0])).words.startswith("waiting for the GIL")


@given(st.sampled_from(sorted(DUMPS.glob("*/rank2.*"))), st.integers(0, 4000), st.text(max_size=60), st.integers(1, 60))
def test_nothing_is_read_that_does_not_stand_there(path: Path, at: int, noise: str, cut: int) -> None:
    """Whatever stands in a dump, it is read or refused. What is read stands there, and each process is shown once."""
    text = (whole := path.read_text("utf-8"))[:at] + noise + whole[at + cut :]
    try:
        found = processes(text.encode(), "rank2.txt")
    except ArtifactError:
        return
    stated(found, text)


def stated(found: list[Process], text: str) -> None:
    """Names, files and numbers stand in the text, and the board has every process once."""
    for each in found:
        for thread in each.threads:
            frames = [(frame.function, frame.file, frame.line) for frame in thread.frames]
            call = (thread.call.path, thread.call.name, *thread.call.wait) if thread.call else ()
            assert [said for said in (thread.tid, *chain(*frames), *call) if said and str(said) not in text] == []
    shown = board(found)
    members = [member.label for member in (*chain(*(group.members for group in shown.groups)), *shown.helpers)]
    assert sorted(members) == sorted(set(map(label_of, found)))
