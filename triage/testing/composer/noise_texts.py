"""What healthy programs print that must not matter, some of it with frightening words."""

from __future__ import annotations

from dataclasses import dataclass

from triage.testing.composer.model import Backend, Stream


@dataclass(frozen=True, slots=True)
class NoiseForm:
    """A text of one or several lines with {fields}. `at_start`: only between the first lines of a rank.

    `backends` of the jobs that print it.
    """

    text: str
    stream: Stream = "stderr"
    at_start: bool = False
    backends: tuple[Backend, ...] = ("nccl", "gloo", "hccl")


FORMS: tuple[NoiseForm, ...] = (
    NoiseForm(
        "{lib}/torch/optim/lr_scheduler.py:224: UserWarning: Detected call of `lr_scheduler.step()` before "
        "`optimizer.step()`. In PyTorch 1.1.0 and later, you should call them in the opposite order: "
        "`optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the "
        "first value of the learning rate schedule. See more details at "
        "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate\n  warnings.warn("
    ),
    NoiseForm(
        "{lib}/torch/utils/data/dataloader.py:617: UserWarning: This DataLoader will create {n} worker processes in "
        "total. Our suggested max number of worker in current system is 8, which is smaller than what this "
        "DataLoader is going to create. Please be aware that excessive worker creation might get DataLoader running "
        "slow or even freeze, lower the worker number to avoid potential slowness/freeze if necessary.\n  "
        "warnings.warn(",
        at_start=True,
    ),
    NoiseForm(
        "{script}:92: FutureWarning: `torch.cuda.amp.GradScaler(args...)` is deprecated. Please use "
        "`torch.amp.GradScaler('cuda', args...)` instead.\n  scaler = torch.cuda.amp.GradScaler()",
        backends=("nccl",),
    ),
    NoiseForm(
        "huggingface/tokenizers: The current process just got forked, after parallelism has already been used. "
        "Disabling parallelism to avoid deadlocks...\nTo disable this warning, you can either:\n\t- Avoid using "
        "`tokenizers` before the fork if possible\n\t- Explicitly set the environment variable "
        "TOKENIZERS_PARALLELISM=(true | false)"
    ),
    NoiseForm(
        "Token indices sequence length is longer than the specified maximum sequence length for this model ({large} "
        "> 1024). Running this sequence through the model will result in indexing errors"
    ),
    NoiseForm(
        "{warning} reducer.cpp:1400] Warning: find_unused_parameters=True was specified in DDP constructor, but did "
        "not find any unused parameters in the forward pass. This flag results in an extra traversal of the autograd "
        "graph every iteration,  which can adversely affect performance. If your model indeed never has any unused "
        "parameters in the forward pass, consider turning this flag off. Note that this warning may be a false "
        "positive if your model has flow control causing later iterations to have unused parameters. (function "
        "operator())",
    ),
    NoiseForm(
        "{warning} Utils.hpp:164] Warning: Environment variable NCCL_ASYNC_ERROR_HANDLING is deprecated; use "
        "TORCH_NCCL_ASYNC_ERROR_HANDLING instead (function operator())",
        at_start=True,
        backends=("nccl",),
    ),
    NoiseForm(
        "{lib}/torch/autograd/graph.py:825: UserWarning: Grad strides do not match bucket view strides. This may "
        "indicate grad was not created according to the gradient layout contract, or that the param's strides "
        "changed since DDP was constructed.  This is not an error, but may impair performance.\n  return "
        "Variable._execution_engine.run_backward("
    ),
    NoiseForm(
        "E0000 00:00:17{seconds}.{small}29012    {pid} cuda_dnn.cc:8310] Unable to register cuDNN factory: "
        "Attempting to register factory for plugin cuDNN when one has already been registered",
        at_start=True,
        backends=("nccl",),
    ),
    NoiseForm(
        "libibverbs: Warning: couldn't load driver 'libvmw_pvrdma-rdmav34.so': libvmw_pvrdma-rdmav34.so: cannot open "
        "shared object file: No such file or directory",
        at_start=True,
        backends=("nccl",),
    ),
    NoiseForm(
        "{host}:{pid}:{pid} [{local}] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.",
        "stdout",
        at_start=True,
        backends=("nccl",),
    ),
    NoiseForm("wandb: WARNING Path /scratch/wandb wasn't writable, using system temp directory.", at_start=True),
    NoiseForm("wandb: Network error (ConnectionError), entering retry loop."),
    NoiseForm("wandb: ERROR Error while calling W&B API: internal database error (<Response [500]>)"),
    NoiseForm("wandb: Tracking run with wandb version 0.19.1\nwandb: W&B syncing is set to `offline`", at_start=True),
    NoiseForm(
        "WARNING:urllib3.connectionpool:Retrying (Retry(total=4, connect=None, read=None, redirect=None, "
        "status=None)) after connection broken by 'ReadTimeoutError(\"HTTPConnectionPool(host='10.0.0.5', "
        "port=8080): Read timed out. (read timeout=10)\")': /metrics/job/train"
    ),
    NoiseForm("ERROR:root:could not push metrics to the gateway, trying again in 30 s"),
    NoiseForm("WARNING: flash_attn is not installed, falling back to scaled_dot_product_attention", at_start=True),
    NoiseForm("skipped {small} corrupt samples in shard {large}, continuing", "stdout"),
    NoiseForm("gc: killed 0 stale workers, 0 failed, 0 timed out", "stdout"),
    NoiseForm("health check: 0 Xid errors, 0 ECC errors, 0 dead links", "stdout", backends=("nccl",)),
    NoiseForm(
        "Some weights of BertForSequenceClassification were not initialized from the model checkpoint at "
        "bert-base-uncased and are newly initialized: ['classifier.bias', 'classifier.weight']\nYou should probably "
        "TRAIN this model on a down-stream task to be able to use it for predictions and inference.",
        at_start=True,
    ),
    NoiseForm("Using /root/.cache/torch_extensions/py311_cu124 as PyTorch extensions root...", "stdout", at_start=True),
    NoiseForm("{bars}"),
    NoiseForm("{config}", "stdout", at_start=True),
)
