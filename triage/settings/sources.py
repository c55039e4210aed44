"""`[sources.NAME]`: places from which jobs may be ingested by name. A client never gives a path or an address."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class Source(BaseModel):
    """A directory with one directory or archive a job, or (`one`) a directory that is one job."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path = Field(description="an absolute directory on the server")
    one: bool = Field(default=False, description="the directory is one job; otherwise the client names an entry in it")
    label: str = Field(default="job", description="label of an alert whose value names the entry")
