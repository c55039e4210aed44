"""Where a report goes: standard output or a file, in an encoding that it can be written in, in colour or not.

A reader that went away (`triage … | head`) is no error. A stream that cannot be written to is one.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import IO, TextIO

from triage.base.errors import OptionError

# What the text report itself uses beyond ASCII; log text that cannot be encoded is written as escapes.
_PLAIN = str.maketrans({"…": "...", "·": "-", "×": "x"})
STDOUT = Path("-")


def check(output: Path | None) -> None:
    """Raise OptionError before the work when the report could not be written after it."""
    if output is None or output == STDOUT:
        if sys.stdout is None:
            raise OptionError(
                "standard output is closed, the report has no place to go", hint="write it to a file with -o FILE"
            )
        return
    try:
        _check_file(output)
    except OSError as error:
        raise OptionError(f"cannot write {output}: {error.strerror}", hint="give -o another file") from None


def _check_file(output: Path) -> None:
    if output.is_dir():
        raise OptionError(f"cannot write {output}: it is a directory", hint="give -o the name of a file")
    parent = output.parent
    if not parent.is_dir():
        raise OptionError(f"cannot write {output}: there is no directory {parent}", hint=f"mkdir -p {parent}")
    if not os.access(output if output.exists() else parent, os.W_OK):
        raise OptionError(f"cannot write {output}: permission denied", hint="give -o a file that you may write")


def deliver(text: str, output: Path | None = None, *, utf8: bool = False) -> None:
    """Write the report. `utf8` is for formats that have one encoding; files are always UTF-8.

    Raises OptionError when the place cannot be written.
    """
    if output is not None and output != STDOUT:
        _to_file(text, output)
        return
    stream = sys.stdout
    if stream is None:
        check(None)
    try:
        _write(stream, encoded(text, "utf-8" if utf8 else stream.encoding))
    except BrokenPipeError:
        _abandon(stream)
    except OSError as error:
        _abandon(stream)
        raise OptionError(
            f"cannot write to standard output: {error.strerror}", hint="write it to a file with -o FILE"
        ) from None


def encoded(text: str, encoding: str | None) -> bytes:
    """The text in bytes of the encoding; what it lacks is replaced by plainer signs, then by escapes."""
    codec = encoding or "utf-8"
    try:
        return text.encode(codec)
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(codec, "backslashreplace")


def to_stderr(text: str) -> None:
    """A message for the person; when nobody can read it, nothing happens."""
    stream = sys.stderr
    if stream is None:
        return
    try:
        _write(stream, encoded(text, stream.encoding))
    except OSError:
        _abandon(stream)


def read(name: str) -> str:
    """The text of a report; `-` is standard input. Raises OptionError when it cannot be read."""
    hint = "give the file that `triage ingest PATH --format json -o FILE` wrote, or - for standard input"
    try:
        if name == "-":
            if sys.stdin is None:
                raise OptionError("standard input is closed", hint=hint)
            data = sys.stdin.buffer.read()
        else:
            data = Path(name).read_bytes()
        return data.decode()
    except OSError as error:
        raise OptionError(f"cannot read {name}: {error.strerror}", hint=hint) from None
    except UnicodeDecodeError:
        raise OptionError(f"cannot read {name}: it is not UTF-8 text", hint=hint) from None


def is_terminal(stream: IO[str] | None) -> bool:
    """Does a person see this stream? A closed one nobody sees."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def color(wanted: str, output: Path | None) -> bool:
    """`always` and `never` decide; else NO_COLOR, then CLICOLOR_FORCE, then CLICOLOR and whether it is a terminal."""
    if wanted != "auto":
        return wanted == "always"
    environment = os.environ
    if environment.get("NO_COLOR"):
        return False
    if environment.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    if environment.get("CLICOLOR") == "0" or environment.get("TERM") == "dumb":
        return False
    return output in (None, STDOUT) and is_terminal(sys.stdout)


def width(wanted: int | None, output: Path | None) -> int | None:
    """What was asked for, else the terminal's columns (120 at most, for long lines are hard to read), else None."""
    if wanted is not None:
        return wanted
    if output not in (None, STDOUT) or not is_terminal(sys.stdout):
        return None
    import shutil

    return min(shutil.get_terminal_size((100, 24)).columns, 120)


def _write(stream: TextIO, data: bytes) -> None:
    stream.flush()
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(data.decode(stream.encoding or "utf-8", "replace"))
    else:
        buffer.write(data)
    stream.flush()


def _to_file(text: str, output: Path) -> None:
    """Through a file beside it, so that a full disk does not leave half a report; a device is written as it is."""
    check(output)
    data = encoded(text, "utf-8")
    try:
        if output.exists() and not stat.S_ISREG(output.stat().st_mode):
            output.write_bytes(data)
            return
        target = Path(os.path.realpath(output))
        _replace(target, data)
    except OSError as error:
        raise OptionError(
            f"cannot write {output}: {error.strerror}", hint="give -o a file on a disk with room, that you may write"
        ) from None


def _replace(target: Path, data: bytes) -> None:
    if not os.access(target.parent, os.W_OK):
        target.write_bytes(data)
        return
    beside = target.with_name(f".{target.name[:100]}.{os.getpid()}.part")
    try:
        beside.write_bytes(data)
        if target.exists():
            beside.chmod(stat.S_IMODE(target.stat().st_mode))
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _abandon(stream: IO[str]) -> None:
    """Let the interpreter flush what is left into nothing when it ends."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
