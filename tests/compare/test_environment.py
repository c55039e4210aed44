"""The environment audit, from files to deviations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import triage
from triage import pipeline
from triage.model.environment import Audit, Deviation

PLAIN = "PATH=/usr/bin\nHOME=/root\nNCCL_DEBUG=INFO\n"


def write(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


def audit(directory: Path, files: dict[str, str]) -> Audit:
    return pipeline.audit([str(write(directory, files))])


def of(result: Audit, name: str) -> Deviation:
    (item,) = [item for item in result.deviations if name in item.names and item.rule == "env-mismatch"]
    return item


def ranks(values: dict[int, str]) -> dict[str, str]:
    return {f"env.{rank}": f"{PLAIN}RANK={rank}\nHOSTNAME=node{rank // 2}\n{text}" for rank, text in values.items()}


def test_the_odd_rank_is_named(tmp_path: Path) -> None:
    """Ranks with the rarer value of a variable are odd, with the line of the setting."""
    result = of(
        audit(
            tmp_path,
            ranks({0: "NCCL_ALGO=Ring\n", 1: "NCCL_ALGO=Ring\n", 2: "NCCL_ALGO=Tree\n", 3: "NCCL_ALGO=Ring\n"}),
        ),
        "NCCL_ALGO",
    )
    assert (result.severity, result.ranks, result.hosts) == ("error", (2,), ("node1",))
    assert result.text == "NCCL_ALGO is Ring on ranks 0-1, 3 and Tree on rank 2"
    (place,) = result.evidence
    assert (Path(place.source).name, place.line, place.text) == ("env.2", 6, "NCCL_ALGO=Tree")


def test_a_variable_set_on_some_ranks_only(tmp_path: Path) -> None:
    """A full dump without the variable shows that it is not set there."""
    result = of(
        audit(tmp_path, ranks({0: "", 1: "", 2: "TORCH_DISTRIBUTED_DEBUG=DETAIL\n"})), "TORCH_DISTRIBUTED_DEBUG"
    )
    assert result.text == "TORCH_DISTRIBUTED_DEBUG is DETAIL on rank 2 and not set on ranks 0-1"
    assert result.ranks == (2,)


def test_a_log_does_not_show_unset_variables(tmp_path: Path) -> None:
    """NCCL logs a variable only where it reads it, so a log without it is no deviation."""
    line = "node1:{0}:{0} [0] NCCL INFO {1} set by environment to {2}\n"
    result = audit(
        tmp_path,
        {
            "rank0.log": line.format(41, "NCCL_ALGO", "Ring") + "step 1\n",
            "rank1.log": line.format(42, "NCCL_PROTO", "LL") + "step 1\n",
        },
    )
    assert result.deviations == ()
    result = audit(tmp_path, {"rank1.log": line.format(42, "NCCL_ALGO", "Tree") + "step 1\n"})
    assert of(result, "NCCL_ALGO").severity == "error"


def test_settings_of_one_rank_are_not_compared(tmp_path: Path) -> None:
    """Ranks, devices and file names differ by design."""
    result = audit(
        tmp_path,
        ranks(
            {rank: f"LOCAL_RANK={rank}\nCUDA_VISIBLE_DEVICES={rank}\nNCCL_DEBUG_FILE=/l/{rank}\n" for rank in range(3)}
        ),
    )
    assert result.deviations == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "HCCL_DETERMINISTIC=true\n",
            "HCCL_DETERMINISTIC=true but LCCL_DETERMINISTIC is not set, ATB_MATMUL_SHUFFLE_K_ENABLE is not set",
        ),
        (
            "HCCL_DETERMINISTIC=true\nLCCL_DETERMINISTIC=1\nATB_MATMUL_SHUFFLE_K_ENABLE=1\n",
            "but ATB_MATMUL_SHUFFLE_K_ENABLE=1",
        ),
        ("HCCL_DETERMINISTIC=true\nLCCL_DETERMINISTIC=1\nATB_MATMUL_SHUFFLE_K_ENABLE=0\n", None),
        ("CUBLAS_WORKSPACE_CONFIG=:4096:8\n", None),
        ("NVTE_ALLOW_NONDETERMINISTIC_ALGO=0\nNCCL_ALGO=Ring\n", "but CUBLAS_WORKSPACE_CONFIG is not set"),
    ],
)
def test_incomplete_groups_of_settings(tmp_path: Path, text: str, expected: str | None) -> None:
    """A group that is partly on is reported; a complete or unused one is not."""
    result = [
        item.text
        for item in audit(tmp_path, ranks({0: text, 1: text})).deviations
        if item.rule == "determinism-incomplete"
    ]
    assert (expected in result[0]) if expected else not result


def test_a_setting_dangerous_in_one_version(tmp_path: Path) -> None:
    """NCCL 2.14.3 in one rank's log, with CUDA_LAUNCH_BLOCKING=1 in the environments."""
    files = ranks({0: "CUDA_LAUNCH_BLOCKING=1\n", 1: "CUDA_LAUNCH_BLOCKING=1\n"})
    result = audit(tmp_path, {**files, "out.log": "node0:41:41 [0] NCCL INFO NCCL version 2.14.3+cuda11.7\nstep 1\n"})
    assert [item.text for item in result.deviations if item.severity == "error"] == [
        "NCCL version 2.14.3 with CUDA_LAUNCH_BLOCKING=1 on ranks 0-1"
    ]


