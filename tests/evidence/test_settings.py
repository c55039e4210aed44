"""Environment variables and versions in dumps and in lines of logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from triage import pipeline
from triage.evidence.settings import (
    _LONGEST_MASKED,
    NCCL_HINT,
    count_start_bytes,
    may_state_settings,
    round_start_bytes,
    setting_pattern,
    settings_in_dump,
    settings_in_line,
)

DUMPS = {
    "environ": b"PATH=/usr/bin\0RANK=3\0PS1=a\nb\0",
    "pip freeze": b"numpy==1.26.4\ntorch==2.6.0+cu124\n# editable\n-e git+https://x/y@z#egg=y\nw @ file:///w-1.0.whl\n",
    "pip list": b"Package    Version\n---------- -------\nnumpy      1.26.4\ntorch      2.6.0\n",
    "nvidia-smi": b"| NVIDIA-SMI 535.104.05    Driver Version: 535.104.05    CUDA Version: 12.2 |\n|   0  NVIDIA "
    b"H200  On |\n",
    "npu-smi": b"| npu-smi 24.1.0      Version: 24.1.0 |\n+----+\n| 0     910B3         | OK |\n",
    "collect_env": b"PyTorch version: 2.6.0+cu124\nIs debug build: False\n[pip3] numpy==1.26.4\n",
}

LINES = {
    "NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0": [("NCCL_SOCKET_IFNAME", "eth0")],
    "NCCL INFO NCCL_IB_DISABLE set by environment to 1.": [("NCCL_IB_DISABLE", "1")],
    "+ export NCCL_ALGO=Ring": [("NCCL_ALGO", "Ring")],
    "export NCCL_ALGO='Ring,Tree' NCCL_DEBUG=INFO": [("NCCL_ALGO", "Ring,Tree"), ("NCCL_DEBUG", "INFO")],
    "NCCL_DEBUG=INFO": [("NCCL_DEBUG", "INFO")],
    "env: TORCH_NCCL_ASYNC_ERROR_HANDLING=1 NCCL_IB_TIMEOUT=22": [
        ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
        ("NCCL_IB_TIMEOUT", "22"),
    ],
    "+ NCCL_DEBUG=INFO torchrun train.py --x A_B=3": [("NCCL_DEBUG", "INFO")],
    "cmd = pdsh node1 export NCCL_ALGO=Tree; export NCCL_DEBUG=WARN; cd /w": [
        ("NCCL_ALGO", "Tree"),
        ("NCCL_DEBUG", "WARN"),
    ],
    "environ({'NCCL_ALGO': 'Ring', 'HOME': '/root'})": [("NCCL_ALGO", "Ring")],
    "NCCL version 2.21.5+cuda12.4": [("nccl", "2.21.5")],
    "PyTorch version: 2.6.0+cu124": [("torch", "2.6.0")],
    "torch.__version__ = 2.6.0": [("torch", "2.6.0")],
}
ADVICE = (
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "hint: try NCCL_P2P_DISABLE=1 or NCCL_IB_DISABLE=1.",
    "you can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value",
    "NCCL_DEBUG=INFO was asked for by the user",
    "loss 5.31",
)


@pytest.mark.parametrize("line", LINES)
def test_lines_that_state_settings(line: str) -> None:
    """NCCL's own lines, exports, lines of assignments and banners are read."""
    assert settings_in_line(line) == LINES[line]


@pytest.mark.parametrize("line", ADVICE)
def test_advice_states_nothing(line: str) -> None:
    """A variable that a sentence talks about is not set by it."""
    assert settings_in_line(line) == []


