"""A key of a cluster, with the words by which it is compared with others."""

from __future__ import annotations

import functools

from triage.base.lazy_dataclass import dataclass
from triage.clusters.fingerprint import headline_words, message_words
from triage.model.diagnosis import Fingerprint

LEAST_SHARED = 3
CRASH_GUARD = "crash|"
"""How the guard of a crash begins."""


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key of a cluster, with the words of its headline, and of these the words of the message without the class of
    the exception; without an anchor it has none. `places` are those that raised or printed it.
    """

    cluster: str
    key: str
    guard: str
    terms: frozenset[str]
    message: frozenset[str]
    headline: str = ""
    places: frozenset[str] = frozenset()

    @staticmethod
    def of(cluster: str, fingerprint: Fingerprint) -> KnownKey:
        """Return the key that a fingerprint gives a cluster."""
        terms, message = _split_words(fingerprint.headline) if fingerprint.anchored else (frozenset(), frozenset())
        return KnownKey(
            cluster,
            fingerprint.key,
            fingerprint.guard,
            terms,
            message,
            fingerprint.headline,
            frozenset(fingerprint.places),
        )

    @property
    def rarest(self) -> str:
        """A word that few headlines hold: long ones are rare. Any fixed order is correct."""
        terms = self.message if len(self.message) >= LEAST_SHARED else self.terms
        return max(terms, key=lambda term: (len(term), term))


@functools.lru_cache(maxsize=1 << 16)
def _split_words(headline: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of a headline, and those of its message. A store asks for the same ones with every new key."""
    terms = headline_words(headline)
    return terms, message_words(headline, terms)


def read_words(headline: str) -> frozenset[str]:
    """Return the words of a headline."""
    return _split_words(headline)[0]


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the words that both have, 0 to 1."""
    return len(one & other) / (len(one | other) or 1)
