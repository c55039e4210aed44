"""The recipes of docs/hooks.md, executed as they stand there, with fake schedulers on the PATH."""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
JOB = ROOT / "samples" / "jobs" / "exception_one_rank_tee" / "job" / "console.log"
PAGE = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
CAUSE = "ValueError"


def recipe(heading: str, language: str) -> str:
    """Return the one block of this language below a heading."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL)
    return str(block)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory with `bin/triage`, for fake programs and logs."""
    (tmp_path / "bin").mkdir()
    program(tmp_path, "triage", f'exec {sys.executable} -m triage "$@"')
    return tmp_path


def program(site: Path, name: str, body: str) -> None:
    path = site / "bin" / name
    path.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


def environment(site: Path, **more: str) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("SLURM_")},
        "PATH": f"{site}/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TRIAGE_STORE": str(site / "store.db"),
        **more,
    }


def epilog(site: Path, *states: str, **variables: str) -> Path:
    """Run the script as slurmctld does: with variables only, no terminal. Slurm says each state once, the last forever.

    Returns the log of a job with a failure, which Slurm names.
    """
    log = site / "slurm 1234.out"
    log.write_bytes(JOB.read_bytes())
    answers = " ".join(states)
    program(
        site,
        "scontrol",
        f"""
echo "$*" >> {site}/asked
states=({answers}); number=$(wc -l < {site}/asked)
state=${{states[number - 1]:-${{states[-1]}}}}
printf 'JobId=1234 JobName=x\n   JobState=%s Reason=None\n   StdErr={log}\n   StdOut={log}\n' "$state"
""",
    )
    program(site, "logger", f"cat >> {site}/system.log; touch {site}/over")
    script = site / "epilog.sh"
    # Programs of this test, not those of /usr/local/bin.
    script.write_text(recipe("Slurm", "bash").replace("/usr/local/bin:", f"{site}/bin:"), encoding="utf-8")
    script.chmod(0o755)
    known = {
        "SLURM_JOB_ID": "1234",
        "SLURM_JOB_USER": pwd.getpwuid(os.getuid()).pw_name,
        "SLURM_JOB_STDOUT": f"{site}/slurm %j.out",  # Slurm 22.05 leaves the pattern there
        "SLURM_JOB_EXIT_CODE2": "0:0",
        "SLURM_JOB_DERIVED_EC": "0",
    }
    subprocess.run(
        [str(script)], env=environment(site, **known | variables), stdin=subprocess.DEVNULL, timeout=60, check=True
    )
    for _ in range(1200):
        if (site / "over").exists():
            return log
        time.sleep(0.05)
    raise AssertionError("the script did not end")


