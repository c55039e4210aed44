"""`--notify`: a diagnosis is stored together with the posts about it, and what is due is sent at once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from triage.errors import OptionError
from triage.model import Diagnosis, Warning


def told(diagnosis: Diagnosis, store: Path | None, no_store: bool) -> Diagnosis:
    """The diagnosis as stored. What could not be sent now waits in the outbox, and the report says so. Raises OptionError without routes."""
    from triage.bots import bots
    from triage.bots.announce import remember
    from triage.bots.work import work
    from triage.cli.config import loaded
    from triage.store import Store

    settings = loaded({"store.path": store}).settings
    if no_store:
        raise OptionError("--notify needs the store, where posts wait until they arrive", hint="leave out --no-store")
    if not settings.routing.routes:
        raise OptionError("no route says to whom", hint="write [[routing.routes]] into the settings, see docs/slack.md")
    with Store.open(settings.store.path) as opened:
        stored = remember(opened, diagnosis, settings.routing)
        done = work(opened, bots(settings), give_up_days=settings.routing.give_up_days)
    if not done.later and not done.dead:
        return stored.diagnosis
    said = f"{done.later + done.dead} posts did not arrive yet; `triage outbox list` shows them"
    return dataclasses.replace(stored.diagnosis, warnings=(*stored.diagnosis.warnings, Warning("not-told", None, said)))
