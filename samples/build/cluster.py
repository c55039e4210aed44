"""Healthy jobs by what runs below the program: NCCL, HCCL, Ray, Kubernetes, the kernel, and checks before a job."""

from __future__ import annotations

from job import DECOYS, Job

NCCL_VERSIONS = ("2.18.5+cuda12.2", "2.21.5+cuda12.4", "2.27.3+cuda12.9")


def nccl_info(job: Job) -> None:
    """NCCL_DEBUG=INFO of three versions, with channels, tuner and plugin remarks, and the teardown."""
    version, world = NCCL_VERSIONS[job.variant % 3], 8

    def write_line(rank: int, text: str) -> None:
        job.add_lines(f"node1:{4100 + rank}:{4200 + rank} [{rank}] NCCL {text}")

    for rank in range(world):
        write_line(rank, "INFO Bootstrap : Using eth0:10.0.0.1<0>")
        write_line(rank, f"INFO NCCL version {version}" if rank == 0 else "INFO cudaDriverVersion 12040")
        write_line(
            rank,
            "INFO NET/Plugin: No plugin found (libnccl-net.so)"
            if job.variant
            else "INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared "
            "object file: No such file or directory",
        )
        write_line(rank, "INFO NET/Plugin : No plugin found, using internal implementation")
        write_line(rank, "INFO TUNER/Plugin: Could not find: libnccl-tuner.so. Using internal tuner plugin.")
        write_line(rank, "INFO NCCL_IB_TIMEOUT set by environment to 22.")
        write_line(rank, "INFO NCCL_IB_RETRY_CNT set by environment to 7.")
        write_line(
            rank,
            "INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB [RO]; OOB "
            "eth0:10.0.0.1<0>",
        )
        write_line(rank, "INFO Using network IB")
        write_line(rank, "INFO DMA-BUF is available on GPU device " + str(rank))
        write_line(
            rank,
            f"INFO ncclCommInitRankConfig comm 0x55d{rank:x}0 rank {rank} nranks {world} cudaDev {rank} nvmlDev {rank} "
            f"busId {0x1B + rank:x}000 commId 0x9c1 - Init START",
        )
        write_line(
            rank, f"INFO NVLS multicast support is {'available' if job.variant else 'not available'} on dev {rank}"
        )
        write_line(rank, "INFO MNNVL busId 0x1b000 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0")
        write_line(
            rank,
            f"INFO comm 0x55d{rank:x}0 rank {rank} nRanks {world} nNodes 1 localRanks {world} localRank {rank} MNNVL 0",
        )
        for channel in range(4):
            write_line(
                rank,
                f"INFO Channel {channel:02d}/0 : {rank}[{rank}] -> {(rank + 1) % world}[{(rank + 1) % world}] via "
                "P2P/CUMEM/read",
            )
        write_line(rank, "INFO Connected all rings")
        write_line(rank, "INFO threadThresholds 8/8/64 | 64/8/64 | 512 | 512")
        write_line(
            rank,
            "INFO 16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, 16 p2p channels per peer",
        )
        write_line(
            rank,
            f"INFO ncclCommInitRankConfig comm 0x55d{rank:x}0 rank {rank} nranks {world} cudaDev {rank} nvmlDev {rank} "
            f"busId {0x1B + rank:x}000 commId 0x9c1 - Init COMPLETE",
        )
    job.add_training(
        lambda rank, text: job.add_lines(
            text[1:] if text[0] == "\0" else f"{job.timestamp('%Y-%m-%d %H:%M:%S,%L')} [rank{rank}] INFO {text}"
        ),
        world,
        12,
        exceptions=1,
    )
    for rank in range(2):
        write_line(rank, "WARN NET/OFI Only EFA provider is supported")
        write_line(
            rank, 'WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!'
        )
        write_line(rank, "INFO Call to connect returned Connection refused, retrying")
        write_line(rank, "INFO Call to connect to 10.0.0.2<40112> returned No route to host, retrying")
    for rank in range(world):
        write_line(rank, f"INFO [Service thread] Connection closed by localRank {(rank + 1) % world}")
        write_line(
            rank,
            f"INFO comm 0x55d{rank:x}0 rank {rank} nranks {world} cudaDev {rank} busId {0x1B + rank:x}000 - "
            f"{'Destroy COMPLETE' if rank % 2 else 'Abort COMPLETE'}",
        )
        if job.variant == 0:
            write_line(rank, "WARN [Service thread] Accept failed Resource temporarily unavailable")


