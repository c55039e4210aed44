"""A server that speaks S3 on loopback, a bucket of its own for each test, and sessions that do not sleep."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from triage.remote import session, transfer
from triage.remote.interface import RemoteRules

# It prints its address and ends with its input.
SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://{}:{}".format(*server.get_host_and_port()), flush=True)
sys.stdin.read()
server.stop()
"""


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    """The address of moto's server, a process of its own: its threads would count as memory of other tests."""
    pytest.importorskip("moto.server")
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        yield server.stdout.readline().strip()
        server.stdin.close()


@pytest.fixture
def s3(s3_url: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Bucket]:
    """A bucket; requests without a proxy go to the server itself."""
    for name, value in (("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret-of-the-key")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_url)
    monkeypatch.setattr(transfer, "FIRST_DELAY", 0.001)
    session.set_rules(RemoteRules())
    bucket = Bucket(s3_url, f"bucket-{abs(hash(request.node.nodeid)) % 10**9}")
    yield bucket
    session.set_rules(RemoteRules())


class Bucket:
    """A bucket of the server, filled from directories."""

    def __init__(self, url: str, name: str) -> None:
        import boto3

        self.url = url
        self.name = name
        self.client: Any = boto3.client("s3", endpoint_url=url, region_name="us-east-1")
        self.client.create_bucket(Bucket=name)

    def put(self, key: str, data: bytes) -> str:
        """Store an object; return its address."""
        self.client.put_object(Bucket=self.name, Key=key, Body=data)
        return f"s3://{self.name}/{key}"

    def put_directory(self, root: Path, prefix: str) -> str:
        """Store all files below a directory; return the address of the prefix."""
        for path in sorted(root.rglob("*")):
            if path.is_file():
                self.put(f"{prefix}/{path.relative_to(root)}", path.read_bytes())
        return f"s3://{self.name}/{prefix}"
