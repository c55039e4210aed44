"""The recipes of docs/hooks.md, executed as they stand there, with fake schedulers on the PATH."""

from __future__ import annotations

import json
import os
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


def wait_for(path: Path) -> str:
    """Return the text of a file, once it has some."""
    for _ in range(600):
        if path.exists() and path.stat().st_size:
            return path.read_text(encoding="utf-8")
        time.sleep(0.05)
    raise AssertionError(f"{path} did not appear")


def epilog(site: Path, **variables: str) -> None:
    """Run the script as slurmctld does: with variables only, and no terminal."""
    script = site / "epilog.sh"
    # `triage` of this checkout, not of /usr/local/bin.
    script.write_text(recipe("Slurm", "bash").replace("/usr/local/bin:", f"{site}/bin:"), encoding="utf-8")
    command = ["bash", str(script)]
    subprocess.run(command, env=environment(site, **variables), stdin=subprocess.DEVNULL, timeout=300, check=True)


def test_the_epilog_of_slurm_reports_beside_the_output(site: Path) -> None:
    """A failed job's output is diagnosed as soon as the script has ended."""
    log = site / "slurm-1234.out"
    log.write_bytes(JOB.read_bytes())
    variables = {"SLURM_JOB_STDOUT": str(log), "SLURM_JOB_STDERR": str(log), "SLURM_JOB_EXIT_CODE2": "1:0"}
    epilog(site, SLURM_JOB_ID="1234", **variables)
    assert CAUSE in wait_for(site / "slurm-1234.out.triage.txt")


def test_the_epilog_asks_slurm_where_variables_are_missing(site: Path) -> None:
    """Older releases of Slurm do not say in a variable where the output is."""
    log = site / "train.out"
    log.write_bytes(JOB.read_bytes())
    program(site, "scontrol", f"printf 'JobId=%s JobName=x\\n   StdErr={log}\\n   StdOut={log}\\n' \"$4\"")
    epilog(site, SLURM_JOB_ID="1234")
    assert CAUSE in wait_for(site / "train.out.triage.txt")


def test_the_epilog_leaves_good_jobs_alone(site: Path) -> None:
    """A job with the exit code 0:0 costs nothing."""
    log = site / "good.out"
    log.write_text("done\n")
    program(site, "triage", f"touch {site}/called")
    epilog(site, SLURM_JOB_ID="1", SLURM_JOB_STDOUT=str(log), SLURM_JOB_EXIT_CODE2="0:0")
    epilog(site, SLURM_JOB_ID="1", SLURM_JOB_STDOUT=str(site / "none"), SLURM_JOB_EXIT_CODE2="1:0")
    time.sleep(1.0)
    assert not (site / "called").exists()


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
