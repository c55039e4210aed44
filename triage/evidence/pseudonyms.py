"""Pseudonyms for hosts and addresses: a host has the same name in all reports that are made with the same key.

A name is an HMAC with a secret key, because hosts and addresses are so few that a plain hash could be guessed back.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection

from triage.base.lazy_re import lazy_re

_IPV4 = lazy_re(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\w\.\d)(?!\d)")
_IPV6 = lazy_re(r"(?<![\w:.])(?=[0-9a-fA-F]*:[0-9a-fA-F]*:)[0-9a-fA-F:]{2,39}(?![\w:])")
_PSEUDONYM = lazy_re(r"host-[0-9a-f]{8}|addr-[0-9a-f]{8}")
_DOMAIN = r"(?:\.[A-Za-z][A-Za-z0-9-]*)*"


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
        return hmac.new(self._key, name.lower().encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:8]
