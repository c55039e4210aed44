"""Faults while notifications are sent: killed senders, receivers that cut the connection or fail."""

from __future__ import annotations

import signal

from tests.drills.site import DrillSite
from triage.store import Store
from triage.testing.webhook import WebhookServer

JOBS = 2
TRIES = 6
LEASE_SECONDS = 200.0  # longer than a sender owns a post, and than the first delays
FAILURES = ("429", "500", "503", "cut", "cut after", "half")


def kill_sender(site: DrillSite) -> None:
    """SIGKILL of `triage outbox send` at any moment: each notification is accepted, and none twice."""
    with WebhookServer("s3cret", window=1e9) as hook:
        _write_posts(site, hook)
        seconds = site.measure(lambda: site.run("outbox", "list"))
        process = site.start("outbox", "send")
        site.interrupt(process, site.chance.uniform(0.5, 2) * seconds, signal.SIGKILL)
        site.finish(process)
        _send_until_done(site, hook)


def cut_receiver(site: DrillSite) -> None:
    """Receivers that fail or close the connection: the same."""
    with WebhookServer("s3cret", window=1e9) as hook:
        _write_posts(site, hook)
        for _ in range(site.chance.randint(1, 4)):
            hook.inject_failure("", site.chance.choice(FAILURES))
            site.faults += 1
        _send_until_done(site, hook)


def _write_posts(site: DrillSite, hook: WebhookServer) -> None:
    """Ingest jobs while the receiver is down, so that their notifications wait."""
    config = site.place / "config.toml"
    config.write_text(
        '[[routing.routes]]\nto = "webhook:drill"\n'
        f'[webhook]\ntimeout = 5\n[webhook.targets.drill]\nurl = "{hook.url}/x"\nsecret = "s3cret"\n',
        encoding="utf-8",
    )
    site.environment["TRIAGE_CONFIG"] = str(config)
    hook.inject_failure("", "503", times=JOBS)
    for number in range(JOBS):
        status, _, errors = site.run("ingest", site.add_job(f"post{number}"), "--notify", "--quiet")
        site.check(status == 0, f"ingest --notify ends with {status}: {errors}")


def _send_until_done(site: DrillSite, hook: WebhookServer) -> None:
    """Send as a timer does, each time later, until nothing waits; check what was accepted."""
    for number in range(1, TRIES):
        site.run("outbox", "send", shift=number * LEASE_SECONDS)
        with Store.open(site.store) as store:
            states = [post.state for post in store.outbox.list_posts()]
        if set(states) == {"sent"}:
            break
    site.check(set(states) == {"sent"}, f"posts are stuck: {states}")
    incidents = sorted(item["incident"] for item in hook.accepted)
    with Store.open(site.store) as store:
        stored = sorted(item.id for item in store.search.list_incidents())
    site.check(incidents == stored, f"accepted {incidents}, stored {stored}")
    site.check_store(is_complete=True)
    site.check_processes()
    site.check_files()


DRILLS = (kill_sender, cut_receiver)
