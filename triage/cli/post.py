"""`triage post`: post one report to one place, without the outbox. For CI."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from triage.base.errors import OptionError
from triage.cli import options, streams
from triage.cli.show import is_incident

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
    typer.Option(
        "--number", metavar="N", min=1, help="The request. Default: the one of this CI job.", show_default=False
    ),
]
OnlyFailures = Annotated[
    bool, typer.Option("--only-failures", help="For a clean job, edit an existing comment but add none.")
]
Repository = Annotated[
    str, typer.Option("--repo", metavar="OWNER/NAME", help="Default: GITHUB_REPOSITORY.", show_default=False)
]
Project = Annotated[str, typer.Option("--project", metavar="ID", help="Default: CI_PROJECT_ID.", show_default=False)]
Url = Annotated[str, typer.Option("--url", metavar="URL", help="Where to post.", show_default=False)]


def github(
    report: Report,
    number: Number = None,
    repo: Repository = "",
    key: Key = "",
    link: options.Link = "",
    only_failures: OnlyFailures = False,
    store: options.StoreFile = None,
) -> None:
    """Comment on a pull request; posting again edits the comment.

    Needs GITHUB_TOKEN with `pull-requests: write`. Outside of a pull request nothing is posted.

    \b
    Examples:
      triage post github report.json
      triage post github report.json --repo team/model --number 7
    """
    from triage.bots import forges
    from triage.render import github as rendering

    target = number or _find_pull_request(os.environ.get("GITHUB_EVENT_PATH", ""), os.environ.get("GITHUB_REF", ""))
    repository = repo or os.environ.get("GITHUB_REPOSITORY", "")
    token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or ""
    if target is None:
        _report_nothing_posted("this run has no pull request")
        return
    if not token or "/" not in repository:
        raise OptionError(
            "GITHUB_TOKEN or the repository is missing",
            hint="set GITHUB_TOKEN, and give --repo OWNER/NAME outside of a workflow",
        )
    job = "/".join(filter(None, (os.environ.get("GITHUB_WORKFLOW"), os.environ.get("GITHUB_JOB"))))
    key = key or job or "triage"
    forge = forges.github(os.environ.get("GITHUB_API_URL") or "https://api.github.com", token, repository, target)
    diagnosis = _load_diagnosis(report, store)
    body = rendering.comment(diagnosis, key, link=link or _run_url())
    _post_comment(forge, rendering.marker(key), body, only_failures and diagnosis.verdict == "clean")


def gitlab(
    report: Report,
    number: Number = None,
    project: Project = "",
    key: Key = "",
    link: options.Link = "",
    only_failures: OnlyFailures = False,
    store: options.StoreFile = None,
) -> None:
    """Write a note on a merge request; posting again edits the note.

    Needs GITLAB_TOKEN with scope `api` (a project's access token). Outside of a merge request nothing is posted.

    \b
    Example:
      triage post gitlab report.json
    """
    from triage.bots import forges
    from triage.render import gitlab as rendering
    from triage.render.github import marker

    iid = os.environ.get("CI_MERGE_REQUEST_IID", "")
    target = number or (int(iid) if iid.isdecimal() else None)
    if target is None:
        _report_nothing_posted("this pipeline has no merge request")
        return
    token, project = os.environ.get("GITLAB_TOKEN", ""), project or os.environ.get("CI_PROJECT_ID", "")
    if not token or not project:
        raise OptionError(
            "GITLAB_TOKEN or the project is missing", hint="set GITLAB_TOKEN, and give --project outside of a pipeline"
        )
    key = key or os.environ.get("CI_JOB_NAME", "") or "triage"
    forge = forges.gitlab(os.environ.get("CI_API_V4_URL") or "https://gitlab.com/api/v4", token, project, target)
    diagnosis = _load_diagnosis(report, store)
    body = rendering.note(diagnosis, key, link=link or os.environ.get("CI_JOB_URL", ""))
    _post_comment(forge, marker(key), body, only_failures and diagnosis.verdict == "clean")


def webhook(report: Report, url: Url, link: options.Link = "", store: options.StoreFile = None) -> None:
    """Post the report as signed JSON; the key is TRIAGE_WEBHOOK_SECRET.

    \b
    Example:
      triage post webhook report.json --url https://ci.example.org/hook
    """
    import hashlib

    from triage.bots import forges, webhook as bot

    secret = os.environ.get("TRIAGE_WEBHOOK_SECRET", "")
    if not secret:
        raise OptionError("TRIAGE_WEBHOOK_SECRET is not set", hint="set it to the key that the receiver knows")
    diagnosis = _load_diagnosis(report, store)
    body = bot.build_payload(diagnosis, incident=None, link=link, topic=diagnosis.job.id, repeats=[])
    delivery = hashlib.sha256(body).hexdigest()[:32]

    def send() -> str:
        bot.send(url, secret, body, delivery)
        return delivery

    _report_posted(forges.retry(send))


def _post_comment(forge: Any, marker: str, body: str, only_edit: bool) -> None:

    from triage.bots import forges

    _report_posted(forges.retry(lambda: forges.comment(forge, marker, body, only_edit=only_edit)))


def _load_diagnosis(report: str, store: Any) -> Diagnosis:
    from triage.render import json

    if is_incident(report):
        with options.open_store(store) as opened:
            return opened.incidents.get(report).diagnosis
    return json.read(streams.read_report_text(report), None if report == "-" else report)


def _find_pull_request(event_path: str, ref: str) -> int | None:
    """Return the pull request of a workflow run: from its event, else from refs/pull/7/merge."""
    import json
    import re
    from pathlib import Path

    try:
        event = json.loads(Path(event_path).read_text(encoding="utf-8")) if event_path else {}
    except (OSError, ValueError):
        event = {}
    if isinstance(event, dict):
        issue = event.get("issue") or {}
        for item in (event.get("pull_request"), issue if "pull_request" in issue else None):
            if isinstance(item, dict) and isinstance(item.get("number"), int):
                return int(item["number"])
    match = re.fullmatch(r"refs/pull/(\d+)/(?:merge|head)", ref)
    return int(match[1]) if match else None


def _run_url() -> str:
    run = os.environ.get("GITHUB_RUN_ID")
    if not run:
        return ""
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    return f"{server}/{os.environ.get('GITHUB_REPOSITORY', '')}/actions/runs/{run}"


def _report_nothing_posted(reason: str) -> None:
    streams.write_stderr(f"triage: nothing posted, because {reason}; give its number with --number\n")


def _report_posted(receipt: str) -> None:
    streams.write_output(f"{receipt or 'nothing to edit'}\n")


COMMANDS = (("github", github), ("gitlab", gitlab), ("webhook", webhook))
