"""triage.ranks.node_layout"""

from __future__ import annotations

import pytest

from triage.ranks.node_layout import NodeLayout, find_pod_ordinal


def resolved(layout: NodeLayout, world: int, names: list[str], pairs: dict[tuple[str, int], set[int]]) -> NodeLayout:
    """Return the layout, resolved with these places and known ranks."""
    layout.resolve(world, {name: name for name in names}, {0, 1, 2, 3}, pairs)
    return layout


def test_a_stated_node_and_its_size_give_the_rank() -> None:
    """`--node_rank 1 --nproc_per_node 4` of a world of 8: local rank 3 is rank 7."""
    layout = NodeLayout(sizes={4}, counts={2})
    layout.stated["gpu7"].add(1)
    assert resolved(layout, 8, ["gpu7"], {}).rank_of(["gpu7"], 3) == 7
    assert layout.rank_of(["gpu8"], 3) is None
    assert layout.rank_of(["gpu7"], 4) is None


@pytest.mark.parametrize(
    ("world", "sizes", "counts"), [(0, {4}, {2}), (8, {3}, {2}), (8, {4, 2}, set()), (9, {4}, {2})]
)
def test_sizes_that_do_not_agree_give_nothing(world: int, sizes: set[int], counts: set[int]) -> None:
    """The world must be known, and a multiple of one size of a node."""
    layout = NodeLayout(sizes=sizes, counts=counts)
    layout.stated["gpu7"].add(1)
    assert resolved(layout, world, ["gpu7"], {}).rank_of(["gpu7"], 3) is None


@pytest.mark.parametrize(
    "names", [["node_0", "node_1"], ["logs/node-1", "logs/node-2"], ["a_host0.log", "a_host1.log"]]
)
def test_numbered_names_of_all_nodes_are_their_order(names: list[str]) -> None:
    """Every node must have such a name; they count from 0 or 1."""
    assert resolved(NodeLayout(), 8, names, {}).rank_of([names[1]], 2) == 6
    assert resolved(NodeLayout(), 8, names[1:], {}).rank_of([names[1]], 2) is None


def test_known_ranks_overrule_names() -> None:
    """Where lines show that `node_0` has ranks 4 to 7, the names are not the order of the nodes."""
    pairs = {("node_0", 0): {4}, ("node_1", 2): {2}}
    layout = resolved(NodeLayout(), 8, ["node_0", "node_1"], pairs)
    assert (layout.rank_of(["node_0"], 3), layout.rank_of(["node_1"], 3)) == (7, 3)


def test_ranks_that_are_dealt_in_turns_give_nothing() -> None:
    """Rank 1 on the second node with local rank 0: ranks do not fill a node one after the other."""
    layout = NodeLayout(sizes={4}, counts={2})
    layout.stated["gpu7"].add(1)
    assert resolved(layout, 8, ["gpu7"], {("gpu7", 0): {1}}).rank_of(["gpu7"], 3) is None


def test_one_file_of_all_nodes_has_no_node() -> None:
    """A node rank in the only file without a host may be that of one of several agents that write there."""
    layout = NodeLayout(sizes={4}, counts={2})
    layout.stated["\0job.log"].add(0)
    assert resolved(layout, 8, ["\0job.log"], {}).rank_of(["\0job.log"], 3) is None
    layout.stated["\0other.log"].add(1)
    assert resolved(layout, 8, ["\0job.log", "\0other.log"], {}).rank_of(["\0other.log"], 3) == 7


@pytest.mark.parametrize(
    "names",
    [
        ["train-master-0", "train-worker-0"],
        ["train-worker-0", "train-worker-1"],
        ["logs/llama-sft-7b-0-x7k2p.log", "logs/llama-sft-7b-1-9dvmc.log"],
        ["trainer-0", "trainer-1"],
    ],
)
def test_the_pods_of_one_job_are_in_the_order_of_their_numbers(names: list[str]) -> None:
    """The master stands before the workers."""
    assert resolved(NodeLayout(), 8, names, {}).rank_of([names[1]], 2) == 6


@pytest.mark.parametrize(
    "names",
    [
        ["train-worker-0", "other-worker-1"],  # two jobs
        ["train-worker-1", "train-worker-2"],  # the first is not there
        ["train-worker-0", "train-ps-1"],  # two jobs, as far as it shows
        ["train-worker-0", "train-server-1"],  # two roles
        ["train-master-0", "train-master-1"],  # two first ones
        ["train-worker-0", "gpu17b"],  # no pod
    ],
)
def test_other_pods_have_no_order(names: list[str]) -> None:
    """Nobody knows which node they are."""
    assert resolved(NodeLayout(), 8, names, {}).rank_of([names[1]], 2) is None


