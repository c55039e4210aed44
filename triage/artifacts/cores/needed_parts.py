"""The parts of a core file that its stacks need: their ranges in the file, and the digest of what they hold."""

from __future__ import annotations

from contextlib import closing

from triage.artifacts.cores import elf
from triage.artifacts.cores.model import Core, CoreError
from triage.base.content_digest import start_digest

Range = tuple[int, int]
"""Start and end in the file."""

PAGE = 1 << 12
_STACK = 1 << 18
_SMALL = 1 << 18
_PIECE = 1 << 20
_MAX_DIGESTED = 256 << 20
_MAX_WITHOUT_STACKS = 16 << 20


def find_stacks(core: Core) -> list[Range]:
    """Return where the stacks of the threads lie, and the small writable parts of libraries.

    The latter hold the linker's lists and libc's messages.
    """
    ranges = []
    for registers in core.threads:
        segment = core.segment_at(registers.sp) or core.segment_at(registers.sp + _STACK // 2)
        if segment is not None:
            start = max(0, registers.sp - segment.start - PAGE)
            ranges.append((segment.offset + start, segment.offset + min(segment.stored_size, start + _STACK)))
    ranges += [
        (segment.offset, segment.offset + segment.stored_size)
        for segment in core.segments
        if segment.is_writable and segment.stored_size <= _SMALL
    ]
    return ranges


def find_module_starts(core: Core) -> list[Range]:
    """Return where the first pages of the mapped programs and libraries lie."""
    segments = [core.segment_at(module.start) for module in core.modules]
    return [
        (segment.offset, segment.offset + min(segment.stored_size, PAGE))
        for segment in segments
        if segment is not None and segment.stored_size
    ]


def digest_core(path: str) -> str:
    """Return the digest of a core's headers, notes and stacks, whatever else its gigabytes hold.

    It is the same for a core that was compressed, of which only these parts may be at hand. Of a file that is not a
    readable core, the first bytes count. Raises OSError.
    """
    with closing(elf.FileBytes(path)) as data:
        try:
            ranges = [(0, PAGE), *elf.find_notes(data), *find_stacks(elf.parse_core(data))]
        except CoreError:
            ranges = [(0, _MAX_WITHOUT_STACKS)]
        digest, left = start_digest(), _MAX_DIGESTED
        for start, end in sorted(set(ranges)):
            for offset in range(start, min(end, data.size, start + left), _PIECE):
                piece = data.read(offset, min(_PIECE, end - offset))
                digest.update(piece)
                left -= len(piece)
        return digest.hexdigest()
