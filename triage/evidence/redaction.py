"""What a user wants redacted besides known forms of secrets: the TOML file that TRIAGE_REDACT names.

email = true          # e-mail addresses too
pseudonyms = true     # other names for hosts and addresses, the same each time
key = "…"             # makes the pseudonyms; the same key gives the same names
[patterns]            # your own, by kind, in RE2's dialect; a group called v is the secret, else the whole match
ticket = 'ACME-[0-9]{6}'

A pseudonym is an HMAC with the key, because hosts and addresses are so few that a plain hash could be guessed back.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from triage.base.errors import OptionError
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re

VARIABLE = "TRIAGE_REDACT"
SHORTEST_KEY = 16
_IPV4 = lazy_re(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\w\.\d)(?!\d)")
_IPV6 = lazy_re(r"(?<![\w:.])(?=[0-9a-fA-F]*:[0-9a-fA-F]*:)[0-9a-fA-F:]{2,39}(?![\w:])")
_PSEUDONYM = lazy_re(r"host-[0-9a-f]{8}|addr-[0-9a-f]{8}")
_DOMAIN = r"(?:\.[A-Za-z][A-Za-z0-9-]*)*"


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


class Pseudonyms:
    """Replaces hosts and addresses in a text. `hosts` are the names to look for; `node7` also means `node7.cluster`."""

    def __init__(self, key: str, hosts: Collection[str]) -> None:
        self._key = key.encode()
        first = {
            host.split(".")[0] for host in hosts if not _IPV4.fullmatch(host) and not _PSEUDONYM.fullmatch(host)
        } - {
            "localhost",
            "",
        }
        names = sorted(first, key=lambda name: (-len(name), name))
        listed = "|".join(map(re.escape, names))
        self._hosts = re.compile(rf"(?<![\w-])({listed}){_DOMAIN}(?![\w-])") if names else None

    def __call__(self, text: str) -> str:
        if self._hosts is not None:
            text = self._hosts.sub(lambda match: "host-" + self._digits(match[1]), text)
        if "." in text or ":" in text:
            text = _IPV4.sub(self._address, text)
            text = _IPV6.sub(self._address, text)
        return text

    def _address(self, match: re.Match[str]) -> str:
        import ipaddress

        try:
            address = ipaddress.ip_address(match.group())
        except ValueError:  # a version, a time
            return match.group()
        if address.is_loopback or address.is_unspecified:
            return match.group()
        return "addr-" + self._digits(str(address))

    def _digits(self, name: str) -> str:
        import hmac

        return hmac.new(self._key, name.lower().encode("utf-8", "surrogatepass"), "sha256").hexdigest()[:8]