@pytest.mark.parametrize(("count", "is_known"), [(10, True), (11, False)])
def test_names_of_up_to_ten_nodes_are_their_order(count: int, is_known: bool) -> None:
    """Of more nodes the numbers are those of the machines in a room."""
    names = [f"node_{number}" for number in range(count)]
    rank = resolved(NodeLayout(), 4 * count, names, {}).rank_of([names[1]], 2)
    assert rank == (6 if is_known else None)


def test_names_need_one_shape() -> None:
    """Numbers of two kinds of names are no order, nor do names count from 2."""
    assert resolved(NodeLayout(), 8, ["a_node_0", "b_node_1"], {}).index == {}
    assert resolved(NodeLayout(), 8, ["node_2", "node_3"], {}).index == {}
    assert resolved(NodeLayout(), 8, ["node_1", "node_3"], {}).index == {}


@pytest.mark.parametrize(
    ("counts", "stated", "expected"),
    [(set(), {}, False), ({1}, {}, False), ({2}, {}, True), (set(), {"a": {0}}, False)],
)
def test_other_nodes_are_stated(counts: set[int], stated: dict[str, set[int]], expected: bool) -> None:
    """By their number, or by the index of one behind the first."""
    layout = NodeLayout(counts=counts)
    layout.stated.update(stated)
    assert layout.has_other_nodes() is expected
    layout.stated["b"].add(1)
    assert layout.has_other_nodes()


def test_local_ranks_must_fit_on_a_node() -> None:
    """Local rank 3 on nodes of two processes is a contradiction; so is another number of nodes."""
    layout = NodeLayout(sizes={2})
    layout.stated["gpu7"].add(1)
    assert resolved(layout, 8, ["gpu7"], {}).rank_of(["gpu7"], 1) is None
    layout = NodeLayout(sizes={4}, counts={3})
    layout.stated["gpu7"].add(1)
    assert resolved(layout, 8, ["gpu7"], {}).rank_of(["gpu7"], 1) is None


def test_a_place_with_two_indices_has_none() -> None:
    """Lines of two agents stand in one file of a host."""
    layout = NodeLayout(sizes={4}, counts={2})
    layout.stated["gpu7"] |= {0, 1}
    assert resolved(layout, 8, ["gpu7"], {}).rank_of(["gpu7"], 1) is None
    assert resolved(layout, 8, ["gpu7"], {("gpu7", 0): {4}}).rank_of(["gpu7"], 1) == 5
    assert resolved(layout, 8, ["gpu7"], {("gpu7", 0): {0, 4}}).rank_of(["gpu7"], 1) is None


@pytest.mark.parametrize(
    ("name", "pod"),
    [
        ("train-worker-3", ("train", "worker", 3)),
        ("logs/train-3.log", ("train", "", 3)),
        ("train-3-x7k2p", ("train-#####", "", 3)),
        ("train-3-x7k2a", None),
        ("train3", None),
    ],
)
def test_the_names_of_pods(name: str, pod: tuple[str, str, int] | None) -> None:
    """Job, role and number; the letters behind an indexed one have no vowels."""
    assert find_pod_ordinal(name) == pod


def test_a_world_that_is_no_multiple_of_the_nodes_gives_nothing() -> None:
    """Ten ranks on four nodes are not two on each."""
    layout = NodeLayout()
    places = {f"node_{number}": f"node_{number}" for number in range(4)}
    layout.resolve(10, places, {0, 1}, {})
    assert (layout.index, layout.rank_of(["node_1"], 1)) == ({}, None)
    layout.resolve(8, places, {0, 1}, {})
    assert layout.rank_of(["node_1"], 1) == 3


@pytest.mark.parametrize(("place", "rank"), [("gpu7", 5), ("\0job.log", None)])
def test_a_rank_shows_the_node_of_a_host_not_of_a_file(place: str, rank: int | None) -> None:
    """A file without a host may have the lines of several nodes."""
    layout = resolved(NodeLayout(sizes={4}, counts={2}), 8, [place], {(place, 0): {4}})
    assert layout.rank_of([place], 1) == rank
