"""No secret passes one of the doors through which text leaves triage: each test is one door."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

import triage
from tests.evidence.generated_secrets import Case, load_kinds, make_cases
from triage import pipeline
from triage.bots.announce import Topic, announce, announce_pace, topic_name
from triage.bots.pace import PaceReport
from triage.collect import bundle as bundles, probes
from triage.collect.logs import Log
from triage.collect.processes import Target
from triage.model.watch import Episode, WatchEvent
from triage.render import json as json_report
from triage.settings.notifications import Route, RoutingSettings
from triage.store import Store
from triage.store.transfer import export_lines, import_lines
from triage.testing.jobs import JobBuilder

# Of each sort of secret some; test_secret_kinds.py has them all.
KINDS = (
    *("github-personal-token", "digitalocean-oauth-token", "openai-project-key", "telegram-bot-token", "datadog"),
    *("redis-empty-user-url", "slack-workflow-webhook", "db-pass-colon", "camel-case-json", "msi-pwd", "pem-rsa"),
    *("curl-user", "mysql-attached", "sshpass", "dockerconfig-auth", "wandb-login-call", "x-vault-token", "cookie"),
)
# Those without spaces and slashes: they fit into names of files and hosts.
IN_NAMES = ("github-personal-token", "digitalocean-oauth-token", "linear-key", "groq-key", "shopify-access-token")


def cases(kinds: tuple[str, ...]) -> list[Case]:
    assert set(kinds) <= set(load_kinds())
    return [make_cases(kind)[-1] for kind in kinds]


def leaks(text: str, used: list[Case]) -> list[str]:
    """Return the kinds of which a part is in the text, with or without JSON's escapes."""
    return [case.kind for case in used if case.leaks(text) or case.leaks(text.replace("\\", ""))]


def failed_job(directory: Path, texts: list[str], **origin: str) -> Path:
    job = JobBuilder(directory, world_size=max(2, len(texts)))
    for rank, text in enumerate(texts):
        job.rank(rank).log(f"starting with {text}")
        job.rank(rank).traceback(f"SecretError: {text}")
    return job.elastic_table(dict.fromkeys(range(len(texts)), 1)).write()


def test_ingest(tmp_path: Path) -> None:
    """The report of a job whose lines hold secrets has none of them."""
    used = cases(KINDS)
    failed_job(tmp_path / "job", [case.text for case in used])
    diagnosis = triage.ingest(str(tmp_path / "job"))
    assert "SecretError" in repr(diagnosis)
    assert leaks(json_report.render(diagnosis), used) == []


def test_file_names(tmp_path: Path) -> None:
    """Names of directories and files in the report are redacted, and so are those in a timeline and an explanation."""
    used = cases(IN_NAMES)
    for number, case in enumerate(used):
        failed_job(tmp_path / "job" / f"run-{case.text}" / f"attempt_{number}", ["boom"])
    job = str(tmp_path / "job")
    outputs = (
        json_report.render(triage.ingest(job)),
        repr(pipeline.timeline([job])),
        repr(pipeline.explain([job], "host.sigkill")),
        repr(pipeline.audit([job])),
    )
    assert "redacted token" in outputs[0]
    assert [leaks(text, used) for text in outputs] == [[], [], [], []]


def test_host_names(tmp_path: Path) -> None:
    """A host name that holds a secret is redacted in the job, its ranks and its evidence."""
    used = cases(IN_NAMES)
    for number, case in enumerate(used):
        directory = tmp_path / "job"
        directory.mkdir(exist_ok=True)
        host = f"node{number}-{case.text}"
        text = f"{host}:41{number}:41{number} [{number}] NCCL WARN Cuda failure 2 'out of memory'\n"
        (directory / f"rank{number}.log").write_text(text, encoding="utf-8")
    diagnosis = triage.ingest(str(tmp_path / "job"))
    assert "NCCL WARN" in repr(diagnosis)
    assert leaks(json_report.render(diagnosis), used) == []


