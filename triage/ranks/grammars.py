"""All prefix grammars, in the order they are tried. They stack: `[default2]:[rank2]: …` has two layers.

A text that is a prefix in one file and plain text in another (`node1: `, `[3] `) is a file prefix: file_prefixes.py.
"""

from __future__ import annotations

from triage.ranks.grammar import Grammar, build_table
from triage.ranks.launcher_grammars import LAUNCHER_GRAMMARS
from triage.ranks.logger_grammars import LOGGER_GRAMMARS

GRAMMARS: tuple[Grammar, ...] = (*LAUNCHER_GRAMMARS, *LOGGER_GRAMMARS)
BY_START = build_table(GRAMMARS)