def test_contradicting_settings(tmp_path: Path) -> None:
    """A comparison of two variables shows both values."""
    text = "HCCL_CONNECT_TIMEOUT=7200\nHCCL_EXEC_TIMEOUT=1800\n"
    (result,) = audit(tmp_path, ranks({0: text, 1: text})).deviations
    assert (result.severity, result.text) == (
        "warning",
        "HCCL_CONNECT_TIMEOUT=7200 with HCCL_EXEC_TIMEOUT=1800 on ranks 0-1",
    )


def test_versions_of_nodes(tmp_path: Path) -> None:
    """Different versions of torch are an error; other packages are one remark."""
    others = "".join(f"pkg{n}=={{0}}.{n}\n" for n in range(12))
    result = audit(tmp_path, {f"node{n}/freeze.txt": f"torch==2.{n}.0\n" + others.format(n) for n in (5, 6)})
    assert of(result, "torch").text == "torch is 2.5.0 on node5 and 2.6.0 on node6"
    assert [len(item.names) for item in result.deviations] == [1, 12]


def test_settings_alone_are_no_failure(tmp_path: Path) -> None:
    """A healthy job with different settings is clean; after a timeout they may be the cause."""
    files = ranks({rank: f"NCCL_ALGO={'Tree' if rank == 1 else 'Ring'}\n" for rank in range(4)})
    lines = [*(f"step {step} loss 1.0" for step in range(9)), "training finished"]
    logs = {f"rank{rank}.log": "".join(f"[rank{rank}]: {line}\n" for line in lines) for rank in range(4)}
    job = write(tmp_path, {**files, **logs})
    assert triage.ingest(job).verdict == "clean"
    for rank in range(4):
        line = (
            f"[rank{rank}]:[E304 05:00:00.1 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective "
            "operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
            "ran for 600012 milliseconds before timing out.\n"
        )
        with (job / f"rank{rank}.log").open("a") as file:
            file.write(line)
    result = triage.ingest(job)
    assert result.root_cause is not None
    assert (result.root_cause.signature, result.root_cause.ranks) == ("config.env-mismatch", (1,))
    assert result.root_cause.domain == "config"


def test_the_order_of_files_does_not_matter(tmp_path: Path) -> None:
    """The same dumps under other names give the same deviations."""
    values = {0: "NCCL_ALGO=Ring\n", 1: "NCCL_ALGO=Tree\n", 2: "NCCL_ALGO=Ring\n"}
    one = audit(tmp_path / "a", ranks(values))
    two = audit(tmp_path / "b", {f"e{9 - rank}": text for rank, text in enumerate(ranks(values).values())})
    assert [(item.text, item.ranks) for item in one.deviations] == [(item.text, item.ranks) for item in two.deviations]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text and JSON agree, --fail sets the exit status, and a wrong rule is exit status 2 with its line."""
    from triage.cli import main

    job = str(write(tmp_path / "job", ranks({0: "NCCL_ALGO=Ring\n", 1: "NCCL_ALGO=Tree\x1b[31m\n"})))
    assert main(["env", job]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 deviation that may do harm, from ranks 0-1")
    assert "\x1b" not in out
    assert main(["env", job, "--format", "json", "--fail"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["deviations"][0]["domain"]) == ("triage.environment/1", "config")
    (tmp_path / "rules").write_text("agree X\nmust Y\n")
    assert main(["env", job, "--rules", str(tmp_path / "rules")]) == 2
    assert "rules:2" in capsys.readouterr().err


def test_an_unset_variable_is_located_in_its_dump(tmp_path: Path) -> None:
    """The evidence of a missing variable is the file that lacks it."""
    result = of(audit(tmp_path, ranks({0: "NCCL_ALGO=Ring\n", 1: "", 2: "NCCL_ALGO=Ring\n"})), "NCCL_ALGO")
    assert [(Path(place.source).name, place.text, place.origin.rank) for place in result.evidence] == [
        ("env.1", "NCCL_ALGO is not set", 1)
    ]


SMI = """Tue Nov 17 10:21:03 2026
| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4 |
|===============================+======================|
"""
GPU = "|   {0}  NVIDIA H100 80GB HBM3    On  | 00000000:{0}8:00.0 Off |        0 |\n"
COLLECTED = """Collecting environment information...
PyTorch version: 2.5.1
cuDNN version: Probably one of the following:
/usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0

