"""The catalog: signatures laid over the shipped ones."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from triage.settings.section import Section


class Catalog(Section):
    """`directories` come from `catalogs = [...]` at the top of the file and from TRIAGE_CATALOG, as for every command."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_CATALOG_")

    directories: tuple[Path, ...] = Field(
        default=(), description="signatures of your own; `catalogs = [...]` at the top of the file"
    )
