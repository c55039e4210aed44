"""`[webhook.targets.NAME]`: addresses that get each diagnosis as signed JSON."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic_settings import SettingsConfigDict

from triage.settings.section import Section


class Target(BaseModel):
    """One receiver."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: str = Field(pattern="^https?://", description="where to post")
    secret: SecretStr = Field(description="the key of the signature")


class Webhook(Section):
    """Receivers by name; a route names one as `webhook:NAME`."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_WEBHOOK_")

    targets: Mapping[str, Target] = Field(default_factory=dict, description="receivers by name")
    timeout: float = Field(default=10.0, gt=0, le=60, description="seconds that one call may take")
