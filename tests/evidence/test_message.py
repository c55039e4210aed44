"""Single messages: who spoke, and the parts that have names."""

from __future__ import annotations

import pytest

from triage.evidence import extract_text


def test_nccl_warnings_carry_their_chain() -> None:
    """File and line of the warning, the return code and the way it took; lines of another thread or process are not
    part of it.
    """
    facts = extract_text(
        "node1:412:530 [3] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<42> "
        "with status=12 opcode=0\n"
        "node1:413:531 [2] NCCL INFO transport/net.cc:99 -> 3\n"
        "node1:412:530 [3] NCCL INFO transport/net.cc:1182 -> 6\n"
        "node1:412:530 [3] NCCL INFO proxy.cc:698 -> 6\n"
    )
    fact = facts[0]
    assert (fact.component, fact.origin.host, fact.origin.pid) == ("NCCL", "node1", 412)
    assert {name: fact.fields[name] for name in ("file", "line", "rc", "chain")} == {
        "file": "transport/net_ib.cc",
        "line": "1295",
        "rc": "6",
        "chain": "transport/net.cc:1182 <- proxy.cc:698",
    }


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (
            "[Sat Nov 21 03:07:45 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=41231, name=python, GPU has fallen "
            "off the bus.",
            {"busid": "0000:3b:00", "xid": "79", "pid": "41231"},
        ),
        (
            "Nov 21 03:07:45 node1 kernel: NVRM: Xid (PCI:0000:3b:00): 48, An uncorrectable error",
            {"busid": "0000:3b:00", "xid": "48"},
        ),
        ("dmesg: Xid (PCI:0000:01:00): 31, pid=4512, Ch 00000010", {"busid": "0000:01:00", "xid": "31", "pid": "4512"}),
        (
            "[12345.678901] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30",
            {"busid": "0000:c1:00.0", "sxid": "20034"},
        ),
        ("Nov 21 03:07:45 node1 kernel: Out of memory: Killed process 4321 (python) total-vm:1kB", {"pid": "4321"}),
        ("[9321.118] amdgpu 0000:c5:00.0: amdgpu: GPU reset begin!", {}),
        (
            "[629.844] amdgpu 0000:0b:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770, for "
            "process python pid 1796 thread python pid 1796)",
            {"pid": "1796"},
        ),
        ("[3916.79] i915 0000:9b:00.0: [drm] GPU HANG: ecode 12:10:8ed9fff2, in python [5076]", {"pid": "5076"}),
        ("[3916.79] i915 0000:9b:00.0: [drm] python[4199] context reset due to GPU hang", {"pid": "4199"}),
    ],
)
def test_kernel_messages(line: str, fields: dict[str, str]) -> None:
    """Kernel lines of any stamp give Xid, bus id and the process killed."""
    (fact,) = extract_text(line)
    assert (fact.kind, fact.component) == ("kernel", "kernel")
    assert dict(fact.fields) == fields


def test_a_cann_block_is_one_fact() -> None:
    """The code, its solution and the trace below it belong together."""
    (fact,) = extract_text(
        "EI0002: 2026-11-21-03:07:45.372.001 Notify wait execution timed out. Reason: the remote rank did not come.\n"
        "        Solution: 1. Check the plogs of all ranks.\n"
        "        TraceBack (most recent call last):\n"
        "        Notify wait timeout[FUNC:Wait][FILE:task.cc][LINE:12]\n"
    )
    assert (fact.component, fact.fields["code"]) == ("CANN", "EI0002")
    assert "Solution: 1." in fact.text
    assert "LINE:12" in fact.text


@pytest.mark.parametrize(
    ("line", "component"),
    [
        (
            "[rank3]:[E1121 02:38:00.1 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout",
            "c10d",
        ),
        ("[PG 0 Rank 3] Observed flight recorder dump signal from another rank via TCPStore.", "c10d"),
        ("[ERROR] 2026-11-21-03:07:45 (PID:41, Device:0, RankID:3) ERR02200 DIST call hccl api failed.", "torch_npu"),
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.",
            "slurm",
        ),
        ("double free or corruption (!prev)", "glibc"),
        ("CUDA error: an illegal memory access was encountered", "CUDA"),
        ("step 12 loss 3.4", "app"),
    ],
)
def test_who_spoke(line: str, component: str) -> None:
    """The component is told by the line alone."""
    (fact,) = extract_text(line)
    assert fact.component == component


@pytest.mark.parametrize(
    "line",
    [
        "[Sat Nov 21 03:07:45 2026] python3[4105]: segfault at 10 ip 00007f1c2a4b3d10 sp 00007ffd1c2a4b30 error "
        "4 in libc.so.6[7f1c2a400000+1000]",
        "[Sat Nov 21 03:07:45 2026] traps: python3[4105] general protection fault ip:7f1c2a4b3d10 "
        "sp:7ffd1c2a4b30 error:0 in libc.so.6[7f1c2a400000+1000]",
        "[Sat Nov 21 03:07:45 2026] INFO: task python3:4105 blocked for more than 122 seconds.",
        "[Sat Nov 21 03:07:45 2026] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:4105]",
    ],
)
def test_the_kernel_names_the_process_it_means(line: str) -> None:
    """The pid is that of the line's subject, so that it joins a rank of that host."""
    (fact,) = extract_text(line + "\n")
    assert (fact.kind, fact.origin.pid) == ("kernel", 4105)


@pytest.mark.parametrize("name", ["deepspeed", "deepscale"])
def test_deepspeed_wrote_an_overflow_under_its_first_name_too(name: str) -> None:
    """DeepSpeed called itself deepscale in this line before it had its name; the level INFO is no mention there."""
    (fact,) = extract_text(
        f"[2021-11-27 00:36:54,800] [INFO] [stage2.py:1628:step] [{name}] OVERFLOW! Rank 0 Skipping step. "
        "Attempted loss scale: 1, reducing to 1\n"
    )
    assert fact.component == "deepspeed"


@pytest.mark.parametrize(
    ("log", "text"),
    [
        ("# disk quota exceeded\n\nHello,\n", "disk quota exceeded"),
        ("# disk quota exceeded\nset -e\n", "# disk quota exceeded"),
        ("# disk quota exceeded\n", "# disk quota exceeded"),
        ("\n# disk quota exceeded\n\n", "# disk quota exceeded"),
        ("# OSError: disk quota exceeded\nset -e\n", "OSError: disk quota exceeded"),
        ("# OSError: disk quota exceeded\n", "# OSError: disk quota exceeded"),
        ("# Note: disk quota exceeded\nset -e\n", "# Note: disk quota exceeded"),
        ("\n# OSError: disk quota exceeded\nset -e\n", "# OSError: disk quota exceeded"),
    ],
)
def test_a_heading_is_the_title_of_a_post(log: str, text: str) -> None:
    """A first line behind `# ` is a title before an empty line, or with an exception before any; others are not."""
    assert extract_text(log)[0].text == text
