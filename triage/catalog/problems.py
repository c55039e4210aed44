"""What is wrong with a signature file, where, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass

# Codes of the warnings that a loaded catalog carries.
SKIPPED = "catalog-skipped"
WEAK = "catalog-weak-pattern"


@dataclass(frozen=True, slots=True)
class Problem:
    """One remark. `severity` is error, warning or info; `line` and `column` are 1-based, None when there is no place."""

    severity: str
    path: str
    line: int | None
    column: int | None
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        return f"{where}: {self.severity}: {self.message}" + (f" ({self.hint})" if self.hint else "")
