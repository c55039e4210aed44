"""Healthy jobs by training framework."""

from __future__ import annotations

import json

from job import Job

SITE = "/opt/venv/lib/python3.11/site-packages"


def megatron(job: Job) -> None:
    """Megatron-LM: the last rank reports, counts of skipped and nan iterations are zero."""
    job.add_lines(
        "using world size: 16, data-parallel size: 2, context-parallel size: 1, tensor-model-parallel size: 4, "
        "pipeline-model-parallel size: 2",
        "WARNING: overriding default arguments for tokenizer_type:GPT2BPETokenizer                        with "
        "tokenizer_type:HuggingFaceTokenizer",
        "------------------------ arguments ------------------------",
        "  check_for_nan_in_loss_and_grad .................. True",
        "  distributed_timeout_minutes ..................... 10",
        "  exit_on_missing_checkpoint ...................... False",
        "  error_injection_rate ............................ 0",
        "  loss_scale ...................................... None",
        "-------------------- end of arguments ---------------------",
        "> compiling dataset index builder ...",
        ">>> done with dataset index builder. Compilation time: 0.071 seconds",
        "> initializing torch distributed ...",
        "WARNING: could not find the metadata file /ckpt/megatron/latest_checkpointed_iteration.txt ",
        "    will not load any checkpoints and will start from random",
        "(min, max) time across ranks (ms):",
        "    load-checkpoint ................................: (0.61, 0.93)",
        "[after dataloaders are built] datetime: 2026-03-04 05:01:22 ",
        "training ...",
        f"{SITE}/torch/distributed/c10d_logger.py:83: FutureWarning: torch.distributed._all_gather_base is a private "
        "function and will be deprecated.",
    )
    for step in job.iterate_steps(60, every=10):
        job.now += 50
        job.add_lines(
            f" [{job.timestamp('%Y-%m-%d %H:%M:%S.%f')}] iteration {step:8d}/  500000 | consumed samples: "
            f"{step * 256:12d} | elapsed time per iteration (ms):"
            f" {job.rng.uniform(5000, 5400):.1f} | throughput per GPU (TFLOP/s/GPU): 405.2 | learning rate: 6.7E-05 | "
            "global batch size:   256 |"
            f" lm loss: {job.falling_loss(step)}E+00 | loss scale: 1.0 | grad norm: 0.912 | num zeros: 0 | number of "
            "skipped iterations:   0 |"
            " number of nan iterations:   0 |"
        )  # fmt: skip
        if step % 200 == 0:
            job.add_lines(
                f"saving checkpoint at iteration {step:7d} to /ckpt/megatron in torch_dist format",
                "Storing distributed optimizer sharded state of type fully_sharded_model_space\n  successfully saved "
                f"checkpoint from iteration {step:7d} to /ckpt/megatron [ t 1/4, p 1/2 ]",
                job.next_decoy(),
            )
        if step == 300:
            job.add_lines(
                "WARNING:megatron.core.rerun_state_machine:Result validation: rerun disabled, no unexpected result so "
                "far",
                " > straggler report: min 402.1 max 407.7 TFLOP/s, ratio 0.99, no stragglers",
            )
    job.add_lines(
        "-" * 80,
        " validation loss at iteration 600 on validation set | lm loss value: 2.412E+00 | lm loss PPL: 1.115E+01 | ",
        "-" * 80,
    )
    if job.variant:
        job.add_lines("[exiting program at iteration 600] datetime: 2026-03-04 06:22:10 ")
    else:
        job.add_lines("[after training is done] datetime: 2026-03-04 06:22:10 ")


