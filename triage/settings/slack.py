"""`[slack]`: the bot of one workspace."""

from __future__ import annotations

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from triage.settings.section import Section


class Slack(Section):
    """`token` is that of the bot (`xoxb-…`), `signing_secret` tells Slack's calls from those of others."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_SLACK_")

    token: SecretStr = Field(default=SecretStr(""), description="token of the bot; empty: nothing is posted")
    signing_secret: SecretStr = Field(
        default=SecretStr(""), description="of the app; empty: buttons and commands are refused"
    )
    api_url: str = Field(default="https://slack.com/api/", description="where the Web API is")
    answer_urls: tuple[str, ...] = Field(
        default=("https://hooks.slack.com/",), description="answers to commands go only to addresses that begin so"
    )
    mute_days: float = Field(
        default=7.0, gt=0, le=365, description="how long the button Mute keeps a cause out of a channel"
    )
    timeout: float = Field(default=10.0, gt=0, le=60, description="seconds that one call may take")