def hccl_plog(job: Job) -> None:
    """A directory of plog files and the console of torch_npu."""
    for rank in range(2):
        pid = 5100 + rank
        to = f"ascend/log/run/plog/plog-{pid}_20260304050001118.log"

        def write_line(module: str, where: str, text: str, level: str = "INFO", pid: int = pid, to: str = to) -> None:
            job.add_lines(
                f"[{level}] {module}({pid},python3):{job.timestamp('%Y-%m-%d-%H:%M:%S.%L', forward=0.01)}.118 "
                f"[{where}][{pid + 7}] {text}",
                to=to,
            )

        write_line("RUNTIME", "runtime.cc:1811", f"{pid} GetAicoreNumByLevel: workingDev_=0, timeout=0")
        write_line(
            "HCCL", "param_check.cc:412", "HCCL_CONNECT_TIMEOUT is set to [120]s, HCCL_EXEC_TIMEOUT is set to [1836]s"
        )
        write_line("HCCL", "externalinput.cc:301", "[HCCL_ENV] HCCL_OP_RETRY_ENABLE is not set, default value is [0]")
        write_line(
            "HCCL",
            "topoinfo_exchange_agent.cc:88",
            f"[TopoDetect] agent connected to server 10.0.0.1:60000, rank {rank}, rankSize 2, errorCount 0",
        )
        write_line(
            "HCCL",
            "hccl_communicator.cc:1191",
            f"Init success, identifier[hccl_world_group] rank[{rank}] rankSize[2], take time [412883]us",
        )
        write_line("HCCP", "ra_host.c:501", f"tls switch is (0), phyId({rank}), ret(0)")
        write_line("HCCL", "heartbeat.cc:712", "heartbeat thread started, no lost, no stuck, no cqe error")
        write_line("GE", "error_manager.cc:99", "ErrorManager init success, error code file loaded, 214 codes", "EVENT")
        write_line("ASCENDCL", "acl.cpp:311", "aclInit start, result = 0, no error")
        write_line("RUNTIME", "api_c.cc:610", "rtSetDevice(0) ret=0x0, device status OK, ecc error count=0")
        if job.variant:
            write_line("DRV", "devdrv_common.c:401", "device 1 heartbeat normal, lost count 0", "WARNING")
            write_line("RUNTIME", "model.cc:77", "ModelDestroy, task timeout=0, failed task count=0", "EVENT")
        write_line("HCCL", "op_base.cc:2101", f"HcclCommDestroy success, rank[{rank}], op count 4096, fail count 0")
    job.add_lines(
        "/opt/venv/lib/python3.11/site-packages/torch_npu/contrib/transfer_to_npu.py:292: ImportWarning: ",
        "    "
        "*************************************************************************************************************",
        "    The torch.Tensor.cuda and torch.nn.Module.cuda are replaced with torch.Tensor.npu and torch.nn.Module.npu "
        "now..",
        "    The backend in torch.distributed.init_process_group set to hccl now..",
        "    "
        "*************************************************************************************************************",
        "[W304 05:00:09.118822713 compiler_depend.ts:190] Warning: Device do not support double dtype now, dtype cast "
        "replace with float. (function operator())",
        to="console.log",
    )
    job.add_training(
        lambda rank, text: job.add_lines(
            text[1:] if text[0] == "\0" else f"{job.timestamp('%Y-%m-%d %H:%M:%S,%L')} [rank{rank}] INFO {text}",
            to="console.log",
        ),
        2,
        30,
        exceptions=2,
    )
    if job.variant:
        job.add_lines("training finished, HCCL errors: 0", to="console.log")