def deepspeed(job: Job) -> None:
    """DeepSpeed: launcher, ZeRO start-up, loss scale found by trying."""
    job.add_lines(
        f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [WARNING] [runner.py:220:fetch_hostfile] Unable to find hostfile, "
        "will proceed with training with local resources only.",
        f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [runner.py:610:main] cmd = /usr/bin/python3 -u -m "
        "deepspeed.launcher.launch --master_addr=127.0.0.1 --master_port=29500 train.py --deepspeed ds.json",
        f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [launch.py:146:main] WORLD INFO DICT: {{'localhost': [0, 1, "
        f"2, 3]}}",
        f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [launch.py:256:main] process 4100 spawned with command: "
        "['/usr/bin/python3', '-u', 'train.py', '--local_rank=0']",
        f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [real_accelerator.py:239:get_accelerator] Setting "
        "ds_accelerator to cuda (auto detect)",
        " [WARNING]  async_io requires the dev libaio .so object and headers but these were not found.",
        " [WARNING]  sparse_attn requires a torch version >= 1.5 and < 2.0 but detected 2.7",
        " [WARNING]  using untested triton version (3.3.0), only 1.0.0 is known to be compatible",
        f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [logging.py:107:log_dist] [Rank 0] DeepSpeed info: "
        "version=0.17.1, git-hash=unknown, git-branch=unknown",
        "Stage 3 initialize beginning\nMA 1.31 GB         Max_MA 1.31 GB         CA 1.42 GB         Max_CA 1 GB ",
        "CPU Virtual Memory:  used = 61.31 GB, percent = 6.1%",
        "Using /root/.cache/torch_extensions/py311_cu126 as PyTorch extensions root...",
        "ninja: no work to do.\nLoading extension module fused_adam...\nTime to load fused_adam op: 0.0711 seconds",
        f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [config.py:1003:print]   nebula_config ................ "
        f"{{'enabled': False, 'persistent_time_interval': 100, 'num_of_version_in_retention': 2, 'load_path': None}}",
        f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [config.py:1003:print]   comms_config ................. "
        "<deepspeed.comm.config.DeepSpeedCommsConfig object at 0x7f11>",
        f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [config.py:1003:print]   dynamic_loss_scale_args ...... "
        "None",
    )
    scale = 65536
    for step in job.iterate_steps(40):
        if job.variant == 0 and step < 4:
            job.add_lines(
                f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] "
                f"OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {scale // 2}"
            )
            scale //= 2
        job.add_lines(
            f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [logging.py:107:log_dist] [Rank 0] step={step}, "
            f"skipped={min(step, 3)}, lr=[1e-05], mom=[(0.9, 0.999)]",
            f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [timer.py:264:stop] "
            f"epoch=0/micro_step={step}/global_step={step}, RunningAvgSamplesPerSec=41.7, MemAllocated=20.11GB, "
            "MaxMemAllocated=61.9GB",
        )
        if step % 8 == 0:
            job.add_lines(
                job.next_decoy(),
                f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [WARNING] [stage3.py:2171:step] 1 pytorch allocator cache "
                "flushes since last step. this happens when there is high memory pressure and is detrimental to "
                "performance.",
                f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [torch_checkpoint_engine.py:21:save] [Torch] Saving "
                f"/ckpt/ds/global_step{step}/mp_rank_00_model_states.pt...",
                f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [torch_checkpoint_engine.py:33:commit] [Torch] "
                f"Checkpoint global_step{step} is ready now!",
            )
    for pid in range(4100, 4104):
        job.add_lines(
            f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L', forward=0.3)}] [INFO] [launch.py:351:main] Process {pid} exits "
            "successfully."
        )


def accelerate(job: Job) -> None:
    """`accelerate launch` with its defaults printed and logging per process."""
    job.add_lines(
        "The following values were not passed to `accelerate launch` and had defaults used instead:\n"
        "\t`--num_machines` was set to a value of `1`\n\t`--dynamo_backend` was set to a value of `'no'`\nTo avoid "
        "this warning pass in values for each of the problematic parameters or run `accelerate config`.",
        "03/04/2026 05:00:11 - INFO - __main__ - Distributed environment: MULTI_GPU  Backend: nccl\nNum processes: 4\n"
        "Process index: 0\nLocal process index: 0\nDevice: cuda:0\nMixed precision type: bf16",
        "Detected kernel version 5.4.0, which is below the recommended minimum of 5.5.0; this can cause the process to "
        "hang. It is recommended to upgrade the kernel to the minimum version or higher.",
    )
    for step in job.iterate_steps(30):
        job.add_lines(
            f"{job.timestamp('%m/%d/%Y %H:%M:%S')} - INFO - __main__ - step {step}: loss {job.falling_loss(step)}, "
            "skipped_steps=0, num_overflows=0"
        )
        if step % 4 == 0:
            job.add_lines(
                f"{job.timestamp('%m/%d/%Y %H:%M:%S')} - WARNING - accelerate.utils.other - {job.next_decoy()}"
            )
        if step % 10 == 0:
            job.add_lines(
                f"{job.timestamp('%m/%d/%Y %H:%M:%S')} - INFO - accelerate.accelerator - Saving current state to "
                f"/ckpt/acc/checkpoint-{step}"
            )
    job.add_lines(*job.ignored_exception())


def lightning(job: Job) -> None:
    """PyTorch Lightning: warnings of the trainer and a bar."""
    job.add_lines(
        "GPU available: True (cuda), used: True\nTPU available: False, using: 0 TPU cores\nHPU available: False, "
        "using: 0 HPUs",
        "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4\nInitializing distributed: GLOBAL_RANK: 1, MEMBER: 2/4",
        "-" * 100
        + "\ndistributed_backend=nccl\nAll distributed processes registered. Starting with 4 processes\n"
        + "-" * 100,
        "LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1,2,3]",
        "SLURM auto-requeueing enabled. Setting signal handlers.",
        f"{SITE}/lightning/pytorch/trainer/connectors/data_connector.py:425: The 'val_dataloader' does not have many "
        "workers which may be a bottleneck.",
        f"{SITE}/lightning/pytorch/loops/fit_loop.py:298: The number of training batches (40) is smaller than the "
        "logging interval.",
        f"{SITE}/lightning/pytorch/callbacks/model_checkpoint.py:654: Checkpoint directory /ckpt/lit exists and is not "
        "empty.",
    )
    for epoch in range(3):
        bars = [
            f"Epoch {epoch}: {100 * i // 40:3d}%|{'█' * (i // 4):<10}| {i}/40 [00:{i:02d}<00:{40 - i:02d},  1.02it/s, "
            f"v_num=4, train_loss={job.falling_loss(i)}]"
            for i in range(0, 41, 4)
        ]
        job.add_lines("\r".join(bars))
        job.add_lines(
            job.next_decoy(),
            "Metric val_loss improved by 0.031 >= min_delta = 0.0. New best score: "
            f"{job.falling_loss(40 * (epoch + 1))}",
            job.next_decoy(),
        )
    job.add_lines(
        "Monitored metric val_loss did not improve in the last 3 records. Best score: 2.113. Signaling Trainer to stop."
    )
    job.add_lines("`Trainer.fit` stopped: `max_epochs=3` reached.")


def hf_trainer(job: Job) -> None:
    """HF Trainer: bars with carriage returns, dicts of metrics, remarks of the hub."""
    job.add_lines(
        "[INFO|trainer.py:2409] 2026-03-04 05:00:02,118 >> ***** Running training *****\n[INFO|trainer.py:2410] "
        "2026-03-04 05:00:02,118 >>   Num examples = 51,760",
        "[WARNING|logging.py:328] 2026-03-04 05:00:02,130 >> `use_cache=True` is incompatible with gradient "
        "checkpointing. Setting `use_cache=False`.",
        "Some weights of LlamaForSequenceClassification were not initialized from the model checkpoint at base and are "
        "newly initialized: ['score.weight']",
        "huggingface/tokenizers: The current process just got forked, after parallelism has already been used. "
        "Disabling parallelism to avoid deadlocks...",
        "'(ReadTimeoutError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out. (read "
        "timeout=10)\"), '(Request ID: 61f)')' thrown while requesting HEAD "
        "https://huggingface.co/base/resolve/main/config.json\nRetrying in 1s [Retry 1/5].",
        "HTTP Error 429 thrown while requesting GET https://huggingface.co/api/models/base\nRetrying in 2s [Retry "
        "1/5].",
        "Fetching 4 files: 100%|██████████| 4/4 [00:03<00:00,  1.21it/s]",
    )
    bar = ""
    for step in job.iterate_steps(50):
        bar += (
            f"\r{2 * step:3d}%|{'█' * (step // 5):<10}| {step}/50 "
            f"[{step // 30:02d}:{2 * step % 60:02d}<00:{50 - step:02d},  1.98s/it]"
        )
        if step % 10 == 0:
            job.add_lines(
                bar + f"\r{{'loss': {job.falling_loss(step)}, 'grad_norm': 0.81, 'learning_rate': 1e-05, 'num_nan': 0, "
                f"'epoch': {step / 50:.2f}}}"
            )
            job.add_lines(job.next_decoy(), f"Saving model checkpoint to out/checkpoint-{step}")
            bar = ""
    comment, trace = job.next_handled_exception()
    job.add_lines(f"[WARNING|hub.py:211] {job.timestamp('%Y-%m-%d %H:%M:%S,%L')} >> {comment}", *trace)
    for step in job.iterate_steps(30):
        bar += f"\r{step * 3:3d}%|{'█' * (step // 3):<10}| {step}/30 [00:{step:02d}<00:{30 - step:02d},  1.01it/s]"
    job.add_lines(bar)
    job.add_lines("{'train_runtime': 101.2, 'train_samples_per_second': 511.1, 'train_loss': 1.93, 'epoch': 1.0}")
    if job.variant:
        job.add_lines("Training completed. Do not forget to share your model on huggingface.co/models =)")


def json_logs(job: Job) -> None:
    """Structured logs, one object a line."""
    for step in job.iterate_steps(60):
        for rank in range(2):
            record = {"ts": job.timestamp("%Y-%m-%dT%H:%M:%S.%fZ"), "level": "info", "rank": rank, "msg": "step"}
            loss = float(job.falling_loss(step))
            record |= {"step": step, "loss": loss, "nan_count": 0, "error": None, "timeout_s": 1800}
            job.add_lines(json.dumps(record))
        if step % 3 == 0:
            job.add_lines(
                json.dumps(
                    {
                        "ts": job.timestamp("%Y-%m-%dT%H:%M:%S.%fZ"),
                        "level": "warning",
                        "rank": 0,
                        "msg": job.next_decoy(),
                        "errors": [],
                        "exitcode": 0,
                    }
                )
            )


def evaluation(job: Job) -> None:
    """An evaluation harness whose questions contain words of crashes."""
    job.add_lines(
        "2026-03-04:05:00:11,118 INFO     [lm_eval.evaluator:164] Setting random seed to 0 | Setting numpy seed to "
        "1234 | Setting torch manual seed to 1234",
        "2026-03-04:05:00:12,201 WARNING  [lm_eval.models.huggingface:95] `pretrained` model kwarg is not of type "
        "`str`. Many other model arguments may be ignored.",
        "Passed argument batch_size = auto. Detecting largest batch size\nDetermined largest batch size: 32",
    )
    questions = (
        "Q: What does 'Segmentation fault (core dumped' mean in C? A: an access to memory that is not mapped",
        "Q: Explain the Linux OOM killer. A: it ends a process when memory runs out",
        "Q: My program prints ZeroDivisionError, why? A: because of a division by zero",
        "Q: How long may a NCCL collective wait? A: as long as its timeout says",
    )
    for step in job.iterate_steps(20):
        job.add_lines(
            "\r".join(
                f"Running loglikelihood requests:  {5 * step - 5 + i}%|{'█' * (step // 2):<10}| {512 * step}/10240 "
                f"[00:{step:02d}<00:{20 - step:02d}, 498.12it/s]"
                for i in range(3)
            )
        )
        if step % 4 == 0:
            job.add_lines(job.rng.choice(questions), job.next_decoy())
    job.add_lines(
        "| Tasks |Version|Filter|n-shot|Metric|   |Value |   |Stderr|\n"
        "|-------|------:|------|-----:|------|---|-----:|---|-----:|",
        "|errors |      1|none  |     0|acc   |↑  |0.0000|±  |0.0000|\n|arc    |      1|none  |     0|acc   |↑  "
        "|0.5114|±  |0.0146|",
    )
    if job.variant:
        job.add_lines("evaluation finished: 20 tasks, 0 failed, 0 timed out")


def checkpoints(job: Job) -> None:
    """Saving and loading with attempts that succeed in the end."""

    def write_line(level: str, text: str) -> None:
        job.add_lines(f"{job.timestamp('%Y-%m-%d %H:%M:%S,%L', forward=0.2)} [rank0] {level} ckpt: {text}")

    write_line("INFO", "loading /ckpt/run/step_900: world size 16 -> 8, resharding")
    write_line("WARNING", "/ckpt/run/step_950 has no .metadata, save was cut short; skipping it, using step_900")
    write_line("INFO", "missing keys: [], unexpected keys: [], 0 tensors with shape mismatch")
    for step in job.iterate_steps(30):
        write_line("INFO", f"step {step} loss {job.falling_loss(step)}")
        if step % 10 == 0:
            write_line(
                "WARNING",
                f"upload of step_{step}/__3_0.distcp: attempt 1/5 failed: ReadTimeout after 60 s, trying again",
            )
            write_line("WARNING", f"upload of step_{step}/__3_0.distcp: attempt 2/5 failed: 503, trying again")
            write_line("INFO", f"upload of step_{step}/__3_0.distcp: attempt 3/5 succeeded")
            comment, trace = job.next_handled_exception()
            write_line("WARNING", comment)
            job.add_lines(*trace)
            write_line("INFO", f"saved step_{step} in 41.2 s, verified 16 shards, 0 corrupt, checksum errors: 0")
            write_line("INFO", job.next_decoy())
    write_line("INFO", "async save thread joined, no pending uploads, no errors")
    if job.variant:
        write_line("INFO", "run finished")


def data_loading(job: Job) -> None:
    """Data preparation with warnings of the DataLoader and skipped samples."""
    job.add_lines(
        f"{SITE}/torch/utils/data/dataloader.py:624: UserWarning: This DataLoader will create 16 worker processes in "
        "total. Our suggested max number of worker in current system is 8, which is smaller than what this DataLoader "
        "is going to create. Please be aware that excessive worker creation might get DataLoader running slow or even "
        "freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
        f"{SITE}/torch/utils/data/dataloader.py:692: UserWarning: Length of IterableDataset <shards> was reported to "
        "be 1000 (when accessing len(dataloader)), but 1001 samples have been fetched.",
        f"{SITE}/PIL/TiffImagePlugin.py:900: UserWarning: Corrupt EXIF data.  Expecting to read 4 bytes but only got "
        "0. ",
        "libpng warning: iCCP: known incorrect sRGB profile",
        "Corrupt JPEG data: 1137 extraneous bytes before marker 0xd9",
        "[mp3float @ 0x55d0] Header missing",
    )
    for step in job.iterate_steps(80):
        job.add_lines(
            f"{job.timestamp()} INFO loader: batch {step} read in {job.rng.uniform(8, 30):.1f} ms, bad samples 0, "
            "worker errors 0"
        )
        if step % 5 == 0:
            job.add_lines(f"{job.timestamp()} WARNING loader: {job.next_decoy()}")
        if step in (11, 30):
            comment, trace = job.next_handled_exception()
            job.add_lines(f"{job.timestamp()} WARNING loader: {comment}", *trace)
    job.add_lines(
        f"{job.timestamp()} INFO loader: 12 samples skipped of 5120000 (error_rate=0.00), exit 0",
        *job.ignored_exception(),
    )


def tuning(job: Job) -> None:
    """A search for hyperparameters: trials may fail, the study does not."""
    job.add_lines("[I 2026-03-04 05:00:00,118] A new study created in memory with name: lr-search")
    for trial in range(12):
        job.now += 30
        for step in job.iterate_steps(3):
            job.add_lines(f"{job.timestamp()} trial {trial} step {step} loss {job.falling_loss(step)}")
        if trial in (3, 7):
            job.add_lines(
                f"[W {job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] Trial {trial} failed with parameters: {{'lr': 0.91}} "
                "because of the following error: FloatingPointError('overflow')."
            )
            _, trace = job.next_handled_exception()
            job.add_lines(*trace, f"[W {job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] Trial {trial} failed with value None.")
        elif trial == 5:
            job.add_lines(f"[I {job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] Trial 5 pruned. ", job.next_decoy())
        else:
            job.add_lines(
                f"[I {job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] Trial {trial} finished with value: "
                f"{job.falling_loss(90)} and parameters: {{'lr': 0.0003}}. Best is trial 0 with value: 2.31."
            )
    for step in job.iterate_steps(25):
        job.add_lines(f"{job.timestamp()} retrain with the best parameters: step {step} loss {job.falling_loss(step)}")


KINDS = (
    megatron,
    deepspeed,
    accelerate,
    lightning,
    hf_trainer,
    json_logs,
    evaluation,
    checkpoints,
    data_loading,
    tuning,
)
