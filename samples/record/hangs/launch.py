"""Start the ranks of a job by fork from one process that has imported torch: an import per rank takes too long.

Reads one JSON object a line from standard input, {"script", "log", "directory", "environments"}, and prints the pids.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys


def start(job: dict, environment: dict[str, str]) -> int:
    """Fork one rank; the child returns 0 and goes on with its script, the parent gets the pid."""
    pid = os.fork()
    if pid:
        return pid
    os.environ.update(environment)
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(job["directory"])
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)
    reader, writer = os.pipe()  # standard input that stays open and empty
    os.dup2(reader, 0)
    os.set_inheritable(writer, True)
    sys.argv = [job["script"]]
    sys.path[0] = job["directory"]
    return 0


def main() -> None:
    """Serve jobs until standard input ends; in a rank, run the script."""
    import torch
    import torch._inductor  # writing a dump imports it, in the thread that writes
    import torch.distributed
    import torch.utils.data

    torch.set_num_threads(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    requests = open(0, encoding="utf8", closefd=False)  # noqa: SIM115 - lives as long as the process
    for line in iter(requests.readline, ""):
        job = json.loads(line)
        pids = []
        for environment in job["environments"]:
            pid = start(job, environment)
            if not pid:
                torch.distributed.set_debug_level_from_env()  # import torch did, with the environment of this process
                runpy.run_path(job["script"], run_name="__main__")
                return
            pids.append(pid)
        print(json.dumps(pids), flush=True)


if __name__ == "__main__":
    main()
