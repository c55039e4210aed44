"""Schedules of ranks: they play as ProcessGroupNCCL would, and the truth of a job follows from what was played."""

from __future__ import annotations

import json
import pickle
import random
import re
from pathlib import Path
from typing import Any

import pytest

from triage.model import Diagnosis, Finding, Job
from triage.testing.schedules import draw_job, is_held_out, judge_hang, list_cells
from triage.testing.schedules.evidence import FORMS
from triage.testing.schedules.faults import FAULTS
from triage.testing.schedules.jobs import truth_as_json
from triage.testing.schedules.kinds import BEHIND, is_one_of
from triage.testing.schedules.meshes import build_mesh
from triage.testing.schedules.model import (
    FOREVER,
    Call,
    Group,
    Kernel,
    Leave,
    Local,
    Outcome,
    Program,
    Schedule,
    Sync,
    Transfer,
    view,
)
from triage.testing.schedules.observe import observe
from triage.testing.schedules.play import play
from triage.testing.schedules.programs import TRAININGS, draw_schedule
from triage.testing.schedules.truth import Truth

HANGS = [fault.name for fault in FAULTS if fault.nature != "none"]


def reduce(group: int = 0, numel: int = 4, **fields: Any) -> Call:
    return Call("all_reduce", group, numel, **fields)


def send(peer: int) -> Call:
    return Call("send", 0, 8, transfers=(Transfer(True, peer, 8),))


def recv(peer: int) -> Call:
    return Call("recv", 0, 8, transfers=(Transfer(False, peer, 8),))


def play_programs(*programs: Program, groups: tuple[Group, ...] = (), depth: int = 1000) -> Outcome:
    everyone = Group("0", "default_pg", tuple(range(len(programs))))
    return play(Schedule("test", (everyone, *groups), programs, depth))


def states(outcome: Outcome, rank: int) -> list[str]:
    """Return the state of each call of a rank."""
    return [
        "completed" if one.completed is not None else "started" if one.started is not None else "scheduled"
        for one in outcome.records[rank]
    ]


class TestPlay:
    def test_a_collective_completes_when_all_have_started_it(self) -> None:
        """It ends after the latest start."""
        outcome = play_programs((reduce(),), (Local("data", 5.0), reduce()))
        assert states(outcome, 0) == states(outcome, 1) == ["completed"]
        assert (outcome.records[0][0].completed or 0) > 5.0
        assert outcome.fired is None

    def test_a_missing_rank_makes_the_others_wait(self) -> None:
        """The timeout counts from the time when the call was enqueued."""
        outcome = play_programs((reduce(),), (Local("io", FOREVER), reduce()))
        assert states(outcome, 0) == ["started"]
        assert states(outcome, 1) == []
        assert outcome.fired == pytest.approx(600, abs=0.1)
        assert outcome.hosts[1].activity == "io"

    def test_other_bytes_hang_and_other_types_of_equal_size_do_not(self) -> None:
        """NCCL compares bytes, not types."""
        hung = play_programs((reduce(numel=4),), (reduce(numel=8),))
        same = play_programs((reduce(numel=4, dtype="Half"),), (reduce(numel=4, dtype="BFloat16"),))
        assert (states(hung, 0), states(hung, 1)) == (["started"], ["started"])
        assert states(same, 0) == ["completed"]

    def test_a_call_waits_for_what_holds_the_device(self) -> None:
        """After a call that is not `async_op`, calls of other groups are scheduled, not started."""
        pair = Group("1", "tp", (0, 1))
        held = play_programs((reduce(1), reduce(0)), (reduce(0),), groups=(pair,))
        free = play_programs((reduce(1, holds_device=False), reduce(0)), (reduce(0),), groups=(pair,))
        assert states(held, 0) == ["started", "scheduled"]
        assert states(free, 0) == ["started", "completed"]

    def test_a_kernel_that_never_ends_keeps_the_calls_behind_it(self) -> None:
        """The host goes on, the device does not."""
        outcome = play_programs((Kernel(FOREVER), reduce()), (reduce(),))
        assert (states(outcome, 0), states(outcome, 1)) == (["scheduled"], ["started"])

    def test_two_sends_that_meet_hang(self) -> None:
        """A send and a receive of one pair run in order on one stream."""
        crossed = play_programs((send(1), recv(1)), (send(0), recv(0)))
        matched = play_programs((send(1), recv(1)), (recv(0), send(0)))
        assert states(crossed, 0) == ["started", "scheduled"]
        assert states(matched, 0) == ["completed", "completed"]

    def test_a_batch_of_both_directions_completes(self) -> None:
        """The transfers of one batch run together."""
        batches = [
            Call("coalesced", 0, 0, transfers=(Transfer(True, peer, 8), Transfer(False, peer, 8))) for peer in (1, 0)
        ]
        assert states(play_programs((batches[0],), (batches[1],)), 0) == ["completed"]

    def test_the_host_waits_at_a_synchronization_and_at_its_depth(self) -> None:
        """Without one it enqueues all, though nothing completes."""
        calls = (reduce(), reduce(), reduce())
        left: Program = (Leave(),)
        assert len(play_programs(calls, left).records[0]) == 3
        assert len(play_programs(calls, left, depth=2).records[0]) == 2
        assert len(play_programs((reduce(), Sync(), reduce()), left).records[0]) == 1

    def test_a_view_knows_nothing_of_later_times(self) -> None:
        """Calls of later are absent, and what completed later is open."""
        outcome = play_programs((reduce(), Sync(), reduce()), (Local("data", 5.0), reduce(), reduce()))
        early = view(outcome, 0, 1.0)
        assert (len(early.records), len(early.open)) == (1, 1)
        assert len(view(outcome, 0, 99.0).records) == 2


