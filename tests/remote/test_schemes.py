"""Addresses of stores other than S3, read by the command from servers on loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from triage.testing.jobs import JobBuilder

from . import scheme_servers
from .faulty_proxy import FaultyProxy, choose_some
from .scheme_servers import StoreServer

SERVERS: dict[str, Callable[[], AbstractContextManager[StoreServer]]] = {
    "gs": scheme_servers.google,
    "abfs": scheme_servers.azure,
    "ssh": scheme_servers.ssh,
    "webhdfs": scheme_servers.hadoop,
}


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[StoreServer]:
    """A running server of each scheme."""
    with SERVERS[request.param]() as running:
        yield running


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job with a file that takes several requests, and one in a directory."""
    directory = tmp_path_factory.mktemp("local") / "job"
    job = JobBuilder(directory, world_size=2)
    job.rank(1).traceback("ValueError: no tokens left in the shard")
    job.elastic_table({1: 1}).write()
    lines = (f"step {step} loss 0.{step} of rank 0\n" for step in range(100_000))
    (directory / "node 1").mkdir()
    (directory / "node 1" / "rank_0.log").write_text("".join(lines))
    return directory


def run_ingest(address: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `triage ingest`; variables of other stores are not there."""
    command = [sys.executable, "-m", "triage", "ingest", address, "--exact", "--no-store", "--format", "json"]
    variables = {name: text for name, text in os.environ.items() if not name.startswith(("AZURE_", "GOOGLE_"))}
    cache = {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**variables, **cache, **environment}
    )


def report_of(done: subprocess.CompletedProcess[str], root: str) -> object:
    """Return the report without what differs between places."""
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout.replace(root.rstrip("/"), "ROOT"))
    del report["stats"]
    return {**report, "job": {**report["job"], "name": "", "path": ""}}


def test_the_answer_is_that_of_the_disk(server: StoreServer, local: Path) -> None:
    """The report of an address equals that of the files on disk, and nothing is written to standard error."""
    address = server.put_directory(local, "job")
    answer = report_of(run_ingest(address, server.environment), address)
    assert answer == report_of(run_ingest(str(local), {}), str(local))


def test_one_object(server: StoreServer, local: Path) -> None:
    """An address without a slash at its end names one object."""
    address = server.put_directory(local, "one")
    done = run_ingest(address + "node 1/rank_0.log", server.environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["stats"]["files"] == 1


def test_what_is_missing_is_said(server: StoreServer, local: Path) -> None:
    """A prefix without objects is an error with the address, not a trace."""
    address = server.put_directory(local, "job").replace("/job/", "/no-such-job/")
    done = run_ingest(address, server.environment)
    assert done.returncode == 2
    assert done.stderr.startswith(f"triage: {address}: the address cannot be listed: No such file or directory\n")
    assert "Traceback" not in done.stderr


def test_cut_connections_lose_nothing(server: StoreServer, local: Path) -> None:
    """With a fifth of the requests failing, the answer is the same."""
    address = server.put_directory(local, "job")
    expected = report_of(run_ingest(str(local), {}), str(local))
    if server.scheme == "ssh":
        with scheme_servers.ssh(20, 60) as cutting:
            other = cutting.put_directory(local, "job")
            assert report_of(run_ingest(other, cutting.environment), other) == expected
        return
    with FaultyProxy(server.url, choose_some(0.2)) as proxy:
        through = address.replace(server.url.partition("://")[2], proxy.url.partition("://")[2])
        answer = report_of(run_ingest(through, server.environment_through(proxy.url)), through)
    assert sum(proxy.faults.values()) > proxy.faults[""]
    assert answer == expected


def test_refused_access_is_said(server: StoreServer, local: Path, tmp_path: Path) -> None:
    """Without credentials, or with wrong ones, the error says so in one sentence, and holds no secret."""
    address = server.put_directory(local, "job")
    environment = {name: text.replace("Eby8", "AAAA") for name, text in server.environment.items()}
    if server.scheme == "gs":
        pytest.skip("the emulator asks for no credentials")
    elif server.scheme == "webhdfs":
        address = server.put_directory(local, "secret")
    elif server.scheme == "ssh":
        (tmp_path / ".ssh").mkdir()
        shutil.copy(Path(server.environment["HOME"]) / ".ssh" / "known_hosts", tmp_path / ".ssh")
        environment = {"HOME": str(tmp_path)}
    done = run_ingest(address, environment)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 2
    assert "credentials" in done.stderr
    assert "AAAA" not in done.stderr


def test_missing_settings_of_azure(local: Path) -> None:
    """Without any setting of an account, the error is one about credentials, not a bug."""
    scheme_servers.need_packages("adlfs")
    done = run_ingest("abfs://logs/job/", {})
    assert done.returncode == 2
    assert done.stderr.startswith("triage: abfs://logs/job/: the service cannot be used")


def test_an_unknown_host_key_is_refused(local: Path, tmp_path: Path) -> None:
    """A server whose key `known_hosts` does not have gets no log in."""
    with scheme_servers.ssh() as server:
        address = server.put_directory(local, "job")
        (tmp_path / ".ssh").mkdir()
        shutil.copy(Path(server.environment["HOME"]) / ".ssh" / "id_ed25519", tmp_path / ".ssh")
        done = run_ingest(address, {"HOME": str(tmp_path)})
    assert done.returncode == 2
    assert "the host key is not in ~/.ssh/known_hosts" in done.stderr


def test_the_error_of_a_data_node_is_no_content(local: Path) -> None:
    """What a data node of HDFS answers instead of a file is not read as the file."""
    with scheme_servers.hadoop() as server:
        done = run_ingest(server.put_directory(local, "broken"), {})
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["verdict"] == "inconclusive"
    assert {warning["code"] for warning in report["warnings"]} == {"unreadable"}
