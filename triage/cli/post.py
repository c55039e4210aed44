"""`triage post`: one report to one place, now, without an outbox. For CI."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from triage.base.errors import OptionError
from triage.cli import options

if TYPE_CHECKING:
    from triage.model.diagnosis import Diagnosis

Report = Annotated[
    str,
    typer.Argument(
        metavar="FILE|ID", help="A report in JSON, - for standard input, or an incident.", show_default=False
    ),
]
Key = Annotated[
    str,
    typer.Option(
        "--key",
        metavar="TEXT",
        help="Names the comment: the same key edits it. Default: the CI job.",
        show_default=False,
    ),
]
Number = Annotated[
    int | None,
    typer.Option("--number", metavar="N", min=1, help="The request. Default: that of this CI job.", show_default=False),
]
OnFailure = Annotated[
    bool, typer.Option("--only-failures", help="A clean job makes no new comment, but edits one that is there.")
]


def github(
    report: Report,
    number: Number = None,
    repo: Annotated[
        str, typer.Option("--repo", metavar="OWNER/NAME", help="Default: GITHUB_REPOSITORY.", show_default=False)
    ] = "",
    key: Key = "",
    link: options.Link = "",
    only_failures: OnFailure = False,
    store: options.StoreFile = None,
) -> None:
    """Comment on a pull request; posted again, the comment is edited.

    Needs GITHUB_TOKEN with `pull-requests: write`. Outside of a pull request nothing is posted.

    \b
    Examples:
      triage post github report.json
      triage post github report.json --repo team/model --number 7
    """
    from triage.bots import forges
    from triage.render import github as written

    environment = os.environ
    where = number or _pull(environment.get("GITHUB_EVENT_PATH", ""), environment.get("GITHUB_REF", ""))
    repository = repo or environment.get("GITHUB_REPOSITORY", "")
    token = environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN") or ""
    if where is None:
        _nowhere("this is no run of a pull request")
        return
    if not token or "/" not in repository:
        raise OptionError(
            "GITHUB_TOKEN or the repository is not known",
            hint="set GITHUB_TOKEN, and give --repo OWNER/NAME outside of a workflow",
        )
    named = (
        key or "/".join(filter(None, (environment.get("GITHUB_WORKFLOW"), environment.get("GITHUB_JOB")))) or "triage"
    )
    forge = forges.github(environment.get("GITHUB_API_URL") or "https://api.github.com", token, repository, where)
    diagnosis = _diagnosis(report, store)
    _deliver(
        forge,
        written.marker(named),
        written.comment(diagnosis, named, link=link or _run_url()),
        only_failures and diagnosis.verdict == "clean",
    )


def gitlab(
    report: Report,
    number: Number = None,
    project: Annotated[
        str, typer.Option("--project", metavar="ID", help="Default: CI_PROJECT_ID.", show_default=False)
    ] = "",
    key: Key = "",
    link: options.Link = "",
    only_failures: OnFailure = False,
    store: options.StoreFile = None,
) -> None:
    """Write a note on a merge request; posted again, the note is edited.

    Needs GITLAB_TOKEN with scope `api` (a project's access token). Outside of a merge request nothing is posted.

    \b
    Example:
      triage post gitlab report.json
    """
    from triage.bots import forges
    from triage.render import github as marked
    from triage.render import gitlab as written

    environment = os.environ
    asked = environment.get("CI_MERGE_REQUEST_IID", "")
    where = number or (int(asked) if asked.isdecimal() else None)
    if where is None:
        _nowhere("this is no pipeline of a merge request")
        return
    token, of = environment.get("GITLAB_TOKEN", ""), project or environment.get("CI_PROJECT_ID", "")
    if not token or not of:
        raise OptionError(
            "GITLAB_TOKEN or the project is not known",
            hint="set GITLAB_TOKEN, and give --project outside of a pipeline",
        )
    named = key or environment.get("CI_JOB_NAME", "") or "triage"
    forge = forges.gitlab(environment.get("CI_API_V4_URL") or "https://gitlab.com/api/v4", token, of, where)
    diagnosis = _diagnosis(report, store)
    body = written.note(diagnosis, named, link=link or environment.get("CI_JOB_URL", ""))
    _deliver(forge, marked.marker(named), body, only_failures and diagnosis.verdict == "clean")


def webhook(
    report: Report,
    url: Annotated[str, typer.Option("--url", metavar="URL", help="Where to post.", show_default=False)],
    link: options.Link = "",
    store: options.StoreFile = None,
) -> None:
    """Post the report as signed JSON; the key is TRIAGE_WEBHOOK_SECRET.

    \b
    Example:
      triage post webhook report.json --url https://ci.example.org/hook
    """
    import hashlib

    from triage.bots import forges
    from triage.bots import webhook as bot

    secret = os.environ.get("TRIAGE_WEBHOOK_SECRET", "")
    if not secret:
        raise OptionError("TRIAGE_WEBHOOK_SECRET is not set", hint="set it to the key that the receiver knows")
    diagnosis = _diagnosis(report, store)
    body = bot.payload(diagnosis, incident=None, link=link, topic=diagnosis.job.id, repeats=[])
    delivery = hashlib.sha256(body).hexdigest()[:32]

    def send() -> str:
        bot.send(url, secret, body, delivery)
        return delivery

    _said(forges.patiently(send))


def _deliver(forge: Any, marker: str, body: str, only_edit: bool) -> None:
    from triage.bots import forges

    _said(forges.patiently(lambda: forges.comment(forge, marker, body, only_edit=only_edit)))


def _diagnosis(report: str, store: Any) -> Diagnosis:
    from triage.cli import streams
    from triage.cli.show import is_incident
    from triage.render import json

    if is_incident(report):
        with options.stored(store) as opened:
            return opened.incidents.get(report).diagnosis
    return json.read(streams.read(report), None if report == "-" else report)


def _pull(event: str, ref: str) -> int | None:
    """The pull request of a workflow run: from its event, else from refs/pull/7/merge."""
    import json
    import re
    from pathlib import Path

    try:
        told = json.loads(Path(event).read_text(encoding="utf-8")) if event else {}
    except (OSError, ValueError):
        told = {}
    if isinstance(told, dict):
        for of in (
            told.get("pull_request"),
            (told.get("issue") or {}) if "pull_request" in (told.get("issue") or {}) else None,
        ):
            if isinstance(of, dict) and isinstance(of.get("number"), int):
                return int(of["number"])
    found = re.fullmatch(r"refs/pull/(\d+)/(?:merge|head)", ref)
    return int(found[1]) if found else None


def _run_url() -> str:
    environment = os.environ
    if not environment.get("GITHUB_RUN_ID"):
        return ""
    return f"{environment.get('GITHUB_SERVER_URL', 'https://github.com')}/{environment.get('GITHUB_REPOSITORY', '')}/actions/runs/{environment['GITHUB_RUN_ID']}"


def _nowhere(why: str) -> None:
    from triage.cli import streams

    streams.to_stderr(f"triage: nothing is posted, because {why}; --number names a request\n")


def _said(receipt: str) -> None:
    from triage.cli import streams

    streams.deliver(f"{receipt or 'nothing to edit'}\n")


COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (("github", github), ("gitlab", gitlab), ("webhook", webhook))