class TestHealthySchedules:
    @pytest.mark.parametrize("training", TRAININGS, ids=lambda one: one.kind)
    @pytest.mark.parametrize("size", [8, 16])
    def test_they_complete(self, training: Any, size: int) -> None:
        """Nothing is open at the end, whatever is drawn."""
        for seed in range(6):
            outcome = play(draw_schedule(training.kind, size, random.Random(seed)))
            assert outcome.fired is None
            assert {host.activity for host in outcome.hosts} == {"exit"}

    def test_a_large_world_can_be_drawn(self) -> None:
        """256 ranks in three dimensions."""
        schedule = draw_schedule("pipeline3d", 256, random.Random(1))
        assert schedule.size == 256
        assert play(schedule).fired is None

    def test_groups_of_a_mesh_overlap_in_one_rank(self) -> None:
        """Each rank is in one group of each dimension, and two groups of different dimensions share one rank."""
        mesh = build_mesh([("pp", 2), ("dp", 4), ("tp", 2)], random.Random(0))
        assert mesh.size == 16
        for rank in range(16):
            own = [mesh.groups[mesh.members[name][rank]] for name in ("pp", "dp", "tp")]
            assert all(rank in group.ranks for group in own)
            assert set(own[0].ranks) & set(own[1].ranks) == {rank}
        assert mesh.position(5, "tp") == 1


class TestObserve:
    def test_a_cycle_of_waits_is_seen(self) -> None:
        """Two ranks that enter two groups in different order wait for each other."""
        pair = Group("1", "tp", (0, 1))
        outcome = play_programs((reduce(1), reduce(0)), (reduce(0), reduce(1)), (reduce(0),), groups=(pair,))
        situation = observe(outcome.schedule.groups, [view(outcome, rank, 700) for rank in range(3)])
        assert situation.cycle == {0, 1}
        assert situation.contested() == []

    def test_the_minority_of_a_contested_call(self) -> None:
        """All have started it; of two ranks there is no majority."""
        outcome = play_programs((reduce(),), (reduce(),), (reduce(numel=9),))
        situation = observe(outcome.schedule.groups, [view(outcome, rank, 700) for rank in range(3)])
        assert [one.minority() for one in situation.contested()] == [frozenset((2,))]
        tied = play_programs((reduce(),), (reduce(numel=9),))
        assert observe(tied.schedule.groups, [view(tied, rank, 700) for rank in range(2)]).slots[0].minority() is None