@pytest.mark.parametrize(
    ("states", "variables"),
    [
        (["COMPLETING", "FAILED"], {"SLURM_JOB_EXIT_CODE2": "1:0"}),
        (["COMPLETING", "COMPLETED"], {"SLURM_JOB_DERIVED_EC": "256"}),
    ],
    ids=["failed", "only a step failed"],
)
def test_the_epilog_of_slurm_reports_beside_the_output(
    site: Path, states: list[str], variables: dict[str, str]
) -> None:
    """The output of a job that failed is diagnosed, also if its batch script ended with 0."""
    log = epilog(site, *states, **variables)
    assert CAUSE in log.with_name(f"{log.name}.triage.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("state", ["TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY"])
def test_the_epilog_diagnoses_jobs_that_were_ended(site: Path, state: str) -> None:
    """Slurm gives the epilog the exit code 0:0 of a job that was cancelled or ran out of time."""
    program(site, "triage", f'echo "$@" > {site}/called')
    log = epilog(site, state)
    assert (site / "called").read_text() == f"ingest --quiet -o {log}.triage.txt -- {log}\n"


@pytest.mark.parametrize("state", ["COMPLETED", "PENDING"])
def test_the_epilog_leaves_other_jobs_alone(site: Path, state: str) -> None:
    """A job that ended well, or that waits to run again, is not read."""
    program(site, "triage", f"touch {site}/called")
    epilog(site, state)
    assert not (site / "called").exists()


def test_the_epilog_asks_for_its_own_task_of_an_array(site: Path) -> None:
    """The last task of an array has the array's number, by which Slurm shows all tasks."""
    program(site, "triage", "true")
    epilog(site, "FAILED", SLURM_ARRAY_JOB_ID="1234", SLURM_ARRAY_TASK_ID="7")
    assert (site / "asked").read_text() == "show job 1234_7\n"


def test_the_epilog_reads_as_the_user_of_the_job(site: Path) -> None:
    """A SlurmUser that is not root becomes the user by sudo, with the command that the page permits."""
    section = re.search(r"^slurm ALL=\(ALL,!root\) NOPASSWD: /usr/local/bin/(.*) \*$", PAGE, re.MULTILINE)
    assert section
    program(site, "id", "echo slurm")
    program(site, "sudo", f'echo sudo "$@" > {site}/called')
    epilog(site, "FAILED", SLURM_JOB_USER="trainer")
    assert (site / "called").read_text().startswith(f"sudo -n -u trainer -- {section[1]} ")


def pods(heading: str) -> list[Any]:
    """Return the specifications of the pods of a recipe."""
    spec = yaml.safe_load(recipe(heading, "yaml"))["spec"]
    templates = [spec, *spec.get("pytorchReplicaSpecs", {}).values()]
    return [item["template"]["spec"] for item in templates if "template" in item]


@pytest.mark.parametrize(("heading", "kinds"), [("Kubernetes", 1), ("Kubeflow's PyTorchJob", 2)])
def test_the_sidecar_reports_when_the_pod_ends(site: Path, heading: str, kinds: int) -> None:
    """It reads what the trainer wrote to the volume, and tells of the failure before SIGTERM ends it; in each pod."""
    assert len(pods(heading)) == kinds
    assert all(pod == pods(heading)[0] for pod in pods(heading))
    pod = pods(heading)[0]
    (sidecar,), (trainer,) = pod["initContainers"], pod["containers"]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["volumeMounts"] == trainer["volumeMounts"]
    (mount,) = sidecar["volumeMounts"]
    assert [mount["name"]] == [volume["name"] for volume in pod["volumes"]]
    volume = site / "volume"
    volume.mkdir()
    command = [part.replace(mount["mountPath"], str(volume)) for part in sidecar["command"]]
    watch = subprocess.Popen(command, env=environment(site), stdout=subprocess.PIPE, text=True)
    program(site, "torchrun", f"cat {JOB}; exit 1")
    shell = [part.replace(mount["mountPath"], str(volume)) for part in trainer["command"]]
    assert subprocess.run(shell, env=environment(site), stdout=subprocess.DEVNULL, timeout=60, check=False).returncode
    assert watch.stdout is not None
    event = json.loads(watch.stdout.readline())
    watch.send_signal(signal.SIGTERM)
    watch.communicate(timeout=300)
    assert watch.returncode == 0
    assert (event["event"], event["ranks"]) == ("failure", [2])


def test_failed_jobs_are_diagnosed_once_before_their_ttl(site: Path) -> None:
    """Each failed job without the annotation is read, stored and annotated; others are left alone."""
    spec = yaml.safe_load(recipe("Kubernetes, before the TTL", "yaml"))["spec"]["jobTemplate"]["spec"]["template"][
        "spec"
    ]
    (container,) = spec["containers"]
    program(
        site,
        "kubectl",
        f"""
echo "$@" >> {site}/calls
case "$1" in
  get) printf 'train-a \\ntrain-b yes\\ntrain-c \\n' ;;
  logs) if [ "$3" = job-name=train-c ]; then exit 1; fi; sed 's/^/[pod\\/train-a-x7k2p\\/trainer] /' {JOB} ;;
esac""",
    )
    subprocess.run(container["command"], env=environment(site), timeout=300, check=True, stdout=subprocess.DEVNULL)
    calls = (site / "calls").read_text().splitlines()
    assert "{.metadata.annotations.triage/diagnosed}" in calls[0]
    assert [call for call in calls if call.startswith("annotate")] == [
        "annotate job train-a triage/diagnosed=yes --overwrite"
    ]
    assert not [call for call in calls if "train-b" in call]
    listed = subprocess.run(
        ["triage", "list", "--format", "json"], env=environment(site), capture_output=True, timeout=60, check=True
    )
    stored: Any = json.loads(listed.stdout)
    assert len(stored if isinstance(stored, list) else stored["incidents"]) == 1


def test_the_entrypoint_of_ray_keeps_the_exit_status(site: Path) -> None:
    """The entrypoint runs as Ray runs it, by a shell; Ray's status of the job is that of the command."""
    job = json.loads(recipe("Ray", "json"))
    entrypoint = job["entrypoint"].replace("/tmp/", f"{site}/")
    assert shlex.split(entrypoint)[:2] == ["triage", "run"]
    program(site, "python", f"cat {JOB}; exit 3")
    done = subprocess.run(
        ["sh", "-c", entrypoint],
        cwd=site,
        env=environment(site),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert done.stdout == JOB.read_text(encoding="utf-8")
    assert "rank 2" in done.stderr


def test_a_command_runs_behind_triage_run(site: Path) -> None:
    """The line of the page runs as it stands there, without `--notify`, which needs routes."""
    line = recipe("torchrun and other commands", "console").removeprefix("$ ").strip().replace(" --notify", "")
    program(site, "torchrun", f"cat {JOB}; exit 1")
    done = subprocess.run(
        shlex.split(line), cwd=site, env=environment(site), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "rank 2" in done.stderr
