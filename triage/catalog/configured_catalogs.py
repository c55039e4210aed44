"""Catalogs that every run loads over the shipped one, such as a company's own signatures.

Later ones win: shipped, `catalogs` of the configuration file, TRIAGE_CATALOG, then `--catalog`.
"""

from __future__ import annotations

import os
from pathlib import Path

from triage.base.errors import CatalogError

VARIABLE = "TRIAGE_CATALOG"  # directories, separated as in PATH
CONFIG = "TRIAGE_CONFIG"  # the configuration file; empty for none


def list_configured_catalogs() -> tuple[Path, ...]:
    """The directories of the configuration file, then those of TRIAGE_CATALOG. CatalogError for an unusable file."""
    parts = [part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part.strip()]
    return (*_read_config_file(find_config_file()), *(Path(part).expanduser() for part in parts))


def find_config_file() -> Path | None:
    """$TRIAGE_CONFIG, or `triage/config.toml` in the user's configuration directory."""
    chosen = os.environ.get(CONFIG)
    if chosen is not None:
        return Path(chosen).expanduser() if chosen.strip() else None
    home = os.environ.get("XDG_CONFIG_HOME", "")
    user = os.path.expanduser("~")
    if not os.path.isabs(home) and not os.path.isabs(user):
        return None
    return (Path(home) if os.path.isabs(home) else Path(user) / ".config") / "triage" / "config.toml"


def _read_config_file(path: Path | None) -> tuple[Path, ...]:
    """`catalogs = ["dir", …]`; a relative directory counts from the file."""
    if path is None or not (path.is_file() or os.environ.get(CONFIG)):
        return ()
    import tomllib

    try:
        with path.open("rb") as file:
            catalogs = tomllib.load(file).get("catalogs", [])
    except (OSError, ValueError) as error:
        reason, hint = getattr(error, "strerror", None) or error, f"fix the file, or set {CONFIG} to another one"
        raise CatalogError(f"cannot be read: {reason}", hint=hint, path=str(path)) from None
    if not isinstance(catalogs, list) or not all(isinstance(part, str) for part in catalogs):
        hint = 'write catalogs = ["/shared/signatures"]'
        raise CatalogError("`catalogs` is not a list of directories", hint=hint, path=str(path))
    return tuple(path.parent / Path(part).expanduser() for part in catalogs)
