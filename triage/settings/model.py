"""All sections. To add one: a file beside this one with a `Section`, and a field here; the field's name is the
section's.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from triage.settings.catalog import Catalog
from triage.settings.routing import Routing
from triage.settings.slack import Slack
from triage.settings.sources import Source
from triage.settings.store import Store
from triage.settings.tasks import Tasks
from triage.settings.web import Web
from triage.settings.webhook import Webhook


class Settings(BaseModel):
    """Everything that can be set. `sources` is a table of tables: `[sources.NAME]`."""

    model_config = ConfigDict(frozen=True)

    store: Store = Field(default_factory=Store)
    catalog: Catalog = Field(default_factory=Catalog)
    web: Web = Field(default_factory=Web)
    tasks: Tasks = Field(default_factory=Tasks)
    routing: Routing = Field(default_factory=Routing)
    slack: Slack = Field(default_factory=Slack)
    webhook: Webhook = Field(default_factory=Webhook)
    sources: Mapping[str, Source] = Field(default_factory=dict)