class TestJobs:
    @pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.name)
    def test_each_fault_shows(self, fault: Any) -> None:
        """A hang has ranks that wait, and the truth names guilty ranks, allowed ones and where they wait."""
        for seed in range(2):
            truth = draw_job(fault.name, "dump-timed", seed, 8).truth
            assert truth.is_hang == (fault.nature != "none")
            assert truth.guilty <= truth.allowed
            if truth.is_hang:
                assert truth.guilty
                assert truth.waiting
                assert truth.places

    @pytest.mark.parametrize("form", FORMS, ids=lambda one: one.name)
    def test_the_same_seed_gives_the_same_bytes(self, form: Any) -> None:
        """Nothing but the seed is drawn from."""
        first, second = (draw_job("skipped-call", form.name, 5, 4) for _ in range(2))
        assert (first.files, first.truth) == (second.files, second.truth)
        assert first.files

    def test_half_of_the_cells_are_held_out(self) -> None:
        """About half of all, and of each fault and each form at least one is not."""
        cells = list(list_cells())
        share = sum(is_held_out(*cell) for cell in cells) / len(cells)
        assert 0.4 < share < 0.6
        assert {fault for fault, form in cells if not is_held_out(fault, form)} == {fault.name for fault in FAULTS}
        assert {form for fault, form in cells if not is_held_out(fault, form)} == {form.name for form in FORMS}
        assert len(FAULTS) >= 20

    def test_a_rank_that_stands_outside_is_behind_in_the_dumps(self) -> None:
        """In the group where the others wait its last number is smaller."""
        job = draw_job("stuck-data", "dump-timed", 1, 4)
        (rank,) = job.truth.guilty
        name, number = job.truth.places[0]
        numbers = {}
        for path, content in job.files.items():
            entries = pickle.loads(content)["entries"]  # noqa: S301
            own = [entry["collective_seq_id"] for entry in entries if entry["process_group"][0] == name]
            numbers[int(re.findall(r"\d+", path)[-1])] = max(own, default=0)
        assert numbers[rank] < number <= max(numbers.values())

    def test_only_what_is_open_is_in_an_active_dump(self) -> None:
        """Members of a batch of sends and receives stay scheduled, all others are open."""
        job = draw_job("stuck-io", "dump-active-timed", 2, 8)
        for content in job.files.values():
            states = {entry["state"] for entry in pickle.loads(content)["entries"]}  # noqa: S301
            assert states <= {"scheduled", "started"}

    def test_without_timing_nothing_has_started(self) -> None:
        """The status says -1, and each entry is scheduled or completed."""
        job = draw_job("stuck-io", "dump-json", 2, 8)
        for content in job.files.values():
            dump = json.loads(content)
            assert {entry["state"] for entry in dump.get("entries", ())} <= {"scheduled", "completed"}
            assert {status["last_started_collective"] for status in dump["pg_status"].values()} == {"-1"}

    def test_a_wrapped_ring_has_lost_its_beginning(self) -> None:
        """The first entry that is left has a later number than 0."""
        job = draw_job("healthy", "dump-wrapped", 0, 8)
        dumps = [pickle.loads(content) for content in job.files.values()]  # noqa: S301
        assert max(dump["entries"][0]["record_id"] for dump in dumps) > 0

    def test_the_truth_is_json(self) -> None:
        """`show` writes it beside the job."""
        assert json.loads(truth_as_json(draw_job("swapped-groups", "py-spy", 0, 8)))["fault"] == "swapped-groups"

    def test_files_are_written_below_the_directory(self, tmp_path: Path) -> None:
        """All files, with their folders."""
        job = draw_job("stuck-lock", "dump+watchdog+py-spy", 0, 4)
        job.write(tmp_path / "job")
        written = {path.relative_to(tmp_path / "job").as_posix() for path in (tmp_path / "job").rglob("*.*")}
        assert {name for name in job.files if "." in name} <= written


