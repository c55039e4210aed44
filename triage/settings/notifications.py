"""The sections for notifications: routes, Slack, signed webhooks, other channels and issues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from pydantic_settings import SettingsConfigDict

from triage.settings.sections import Section

_TIME_SPAN = r"^(([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d)?$"


def _check_time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}") from None
    return name


class Route(BaseModel):
    """`[[routing.routes]]`: one place to post to, and which diagnoses it gets. Patterns use `*` and `?`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    to: str = Field(
        pattern=r"^(slack:[A-Z0-9]{2,}|(webhook|channel|issue):[A-Za-z0-9_-]+)$",
        description="slack:CHANNEL-ID, webhook:NAME, channel:NAME or issue:NAME",
    )
    verdicts: tuple[Literal["known", "unknown", "inconclusive", "clean", "pace"], ...] = Field(
        default=("known", "unknown", "inconclusive", "pace"),
        description="verdicts to post; pace: silent ranks, slow steps and stalls of a watched job",
    )
    domains: tuple[str, ...] = Field(default=(), description="domains to post (gpu, fabric, …); empty: all")
    signatures: tuple[str, ...] = Field(default=(), description="patterns of signatures or clusters; empty: all")
    hosts: tuple[str, ...] = Field(default=(), description="patterns of hosts where the cause is; empty: all")
    jobs: tuple[str, ...] = Field(default=(), description="patterns of job names or paths; empty: all")
    facts: tuple[str, ...] = Field(
        default=(), description="facts of the job as NAME=PATTERN, all of which must hold; empty: all"
    )
    team: str = Field(
        default="",
        pattern=r"^(S[A-Z0-9]{2,})?$",
        description="id of the Slack user group to mention in a failure; empty: nobody",
    )
    confidence: float = Field(default=0.0, ge=0, le=1, description="lowest confidence of a known cause to post")
    quiet: str = Field(
        default="", pattern=_TIME_SPAN, description="hold posts during these hours, as 22:00-07:00; empty: never"
    )
    digest: str = Field(
        default="",
        pattern=r"^(([01]\d|2[0-3]):[0-5]\d)?$",
        description="time of a daily summary of the day before, as 09:00; empty: none",
    )
    only_digest: bool = Field(default=False, description="post nothing but the digest")
    zone: Annotated[str, AfterValidator(_check_time_zone)] = Field(
        default="UTC", description="time zone of these times, as Europe/Berlin"
    )


class RoutingSettings(Section):
    """`[routing]`: the routes, and when a failure counts as a repeat."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_ROUTING_")

    routes: tuple[Route, ...] = Field(default=(), description="where to post, and which diagnoses")
    subscriptions: tuple[str, ...] = Field(
        default=(), description="targets that people may subscribe causes and filters to; empty: those of the routes"
    )
    repeat_hours: float = Field(
        default=24.0,
        ge=0,
        le=8760,
        description="hours in which the same cause on the same job or host is counted, not posted again",
    )
    give_up_days: float = Field(
        default=7.0, gt=0, le=365, description="days until an undelivered post becomes a dead letter"
    )


class SlackSettings(Section):
    """`[slack]`: the bot of one workspace."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_SLACK_")

    token: SecretStr = Field(default=SecretStr(""), description="token of the bot (xoxb-…); empty: nothing is posted")
    signing_secret: SecretStr = Field(
        default=SecretStr(""), description="signing secret of the app; empty: buttons and commands are refused"
    )
    api_url: str = Field(default="https://slack.com/api/", description="address of Slack's Web API")
    answer_urls: tuple[str, ...] = Field(
        default=("https://hooks.slack.com/",), description="address prefixes to which answers to commands may go"
    )
    mute_days: float = Field(
        default=7.0, gt=0, le=365, description="days for which the Mute button keeps a cause out of a channel"
    )
    timeout: float = Field(default=10.0, gt=0, le=60, description="seconds until one call is given up")


class WebhookTarget(BaseModel):
    """`[webhook.targets.NAME]`: one receiver of signed JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: str = Field(pattern="^https?://", description="address to post to")
    secret: SecretStr = Field(description="key that signs the posts")


class WebhookSettings(Section):
    """`[webhook]`: receivers by name; a route names one as `webhook:NAME`."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_WEBHOOK_")

    targets: Mapping[str, WebhookTarget] = Field(default_factory=dict, description="receivers by name")
    timeout: float = Field(default=10.0, gt=0, le=60, description="seconds until one call is given up")


class ChannelTarget(BaseModel):
    """`[channel.targets.NAME]`: one receiver that the library apprise knows."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: SecretStr = Field(
        description="address as apprise writes it, as pagerduty://KEY@ROUTING_KEY, or discordbot://TOKEN@CHANNEL; "
        "it is never shown"
    )
    unsure: Literal["repeat", "hold"] = Field(
        default="repeat",
        description="what to do with a message whose answer was lost, where the receiver would show it twice",
    )


class ChannelSettings(Section):
    """`[channel]`: Teams, Discord, PagerDuty, e-mail …; a route names one as `channel:NAME`."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_CHANNEL_")

    targets: Mapping[str, ChannelTarget] = Field(default_factory=dict, description="receivers by name")
    timeout: float = Field(default=10.0, gt=0, le=60, description="seconds until one call is given up")


class IssueTarget(BaseModel):
    """`[issue.targets.NAME]`: one project of a tracker."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    service: Literal["github", "gitlab", "jira"] = Field(description="github, gitlab or jira")
    project: str = Field(
        pattern=r"^[A-Za-z0-9._/-]+$", description="OWNER/REPOSITORY, GROUP/PROJECT, or the key of a Jira project"
    )
    token: SecretStr = Field(description="token that may read and write issues")
    url: str = Field(
        default="", pattern=r"^(https?://\S+)?$", description="address of the API; needed for Jira and own servers"
    )
    user: str = Field(default="", description="user of a Jira Cloud token; empty: a personal access token")
    issue_type: str = Field(default="Bug", description="type of the issues in Jira")
    labels: tuple[str, ...] = Field(default=("triage",), description="labels of the issues")


class IssueSettings(Section):
    """`[issue]`: trackers by name; a route names one as `issue:NAME`."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_ISSUE_")

    targets: Mapping[str, IssueTarget] = Field(default_factory=dict, description="trackers by name")
    timeout: float = Field(default=10.0, gt=0, le=60, description="seconds until one call is given up")
