"""The steps of action.yml, run like on a GitHub runner, against the local GitHub."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from triage.testing.forges import GitHubServer
from triage.testing.jobs import JobBuilder

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


class Runner:
    """Runs the composite steps one after the other. `outputs` is by step, like `steps.ID.outputs`.

    Without `version` nothing is installed.
    """

    def __init__(self, where: Path, github: GitHubServer, **inputs: str) -> None:
        defaults = {name: str(item.get("default", "")) for name, item in ACTION["inputs"].items()}
        self.inputs = {**defaults, "version": "", "token": github.token, **inputs}
        self.outputs: dict[str, dict[str, str]] = {}
        self.where = where
        self.summary = where / "summary.md"
        event = where / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 7}}), encoding="utf-8")
        command = where / "bin"
        command.mkdir()
        (command / "triage").write_text(f'#!/bin/sh\nexec {sys.executable} -m triage "$@"\n', encoding="utf-8")
        (command / "triage").chmod(0o755)
        # A runner's `python3` may be of another version than this one, whose packages the tests lend.
        (command / "python3").symlink_to(sys.executable)
        self.environment = {
            "PATH": f"{command}:{os.environ['PATH']}",
            "HOME": str(where),
            "PYTHONPATH": str(ROOT),
            "TRIAGE_CACHE": os.environ.get("TRIAGE_CACHE", str(where / "cache")),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION": "__self",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_WORKFLOW": "train",
            "GITHUB_JOB": "smoke",
            "GITHUB_REPOSITORY": "team/model",
            "GITHUB_REF": "refs/pull/7/merge",
            "GITHUB_RUN_ID": "99",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_API_URL": github.url,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RUNNER_TEMP": str(where),
        }

    def run(self) -> tuple[int, str]:
        """Return (first failed status or 0, all output). As on a runner, a failed step ends the action."""
        output_text = ""
        for number, step in enumerate(ACTION["runs"]["steps"]):
            if "if" in step and not self._holds(step["if"]):
                continue
            output, added = self.where / f"output{number}", self.where / f"path{number}"
            output.touch()
            added.touch()
            own = {name: self._filled(value) for name, value in step.get("env", {}).items()}
            script = self.where / f"step{number}.sh"
            script.write_text(step["run"], encoding="utf-8")
            assert "${{" not in step["run"], "an input inside a script would be run"
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
                env={**self.environment, **own, "GITHUB_OUTPUT": str(output), "GITHUB_PATH": str(added)},
                cwd=self.where,
                capture_output=True,
                text=True,
                timeout=120,
            )
            output_text += done.stdout + done.stderr
            self.environment["PATH"] = ":".join(
                [*reversed(added.read_text(encoding="utf-8").split("\n")[:-1]), self.environment["PATH"]]
            )
            if "id" in step:
                self.outputs[step["id"]] = read_outputs(output.read_text(encoding="utf-8"))
            if done.returncode:
                return done.returncode, output_text
        return 0, output_text

    def _filled(self, value: str) -> str:
        value = re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda match: self.inputs[match[1]], value)
        return re.sub(
            r"\$\{\{ steps\.(\w+)\.outputs\.(\w+) \}\}", lambda match: self.outputs[match[1]].get(match[2], ""), value
        )

    def _holds(self, condition: str) -> bool:
        match = re.fullmatch(r"inputs\.([a-z-]+) != '(\w*)'", condition)
        assert match, condition
        return self.inputs[match[1]] != match[2]


def read_outputs(text: str) -> dict[str, str]:
    """Parse `name=value` and `name<<MARK`, like the runner does."""
    outputs: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, sign, rest = re.match(r"([^=<]+)(=|<<)(.*)", line).groups()  # type: ignore[union-attr]
        if sign == "=":
            outputs[name] = rest
            continue
        value = []
        for inner in lines:
            if inner == rest:
                break
            value.append(inner)
        outputs[name] = "\n".join(value)
    return outputs


@pytest.fixture
def github() -> Any:
    with GitHubServer() as server:
        server.add_pull_request("team/model", 7)
        server.post_as_user("team/model", 7, "a person")
        yield server


def job(where: Path, error: str | None) -> Path:
    built = JobBuilder(where / "job logs", world_size=2)
    built.steps(3)
    if error:
        built.rank(1).traceback(error)
        return built.elastic_table({1: 1}).write()
    return built.finish().write()


def test_a_failure_is_reported_and_fails_the_step(tmp_path: Path, github: GitHubServer) -> None:
    """The action installs triage and writes annotations, summary, outputs and one comment; its status is 1."""
    job(tmp_path, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    runner = Runner(tmp_path, github, paths="job logs\n*.nothing\n", version="action", **{"fail-on": "any"})
    (tmp_path / "bin" / "triage").unlink()
    # Dependencies come from the environment of the tests, which have no network.
    runner.environment |= {
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_INDEX": "1",
    }
    status, output_text = runner.run()
    assert status == 1, output_text
    assert (
        tmp_path / "triage-__self" / "command" / "triage"
    ).resolve() == tmp_path / "triage-__self" / "bin" / "triage"
    assert re.search(r"^::error file=.*,title=triage%3A cuda\.out-of-memory::Root cause", output_text, re.MULTILINE)
    assert "cuda.out-of-memory" in runner.summary.read_text(encoding="utf-8")
    assert runner.outputs["show"]["verdict"] == "known"
    assert runner.outputs["show"]["signature"] == "cuda.out-of-memory"
    assert runner.outputs["show"]["ranks"] == "1"
    (_, comment) = github.comments("team/model", 7)
    assert comment["body"].startswith("<!-- triage:train/smoke -->\n### Root cause")
    assert "https://github.example/team/model/actions/runs/99" in comment["body"]


def test_the_comment_follows_the_job(tmp_path: Path, github: GitHubServer) -> None:
    """Later runs edit the same comment, also when the job succeeds again."""
    for number, error in enumerate(["ValueError: no tokens", "RuntimeError: other", None]):
        where = tmp_path / str(number)
        where.mkdir()
        job(where, error)
        status, output_text = Runner(where, github, paths="job logs").run()
        assert status == 0, output_text
    own_comments = [comment for comment in github.comments("team/model", 7) if "triage:" in comment["body"]]
    assert len(own_comments) == 1
    assert "### Clean" in own_comments[0]["body"]


def test_a_token_that_may_not_comment_is_a_warning(tmp_path: Path, github: GitHubServer) -> None:
    """With the read-only token of a fork the summary is written and the step succeeds."""
    job(tmp_path, "ValueError: no tokens")
    runner = Runner(tmp_path, github, paths="job logs", token="wrong")
    status, output_text = runner.run()
    assert status == 0, output_text
    assert "::warning title=triage::the comment could not be made" in output_text
    assert runner.summary.stat().st_size > 100
    assert len(github.comments("team/model", 7)) == 1


def test_patterns_without_a_file_are_named(tmp_path: Path, github: GitHubServer) -> None:
    """The annotation has the patterns on one line, and the step fails."""
    status, output_text = Runner(tmp_path, github, paths="logs/*.log\n**/*.nothing\n").run()
    assert status == 2
    assert re.search(
        r"^::error title=triage::no file matches logs/\*\.log, \*\*/\*\.nothing;", output_text, re.MULTILINE
    )