def npu_console(job: Job) -> None:
    """torch_npu with npu-smi before and MindSpeed-like steps."""
    job.add_lines(
        "+------------------------------------------------------------------------------------------------+",
        "| npu-smi 24.1.0                   Version: 24.1.0                                               |",
        "+---------------------------+---------------+----------------------------------------------------+",
        "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|",
        "+===========================+===============+====================================================+",
        *(f"| {chip}     910B2               | OK            | 93.1        48                0    / 0             "
            "|" for chip in range(8)),
        "| No running processes found in NPU 0                                                            |",
        "+===========================+===============+====================================================+",
        "hccn_tool -i 0 -link -g: link status: UP",
        "hccn_tool -i 0 -net_health -g: net health status: Success",
        "hccn_tool -i 0 -stat -g: roce_rx_err_pkt_num:0 roce_tx_err_pkt_num:0 mac_rx_bad_pkt_num:0 "
        "roce_out_of_order_num:0 roce_new_pkt_rty_num:0",
        "ASCEND_LAUNCH_BLOCKING=0 HCCL_CONNECT_TIMEOUT=7200 HCCL_EXEC_TIMEOUT=5400 TASK_QUEUE_ENABLE=2 "
        "ASCEND_GLOBAL_LOG_LEVEL=3",
        "[W compiler_depend.ts:487] Warning: ASCEND_RT_VISIBLE_DEVICES is set, device ids are remapped (function "
        "operator())",
        "[WARNING] 2026-03-04-05:00:31 (PID:5100, Device:0, RankID:0) watchdog started, timeout 1836 s, no error so "
        "far",
        "/opt/venv/lib/python3.11/site-packages/torch_npu/utils/storage.py:38: UserWarning: TypedStorage is "
        "deprecated.",
    )  # fmt: skip
    for step in job.iterate_steps(50):
        job.add_lines(
            f" iteration {step:8d}/    2000 | consumed samples: {step * 64:12d} | elapsed time per iteration (ms): "
            f"901.2 | lm loss: {job.falling_loss(step)}E+00 | loss scale: 65536.0 | grad norm: 0.912 | number of "
            "skipped iterations:   0 | number of nan iterations:   0 |"
        )
        if step % 6 == 0:
            job.add_lines(job.next_decoy())
    job.add_lines(
        "[W compiler_depend.ts:106] ProcessGroupHCCL destructor entered.",
        "[rank0] HCCL communicators destroyed, 0 errors",
    )


