"""triage.sources.environment_dumps"""

from __future__ import annotations

import pytest

from triage.sources.classify import classify, needs_more

DUMPS = {
    "env": b"SHELL=/bin/bash\nPATH=/usr/bin\nEMPTY=\nNCCL_ALGO=Ring\n",
    "export -p": b'declare -x HOME="/root"\ndeclare -x PATH="/usr/bin"\ndeclare -x OLDPWD\n',
    "environ": b"PATH=/usr/bin\0RANK=3\0PS1=a\nb\0",
    "shell functions": b"PATH=/usr/bin\nHOME=/root\nBASH_FUNC_module%%=() {  eval `tool`\n echo ERROR\n}\nUSER=me\n",
    "pip freeze": b"numpy==1.26.4\ntorch==2.6.0+cu124\n# editable\n-e git+https://x/y@z#egg=y\nw @ file:///w-1.0.whl\n",
    "pip list": b"Package    Version\n---------- -------\nnumpy      1.26.4\ntorch      2.6.0\n",
    "nvidia-smi": b"Mon Mar  4 05:00:00 2026\n+----+\n| NVIDIA-SMI 535.104.05    "
    b"Driver Version: 535.104.05    CUDA Version: 12.2 |\n|----|\n|   0  NVIDIA H200  On |\n+----+\n",
    "npu-smi": b"+----+\n| npu-smi 24.1.0      Version: 24.1.0 |\n+----+\n| 0     910B3         | OK |\n",
    "nvidia-smi as CSV": b"index, pci.bus_id, memory.used [MiB], "
    b"ecc.errors.uncorrected.volatile.total\n0, 00000000:1B:00.0, 71234 MiB, 0\n",
    "nvidia-smi as CSV, no GPU": b"No devices were found\n",
    "collect_env": b"Collecting environment information...\nPyTorch version: 2.6.0+cu124\nIs debug build: False\n\n"
    b"OS: Ubuntu\n\nVersions of relevant libraries:\n[pip3] numpy==1.26.4\n[conda] Could not collect\n",
}
LOGS = {
    "settings, then a log": DUMPS["env"] + b"step 1 loss 5.3\n",
    "settings, then a traceback": DUMPS["env"] * 50 + b"Traceback (most recent call last):\n",
    "a banner in a log": DUMPS["nvidia-smi"] + b"[rank0]: step 1\n",
    "a padded label before all lines": b" 0: [rank0]: npu-smi is not there\n 0: [rank0]: step 1\n 0: [rank0]: step 2\n",
    "metrics as CSV": b"step, loss, lr\n1, 5.3, 0.1\n2, 5.2, 0.1\n",
    "CSV of nvidia-smi, then a log": DUMPS["nvidia-smi as CSV"] + b"[rank0]: step 1\n",
    "a GPU that is lost, then CSV": b"Unable to determine the device handle for GPU0: 0000:1B:00.0: GPU is lost.\n"
    + DUMPS["nvidia-smi as CSV"],
    "collect_env in a log": DUMPS["collect_env"] + b"RuntimeError: no device\n",
    "hyperparameters": b"lr=0.1\nbatch=8\nepochs=3\n",
    "metrics": b"loss  5.3\nloss  5.2\nloss  5.1\n",
    "environ with more behind": DUMPS["environ"] + b"log line\n\0",
    "two lines": b"PATH=/bin\nHOME=/\n",
}


@pytest.mark.parametrize("name", DUMPS)
def test_dumps_are_recognized_by_their_content(name: str) -> None:
    """Every known kind of dump is recognized, whatever its name."""
    assert classify(DUMPS[name])[0] == "environment"


@pytest.mark.parametrize("name", LOGS)
def test_a_log_is_never_taken_for_a_dump(name: str) -> None:
    """A file with one line that does not fit is a log, so that no failure in it is lost."""
    assert classify(LOGS[name])[0] in ("text", "binary")


def test_a_long_dump_is_checked_to_its_end() -> None:
    """The first 4 KiB do not decide; more than 64 KiB is not a dump."""
    dump = DUMPS["env"] * 200
    assert needs_more(dump[:4096])
    assert classify(dump)[0] == "environment"
    assert classify((dump * 20)[:65536])[0] == "text"