def test_environment_dumps(tmp_path: Path) -> None:
    """Neither the environment of a job nor its report has a secret of a dump of variables."""
    used = cases(
        ("datadog", "wandb-environment", "screaming-pass", "shell-export", "mlflow-url", "proxy-url", "sentry-dsn")
    )
    job = tmp_path / "job"
    job.mkdir()
    for rank in range(2):
        settings = [f"RANK={rank}", "WORLD_SIZE=2", "NCCL_DEBUG=INFO", f"NCCL_ALGO={'Ring' if rank else 'Tree'}"]
        lines = [*settings, *(case.text.removeprefix("export ") for case in used)]
        (job / f"rank{rank}.env").write_text("\n".join(lines) + "\n", encoding="utf-8")
    audit = pipeline.audit([str(job)])
    assert "NCCL_ALGO" in repr(audit)
    assert leaks(repr(audit) + json_report.render(triage.ingest(str(job))), used) == []


def test_posts(tmp_path: Path) -> None:
    """A notification about a diagnosis that is not stored has no secret, in its text and in its columns."""
    used = cases(KINDS)
    failed_job(tmp_path / "job", [case.text for case in used])
    diagnosis = triage.ingest(str(tmp_path / "job"))
    name = cases(IN_NAMES)[0]
    named = replace(diagnosis, job=replace(diagnosis.job, name=f"train {name.text}"))
    with Store.open(tmp_path / "triage.db") as store:
        routing = RoutingSettings(routes=(Route(to="webhook:ops"),))
        targets = announce(store, Topic(topic_name(named), None, named), routing, now=1.0)
        assert targets == ["webhook:ops"]
        assert leaks("\n".join(store.connections.get().iterdump()), [*used, name]) == []


def test_posts_about_the_pace(tmp_path: Path) -> None:
    """A notification about a slow job has no secret of its name and its path."""
    first, second = cases(IN_NAMES)[:2]
    event = WatchEvent(kind="stalled", at=1.0, text=f"host {second.text} is silent", ranks=(0,), hosts=(second.text,))
    pace = PaceReport(f"train {first.text}", f"/jobs/{first.text}", Episode((event,)))
    with Store.open(tmp_path / "triage.db") as store:
        routing = RoutingSettings(routes=(Route(to="webhook:ops"),))
        assert announce_pace(store, "topic", pace, routing, now=1.0) == ["webhook:ops"]
        assert leaks("\n".join(store.connections.get().iterdump()), [first, second]) == []


def test_exports_and_imports(tmp_path: Path) -> None:
    """An export has no secret, and neither has a store that imports a file that somebody else wrote."""
    used = cases(KINDS)
    failed_job(tmp_path / "job", [case.text for case in used])
    with Store.open(tmp_path / "triage.db") as store:
        store.incidents.add(triage.ingest(str(tmp_path / "job")))
        exported = list(export_lines(store.connections))
    assert leaks("".join(exported), used) == []
    foreign = [line.replace("SecretError", "SecretError " + json.dumps(used[0].text)[1:-1]) for line in exported]
    assert leaks("".join(foreign), used) != []
    with Store.open(tmp_path / "other.db") as store:
        assert import_lines(store.connections, foreign)["incident"] == 1
        assert leaks("".join(export_lines(store.connections)), used) == []


def test_bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle of a running job has no secret: not in names of files and hosts, variables, logs and its contents."""
    in_name, in_host, in_variable, in_log = cases((*IN_NAMES[:2], "mlflow-url", "curl-user"))
    log = tmp_path / f"{in_name.text}.log"
    log.write_text(f"+ {in_log.text}\n", encoding="utf-8")
    name, _, value = in_variable.text.partition("=")
    target = Target(os.getpid(), 0, "python train.py", {"RANK": "0", name: value})
    monkeypatch.setattr(bundles, "find_targets", lambda pids, match: [target])
    monkeypatch.setattr(bundles.logs, "find_logs", lambda target: [Log(str(log), log), (f"{log}.1", "it is gone")])
    monkeypatch.setattr(bundles.os, "uname", lambda: SimpleNamespace(nodename=f"{in_host.text}.cluster", machine=""))
    monkeypatch.setattr(probes.shutil, "which", lambda name, path=None: None)
    collected = bundles.collect(tmp_path / "node.tar.zst")
    with (tmp_path / "node.tar.zst").open("rb") as file:
        text = zstandard.ZstdDecompressor().stream_reader(file).read().decode("utf-8", "replace")
    assert "it is gone" in text
    assert leaks(text + repr(collected), [in_name, in_host, in_variable, in_log]) == []
