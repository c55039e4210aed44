"""Files whose names differ only in the host: `train-a100-20.txt` and `train-a100-21.txt`, where lines name a100-20.

A name such as `a100-20` may be anything. Where lines of the job run on a host of this name, files that are named alike
but for the numbers in that name are of other hosts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection

from triage.base.lazy_re import lazy_re

_DIGITS = lazy_re(r"\d+")
_MOST_SCHEMES = 16  # of pods with random names no two differ in their numbers only


def find_hosts_in_names(sources: Collection[str], hosts: Collection[str]) -> dict[str, str]:
    """Return the host of each source whose name has one of these hosts, or one like it, where others have others."""
    schemes = Counter(_DIGITS.sub("#", host) for host in hosts if _DIGITS.search(host) and not host.isdigit())
    by_source: dict[str, str] = {}
    for scheme, _ in sorted(schemes.items(), key=lambda entry: (-entry[1], entry[0]))[:_MOST_SCHEMES]:
        named = r"\d+".join(map(re.escape, scheme.split("#")))
        pattern = re.compile(rf"(?<![A-Za-z0-9]){named}(?![A-Za-z0-9])")
        families: dict[str, dict[str, str]] = defaultdict(dict)
        for source in sorted(set(sources) - by_source.keys()):
            if len(matches := {match[0] for match in pattern.finditer(source)}) == 1:
                families[pattern.sub("#", source)][source] = matches.pop()
        for family in families.values():
            names = set(family.values())
            if 1 < len(names) == len(family) and names & set(hosts):
                by_source.update(family)
    return by_source
