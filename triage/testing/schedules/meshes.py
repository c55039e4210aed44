"""Process groups of a mesh of ranks, named as torch and Megatron name them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.testing.schedules.model import Group

_MEGATRON = {
    "pp": "PIPELINE_MODEL_PARALLEL_GROUP",
    "dp": "DATA_PARALLEL_GROUP",
    "tp": "TENSOR_MODEL_PARALLEL_GROUP",
    "ep": "EXPERT_MODEL_PARALLEL_GROUP",
    "shard": "INTRA_SHARD_GROUP",
    "replicate": "INTER_REPLICATE_GROUP",
}


@dataclass(frozen=True, slots=True)
class Mesh:
    """Ranks in a grid; the last dimension changes fastest. `groups`: the default group, then those of each dimension.

    `members` has for each dimension the index of the group of each rank.
    """

    dimensions: tuple[tuple[str, int], ...]
    groups: tuple[Group, ...]
    members: Mapping[str, tuple[int, ...]]

    @property
    def size(self) -> int:
        """The number of ranks."""
        return math.prod(length for _, length in self.dimensions)

    def position(self, rank: int, dimension: str) -> int:
        """Return the index of a rank along a dimension."""
        return self.groups[self.members[dimension][rank]].ranks.index(rank)


def build_mesh(dimensions: Sequence[tuple[str, int]], rng: random.Random) -> Mesh:
    """Return the mesh. Programs create the groups of the dimensions in any order, and describe them or not."""
    style = rng.choice(("mesh_{}", "{}", "megatron", "undefined"))
    size = math.prod(length for _, length in dimensions)
    groups = [Group("0", "default_pg", tuple(range(size)))]
    members: dict[str, tuple[int, ...]] = {}
    order = list(range(len(dimensions)))
    rng.shuffle(order)
    for axis in order if len(dimensions) > 1 else ():
        name = dimensions[axis][0]
        description = _MEGATRON[name] if style == "megatron" else style.format(name)
        of_rank = [0] * size
        for ranks in _fibres([length for _, length in dimensions], axis):
            for rank in ranks:
                of_rank[rank] = len(groups)
            groups.append(Group(str(len(groups)), description, ranks))
        members[name] = tuple(of_rank)
    return Mesh(tuple(dimensions), tuple(groups), members)


def _fibres(lengths: Sequence[int], axis: int) -> list[tuple[int, ...]]:
    """Return the ranks of each line of the grid along an axis."""
    lines: dict[tuple[int, ...], list[int]] = {}
    for rank, place in enumerate(itertools.product(*map(range, lengths))):
        lines.setdefault(place[:axis] + place[axis + 1 :], []).append(rank)
    return [tuple(ranks) for ranks in lines.values()]


def split_size(size: int, names: Sequence[str], rng: random.Random) -> list[tuple[str, int]]:
    """Return lengths of the dimensions, each 2 or more, whose product is `size`, a power of two."""
    exponents = [1] * len(names)
    for _ in range(size.bit_length() - 1 - len(names)):
        exponents[rng.randrange(len(names))] += 1
    return [(name, 2**exponent) for name, exponent in zip(names, exponents, strict=True)]
