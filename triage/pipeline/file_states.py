"""Whether a file is the same as when it was read before, or the same with more at its end.

A file is unchanged if its device, inode, size and both times (mtime, ctime) are the same, its times were older than the
reading by more than any clock's granularity (else a change at the same moment could not be seen), and both ends have
the same bytes. A program cannot set ctime, so only somebody who sets the clock of the machine, writes to the disk below
the file system or maps the file into memory can change such a file unseen.

A file has grown if it is the same inode, larger, and the bytes around the ends of all complete spans are the same. This
trusts the writer to append: who changes bytes within an old span, in place, and appends before the next reading is not
noticed. To prove the opposite takes a digest of all bytes, which takes about as long as scanning them (1.2 GB/s on a
core); `--exact` does that.
"""

from __future__ import annotations

import os
import stat
import time

from triage.base.content_digest import digest_bytes
from triage.base.lazy_dataclass import dataclass
from triage.scan.interface import SPAN

# Coarser than the timestamps of any file system in use (FAT: 2 s).
GRANULARITY_NS = 3_000_000_000
_EDGE = 1 << 12


@dataclass(frozen=True, slots=True)
class FileState:
    """What the operating system says of a regular file. Times are in nanoseconds."""

    device: int
    inode: int
    size: int
    mtime: int
    ctime: int

    def is_settled(self, now: int) -> bool:
        """Whether any change from `now` on (nanoseconds since the epoch) gives the file another state."""
        return max(self.mtime, self.ctime) + GRANULARITY_NS < now

    def has_grown_from(self, before: FileState) -> bool:
        """Whether this may be the same file with more at its end."""
        return (self.device, self.inode) == (before.device, before.inode) and self.size > before.size


def read_state(fd: int) -> FileState | None:
    """Return the state of an open file; None if it is no regular file."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        return None
    return FileState(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def digest_both_ends(fd: int, size: int) -> str:
    """Return the digest of the first and the last bytes of a file of this size."""
    return digest_bytes(os.pread(fd, _EDGE, 0) + os.pread(fd, _EDGE, max(0, size - _EDGE)))


def digest_span_ends(fd: int, count: int) -> str:
    """Return the digest of the bytes around both ends of each of the first `count` spans."""
    if not count:
        return ""
    inner = (os.pread(fd, 2 * _EDGE, number * SPAN - _EDGE) for number in range(1, count))
    return digest_bytes(b"".join((os.pread(fd, _EDGE, 0), *inner, os.pread(fd, _EDGE, count * SPAN - _EDGE))))


def now_ns() -> int:
    """Return the time of day, in nanoseconds since the epoch."""
    return time.time_ns()
