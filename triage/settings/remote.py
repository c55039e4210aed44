"""The section for addresses of object stores and servers that the service may read."""

from __future__ import annotations

from pydantic import Field, field_validator
from pydantic_settings import SettingsConfigDict

from triage.base.addresses import has_secret, is_address
from triage.settings.sections import Section


class RemoteSettings(Section):
    """`[remote]`: which addresses `triage serve` reads for its clients.

    The command line reads what its user may read.
    """

    model_config = SettingsConfigDict(env_prefix="TRIAGE_REMOTE_")

    allow: tuple[str, ...] = Field(
        default=(),
        description="addresses below which jobs may be, as s3://team-logs/jobs/; empty: clients may name none",
    )
    internal_hosts: tuple[str, ...] = Field(
        default=(), description="hosts of https addresses that may have an address which is not public"
    )
    cache_bytes: int = Field(
        default=4 << 30, ge=0, description="largest temporary file with what a task has read, so that it is read once"
    )

    @field_validator("allow")
    @classmethod
    def _check(cls, addresses: tuple[str, ...]) -> tuple[str, ...]:
        for address in addresses:
            if not is_address(address) or not address.endswith("/"):
                raise ValueError(f"{address!r} is not an address that ends in /, as s3://team-logs/jobs/")
            if has_secret(address):
                raise ValueError("an address must hold no password; credentials come from the environment")
        return addresses

    def allows(self, address: str) -> bool:
        """Whether an address is below one that is allowed."""
        parts = address.partition("://")[2].replace("\\", "/").split("/")
        is_plain = not has_secret(address) and not {".", ".."} & set(parts) and "%" not in address
        return (
            is_plain
            and is_address(address)
            and any(f"{address.rstrip('/')}/".startswith(prefix) for prefix in self.allow)
        )