def vllm_ray(job: Job) -> None:
    """vLLM on Ray: it starts, serves and stops on request."""
    job.add_lines(
        "INFO 03-04 05:00:11 [__init__.py:244] Automatically detected platform cuda.",
        "WARNING 03-04 05:00:14 [config.py:3011] Casting torch.bfloat16 to torch.float16.",
        f"{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}\tINFO worker.py:1879 -- Started a local Ray instance. View the "
        "dashboard at 127.0.0.1:8265",
        "(raylet) [2026-03-04 05:00:19,118 W 4100 4130] (raylet) local_object_manager.cc:101: object store is 2 % "
        "full, 0 objects lost, 0 worker failures",
        "\x1b[36m(RayWorkerWrapper pid=4471)\x1b[0m INFO 03-04 05:00:22 [cuda_communicator.py:58] custom all-reduce "
        "disabled: no P2P; error handling off",
        "\x1b[36m(RayWorkerWrapper pid=4472, ip=10.0.0.2)\x1b[0m WARNING 03-04 05:00:22 [custom_all_reduce.py:137] "
        "Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs. \x1b[32m [repeated "
        "3x across cluster]\x1b[0m",
        "Loading safetensors checkpoint shards: 100% Completed | 4/4 [00:06<00:00,  1.58s/it]",
        "INFO 03-04 05:00:41 [worker.py:294] Memory profiling takes 4.11 seconds; the current vLLM instance can use "
        "total_gpu_memory (79.10GiB) x gpu_memory_utilization (0.90) = 71.19GiB",
        "INFO 03-04 05:00:58 [model_runner.py:1518] Graph capturing finished in 17 secs, took 0.31 GiB. If "
        "out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization` or "
        "switching to eager mode.",
        "INFO:     Started server process [4100]\nINFO:     Waiting for application startup.\nINFO:     Application "
        "startup complete.",
    )
    for number in job.iterate_steps(60):
        status = job.rng.choice(("200 OK", "200 OK", "200 OK", "400 Bad Request", "429 Too Many Requests"))
        job.add_lines(f'INFO:     10.0.0.9:{40000 + number} - "POST /v1/completions HTTP/1.1" {status}')
        if number % 5 == 0:
            job.add_lines(
                f"INFO {job.timestamp('%m-%d %H:%M:%S')} [metrics.py:486] Avg prompt throughput: 811.2 tokens/s, "
                "Running: 4 reqs, Swapped: 0 reqs, Pending: 0 reqs, Preempted: 0, Aborted: 0, GPU KV cache usage: "
                "12.1%."
            )
            job.add_lines(f"INFO {job.timestamp('%m-%d %H:%M:%S')} [engine.py:310] {job.next_decoy()}")
        if number in (20, 33):
            job.add_lines(
                f"INFO {job.timestamp('%m-%d %H:%M:%S')} [async_llm_engine.py:223] Aborted request cmpl-{number} "
                "(client disconnected)."
            )
    job.add_lines(
        "INFO:     Shutting down\nINFO:     Waiting for application shutdown.\nINFO:     Application shutdown "
        "complete.\nINFO:     Finished server process [4100]",
        "(raylet) node manager: all workers idle, shutting down gracefully, exit code 0",
    )


def kubernetes(job: Job) -> None:
    """CRI lines of a pod and the events around it."""

    def write_line(stream: str, text: str) -> None:
        job.add_lines(f"{job.timestamp('%Y-%m-%dT%H:%M:%S.%f')}118Z {stream} F {text}")

    write_line(
        "stdout",
        "PyTorchJob mnist-ddp: Master 1/1 Running, Worker 3/3 Running, restartCount 0, exitCode 0, reason Completed: "
        "0, OOM events: 0",
    )
    write_line(
        "stderr", "init container wait-for-master: nslookup: can't resolve 'mnist-ddp-master-0' yet, retry 1/100"
    )
    write_line("stderr", "init container wait-for-master: resolved 10.244.1.18 after 3 retries")
    write_line("stdout", "WORLD_SIZE=4 RANK=0 LOCAL_RANK=0 backend=nccl timeout=1800")

    def rank_line(rank: int, text: str) -> None:
        write_line(
            "stderr" if text[0] == "\0" else "stdout",
            text.removeprefix("\0") if text[0] == "\0" else f"[rank{rank}] {text}",
        )

    job.add_training(rank_line, 1, 50)
    write_line("stdout", "liveness probe failed 0 times, readiness probe failed 0 times, memory.failcnt 0")
    write_line("stdout", "Job completed 4/4 pods Succeeded" if job.variant else "pod phase: Succeeded")


