"""The literals in a line, remembered for lines that differ only in digits: all ranks write the same lines."""

from __future__ import annotations

from collections.abc import Sequence

from triage.base.digit_masks import mask_every_digit

LONGEST = 1 << 11
"""Lines of more bytes are not remembered."""
_MOST_MASKS = 1 << 12


class LiteralsByMask:
    """Finds the literals in a line; the threads of a scan share one."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._literals = literals
        self._masked: list[bytes] = []
        self._known: dict[bytes, tuple[tuple[int, ...], tuple[int, ...]]] = {}

    def find(self, line: bytes) -> tuple[int, ...]:
        """Return the numbers of the literals in a line of at most LONGEST bytes, ascending."""
        mask = mask_every_digit(line)
        known = self._known.get(mask)
        if known is None:
            if len(self._known) >= _MOST_MASKS:
                self._known.clear()
            known = self._known[mask] = self._find_in_mask(mask)
        certain, possible = known
        more = [number for number in possible if self._literals[number] in line]
        return tuple(sorted((*certain, *more))) if more else certain

    def _find_in_mask(self, mask: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the literals without digits in all lines with a mask, and those with digits that may be in one."""
        if not self._masked:
            self._masked = list(map(mask_every_digit, self._literals))
        numbers = [number for number, literal in enumerate(self._masked) if literal in mask]
        possible = tuple(number for number in numbers if b"1" in self._masked[number])
        return tuple(number for number in numbers if number not in possible), possible
