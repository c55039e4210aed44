"""Problems of signature files: what is wrong, where, and how to fix it."""

from __future__ import annotations

from triage.base.lazy_dataclass import dataclass

# Codes of the warnings that a loaded catalog carries.
SKIPPED = "catalog-skipped"
WEAK = "catalog-weak-pattern"
# What a rule says about one signature: severity, key path in its file, message, hint.
Remark = tuple[str, tuple[str | int, ...], str, str]


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a file.

    `severity` is error, warning or info. `line` and `column` are 1-based; None when no place is known.
    """

    severity: str
    path: str
    line: int | None
    column: int | None
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        return f"{where}: {self.severity}: {self.message}" + (f" ({self.hint})" if self.hint else "")
