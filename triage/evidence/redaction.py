"""What a user wants redacted besides known forms of secrets: the TOML file that TRIAGE_REDACT names.

email = true          # e-mail addresses too
pseudonyms = true     # other names for hosts and addresses, the same each time
key = "…"             # makes the pseudonyms; the same key gives the same names
[patterns]            # your own, by kind, in RE2's dialect; a group called v is the secret, else the whole match
ticket = 'ACME-[0-9]{6}'
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triage.base.errors import OptionError

VARIABLE = "TRIAGE_REDACT"
SHORTEST_KEY = 16


@dataclass(frozen=True, slots=True)
class Redaction:
    """Settings of redaction. `patterns` are (kind, compiled RE2 pattern).

    `pseudonyms` need a `key`: without a secret key the names could be guessed back.
    """

    email: bool = False
    pseudonyms: bool = False
    key: str = ""
    patterns: tuple[tuple[str, Any], ...] = ()


def load_redaction() -> Redaction:
    """Return the settings in the file that TRIAGE_REDACT names.

    Raises OptionError when it cannot be used: better no report than a secret in one.
    """
    return _read(os.environ.get(VARIABLE, ""))


@functools.lru_cache(maxsize=8)
def _read(name: str) -> Redaction:
    if not name:
        return Redaction()
    import tomllib

    try:
        with Path(name).expanduser().open("rb") as file:
            settings = tomllib.load(file)
    except OSError as error:
        raise OptionError(
            f"cannot read {name}: {error.strerror}", hint=f"{VARIABLE} names a TOML file, see docs/security.md"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{name} is not TOML: {error}", hint="docs/security.md shows an example") from None
    return parse_redaction(settings, name)


def parse_redaction(settings: dict[str, Any], name: str) -> Redaction:
    """Return the settings of a parsed file. Raises OptionError for a value that is not allowed."""
    unknown = sorted(set(settings) - {"email", "pseudonyms", "key", "patterns"})
    if unknown:
        raise OptionError(f"{name}: unknown setting {unknown[0]!r}", hint="use email, pseudonyms, key or [patterns]")
    email, pseudonyms, key, patterns = (
        settings.get(n, d) for n, d in (("email", False), ("pseudonyms", False), ("key", ""), ("patterns", {}))
    )
    if not (
        isinstance(email, bool) and isinstance(pseudonyms, bool) and isinstance(key, str) and isinstance(patterns, dict)
    ):
        raise OptionError(
            f"{name}: email and pseudonyms must be true or false, key a text, patterns a table",
            hint="see docs/security.md",
        )
    if pseudonyms and len(key) < SHORTEST_KEY:
        hint = f'for example key = "{os.urandom(16).hex()}"; keep it secret, and keep it if names shall stay the same'
        raise OptionError(f"{name}: pseudonyms need a key of at least {SHORTEST_KEY} characters", hint=hint)
    return Redaction(
        email, pseudonyms, key, tuple((kind, _compile(kind, text, name)) for kind, text in patterns.items())
    )


def _compile(kind: str, text: Any, name: str) -> Any:
    import re2  # type: ignore[import-untyped, unused-ignore]

    if not (isinstance(text, str) and kind.replace("-", "").isalnum() and kind.isascii()):
        raise OptionError(
            f"{name}: pattern {kind!r} is not `name = 'pattern'`", hint="names are letters, digits and hyphens"
        )
    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else error
        raise OptionError(
            f"{name}: pattern {kind!r} cannot be used: {reason}",
            hint="RE2's dialect has no look-around and no back-references",
        ) from None
    if pattern.search("") is not None or pattern.search(f"[redacted {kind}]") is not None:
        raise OptionError(
            f"{name}: pattern {kind!r} matches too much",
            hint="it must match neither an empty text nor `[redacted …]`",
        )
    return pattern
