"""Write reports to standard output or to a file, in an encoding and style that the target supports.

A reader that closed the pipe (`triage … | head`) is not an error. A target that cannot be written is one.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TextIO, TypedDict

from triage.base.errors import OptionError

# Replacements for the non-ASCII characters of the text report; other characters become escapes.
_PLAIN = str.maketrans({"…": "...", "·": "-", "×": "x"})
STDOUT = Path("-")


class TextStyle(TypedDict):
    """The arguments of a text renderer that depend on where the text goes."""

    width: int | None
    color: bool


def check_output(output: Path | None) -> None:
    """Raise OptionError before the work if the report could not be written after it."""
    if output is None or output == STDOUT:
        if sys.stdout is None:
            raise OptionError("standard output is closed", hint="write the report to a file with -o FILE")
        return
    try:
        _check_file(output)
    except OSError as error:
        raise OptionError(f"cannot write {output}: {error.strerror}", hint="give another file with -o") from None


def _check_file(output: Path) -> None:
    if output.is_dir():
        raise OptionError(f"cannot write {output}: it is a directory", hint="give a file name with -o")
    parent = output.parent
    if not parent.is_dir():
        raise OptionError(f"cannot write {output}: the directory {parent} does not exist", hint=f"mkdir -p {parent}")
    if not os.access(output if output.exists() else parent, os.W_OK):
        raise OptionError(f"cannot write {output}: permission denied", hint="give a writable file with -o")


def write_output(text: str, output: Path | None = None, *, utf8: bool = False) -> None:
    """Write a report. `utf8` is for formats with a fixed encoding; files are always UTF-8.

    Raises OptionError when the target cannot be written.
    """
    if output is not None and output != STDOUT:
        _write_file(text, output)
        return
    stream = sys.stdout
    if stream is None:
        check_output(None)
    try:
        _write_stream(stream, _encode(text, "utf-8" if utf8 else stream.encoding))
    except BrokenPipeError:
        _discard(stream)
    except OSError as error:
        _discard(stream)
        raise OptionError(
            f"cannot write to standard output: {error.strerror}", hint="write the report to a file with -o FILE"
        ) from None


def write_format(name: str, output: Path | None, **writers: Callable[[], str]) -> None:
    """Write the report in the format `name`, made by the writer of this name. All formats but text are UTF-8."""
    write_output(writers[name](), output, utf8=name != "text")


def write_stderr(text: str) -> None:
    """Write a message to standard error, if it is open."""
    stream = sys.stderr
    if stream is None:
        return
    try:
        _write_stream(stream, _encode(text, stream.encoding))
    except OSError:
        _discard(stream)


def read_report_text(name: str) -> str:
    """Return the text of a report; `-` is standard input. Raises OptionError when it cannot be read."""
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
    """Return whether the stream is an open terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def shows_progress(quiet: bool) -> bool:
    """Return whether progress lines can be drawn on standard error."""
    return not quiet and is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"


def text_style(width: int | None, color: str, output: Path | None) -> TextStyle:
    """Return width and color for a text renderer, from the options and the target."""
    return {"width": text_width(width, output), "color": use_color(color, output)}


def use_color(option: str, output: Path | None) -> bool:
    """`always` and `never` decide; else NO_COLOR, then CLICOLOR_FORCE, then CLICOLOR and whether it is a terminal."""
    if option != "auto":
        return option == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    if os.environ.get("CLICOLOR") == "0" or os.environ.get("TERM") == "dumb":
        return False
    return output in (None, STDOUT) and is_terminal(sys.stdout)


def text_width(option: int | None, output: Path | None) -> int | None:
    """Return the width option, else COLUMNS, else the terminal's columns (at most 120, for legibility), else None."""
    if option is not None:
        return option
    if output not in (None, STDOUT):
        return None
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated) > 0:
        return int(stated)
    if not is_terminal(sys.stdout):
        return None
    import shutil

    return min(shutil.get_terminal_size((100, 24)).columns, 120)


def _encode(text: str, encoding: str | None) -> bytes:
    codec = encoding or "utf-8"
    try:
        return text.encode(codec)
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(codec, "backslashreplace")


def _write_stream(stream: TextIO, data: bytes) -> None:
    stream.flush()
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(data.decode(stream.encoding or "utf-8", "replace"))
    else:
        buffer.write(data)
    stream.flush()


def _write_file(text: str, output: Path) -> None:
    """Write through a temporary file, so that a full disk leaves no half report; write devices directly."""
    check_output(output)
    data = _encode(text, "utf-8")
    try:
        if output.exists() and not stat.S_ISREG(output.stat().st_mode):
            output.write_bytes(data)
            return
        _replace_file(Path(os.path.realpath(output)), data)
    except OSError as error:
        raise OptionError(
            f"cannot write {output}: {error.strerror}", hint="give -o a writable file on a disk with free space"
        ) from None


def _replace_file(target: Path, data: bytes) -> None:
    if not os.access(target.parent, os.W_OK):
        target.write_bytes(data)
        return
    temporary = target.with_name(f".{target.name[:100]}.{os.getpid()}.part")
    try:
        temporary.write_bytes(data)
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _discard(stream: IO[str]) -> None:
    """Send the rest of the stream to /dev/null, so that the interpreter can flush it at exit."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