Versions of relevant libraries:
[pip3] nvidia-nccl-cu12==2.{}.5
[conda] Could not collect
"""


def test_a_missing_gpu_is_located_by_file_name(tmp_path: Path) -> None:
    """nvidia-smi prints no host, so the file names provide it."""
    gpus = {"node0": 8, "node1": 7, "node2": 8}
    result = audit(
        tmp_path, {f"nvidia-smi.{node}.txt": SMI + "".join(map(GPU.format, range(n))) for node, n in gpus.items()}
    )
    assert of(result, "devices").text == "devices is 8 on node0, node2 and 7 on node1"


def test_collect_env_is_read_whole(tmp_path: Path) -> None:
    """Library paths between its lines do not make it a log."""
    result = audit(tmp_path, {f"gpu{n}.collect_env": COLLECTED.format(20 + n // 2) for n in range(3)})
    assert of(result, "nccl").text == "nccl is 2.20.5 on gpu0, gpu1 and 2.21.5 on gpu2"


NPU_TABLE = "+----+\n| npu-smi 24.1.0                   Version: 24.1.0     |\n+----+\n"
NPU_ROW = (
    "| {0}     910B3               | {1:<13} | 94.6    38     0 / 0 |\n"
    "| 0        | 0000:C{0}:00.0  | 0      0 / 0   3355 / 65536 |\n+===+\n"
)
QUERY = """==============NVSMI LOG==============

Timestamp                                 : Wed Mar  4 05:00:02 2026
Attached GPUs                             : 1
GPU 00000000:1B:00.0
    ECC Mode
        Pending                           : Enabled
    ECC Errors
        Volatile
            SRAM Correctable              : 7
            DRAM Uncorrectable            : {0}
    Retired Pages
        Pending Page Blacklist            : No
    Remapped Rows
        Correctable Error                 : 3
        Uncorrectable Error               : {1}
        Pending                           : {2}
        Remapping Failure Occurred        : No
"""


def ailing(result: Audit) -> list[tuple[str, str]]:
    return [(item.severity, item.text) for item in result.deviations if item.rule == "device-unhealthy"]


def test_an_unhealthy_npu_is_named_with_its_host(tmp_path: Path) -> None:
    """npu-smi's health is reported unless it is OK."""
    states = {"npu01": ("OK", "Warning"), "npu02": ("Critical", "OK"), "npu03": ("OK", "Alarm")}
    files = {
        f"npu-smi.{node}.txt": NPU_TABLE + "".join(map(NPU_ROW.format, range(2), both)) for node, both in states.items()
    }
    assert ailing(audit(tmp_path, files)) == [
        ("error", "NPU 0 (0000:C0:00.0) on npu02: health is Critical"),
        ("error", "NPU 1 (0000:C1:00.0) on npu03: health is Alarm"),
        ("warning", "NPU 1 (0000:C1:00.0) on npu01: health is Warning"),
    ]


def test_an_unhealthy_gpu_is_named_with_its_rank(tmp_path: Path) -> None:
    """nvidia-smi counts errors by PCI address, which NCCL maps to a rank; sensors without an answer count too."""
    rows = [
        GPU.format(0),
        GPU.format(1).replace("     0 |", "    12 |"),
        GPU.format(2),
        "| ERR!  ERR!  P0   71W / 700W | 2MiB / 81559MiB | 0% Default |\n",
    ]
    init = "node1:41:41 [{0}] NCCL INFO comm 0x55d rank {1} nranks 16 cudaDev {0} nvmlDev {0} busId {0}8000"
    init += " commId 0x9 - Init START\n"
    files = {
        f"nvidia-smi.{node}.txt": SMI + "".join(rows if node == "node1" else rows[:1]) for node in ("node0", "node1")
    }
    files["node1.log"] = init.format(0, 8) + init.format(1, 9)
    assert ailing(audit(tmp_path, files)) == [
        (
            "error",
            "GPU 1 (00000000:18:00.0) on node1, used by rank 9: "
            "uncorrectable ECC errors since the driver was loaded: 12",
        ),
        ("error", "GPU 2 (00000000:28:00.0) on node1: a sensor does not answer (ERR!)"),
    ]


