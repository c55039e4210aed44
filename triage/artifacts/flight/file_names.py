"""The rank that wrote a dump, which only the name of the file contains.

`<prefix><rank>` (TORCH_FR_DUMP_TEMP_FILE, TORCH_NCCL_DEBUG_INFO_TEMP_FILE), followed by `.json`, a compression, or
`.f<n>` for the n-th failure; the prefix may contain a host and digits of its own. Where the file has no number, its
directory may have one: `rank_3/trace.pkl`.
"""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re

_SUFFIX = lazy_re(r"\.(?:gz|zst|bz2|xz|lz4|json|pkl|pickle|bin|dump|trace|dat|txt|f\d+)$", re.I)
_LAST = lazy_re(r"(\d{1,7})$")
_MARKED = lazy_re(r"rank[_\-=]?(\d{1,7})(?!\d)", re.I)


def parse_rank(name: str) -> int | None:
    """Return the rank in the name of a dump; for archive members, the innermost name with one counts."""
    parts = [part for part in re.split(r"[/\\]|!/", name) if part]
    for depth, part in enumerate(reversed(parts)):
        while _SUFFIX.search(part):
            part = _SUFFIX.sub("", part)
        marked = list(_MARKED.finditer(part))
        last = _LAST.search(part) if depth == 0 else None
        if number := last or (marked[-1] if marked else None):
            return int(number[1])
    return None


def parse_failure_number(name: str) -> int:
    """Return the n of `.f<n>`: how many failures the process had survived when it wrote this dump."""
    number = re.search(r"\.f(\d{1,6})(?:\.|$)", name)
    return int(number[1]) if number else 0
