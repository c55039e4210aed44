"""Servers on loopback for addresses of other stores than S3; each is a process of its own that ends with its input."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

ACCOUNT, ACCOUNT_KEY = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
)
"""Azurite's account, which its documents publish."""
BUCKET = "logs"
GOOGLE = """
import sys
from gcp_storage_emulator.server import create_server
server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="logs")
server.start()
print(server._api._httpd.server_address[1], flush=True)
sys.stdin.read()
server.stop()
"""


@dataclass(frozen=True)
class StoreServer:
    """A running server: the address of what `put_directory` stored, and the variables for a client."""

    scheme: str
    url: str
    environment: dict[str, str] = field(default_factory=dict)
    root: Path | None = None  # a server of files serves this directory

    def put_directory(self, local: Path, name: str) -> str:
        """Store the files below a directory; return their address."""
        files = {f"{name}/{path.relative_to(local)}": path for path in sorted(local.rglob("*")) if path.is_file()}
        for key, path in files.items():
            self._put(key, path)
        host = self.url.partition("://")[2]
        return (
            f"{self.scheme}://{BUCKET}/{name}/" if self.root is None else f"{self.scheme}://{host}{self.root}/{name}/"
        )

    def _put(self, key: str, path: Path) -> None:
        if self.root is not None:
            (self.root / key).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, self.root / key)
        elif self.scheme == "gs":
            address = f"{self.url}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={quote(key, safe='')}"
            urllib.request.urlopen(urllib.request.Request(address, path.read_bytes(), method="POST")).close()
        else:
            from azure.storage.blob import BlobClient

            with BlobClient(f"{self.url}/{ACCOUNT}", BUCKET, key, credential=ACCOUNT_KEY) as blob:
                blob.upload_blob(path.read_bytes(), overwrite=True)

    def environment_through(self, url: str) -> dict[str, str]:
        """Return the variables for a client that goes through a proxy."""
        return {name: text.replace(self.url, url) for name, text in self.environment.items()}


@contextmanager
def _running(command: list[str], ready: str = "") -> Iterator[str]:
    """Start a server; yield the first line that it prints with the text `ready`."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield next(line.strip() for line in server.stdout if ready in line)
        finally:
            server.stdin.close()
            server.terminate()


def need_packages(*modules: str) -> None:
    """Skip the test where one of these is not installed."""
    for name in modules:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs the package {name}")


@contextmanager
def google() -> Iterator[StoreServer]:
    """The emulator of Google's storage."""
    need_packages("gcsfs", "gcp_storage_emulator")
    with _running([sys.executable, "-c", GOOGLE]) as port:
        url = f"http://127.0.0.1:{port}"
        yield StoreServer("gs", url, {"STORAGE_EMULATOR_HOST": url})


@contextmanager
def azure() -> Iterator[StoreServer]:
    """Azurite, Microsoft's emulator (`npm install azurite`), named by AZURITE_BLOB or in PATH."""
    need_packages("adlfs")
    program = os.environ.get("AZURITE_BLOB") or shutil.which("azurite-blob")
    if program is None:
        pytest.skip("needs azurite-blob")
    command = [program, "--inMemoryPersistence", "--skipApiVersionCheck", "--blobPort", "0"]
    with _running(command, "successfully") as line:
        url = "http://" + line.rpartition("http://")[2]
        settings = {"AccountName": ACCOUNT, "AccountKey": ACCOUNT_KEY, "BlobEndpoint": f"{url}/{ACCOUNT}"}
        text = "DefaultEndpointsProtocol=http;" + "".join(f"{name}={value};" for name, value in settings.items())
        from azure.storage.blob import ContainerClient

        with ContainerClient(f"{url}/{ACCOUNT}", BUCKET, credential=ACCOUNT_KEY) as container:
            container.create_container()
        yield StoreServer("abfs", url, {"AZURE_STORAGE_CONNECTION_STRING": text})


@contextmanager
def ssh(*cuts: int) -> Iterator[StoreServer]:
    """A server of SFTP that knows one key; it cuts the connection at the reads with these numbers."""
    need_packages("paramiko", "asyncssh")
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, str(Path(__file__).with_name("ssh_server.py")), name, *map(str, cuts)]
        with _running(command) as port:
            yield StoreServer("ssh", f"ssh://user@127.0.0.1:{port}", {"HOME": name}, Path(name) / "files")


@contextmanager
def hadoop() -> Iterator[StoreServer]:
    """A server that speaks the documented REST of WebHDFS; it is not Hadoop."""
    need_packages("requests")
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, str(Path(__file__).with_name("webhdfs_server.py")), name]
        with _running(command) as port:
            yield StoreServer("webhdfs", f"http://127.0.0.1:{port}", {}, Path(name))