def test_errors_in_the_long_form_of_nvidia_smi(tmp_path: Path) -> None:
    """Zero counts, corrected errors and modes are ignored; the evidence is the line."""
    result = audit(tmp_path, {"smi.txt": QUERY.format(0, 0, "No"), "smi-q.txt": QUERY.format(2, 1, "Yes")})
    assert ailing(result) == [
        ("error", "GPU 0 (00000000:1B:00.0) in smi-q.txt: rows wait for a reset to be remapped"),
        ("error", "GPU 0 (00000000:1B:00.0) in smi-q.txt: uncorrectable ECC errors since the driver was loaded: 2"),
        ("warning", "GPU 0 (00000000:1B:00.0) in smi-q.txt: rows remapped after uncorrectable errors: 1"),
    ]
    assert [item.evidence[0].line for item in result.deviations] == [17, 11, 16]


def test_unhealthy_devices_in_the_csv_of_nvidia_smi(tmp_path: Path) -> None:
    """Columns have any order and units; unsupported values are ignored; the last value of a device counts."""
    header = "pci.bus_id, index, remapped_rows.pending, power.draw [W], ecc.errors.uncorrected.volatile.total\n"
    other = "temperature.gpu, ecc.errors.uncorrected.volatile.total, pci.bus_id\n"
    rows = ["00000000:1B:00.0, 0, No, 71.20 W, 0\n", "00000000:3D:00.0, 1, Yes, 70.11 W, 2\n"]
    files = {
        "smi.node0.csv": header + rows[0] + rows[1] + rows[0] + rows[1].replace("W, 2", "W, 3"),
        "smi.node1.csv": header + rows[0].replace("No", "[N/A]").replace("W, 0", "W, [N/A]"),
        "smi.node2.csv": other + "31, 0, 00000000:1B:00.0\n[Unknown Error], [Unknown Error], 00000000:3D:00.0\n",
        "smi.node3.csv": "No devices were found\n",
        "node0.log": "node0:41:41 [1] NCCL INFO comm 0x55d rank 1 nranks 16 cudaDev 1 nvmlDev 1 busId 3d000 "
        "commId 0x9 - Init START\n",
    }
    assert sorted(ailing(audit(tmp_path, files))) == [
        (
            "error",
            "GPU 00000000:3D:00.0 on node2: a sensor does not answer: "
            "temperature.gpu, ecc.errors.uncorrected.volatile.total [Unknown Error]",
        ),
        ("error", "GPU 1 (00000000:3D:00.0) on node0, used by rank 1: rows wait for a reset to be remapped"),
        (
            "error",
            "GPU 1 (00000000:3D:00.0) on node0, used by rank 1: "
            "uncorrectable ECC errors since the driver was loaded: 3",
        ),
        ("error", "GPU on node3: no device was found"),
    ]


def test_an_unhealthy_device_in_a_clean_job(tmp_path: Path) -> None:
    """An unhealthy device is a warning in a job that is clean."""
    files = {
        f"rank{rank}.log": f"[rank{rank}] step 1 loss 2.5\n[rank{rank}] training finished after 12.0 s, 0 errors\n"
        for rank in range(3)
    }
    files["gpu.csv"] = "index, remapped_rows.failure\n0, No\n1, Yes\n"
    stated = triage.ingest(write(tmp_path, files))
    assert stated.verdict == "clean"
    assert [warning.message for warning in stated.warnings if warning.code == "device-unhealthy"] == [
        "GPU 1 in gpu.csv: a row could not be remapped"
    ]


def test_an_unhealthy_device_is_not_a_cause(tmp_path: Path) -> None:
    """`triage ingest` warns about it and does not make it the root cause."""
    stated = triage.ingest(
        write(tmp_path, {"smi-q.txt": QUERY.format(2, 0, "No"), "rank0.log": "ValueError: shard 3 is empty\n"})
    )
    assert [warning.message for warning in stated.warnings if warning.code == "device-unhealthy"] == [
        "GPU 0 (00000000:1B:00.0) in smi-q.txt: uncorrectable ECC errors since the driver was loaded: 2"
    ]
    assert not any(finding.domain == "config" for finding in stated.findings)


def test_a_whole_environment_is_read_from_a_script(tmp_path: Path) -> None:
    """`export -p > rank0.sh` is a dump; a script with a few settings is not."""
    dump = 'declare -x HOME="/root"\ndeclare -x PATH="/usr/bin"\ndeclare -x PWD="/work"\n'
    dump += 'declare -x RANK="{}"\ndeclare -x NCCL_ALGO="{}"\n'
    files = {f"rank{rank}.sh": dump.format(rank, "Tree" if rank == 2 else "Ring") for rank in range(3)}
    result = audit(
        tmp_path, {**files, "setup.sh": "export NCCL_ALGO=Ring\nexport NCCL_DEBUG=INFO\nexport NCCL_PROTO=LL\n"}
    )
    assert of(result, "NCCL_ALGO").ranks == (2,)
    assert result.writers == ("rank 0", "rank 1", "rank 2")
    assert "setup.sh" in next(warning.message for warning in result.warnings if warning.code == "no-output")