def dmesg(job: Job) -> None:
    """The kernel log of a healthy node and its training log."""
    clock = 12.0
    lines = (
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024",
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 235",
        "nvidia-nvswitch0: open (major=511)",
        "nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  550.90.07",
        "mlx5_core 0000:18:00.0: firmware version: 28.39.1002",
        "mlx5_core 0000:18:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
        "mlx5_core 0000:18:00.0: Port module event: module 0, Cable plugged",
        "mlx5_core 0000:18:00.0 mlx5_0: Port: 1 Link ACTIVE",
        "pcieport 0000:15:01.0: AER: Corrected error message received from 0000:18:00.0",
        "mlx5_core 0000:18:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)",
        "mlx5_core 0000:18:00.0:   device [15b3:1021] error status/mask=00001000/00002000",
        "mlx5_core 0000:18:00.0:    [12] Timeout               ",
        "pcieport 0000:15:01.0: AER: Multiple Corrected error message received from 0000:18:00.0",
        "bnxt_en 0000:04:00.1 eth3: NIC Link is Down",
        "bnxt_en 0000:04:00.1 eth3: NIC Link is Up, 25000 Mbps full duplex, Flow control: none",
        "igb 0000:02:00.0 eno1: igb: eno1 NIC Link is Down",
        "igb 0000:02:00.0 eno1: igb: eno1 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX",
        "mce: CPU7: Core temperature above threshold, cpu clock throttled (total events = 1)",
        "mce: CPU7: Core temperature/speed normal",
        "mce: [Hardware Error]: Machine check events logged",
        "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x0 offset:0x0 "
        "grain:32 syndrome:0x0)",
        "perf: interrupt took too long (2511 > 2500), lowering kernel.perf_event_max_sample_rate to 79500",
        "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Opts: errors=remount-ro. Quota mode: none.",
        "XFS (nvme1n1): Ending clean mount",
        "nfs: server storage1 OK",
        "NFS: state manager: no errors",
        "systemd[1]: nvidia-persistenced.service: Succeeded.",
        "nvidia 0000:1b:00.0: enabling device (0140 -> 0142)",
        "oom_reaper: enabled",
        "watchdog: Delayed init of the hard lockup detector, will be enabled when the PMU is ready",
        "rcu: Hierarchical SRCU implementation, no stalls so far",
        "TCP: request_sock_TCP: Possible SYN flooding on port 29500. Sending cookies.  Check SNMP counters.",
        "audit: type=1400 audit(1772600400.118:71): apparmor=\"STATUS\" operation=\"profile_load\" "
        "name=\"/usr/bin/man\"",
        "python3[4471]: memfd_create() called without MFD_EXEC or MFD_NOEXEC_SEAL set",
        "Lustre: scratch-OST0011-osc: Connection restored to 10.0.9.11@o2ib (at 10.0.9.11@o2ib)",
        "docker0: port 1(veth11) entered disabled state",
    )  # fmt: skip
    for _ in range(2):
        for line in lines:
            clock += job.rng.uniform(0.1, 90)
            head = (
                f"[{clock:12.6f}] "
                if job.variant % 2 == 0
                else f"[{job.timestamp('%a %b %e %H:%M:%S %Y', forward=3)}] "
            )
            job.add_lines(head + line, to="dmesg.txt")
    job.add_training(
        lambda rank, text: job.add_lines(text[1:] if text[0] == "\0" else f"[rank{rank}] {text}", to="train.log"),
        2,
        25,
        exceptions=1,
    )
    job.add_lines("[rank0] training finished", "[rank1] training finished", to="train.log")


def node_hiccup(job: Job) -> None:
    """An unused port flaps, or the file server is slow for a moment; the job finishes."""
    flap = ("mlx5_core 0000:5e:00.1 ens2f1np1: Link down", "mlx5_core 0000:5e:00.1 ens2f1np1: Link up")
    slow = ("nfs: server storage1 not responding, still trying", "nfs: server storage1 OK")
    job.add_training(
        lambda rank, text: job.add_lines(
            text[1:] if text[0] == "\0" else f"{job.timestamp()} [rank{rank}] {text}", to="train.log"
        ),
        2,
        25,
        exceptions=1,
    )
    for number, line in enumerate(slow if job.variant else flap):
        job.add_lines(f"Mar  4 05:00:{10 + number} node1 kernel: [ {911 + number}.000002] {line}", to="messages")
    job.add_lines(
        f"{job.timestamp()} [rank0] training finished", f"{job.timestamp()} [rank1] training finished", to="train.log"
    )


