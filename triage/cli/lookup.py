"""Signatures by their id, for the commands that take one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from triage.base.errors import CatalogError, OptionError

if TYPE_CHECKING:
    from triage.catalog.model import Signature


def load(catalogs: Sequence[Path] | None) -> Sequence[Signature]:
    """The shipped signatures with these directories laid over them. Raises CatalogError for a file that cannot be used."""
    from triage.catalog.load import load as read

    return read(tuple(catalogs or ())).signatures


def named(identifier: str, known: Sequence[Signature]) -> Signature:
    """The signature of this id. Raises OptionError with the ids that come near."""
    for signature in known:
        if signature.id == identifier:
            return signature
    import difflib

    near = difflib.get_close_matches(identifier, [signature.id for signature in known], n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`triage catalog list` names them all"
    raise OptionError(f"the catalog has no signature {identifier}", hint=hint)


def is_file(text: str) -> bool:
    """Is it the path of a signature file, and no id?"""
    return text.endswith((".yaml", ".yml"))


def id_in(path: Path) -> str:
    """The id that a signature file gives. Raises CatalogError with everything that is wrong with the file."""
    from triage.catalog.read import read

    signature, problems = read(path)
    if signature is None:
        raise CatalogError("\n".join(map(str, problems)), hint="mend these places, then try again")
    return signature.id