class TestTruth:
    def test_of_two_ranks_that_differ_either_may_be_named(self) -> None:
        """There is no majority in a job of two."""
        truth = draw_job("other-size", "dump-timed", 3, 2).truth
        assert truth.guilty == truth.allowed == {0, 1}

    def test_of_four_only_the_one_that_differs(self) -> None:
        """In the default group of a job of four the majority is clear."""
        jobs = [draw_job("other-size", "dump-timed", seed, 4) for seed in range(12)]
        assert {len(job.truth.guilty) for job in jobs if job.kind in ("ddp", "fsdp")} == {1}

    def test_what_only_stacks_tell_is_told_by_stacks_alone(self) -> None:
        """A stack shows a rank outside of calls, and no call that differs."""
        assert draw_job("stuck-io", "py-spy", 0, 8).truth.is_tellable
        assert not draw_job("other-size", "py-spy", 0, 8).truth.is_tellable

    def test_without_timing_nobody_can_tell_a_device_that_does_not_start(self) -> None:
        """With timing its rank is known; without, all members of the group may be named, or none."""
        timed = [draw_job("stuck-device", "dump-timed", seed, 4).truth for seed in range(4)]
        untimed = [draw_job("stuck-device", "dump-untimed", seed, 4).truth for seed in range(8)]
        assert all(one.is_tellable and len(one.guilty) == 1 for one in timed)
        assert any(one.may_omit_ranks and not one.is_tellable for one in untimed)

    def test_ranks_without_a_dump_may_be_named_beside_the_guilty_one(self) -> None:
        """Nothing shows that they did not stand there, too; alone they are no answer."""
        job = draw_job("stuck-io", "dump-some-missing", 1, 8)
        absent = set(range(8)) - {int(re.findall(r"\d+", path)[-1]) for path in job.files}
        assert absent
        assert absent <= job.truth.allowed
        assert len(job.truth.guilty) == 1

    def test_one_that_waits_for_two_cannot_be_told_from_one_too_many(self) -> None:
        """Two ranks stand outside, one waits, and the fourth has no dump; if two wait, it can be told."""
        job = draw_job("two-stuck", "dump-some-missing", 200, 4)
        assert (len(job.files), len(job.truth.guilty), job.truth.is_tellable) == (3, 2, False)
        assert draw_job("two-stuck", "dump-timed", 200, 4).truth.is_tellable

    def test_stacks_without_ranks_need_no_rank_in_the_answer(self) -> None:
        """All processes wrote to one file."""
        truth = draw_job("stuck-io", "faulthandler-one-file", 0, 8).truth
        assert truth.may_omit_ranks
        assert not truth.is_tellable

    def test_a_rank_that_left_writes_nothing(self) -> None:
        """There is no dump of it, so that only its absence can be seen."""
        job = draw_job("rank-left", "dump-timed", 0, 8)
        (rank,) = job.truth.guilty
        assert rank not in {int(re.findall(r"\d+", path)[-1]) for path in job.files}
        assert not job.truth.is_tellable


