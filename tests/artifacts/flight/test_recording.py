"""The recording of a job: versions, formats, groups, and several dumps of one rank."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest

from tests.artifacts.flight.factories import Call, Job, as_json, as_pickle, recording
from triage.artifacts.flight.load import Loaded, load
from triage.artifacts.flight.model import Frame, Shape
from triage.artifacts.flight.recording import RecordingBuilder
from triage.artifacts.interface import ArtifactError

JOB = Job({rank: [Call(size=(2, 3)), Call("broadcast", place=("train.py", 30, "sync"))] for rank in range(2)})


def build_recording(*dumps: tuple[int, str, Any]) -> Any:
    """Build the recording of (rank, source, value) triples."""
    builder = RecordingBuilder()
    for rank, source, value in dumps:
        builder.add(rank, source, Loaded(value, True))
    return builder.build()


def test_repeated_values_are_shared() -> None:
    """Operations, shapes and stacks stand once for all ranks; columns hold their index."""
    job_recording = recording(JOB)
    assert set(job_recording.ops) == {"nccl:all_reduce", "nccl:broadcast"}
    assert job_recording.shapes == (Shape(((2, 3),), ((2, 3),)), Shape(((64,),), ((64,),)))
    assert [len(stack) for stack in job_recording.stacks] == [0, 3, 3]
    assert job_recording.stacks[2][1] == Frame("sync", "/opt/train/train.py", 30)
    assert job_recording.table.rank.tolist() == [0, 0, 1, 1]
    assert job_recording.table.done.all()


def test_json_equals_pickle() -> None:
    """JSON and pickle of a dump give the same recording, except for stacks."""
    dumps = JOB.dumps()
    one = build_recording(
        *((rank, f"r{rank}", load(as_pickle(copy.deepcopy(dump))).value) for rank, dump in dumps.items())
    )
    other = build_recording(*((rank, f"r{rank}", load(as_json(dump)).value) for rank, dump in dumps.items()))
    assert (one.groups, one.ops, one.shapes, one.dtypes) == (other.groups, other.ops, other.shapes, other.dtypes)
    for name in ("rank", "record", "seq", "state", "created", "done", "group"):
        assert getattr(one.table, name).tolist() == getattr(other.table, name).tolist(), name


def test_pickle_is_preferred_to_its_json_twin() -> None:
    """The dump with stacks is used, without a note."""
    dump = JOB.dumps()[0]
    job_recording = build_recording((0, "fr_rank_0.json", load(as_json(dump)).value), (0, "fr_rank_0", dump))
    assert job_recording.dumps[0].source == "fr_rank_0"
    assert job_recording.notes == ()


def test_later_dump_of_a_rank_is_used() -> None:
    """The later of two dumps of a rank is used, in any order, and a note names the other."""
    early, late = Job({0: [Call()]}).dumps()[0], Job({0: [Call(), Call()]}).dumps()[0]
    for order in ([(0, "a/r0", early), (0, "b/r0", late)], [(0, "b/r0", late), (0, "a/r0", early)]):
        job_recording = build_recording(*order)
        assert job_recording.dumps[0].source == "b/r0"
        assert [(code, source) for code, source, _ in job_recording.notes] == [("older-dump", "a/r0")]


def test_versions() -> None:
    """A newer format is read with one note, an unknown version without."""
    dump = JOB.dumps()[0]
    assert build_recording((0, "r0", {**dump, "version": "2.4"})).notes == ()
    (note,) = build_recording((0, "r0", {**dump, "version": "2.11"}), (1, "r1", {**dump, "version": "3.0"})).notes
    assert note[0] == "new-dump-version"
    assert build_recording((0, "r0", {**dump, "version": "fork"})).notes == ()


def test_oldest_format_is_a_bare_list() -> None:
    """The list of entries that torch 2.1 and 2.2 wrote is read."""
    entry = {
        "record_id": 4,
        "pg_id": 0,
        "seq_id": 5,
        "profiling_name": "nccl:all_reduce",
        "time_created_us": 1_700_000_000_000_000,
        "input_sizes": [[4]],
        "output_sizes": [[4]],
        "state": "started",
        "retired": False,
        "frames": [],
    }
    job_recording = build_recording((0, "r0", [entry]))
    assert (job_recording.table.seq.tolist(), job_recording.table.created.tolist()) == (
        [5],
        [1_700_000_000_000_000_000],
    )
    assert job_recording.dumps[0].has_wrapped


def test_dumps_of_other_devices() -> None:
    """Dumps of torch_npu have the same format with other names."""
    dump = json.loads(json.dumps(JOB.dumps()[0]).replace("nccl", "hccl"))
    job_recording = build_recording(
        (0, "r0", {**dump, "version": "2.4", "hccl_comm_state": {}, "comm_lib_version": "", "hccl_version": "8.0.RC2"})
    )
    assert job_recording.ops[0] == "hccl:all_reduce"


def test_groups_with_equal_names_and_other_members_differ() -> None:
    """Groups with one name but different members are different groups."""
    calls = {rank: [Call(group="dp")] for rank in range(4)}
    halves = {0: [0, 1], 1: [0, 1], 2: [2, 3], 3: [2, 3]}
    builder = RecordingBuilder()
    for rank, members in halves.items():
        dump = Job(calls, {"dp": members}).dumps()[rank]
        builder.add(rank, f"r{rank}", Loaded(dump, True))
    groups = [group.members for group in builder.build().groups if group.name == "1"]
    assert groups == [(0, 1), (2, 3)]


def test_groups_of_gloo_are_known_by_their_entries() -> None:
    """Gloo dumps do not list the members of groups, except for a group that is alone."""
    job = Job(
        {rank: [Call(group="a" if rank < 2 else "b"), Call()] for rank in range(4)},
        {"a": [0, 1], "b": [2, 3]},
        backend="gloo",
    )
    groups = {group.desc: (group.members, group.has_stated_members) for group in recording(job).groups}
    assert groups == {"a": ((0, 1), False), "b": ((2, 3), False), "default_pg": ((0, 1, 2, 3), True)}
    single = Job({rank: [Call()] for rank in range(4)}, backend="gloo")
    assert recording(single, without=[3]).groups[0].members == (0, 1, 2, 3)


@pytest.mark.parametrize(
    "value",
    [{"a": 1}, [1, 2], "text", None, {"entries": 3}, {"entries": [{"frames": []}]}, {"pg_config": {}, "entries": [[]]}],
)
def test_other_data_is_refused(value: Any) -> None:
    """Plain data that is not a dump gives an ArtifactError."""
    with pytest.raises(ArtifactError):
        RecordingBuilder().add(0, "x", Loaded(value, True))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("record_id", None),
        ("time_created_ns", "x"),
        ("input_sizes", [[[[[[1]]]]]]),
        ("process_group", 7),
        ("state", []),
        ("frames", [1, None]),
        ("timeout_ms", 1 << 80),
        ("duration_ms", "long"),
        ("profiling_name", "x"),
        ("output_dtypes", 3),
    ],
)
def test_strange_values_are_read_or_refused(key: str, value: Any) -> None:
    """A field of any type is read or gives an ArtifactError."""
    dump = JOB.dumps()[0]
    dump["entries"][1][key] = value
    with contextlib.suppress(ArtifactError):
        assert len(build_recording((0, "r0", dump)).table.seq) == 2


def test_recording_without_dumps() -> None:
    """Without dumps the recording is empty."""
    job_recording = RecordingBuilder().build()
    assert (len(job_recording.table.seq), job_recording.groups, job_recording.world) == (0, (), ())


def test_members_that_are_no_groups_are_left_out() -> None:
    """An entry of pg_config or pg_status that is no dictionary is left out, and the others are read."""
    dump = JOB.dumps()[0]
    dump["pg_config"]["9"] = "text"
    dump["pg_status"]["9"] = [1, 2, 3]
    job_recording = build_recording((0, "r0", dump))
    assert [(group.name, group.members) for group in job_recording.groups] == [("0", (0, 1))]
    assert {key: numbers.enqueued for key, numbers in job_recording.status.items()} == {(0, 0): 2}


@pytest.mark.parametrize(
    ("sizes", "shape"), [([2, 3], ((2, 3),)), ([[2, 3], [4]], ((2, 3), (4,))), ("text", ()), ([[2, "a"], 5], ((2,),))]
)
def test_forms_of_sizes(sizes: Any, shape: tuple[tuple[int, ...], ...]) -> None:
    """The flat list that torch before 2.2 wrote for one tensor is one size; what is no size is left out."""
    dump = JOB.dumps()[0]
    dump["entries"][0]["input_sizes"] = sizes
    job_recording = build_recording((0, "r0", dump))
    assert job_recording.shapes[job_recording.table.shape[0]].inputs == shape
