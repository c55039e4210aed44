"""Read which ranks each host has from what DeepSpeed's launcher prints.

`global_rank_mapping=defaultdict(<class 'list'>, {'node1': [0, 1], 'node2': [2, 3]})` has ranks. `--world_info=eyJ…`
(base64 of JSON) and `WORLD INFO DICT: {'node1': [0, 1], 'node2': [0, 1]}` have the devices of each host: its ranks
follow those of the hosts before it. Nothing in them is trusted beyond its shape.
"""

from __future__ import annotations

import ast
import base64
import binascii
import itertools
import json
from collections.abc import Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin

HINTS = (b"global_rank_mapping=", b"world_info", b"WORLD INFO DICT: ")
_LONGEST = 1 << 17
_MOST_RANKS = 1 << 16
_MOST_ON_HOST = 1 << 10
_MAPPING = lazy_re(r"global_rank_mapping=[^{\n]{0,80}(\{[^{}]{0,120000}\})")
_DICTIONARY = lazy_re(r"WORLD INFO DICT: (\{[^{}]{0,120000}\})")
_ENCODED = lazy_re(r"--world_info[= ]([A-Za-z0-9+/_-]{8,120000}={0,2})(?![A-Za-z0-9+/_=-])")
_HOST = lazy_re(r"[A-Za-z0-9][\w.:-]{0,252}")


def read_launcher_world(text: str) -> tuple[Origin, ...] | None:
    """Return rank, local rank and host of each process; None if the text shows no such map."""
    text = text[:_LONGEST]
    if not any(hint.decode() in text for hint in HINTS):
        return None
    if (mapping := _MAPPING.search(text)) is not None:
        return _number_ranks(_parse_literal(mapping[1]), has_ranks=True)
    if (shown := _DICTIONARY.search(text)) is not None:
        return _number_ranks(_parse_literal(shown[1]), has_ranks=False)
    encoded = _ENCODED.search(text)
    return _number_ranks(_decode(encoded[1]), has_ranks=False) if encoded is not None else None


def _parse_literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _decode(text: str) -> object:
    padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
    try:
        return json.loads(base64.urlsafe_b64decode(padded.replace("+", "-").replace("/", "_")))
    except (ValueError, binascii.Error, RecursionError):
        return None


def _number_ranks(world: object, *, has_ranks: bool) -> tuple[Origin, ...]:
    """Return the processes of a map of hosts to numbers; none if it has another shape or is too large."""
    if not isinstance(world, dict) or not _is_world(world):
        return ()
    following = itertools.count()
    return tuple(
        Origin(
            rank=number if has_ranks else next(following),
            local_rank=local,
            host=None if host == "localhost" else host,
        )
        for host, numbers in world.items()
        for local, number in enumerate(numbers)
    )


def _is_world(world: Mapping[object, object]) -> bool:
    """Does each host have its few numbers, all of them different?"""
    lists = [numbers for numbers in world.values() if isinstance(numbers, list)]
    return (
        len(lists) == len(world)
        and all(isinstance(host, str) and _HOST.fullmatch(host) for host in world)
        and all(_are_numbers(numbers) for numbers in lists)
    )


def _are_numbers(numbers: Sequence[object]) -> bool:
    whole = [number for number in numbers if type(number) is int and 0 <= number < _MOST_RANKS]
    return len(whole) == len(numbers) <= _MOST_ON_HOST and len(set(whole)) == len(whole)
