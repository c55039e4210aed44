"""`[tasks]`: the processes that analyse what was uploaded, and what one task may use."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from triage.settings.section import Section

MIB = 1 << 20


class Tasks(Section):
    """Sizes are bytes, times seconds."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_TASKS_")

    workers: int = Field(
        default=1, ge=0, le=64, description="processes that analyse; 0 leaves the work to others on the same store"
    )
    memory: int = Field(default=4096 * MIB, ge=256 * MIB, description="address space of one task")
    seconds: float = Field(default=900.0, gt=0, le=86_400, description="time that one task may take")
    attempts: int = Field(default=3, ge=1, le=10, description="how often a task is begun when its process dies")
    stale: float = Field(
        default=15.0,
        ge=1,
        le=600,
        description="after so long without a sign of life a task is begun again by another worker",
    )
    nice: int = Field(default=10, ge=0, le=19, description="how much the workers let others go first: people who read")
    scan_threads: int = Field(default=1, ge=1, le=64, description="threads that scan, within one task")
    uploads: Path | None = Field(default=None, description="directory of uploads; not set: `uploads` beside the store")
    upload_bytes: int = Field(default=2048 * MIB, ge=1, description="size of one upload")
    upload_files: int = Field(default=100, ge=1, le=10_000, description="files in one upload")
    keep_days: float = Field(
        default=7.0, ge=0, description="how long uploads are kept, for the lines around the evidence"
    )
    disk_free: int = Field(
        default=512 * MIB, ge=0, description="uploads are refused when less would stay free on the disk"
    )
    waiting: int = Field(default=200, ge=1, description="uploads are refused when so many tasks wait")
