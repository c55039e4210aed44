"""Find signatures by id, for the commands that take one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from triage.base.errors import CatalogError, OptionError

if TYPE_CHECKING:
    from triage.catalog.model import Signature


def load_signatures(catalogs: Sequence[Path] | None) -> Sequence[Signature]:
    """Return the shipped signatures, extended by these directories. Raises CatalogError for an unusable file."""
    from triage.catalog.load import load

    return load(tuple(catalogs or ())).signatures


def find_signature(identifier: str, signatures: Sequence[Signature]) -> Signature:
    """Return the signature with this id. Raises OptionError that suggests similar ids."""
    for signature in signatures:
        if signature.id == identifier:
            return signature
    import difflib

    near = difflib.get_close_matches(identifier, [signature.id for signature in signatures], n=3)
    raise OptionError(
        f"the catalog has no signature {identifier}",
        hint=f"did you mean {' or '.join(near)}?" if near else "`triage catalog list` lists all ids",
    )


def is_signature_file(text: str) -> bool:
    """Return whether the text is the path of a signature file, not an id."""
    return text.endswith((".yaml", ".yml"))


def read_signature_id(path: Path) -> str:
    """Return the id in a signature file. Raises CatalogError with all problems of the file."""
    from triage.catalog.read import read_signature

    signature, problems = read_signature(path)
    if signature is None:
        raise CatalogError("\n".join(map(str, problems)), hint="fix the reported lines, then try again")
    return signature.id
