"""What all sections share: frozen, and a misspelled name is an error."""

from __future__ import annotations

from pydantic_settings import BaseSettings, SettingsConfigDict


class Section(BaseSettings):
    """A section `[name]` of the file; its values may also stand in the environment as TRIAGE_NAME_FIELD."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
