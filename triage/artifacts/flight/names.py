"""Which rank wrote a dump: only the name of its file says so.

`<prefix><rank>` (TORCH_FR_DUMP_TEMP_FILE, TORCH_NCCL_DEBUG_INFO_TEMP_FILE), with `.json`, a compression, or `.f<n>` for
the n-th failure behind
it; the prefix may hold a host and digits of its own. Where the file has no number, its directory may:
`rank_3/trace.pkl`.
"""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re

_SUFFIX = lazy_re(r"\.(?:gz|zst|bz2|xz|lz4|json|pkl|pickle|bin|dump|trace|dat|txt|f\d+)$", re.I)
_LAST = lazy_re(r"(\d{1,7})$")
_MARKED = lazy_re(r"rank[_\-=]?(\d{1,7})(?!\d)", re.I)


def rank_of(name: str) -> int | None:
    """The rank in the name of a dump; of archive members, of the innermost name that has one."""
    parts = [part for part in re.split(r"[/\\]|!/", name) if part]
    for depth, part in enumerate(reversed(parts)):
        while _SUFFIX.search(part):
            part = _SUFFIX.sub("", part)
        marked = list(_MARKED.finditer(part))
        last = _LAST.search(part) if depth == 0 else None
        found = last or (marked[-1] if marked else None)
        if found:
            return int(found[1])
    return None


def failure_of(name: str) -> int:
    """The n of `.f<n>`: how many failures the process had survived when it wrote this dump."""
    found = re.search(r"\.f(\d{1,6})(?:\.|$)", name)
    return int(found[1]) if found else 0
