"""Digests of what was read. BLAKE3 is fast enough to run within the scan, and nobody can make two texts of one digest.

All machines must agree on the digest of a text, so there is no second algorithm for platforms without the package.
Specification: https://github.com/BLAKE3-team/BLAKE3-specs
"""

from __future__ import annotations

from collections.abc import Iterable

from blake3 import blake3

_LIST_CONTEXT = "triage 2026-11 list of digests"


def start_digest() -> blake3:
    """Return a digest to which bytes are added by `update`."""
    return blake3()


def digest_bytes(data: bytes) -> str:
    """Return the digest of bytes, as 64 hexadecimal digits."""
    return blake3(data).hexdigest()


def digest_list(items: Iterable[str]) -> str:
    """Return the digest of a list of texts without newlines.

    It is derived with a key of its own: a file that holds the same lines has another digest.
    """
    joined = "\n".join(items).encode("utf-8", "surrogatepass")
    return blake3(joined, derive_key_context=_LIST_CONTEXT).hexdigest()
