"""`triage stacks` on dumps and logs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

Command = Callable[..., tuple[int, str, str]]
JOB = Path(__file__).resolve().parents[2] / "samples" / "jobs" / "hung_stacks" / "job"
EVIL = 'Process 7: python\nPython v3.11 (x)\n\nThread 7 (idle): "MainThread"\n    <script>\x1b[31m&f (a<b.py:1)\n'


def test_groups_and_the_odd_rank(command: Command) -> None:
    """The text names the groups, their places and the conclusions."""
    status, out, _ = command("stacks", JOB)
    assert status == 0
    assert "Most         ranks 0-1, 3: in DDP's reduction of gradients at train" in out
    assert "Others       rank 2: " in out
    assert "upload_checkpoint (train.py:" in out


def test_json_for_programs(command: Command) -> None:
    """JSON has the same groups and conclusions."""
    report = json.loads(command("stacks", JOB, "--format", "json")[1])
    assert report["schema"] == "triage.stacks/1"
    assert [[member["rank"] for member in group["members"]] for group in report["groups"]] == [[0, 1, 3], [2]]
    assert [(each["rule"], each["ranks"]) for each in report["conclusions"]] == [
        ("never-joined", [2]),
        ("blocked-in-collective", [0, 1, 3]),
    ]


def test_the_tree_is_sound_xml(command: Command, tmp_path: Path) -> None:
    """The SVG parses, has the conclusions and box widths, and escapes file contents."""
    (tmp_path / "rank4.txt").write_text(EVIL)
    status, out, _ = command("stacks", JOB, tmp_path, "--format", "svg")
    assert status == 0
    assert "<script" not in out
    assert "\x1b" not in out
    boxes = {
        group.findtext("{*}title"): float(rect.get("width", "0"))
        for group in ET.fromstring(out)
        if (rect := group.find("{*}rect")) is not None
    }
    assert boxes["all [ranks 0-4]"] == 1199.0
    assert next(width for title, width in boxes.items() if title and title.startswith("upload_checkpoint")) == 239.0
    assert "while ranks 0-1, 3 are in DDP" in " ".join(
        text.text or "" for text in ET.fromstring(out).findall(".//{*}text")
    )
    assert any(title and title.startswith("rank 2: in upload_checkpoint at train") for title in boxes)


def test_one_rank_of_many_can_be_read_in_the_tree(command: Command, tmp_path: Path) -> None:
    """The stack of one of 64 ranks is wide enough for text."""
    text = 'Process {}: python\nPython v3.11 (x)\n\nThread {} (idle): "MainThread"\n    {} (train.py:{})\n'
    for rank in range(64):
        pid = 100 + rank
        (tmp_path / f"rank{rank}.txt").write_text(
            text.format(pid, pid, *(("load_shard", 5) if rank == 17 else ("step", 9)))
        )
    tree = ET.fromstring(command("stacks", tmp_path, "--format", "svg")[1])
    assert any((text.text or "").startswith("load_shard (train.py:5)") for text in tree.findall(".//{*}text"))


def test_the_stack_of_a_finished_rank_is_left_out(command: Command, tmp_path: Path) -> None:
    """A warning names the log."""
    dump = (
        'Current thread 0x7f01 (most recent call first):\n  File "/w/{}.py", line 7 in {}\n'
        '  File "/w/train.py", line 9 in <module>\n'
    )
    for rank in range(3):
        text = dump.format("comm", "ring_reduce") if rank else dump.format("ckpt", "save_all") + "training finished\n"
        (tmp_path / f"rank{rank}.log").write_text(text)
    status, out, _ = command("stacks", tmp_path)
    assert status == 0
    assert "2 stacks at 1 place" in out
    assert "save_all" not in out
    assert "rank0.log: left out, because the rank continued" in " ".join(out.split())


def test_no_dump_is_an_error_with_a_hint(command: Command, tmp_path: Path) -> None:
    """A directory without dumps gives status 2."""
    (tmp_path / "job.log").write_text("step 1\n")
    status, _, err = command("stacks", tmp_path)
    assert status == 2
    assert "py-spy dump" in err
