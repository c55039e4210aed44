"""What an operator may set: one frozen model a section, from a TOML file and the environment, and where each value came
from.

    loaded = load()
    loaded.settings.web.port, loaded.origins["web.port"]

Only commands that need settings import this room: it needs pydantic-settings (`pip install 'triage-kb[web]'`).
"""

from __future__ import annotations

from triage.settings.loading import Loaded, load
from triage.settings.model import Settings

__all__ = ["Loaded", "Settings", "load"]
