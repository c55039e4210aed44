"""The rules that recognise secrets. Each module holds one sort of them; docs/security.md lists the kinds.

The order matters where rules overlap: blocks and secrets with a form of their own first, names with values last.
"""

from __future__ import annotations

from triage.evidence.secrets import addresses, arguments, assignments, headers, key_blocks, options, programs, tokens
from triage.evidence.secrets.interface import Rule

RULES: tuple[Rule, ...] = (
    *key_blocks.RULES,
    *tokens.RULES,
    *addresses.RULES,
    *headers.RULES,
    *arguments.RULES,
    *programs.RULES,
    *options.RULES,
    *assignments.RULES,
)

EMAIL = r"\b[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b"
