"""A server of SFTP for tests: `ssh_server.py HOME NUMBER…` writes keys to HOME/.ssh and prints its port.

At the reads with these numbers, of all connections, it cuts the connection.
"""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from pathlib import Path

import asyncssh

READS = count(1)


class CuttingServer(asyncssh.SFTPServer):
    """Serves the files of this machine."""

    cuts: frozenset[int] = frozenset()

    def read(self, file_obj: object, offset: int, size: int) -> bytes:
        if next(READS) in self.cuts:
            self.channel.get_connection().abort()
        data: bytes = super().read(file_obj, offset, size)
        return data


async def serve(home: Path, cuts: frozenset[int]) -> None:
    """Listen until the input ends."""
    host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    directory = home / ".ssh"
    directory.mkdir(mode=0o700)
    user_key.write_private_key(directory / "id_ed25519")
    user_key.write_public_key(directory / "authorized")
    CuttingServer.cuts = cuts
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[host_key],
        authorized_client_keys=str(directory / "authorized"),
        sftp_factory=CuttingServer,
    )
    port = server.get_port()
    known = f"[127.0.0.1]:{port} {host_key.export_public_key().decode()}"
    (directory / "known_hosts").write_text(known)
    print(port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(serve(Path(sys.argv[1]), frozenset(map(int, sys.argv[2:]))))