class TestTexts:
    def test_the_watchdog_names_the_group_and_the_numbers(self) -> None:
        """Each rank that waits prints the description of its call, from torch 2.6 on with the status of the group."""
        job = draw_job("stuck-io", "watchdog-2.6-2.13", 4, 4)
        text = b"\n".join(job.files.values()).decode()
        line = (
            r"\[PG ID \d+ PG GUID \d+\(\w+\) Rank \d+\]  failure detected by watchdog at work sequence id: \d+ "
            r"PG status: last enqueued work: \d+, last completed work: -?\d+"
        )
        assert re.search(line, text)
        assert re.search(r"WorkNCCL\(SeqNum=\d+, OpType=\w+, NumelIn=\d+, NumelOut=\d+, Timeout\(ms\)=\d+\)", text)

    def test_the_desync_report_names_the_lagging_ranks(self) -> None:
        """It counts within the group, as the line before it does."""
        text = b"\n".join(draw_job("stuck-io", "watchdog-desync", 4, 4).files.values()).decode()
        assert "the lagging/dead/mismatched ranks that caused the desync are:" in text

    def test_py_spy_and_faulthandler_show_the_main_thread(self) -> None:
        """The stack of the guilty rank has the function in which it stands."""
        job = draw_job("stuck-io", "py-spy", 0, 4)
        (rank,) = job.truth.guilty
        assert sum(b"download_shard (shards.py:52)" in content for content in job.files.values()) == 1
        text = next(content for path, content in job.files.items() if re.findall(r"\d+", path)[-1:] == [str(rank)])
        assert b'"MainThread"\n    readinto (socket.py:706)\n    download_shard' in text
        merged = draw_job("stuck-io", "faulthandler-one-file", 0, 4)
        (only,) = merged.files.values()
        assert only.count(b"Timeout (0:") == 4
        assert b'File "/workspace/shards.py", line 52 in download_shard' in only


def truth(**fields: Any) -> Truth:
    defaults: dict[str, Any] = {
        "kinds": BEHIND,
        "guilty": frozenset((3,)),
        "allowed": frozenset((2, 3)),
        "waiting": frozenset((0, 1, 2)),
        "places": (("0", 7),),
        "is_tellable": True,
    }
    return Truth(**{**defaults, **fields})


def answer(signature: str | None, *ranks: int, confidence: float = 0.9) -> Diagnosis:
    root = Finding(signature, "", "hang", "cause", "error", confidence, ranks=ranks)
    return Diagnosis("1", "1", Job("1", "job", "/job"), "known", root)


class TestJudge:
    def test_right_is_the_kind_with_the_ranks(self) -> None:
        """A guilty rank must be among them, and none that is not allowed."""
        assert judge_hang(truth(), answer("torch.lagging-rank", 3)) == "right"
        assert judge_hang(truth(), answer("torch.lagging-rank", 2, 3)) == "right"
        assert judge_hang(truth(), answer("torch.lagging-rank", 2)) == "wrong"
        assert judge_hang(truth(), answer("torch.lagging-rank", 0, 3)) == "wrong"
        assert judge_hang(truth(), answer("torch.lagging-rank")) == "wrong"
        assert judge_hang(truth(may_omit_ranks=True), answer("torch.lagging-rank")) == "right"

    def test_a_wrong_answer_is_honest_below_the_threshold(self) -> None:
        """From 0.7 on it is wrong."""
        assert judge_hang(truth(), answer("hang.dataloader", 0, confidence=0.69)) == "honest"
        assert judge_hang(truth(), answer("hang.dataloader", 0, confidence=0.7)) == "wrong"

    def test_a_symptom_of_ranks_that_wait_is_honest(self) -> None:
        """Unless it names a rank that does not wait."""
        assert judge_hang(truth(), answer("torch.collective-timeout", 0, 1)) == "honest"
        assert judge_hang(truth(), answer("torch.collective-timeout", 9)) == "wrong"

    def test_where_nothing_hangs_only_a_claim_is_wrong(self) -> None:
        """A rank for which the others wait at this moment may be named."""
        healthy = truth(is_hang=False)
        assert judge_hang(healthy, answer("torch.lagging-rank", 9)) == "wrong"
        assert judge_hang(healthy, answer("torch.lagging-rank", 3)) == "right"
        assert judge_hang(healthy, answer("torch.lagging-rank", 9, confidence=0.5)) == "right"

    def test_kinds_are_ids_or_patterns(self) -> None:
        """`*` stands for any text; no signature is no kind."""
        assert is_one_of("torch.p2p-unmatched", ("*p2p*",))
        assert not is_one_of("torch.lagging-rank", ("*p2p*",))
        assert not is_one_of(None, ("*",))