def test_secrets_are_left_out() -> None:
    """Names that look like secrets are dropped, other secrets are masked, and other variables are left out."""
    settings = settings_in_dump(
        b"NCCL_AUTH_TOKEN=abcdefgh12345\nHF_TOKEN=hf_abcdefghijklmnopqrstuv\nEDITOR=vi\nTORCH_HUB=https://me:passw0rd@host/x\nNCCL_ALGO=Ring\n"
    )
    assert {name: value for name, (value, _, _) in settings.items()} == {
        "TORCH_HUB": "https://[redacted url-password]@host/x",
        "NCCL_ALGO": "Ring",
    }


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("environ", {"PATH": "/usr/bin", "RANK": "3"}),
        ("pip freeze", {"numpy": "1.26.4", "torch": "2.6.0", "w": "w-1.0.whl"}),
        ("pip list", {"numpy": "1.26.4", "torch": "2.6.0"}),
        ("nvidia-smi", {"driver": "535.104.05", "device": "NVIDIA H200"}),
        ("npu-smi", {"npu-smi": "24.1.0", "device": "910B3"}),
        ("collect_env", {"torch": "2.6.0", "numpy": "1.26.4"}),
    ],
)
def test_dumps_give_names_and_values(name: str, wanted: dict[str, str]) -> None:
    """Each kind of dump gives the variables or versions in it."""
    values = {key: value for key, (value, _, _) in settings_in_dump(DUMPS[name]).items()}
    assert {key: values.get(key) for key in wanted} == wanted


def test_places_are_those_in_the_file() -> None:
    """The offset and line of a name are where its line starts."""
    data = b"PATH=/usr/bin\nRANK=3\n"
    assert settings_in_dump(data)["RANK"] == ("3", data.index(b"RANK"), 2)


@given(st.text(alphabet="NCL_A=; ,'\"export+env{}:1", max_size=400))
def test_any_line_is_survived(line: str) -> None:
    """Whatever a line holds, reading it ends soon and gives pairs of text."""
    assert all(name and isinstance(value, str) for name, value in settings_in_line(line))


SETTING = "export NCCL_ALGO=Tree\n"
STEP = "step 7 loss 0.5\n"


@given(st.integers(0, 1 << 26))
def test_at_least_what_is_read_later_is_searched(texts: int) -> None:
    """Whatever the number of texts; twice as much at most."""
    assert count_start_bytes(texts) <= round_start_bytes(texts) <= max(1, 2 * count_start_bytes(texts))


def test_one_more_text_rarely_changes_what_is_searched() -> None:
    """So a job of growing files is not read again for each new one: what is searched changes with their doubling."""
    assert len({round_start_bytes(texts) for texts in range(1, 1025)}) == 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"n1:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Tree\n", True),
        (b"step 1\nNCCL_ALGO=Tree\n", True),
        (b"torch 2.4.0\n", True),
        (b"torch is here\n", False),
        (b"", False),
    ],
)
def test_a_line_with_a_setting_is_noticed(text: bytes, expected: bool) -> None:
    """A program's own line, NCCL's and a version; words alone are none."""
    assert may_state_settings(text) is expected


PARTS = (
    *(b"NCCL_", b"NCCL", b"_P2P", b" set to ", b"torch", b" version", b"NCCL version 2", b"allow_tf32", b": ", b"v1.2"),
    *(b"=1", b" ", b"\n", b"\n\n", b"2", b"7", b"\xff", b"0x2f", b"PYTHONHASHSEED=0", NCCL_HINT),
)


@pytest.mark.parametrize("behind", [0, _LONGEST_MASKED])
@given(parts=st.lists(st.sampled_from(PARTS), max_size=8))
def test_a_start_is_noticed_whatever_is_asked_first(behind: int, parts: list[bytes]) -> None:
    """To ask the masks of lines first changes no answer; a longer start is searched at once."""
    start = b"".join(parts) + b"\n" + b"." * behind
    assert may_state_settings(start) is (NCCL_HINT in start or setting_pattern().search(start) is not None)


@pytest.mark.parametrize(("steps", "is_read"), [(2000, True), (90_000, False)])
def test_a_setting_behind_the_head_is_compared(tmp_path: Path, steps: int, is_read: bool) -> None:
    """One rank states another value far behind what the scan keeps of a file; beyond a megabyte nothing is read."""
    for rank in range(3):
        other = SETTING if rank < 2 else SETTING.replace("Tree", "Ring")
        (tmp_path / f"rank_{rank}.log").write_text(STEP * steps + other + STEP * 4000)
    deviations = pipeline.audit([str(tmp_path)]).deviations
    assert any("NCCL_ALGO" in one.names for one in deviations) is is_read
