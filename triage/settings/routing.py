"""`[routing]` and `[[routing.routes]]`: what is told to whom, and when."""

from __future__ import annotations

from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_settings import SettingsConfigDict

from triage.settings.section import Section


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}") from None
    return name


_SPAN = r"^(([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d)?$"


class Route(BaseModel):
    """One place and what goes there. A diagnosis goes to every route that wants it; patterns have `*` and `?`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    to: str = Field(
        pattern=r"^(slack:[A-Z0-9]{2,}|webhook:[A-Za-z0-9_-]+)$", description="slack:CHANNEL-ID or webhook:NAME"
    )
    verdicts: tuple[Literal["known", "unknown", "clean", "pace"], ...] = Field(
        default=("known", "unknown", "pace"),
        description="which verdicts; pace: silent ranks, slow steps, stalls of a job that is watched",
    )
    domains: tuple[str, ...] = Field(default=(), description="which domains (gpu, fabric, …); empty: all")
    signatures: tuple[str, ...] = Field(default=(), description="which signatures or clusters, as patterns; empty: all")
    hosts: tuple[str, ...] = Field(default=(), description="which hosts must be to blame, as patterns; empty: all")
    jobs: tuple[str, ...] = Field(default=(), description="names or paths of jobs, as patterns; empty: all")
    team: str = Field(
        default="",
        pattern=r"^(S[A-Z0-9]{2,})?$",
        description="id of a Slack user group that a failure mentions; empty: nobody",
    )
    confidence: float = Field(default=0.0, ge=0, le=1, description="least confidence of a known cause")
    quiet: str = Field(
        default="", pattern=_SPAN, description="22:00-07:00: what is new then waits until the end; empty: never"
    )
    digest: str = Field(
        default="",
        pattern=r"^(([01]\d|2[0-3]):[0-5]\d)?$",
        description="09:00: a summary of the day before; empty: none",
    )
    only_digest: bool = Field(default=False, description="nothing but the digest")
    zone: Annotated[str, AfterValidator(_zone)] = Field(
        default="UTC", description="time zone of the hours, like Europe/Berlin"
    )


class Routing(Section):
    """Routes, and when a failure counts as a repeat of one that was told."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_ROUTING_")

    routes: tuple[Route, ...] = Field(default=(), description="what goes where")
    repeat_hours: float = Field(
        default=24.0,
        ge=0,
        le=8760,
        description="the same cause on the same job or host is counted, not told, for so long",
    )
    give_up_days: float = Field(
        default=7.0, gt=0, le=365, description="after so long a post that never arrives is a dead letter"
    )
