"""triage.base.content_digest"""

from __future__ import annotations

from hypothesis import given, strategies as st

from triage.base.content_digest import digest_bytes, digest_list, start_digest

LISTS = st.lists(st.text(st.characters(exclude_characters="\n"), min_size=1, max_size=5), max_size=4)


def test_the_digest_is_blake3() -> None:
    """The digest of bytes is that of the specification's test vectors, so that all machines agree on ids."""
    assert digest_bytes(b"") == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
    assert digest_list(["text 1", "text 2"]) == "95e02fb7a4621eda853c4ab5176790484bf51ad411afad7d1de993eb76260f8d"


@given(st.binary(max_size=5000), st.integers(1, 900))
def test_the_digest_does_not_depend_on_the_pieces(data: bytes, size: int) -> None:
    """Bytes in pieces have the digest of the whole."""
    digest = start_digest()
    for start in range(0, len(data), size):
        digest.update(data[start : start + size])
    assert digest.hexdigest() == digest_bytes(data)


@given(LISTS, LISTS)
def test_lists_are_not_confused(one: list[str], other: list[str]) -> None:
    """Different lists have different digests, and a file with the lines of a list has another one than the list."""
    assert (digest_list(one) == digest_list(other)) is (one == other)
    assert digest_list(one) != digest_bytes("\n".join(one).encode("utf-8", "surrogatepass"))
