"""Dumps of a job put together: versions, forms, groups, and several dumps of one rank."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest

from tests.artifacts.flight.making import Call, Job, as_json, as_pickle, recording
from triage.artifacts.flight.load import Loaded, load
from triage.artifacts.flight.model import Frame, Shape
from triage.artifacts.flight.recording import Builder
from triage.artifacts.interface import ArtifactError

JOB = Job({rank: [Call(size=(2, 3)), Call("broadcast", place=("train.py", 30, "sync"))] for rank in range(2)})


def built(*dumps: tuple[int, str, Any]) -> Any:
    builder = Builder()
    for rank, source, value in dumps:
        builder.add(rank, source, Loaded(value, True))
    return builder.build()


def test_what_repeats_stands_once() -> None:
    """Operations, shapes and stacks of all ranks are shared; columns hold their index."""
    found = recording(JOB)
    assert set(found.ops) == {"nccl:all_reduce", "nccl:broadcast"}
    assert found.shapes == (Shape(((2, 3),), ((2, 3),)), Shape(((64,),), ((64,),)))
    assert [len(stack) for stack in found.stacks] == [0, 3, 3]
    assert found.stacks[2][1] == Frame("sync", "/opt/train/train.py", 30)
    assert found.table.rank.tolist() == [0, 0, 1, 1]
    assert found.table.done.all()


def test_json_and_pickle_say_the_same() -> None:
    """Apart from the stacks, which JSON does not have."""
    dumps = JOB.dumps()
    one = built(*((rank, f"r{rank}", load(as_pickle(copy.deepcopy(dump))).value) for rank, dump in dumps.items()))
    other = built(*((rank, f"r{rank}", load(as_json(dump)).value) for rank, dump in dumps.items()))
    assert (one.groups, one.ops, one.shapes, one.dtypes) == (other.groups, other.ops, other.shapes, other.dtypes)
    for name in ("rank", "record", "seq", "state", "created", "done", "group"):
        assert getattr(one.table, name).tolist() == getattr(other.table, name).tolist(), name


def test_of_a_pickle_and_its_json_twin_the_one_with_stacks_is_taken() -> None:
    """Both were written at one moment; nothing is said about it."""
    dump = JOB.dumps()[0]
    found = built((0, "fr_rank_0.json", load(as_json(dump)).value), (0, "fr_rank_0", dump))
    assert found.dumps[0].source == "fr_rank_0"
    assert found.notes == ()


def test_of_two_dumps_of_a_rank_the_later_is_taken() -> None:
    """In whatever order they come; the other is said to be left out."""
    early, late = Job({0: [Call()]}).dumps()[0], Job({0: [Call(), Call()]}).dumps()[0]
    for order in ([(0, "a/r0", early), (0, "b/r0", late)], [(0, "b/r0", late), (0, "a/r0", early)]):
        found = built(*order)
        assert found.dumps[0].source == "b/r0"
        assert [(code, source) for code, source, _ in found.notes] == [("older-dump", "a/r0")]


def test_versions() -> None:
    """A newer format is read and said to be newer; an unknown tag is no harm."""
    dump = JOB.dumps()[0]
    assert built((0, "r0", {**dump, "version": "2.4"})).notes == ()
    (note,) = built((0, "r0", {**dump, "version": "2.11"}), (1, "r1", {**dump, "version": "3.0"})).notes
    assert note[0] == "new-dump-version"
    assert built((0, "r0", {**dump, "version": "fork"})).notes == ()


def test_the_oldest_form_is_a_bare_list() -> None:
    """torch 2.1 and 2.2 wrote only entries, with other names and fewer keys."""
    entry = {
        "record_id": 4, "pg_id": 0, "seq_id": 5, "profiling_name": "nccl:all_reduce", "time_created_us": 1_700_000_000_000_000,
        "input_sizes": [[4]], "output_sizes": [[4]], "state": "started", "retired": False, "frames": [],
    }  # fmt: skip
    found = built((0, "r0", [entry]))
    assert (found.table.seq.tolist(), found.table.created.tolist()) == ([5], [1_700_000_000_000_000_000])
    assert found.dumps[0].wrapped


def test_forks_for_other_devices() -> None:
    """torch_npu and torch_musa write the same with names of their own."""
    dump = json.loads(json.dumps(JOB.dumps()[0]).replace("nccl", "hccl"))
    found = built(
        (0, "r0", {**dump, "version": "2.4", "hccl_comm_state": {}, "comm_lib_version": "", "hccl_version": "8.0.RC2"})
    )
    assert found.ops[0] == "hccl:all_reduce"
    assert found.dumps[0].library == "8.0.RC2"


def test_groups_with_one_name_and_other_members_are_not_one() -> None:
    """The members that a dump states belong to what makes a group."""
    calls = {rank: [Call(group="dp")] for rank in range(4)}
    halves = {0: [0, 1], 1: [0, 1], 2: [2, 3], 3: [2, 3]}
    builder = Builder()
    for rank, members in halves.items():
        dump = Job(calls, {"dp": members}).dumps()[rank]
        builder.add(rank, f"r{rank}", Loaded(dump, True))
    groups = [group.members for group in builder.build().groups if group.name == "1"]
    assert groups == [(0, 1), (2, 3)]


def test_groups_of_gloo_are_known_by_their_entries() -> None:
    """Gloo of torch 2.13 does not state the members of groups, except of one that is alone."""
    job = Job(
        {rank: [Call(group="a" if rank < 2 else "b"), Call()] for rank in range(4)},
        {"a": [0, 1], "b": [2, 3]},
        backend="gloo",
    )
    groups = {group.desc: (group.members, group.stated) for group in recording(job).groups}
    assert groups == {"a": ((0, 1), False), "b": ((2, 3), False), "default_pg": ((0, 1, 2, 3), True)}
    alone = Job({rank: [Call()] for rank in range(4)}, backend="gloo")
    assert recording(alone, without=[3]).groups[0].members == (0, 1, 2, 3)


@pytest.mark.parametrize(
    "value",
    [{"a": 1}, [1, 2], "text", None, {"entries": 3}, {"entries": [{"frames": []}]}, {"pg_config": {}, "entries": [[]]}],
)
def test_other_data_is_no_dump(value: Any) -> None:
    """It is refused with a reason."""
    with pytest.raises(ArtifactError):
        Builder().add(0, "x", Loaded(value, True))


@pytest.mark.parametrize(
    ("key", "value"),
    [("record_id", None), ("time_created_ns", "x"), ("input_sizes", [[[[[[1]]]]]]), ("process_group", 7), ("state", []), ("frames", [1, None]),
     ("timeout_ms", 1 << 80), ("duration_ms", "long"), ("profiling_name", "x"), ("output_dtypes", 3)],
)  # fmt: skip
def test_strange_values_are_read_or_refused(key: str, value: Any) -> None:
    """No value of a field brings the reader down."""
    dump = JOB.dumps()[0]
    dump["entries"][1][key] = value
    with contextlib.suppress(ArtifactError):
        assert len(built((0, "r0", dump)).table.seq) == 2


def test_no_dump_at_all() -> None:
    """An empty recording is one."""
    found = Builder().build()
    assert (len(found.table.seq), found.groups, found.world) == (0, (), ())