def syslog(job: Job) -> None:
    """/var/log/messages while a job runs."""
    entries = (
        ("kernel", "[  912.118411] NVRM: GPU 0000:1b:00.0: RmInitAdapter succeeded"),
        ("xid-watch[912]", "no XID errors found on 8 GPUs"),
        ("smartd[811]", "Device: /dev/nvme0, SMART/Health Information: no errors, Critical Warning: 0x00"),
        ("slurmd[1200]", "launch task StepId=4711.0 request from UID:1001 GID:1001 HOST:10.0.0.1 PORT:40112"),
        ("slurmd[1200]", "task/affinity: task_p_slurmd_batch_request: task_p_slurmd_batch_request: 4711"),
        ("systemd[1]", "session-11.scope: Deactivated successfully."),
        ("systemd-oomd[700]", "memory pressure 0.00 below limit, nothing killed"),
        ("sshd[8811]", "error: kex_exchange_identification: Connection closed by remote host"),
        ("sshd[8812]", "Failed password for invalid user admin from 10.0.7.7 port 40112 ssh2"),
        (
            "nvidia-fabricmanager[1400]",
            "Successfully configured all the available NVSwitches, 0 fatal errors, 0 non-fatal errors",
        ),
        ("chronyd[702]", "Can't synchronise: no majority; Selected source 10.0.0.250 after 1 retry"),
        ("kernel", "[ 1911.000002] usb 1-1: reset high-speed USB device number 2 using xhci_hcd"),
        ("kernel", "[ 1933.200002] ixgbe 0000:04:00.0 eth7: NIC Link is Down"),
        ("kernel", "[ 1937.200002] ixgbe 0000:04:00.0 eth7: NIC Link is Up 10 Gbps, Flow Control: None"),
        (
            "dcgm-exporter[2200]",
            "DCGM_FI_DEV_XID_ERRORS 0 DCGM_FI_DEV_ECC_DBE_VOL_TOTAL 0 DCGM_FI_DEV_ROW_REMAP_FAILURE 0",
        ),
        ("containerd[1311]", 'time="2026-03-04T05:00:00Z" level=info msg="shim disconnected" id=11 error="<nil>"'),
        ("slurmd[1200]", "Could not find hostname gpu-spare in the topology, ignoring"),
    )
    for _ in range(6):
        for program, text in entries:
            job.add_lines(f"{job.timestamp('%b %e %H:%M:%S', forward=11)} node1 {program}: {text}")
        job.add_lines(f"{job.timestamp('%b %e %H:%M:%S', forward=11)} node1 train[4471]: {job.next_decoy()}")


def ci_pytest(job: Job) -> None:
    """A CI log: expected failures, and tests whose names contain words of failures."""
    names = (
        "test_nccl_timeout_is_reported",
        "test_raises_on_nan_loss",
        "test_oom_handler_halves_batch",
        "test_sigkill_of_worker_restarts",
        "test_checkpoint_corrupt_is_skipped",
    )
    job.add_lines(
        "============================= test session starts ==============================",
        "platform linux -- Python 3.11.9, pytest-8.3.2, pluggy-1.5.0\nplugins: timeout-2.3.1, xdist-3.6.1\ntimeout: "
        "1800.0s\ncollected 240 items",
    )
    for number in range(48):
        outcome = (
            "PASSED",
            "PASSED",
            "XFAIL (expected failure: needs 2 GPUs)",
            "SKIPPED (CUDA not available)",
            "PASSED",
        )[number % 5]
        job.add_lines(f"tests/test_errors.py::{names[number % 5]}[{number}] {outcome}  [{2 * number + 2:3d}%]")
    job.add_lines(
        "=================================== XFAILURES ==================================",
        "____________________________ test_all_reduce_two_gpus __________________________",
        "    def test_all_reduce_two_gpus():\n>       run_two_gpus()\nE       RuntimeError: needs two GPUs\n\n"
        "tests/test_gpu.py:31: RuntimeError",
        "=============================== warnings summary ===============================",
        "tests/test_errors.py:12: DeprecationWarning: torch.distributed.reduce_op is deprecated, please use "
        "torch.distributed.ReduceOp instead",
        job.next_decoy(),
        "=========== 192 passed, 24 skipped, 24 xfailed, 3 warnings in 81.20s ===========",
        "##[debug]Finishing: Run tests\nCleaning up orphan processes\nTerminate orphan process: pid (4471) (python3)\n"
        "exit code: 0",
    )


