"""`[store]`: where incidents are remembered."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from triage.settings.section import Section


class Store(Section):
    """`path` is the file; TRIAGE_STORE names it too. Not set: the user's data directory."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_STORE_")

    path: Path | None = Field(
        default=None, description="the store's file; TRIAGE_STORE names it too; not set: in the user's data directory"
    )