def preflight(job: Job) -> None:
    """The health checks before a job: every table says zero errors."""
    job.add_lines(
        "== dcgmi diag -r 3",
        "Successfully ran diagnostic for group.\n"
        "+---------------------------+------------------------------------------------+\n| Diagnostic                | "
        "Result                                         |",
        *(f"| {name:<25} | Pass - All                                     "
            "|" for name in ("Denylist", "NVML Library", "CUDA Main Library", "Permissions and OS "
                "Blocks", "Page Retirement/Row Remap", "Graphics Processes", "PCIe", "GPU Memory", "Targeted Stress")),
        "== nvidia-smi -q -d ECC,PAGE_RETIREMENT",
        *(f"GPU 00000000:{0x1b + gpu:02X}:00.0\n    ECC Errors\n        Volatile\n            SRAM Correctable         "
            "             : 0\n            SRAM Uncorrectable Parity             : 0\n            DRAM Uncorrectable  "
            "                  : 0\n        Aggregate\n            DRAM Correctable                      : 3\n        "
            "    DRAM Uncorrectable                    : 0\n    Remapped Rows\n        Correctable Error              "
            "           : 1\n        Uncorrectable Error                       : 0\n        Pending                   "
            "                : No\n        Remapping Failure Occurred                : No" for gpu in range(8)),
        "gpu-check: 8 GPUs, 0 uncorrectable errors, 0 pending retirements, no XID errors found, none has fallen off "
        "the bus: ok",
        "== nvidia-smi nvlink -e",
        *(f"GPU {gpu}: NVIDIA H100 80GB HBM3\n\t Link 0: Replay Errors: 0\n\t Link 0: Recovery Errors: 0\n\t Link 0: "
            "CRC Errors: 0" for gpu in range(8)),
        "== ibstat",
        *(f"CA 'mlx5_{port}'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: "
            "400\n\t\tLink layer: InfiniBand" for port in range(8)),
        "== perfquery: SymbolErrorCounter:0 LinkErrorRecoveryCounter:0 LinkDownedCounter:0 PortRcvErrors:0 "
        "PortXmitDiscards:0 LocalLinkIntegrityErrors:0",
        "== npu-smi info: NPU 0-7 Health OK, hccn_tool link UP, roce errors "
        "0" if job.variant else "== rocm-smi: not installed, skipped",
        "== df: /dev/shm 504G 0 % used; /tmp 3 % used; inodes 1 % used (no space problems)",
        "== ulimit: open files 1048576 (too many open files: impossible), memlock unlimited, max user processes "
        "unlimited",
        "== clock offset to node1 0.0003 s; firewall: port 29500 open; DNS: node1..node8 resolved, 0 failures",
        "== dmesg -T | grep -iE 'xid|sxid|oom-killer|segfault|AER: Uncorrect|fallen off the bus': 0 lines",
        "== allreduce 8 GPUs 1 GiB: 188 GB/s >= 180 GB/s PASS, wrong results 0, timeouts 0",
        *(job.next_decoy() for _ in range(5)),
        "preflight result: PASS (0 failed, 0 errors, 2 warnings)",
    )  # fmt: skip


def decoy_parade(job: Job) -> None:
    """Every decoy in one log, with several prefixes, without a line that reports success."""
    heads = ("", "[rank0]: ", "[default1]:", "2026-03-04 05:00:00,118 [rank1] WARNING app: ", "1: ", "[1,0]<stderr>:")
    head = heads[job.variant % len(heads)]
    for number, line in enumerate(DECOYS):
        job.add_lines(head + line, f"{head}step {number} loss {job.falling_loss(number)}")


KINDS = (
    nccl_info,
    hccl_plog,
    npu_console,
    vllm_ray,
    kubernetes,
    dmesg,
    node_hiccup,
    syslog,
    ci_pytest,
    preflight,
    decoy_parade,
)
