"""Faults of checkpoints: files that cannot be written, are damaged, or belong to another model."""

from __future__ import annotations

import random

from triage.testing.composer.faults.error_texts import version
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.uncaught import (
    BACKENDS,
    DURING_HANDLING,
    Call,
    all_ranks,
    by_version,
    end_job,
    format_traceback,
    load_until,
    setup_calls,
    site_packages,
    train_until,
    training_calls,
    uncaught,
)
from triage.testing.composer.model import Line, Story, World
from triage.testing.composer.parts import kernel

# Lines of inline_container.cc by the first version of torch that has them: the write, and the end of the archive.
_WRITER_LINES = {(2, 0): (588, 424), (2, 3): (764, 595), (2, 6): (820, 626), (2, 8): (858, 664)}
_LAYERS = ("transformer.wte.weight", "model.embed_tokens.weight", "lm_head.weight", "decoder.layers.0.mlp.fc1.weight")


def _directory(rng: random.Random) -> str:
    root = rng.choice(("/checkpoints/run7", "/mnt/lustre/ckpt/llama-exp", "/data/out/vit-b", "/scratch/ml/sft"))
    return f"{root}/step_{rng.randrange(1, 90) * 500}"


def disk_full(world: World, rng: random.Random) -> Story:
    """The file system fills up while one rank saves its part of a checkpoint."""
    rank, before = rng.choice((0, rng.randrange(world.size))), train_until(world, rng)
    path = f"{_directory(rng)}/{rng.choice(('model', 'optim'))}_rank_{rank}.pt"
    text = _stream_writer_full(world, rng, path) if rng.random() < 0.5 else _file_full(world, rng, path)
    cause = uncaught(world, rank, before.at, text)
    return end_job(world, rng, before, [cause], ["host.no-space", "checkpoint.no-space"])


def _file_full(world: World, rng: random.Random, path: str) -> str:
    """Return the traceback of a plain write."""
    makes_directory = rng.random() < 0.5
    source = "os.makedirs(directory, exist_ok=True)" if makes_directory else "handle.write(buffer)"
    inner = [Call(world.script.replace(".py", "_io.py"), rng.randrange(20, 140), "save_part", source)]
    inner += _make_directory(world) if makes_directory else ()
    target = f": '{path.rpartition('/')[0]}'" if makes_directory else ""
    error = f"OSError: [Errno 28] No space left on device{target}"
    return format_traceback(world, training_calls(world, rng, "save_part(model, step)", *inner), error)


def _make_directory(world: World) -> tuple[Call, ...]:
    """Return the frame of os.makedirs; since Python 3.11 the module is frozen and has no source."""
    if version(world.python) >= (3, 11):
        return (Call("<frozen os>", 225, "makedirs", ""),)
    return (Call(f"/usr/lib/python{world.python}/os.py", 225, "makedirs", "mkdir(name, mode)"),)


def _stream_writer_full(world: World, rng: random.Random, path: str) -> str:
    """Return the chained tracebacks of torch.save: the write fails, and so does the end of the archive."""
    file, (write, end) = f"{site_packages(world)}/torch/serialization.py", by_version(world.torch, _WRITER_LINES)
    position = rng.randrange(40_000, 90_000_000) * 64
    saved = Call(file, 849, "save", "_save(")
    writes = Call(file, 1114, "_save", "zip_file.write_record(name, storage, num_bytes)")
    first_error = (
        f"RuntimeError: [enforce fail at inline_container.cc:{write}] . PytorchStreamWriter failed writing file "
        f"data/{rng.randrange(3, 400)}: file write failed"
    )
    if rng.random() < 0.5:
        first_error = "OSError: [Errno 28] No space left on device"
    calls = training_calls(
        world, rng, f"torch.save(state, '{path}')",
        Call(file, 848, "save", "with _open_zipfile_writer(f) as opened_zipfile:"),
        Call(file, 690, "__exit__", "self.file_like.write_end_of_file()"),
    )  # fmt: skip
    error = f"RuntimeError: [enforce fail at inline_container.cc:{end}] . unexpected pos {position} vs {position - 112}"
    return (
        format_traceback(world, [saved, writes], first_error) + DURING_HANDLING + format_traceback(world, calls, error)
    )


def permission_denied(world: World, rng: random.Random) -> Story:
    """A directory may not be written: by the one rank that writes there, or by all ranks of one node."""
    before, path = load_until(world, rng), _directory(rng)
    source, target, inner = rng.choice((
        ("os.makedirs(directory, exist_ok=True)", path.rpartition("/")[0], _make_directory(world)),
        ('handle = open(path, "w")', f"{path}/config.json", ()),
    ))  # fmt: skip
    error = f"PermissionError: [Errno 13] Permission denied: '{target}'"
    text = format_traceback(world, setup_calls(world, rng, source, *inner), error)
    ranks = [0] if rng.random() < 0.5 else list(world.on_node(rng.randrange(len(world.hosts))))
    causes = [uncaught(world, rank, before.at + rng.uniform(0, 0.3), text) for rank in ranks]
    return end_job(world, rng, before, causes, ["host.permission-denied"])


def read_only(world: World, rng: random.Random) -> Story:
    """A node's file system turns read-only after an error, and the rank that saves there fails."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    node, device = world.node(rank), rng.choice(("nvme1n1", "sdb1", "dm-3"))
    at = before.at - rng.uniform(0.3, 0.8)
    aborted = f"EXT4-fs error (device {device}): ext4_journal_check_start:84: comm python3: Detected aborted journal"
    remounted = f"EXT4-fs ({device}): Remounting filesystem read-only"
    more = [
        kernel(world, node, at, aborted),
        kernel(world, node, at + 0.002, remounted, is_cause=True, says_host=True),
    ]
    path = f"/local/ckpt/step_{before.step}/rank_{rank}.pt"
    calls = training_calls(world, rng, f'handle = open(f"{{directory}}/rank_{rank}.pt", "wb")')
    text = format_traceback(world, calls, f"OSError: [Errno 30] Read-only file system: '{path}'")
    return end_job(
        world,
        rng,
        before,
        [uncaught(world, rank, before.at, text)],
        ["host.filesystem-readonly", "host.path-readonly"],
        more=more,
    )


def input_output_error(world: World, rng: random.Random) -> Story:
    """A disk of one node cannot read a sector; in half of the jobs the kernel's log is there."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    device, sector = rng.choice(("nvme0n1", "nvme2n1", "sdc")), rng.randrange(10**6, 10**9)
    more: list[Line] = []
    if rng.random() < 0.5:
        error = (
            f"critical medium error, dev {device}, sector {sector} op 0x0:(READ) flags 0x80700 phys_seg 4 prio class 2"
        )
        more = [kernel(world, world.node(rank), before.at - 0.05, error, is_cause=True, says_host=True)]
    path = f"/local/data/{rng.choice(('train', 'tokens'))}_{rng.randrange(512):04d}.bin"
    source = rng.choice(("buffer = handle.read(size)", 'handle = open(path, "rb")'))
    suffix = f": '{path}'" if "open" in source else ""
    text = format_traceback(
        world, training_calls(world, rng, source), f"OSError: [Errno 5] Input/output error{suffix}"
    )  # fmt: skip
    roots = ["host.disk-error"] if more else ["host.io-error"]
    return end_job(world, rng, before, [uncaught(world, rank, before.at, text)], roots, more=more)


def corrupt(world: World, rng: random.Random) -> Story:
    """A checkpoint is damaged: the one file that all ranks load, or the part of one rank."""
    before = load_until(world, rng)
    inner, error = rng.choice(load_errors(world, rng))
    source = f"state = {'load_file' if 'safetensors' in error else 'torch.load'}(checkpoint_path)"
    text = format_traceback(world, setup_calls(world, rng, source, *inner), error)
    ends = all_ranks(world, rng, before.at)
    if rng.random() < 0.5:
        ends = [rng.choice(ends)]
    return end_job(world, rng, before, [uncaught(world, rank, at, text) for rank, at in ends], ["checkpoint.corrupt"])


def load_errors(world: World, rng: random.Random) -> tuple[tuple[tuple[Call, ...], str], ...]:
    """Return frames and errors of reading a damaged checkpoint, the last of safetensors."""
    file = f"{site_packages(world)}/torch/serialization.py"
    zipped = (
        Call(file, 1425, "load", "with _open_zipfile_reader(opened_file) as opened_zipfile:"),
        Call(file, 751, "__init__", "super().__init__(torch._C.PyTorchFileReader(name_or_buffer))"),
    )
    unpickled = (
        Call(file, 1448, "load", "return _legacy_load("),
        Call(file, 1549, "_legacy_load", "magic_number = pickle_module.load(f, **pickle_load_args)"),
    )
    tensors = Call(
        f"{site_packages(world)}/safetensors/torch.py",
        313,
        "load_file",
        'with safe_open(filename, framework="pt") as f:',
    )
    failed = "RuntimeError: PytorchStreamReader failed reading"
    return (
        (zipped, f"{failed} zip archive: failed finding central directory"),
        (zipped, f"{failed} zip archive: invalid header or archive is corrupted"),
        (zipped[:1], f"{failed} file data/{rng.randrange(2, 300)}: file read failed"),
        (unpickled, "EOFError: Ran out of input"),
        (unpickled, "_pickle.UnpicklingError: pickle data was truncated"),
        ((tensors,), "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer"),
    )  # fmt: skip


def size_mismatch(world: World, rng: random.Random) -> Story:
    """The checkpoint is of a model of another size, on all ranks."""
    before, width = load_until(world, rng), rng.choice((768, 1024, 4096))
    model = rng.choice(("GPTModel", "LlamaForCausalLM", "DistributedDataParallel", "VisionTransformer"))
    layers = rng.sample(_LAYERS, rng.randrange(1, 4))
    rows, wanted = rng.choice(((50257, 50304), (32000, 32001), (128256, 128264)))
    error = f"RuntimeError: Error(s) in loading state_dict for {model}:" + "".join(
        f"\n\tsize mismatch for {layer}: copying a param with shape torch.Size([{rows}, {width}]) from checkpoint, the "
        f"shape in current model is torch.Size([{wanted}, {width}])."
        for layer in layers
    )
    module = Call(
        f"{site_packages(world)}/torch/nn/modules/module.py", 2581, "load_state_dict", "raise RuntimeError("
    )  # fmt: skip
    text = format_traceback(world, setup_calls(world, rng, "model.load_state_dict(state)", module), error)
    causes = [uncaught(world, rank, at, text) for rank, at in all_ranks(world, rng, before.at)]
    return end_job(world, rng, before, causes, ["checkpoint.shape-mismatch"])


def missing_key(world: World, rng: random.Random) -> Story:
    """A distributed checkpoint lacks a key, so all ranks fail while they plan the load."""
    before = load_until(world, rng)
    key = rng.choice(("model.layers.31.input_scale", "optimizer.param_groups.0.lr", "ema.decoder.norm.weight"))
    planner = f"{site_packages(world)}/torch/distributed/checkpoint/default_planner.py"
    inner = (
        Call(planner, 315, "create_local_plan", "return create_default_local_load_plan("),
        Call(planner, 428, "create_default_local_load_plan",
             'raise RuntimeError(f"Missing key in checkpoint state_dict: {fqn}.")'),
    )  # fmt: skip
    error = f"RuntimeError: Missing key in checkpoint state_dict: {key}."
    causes = _dcp_failure(world, rng, before.at, "plan", list(world.ranks), inner, error)
    return end_job(world, rng, before, causes, ["checkpoint.missing-key"])


def missing_shard(world: World, rng: random.Random) -> Story:
    """A distributed checkpoint lacks the shard of one rank; all ranks end with the error of that rank."""
    before, rank = load_until(world, rng), rng.randrange(world.size)
    reader = f"{site_packages(world)}/torch/distributed/checkpoint/filesystem.py"
    inner = (
        Call(reader, 686, "read_data", 'with self.fs.create_stream(new_path, "rb") as stream:'),
        Call(reader, 485, "create_stream", "with path.open(mode) as stream:"),
    )
    error = f"FileNotFoundError: [Errno 2] No such file or directory: '{_directory(rng)}/__{rank}_0.distcp'"
    causes = _dcp_failure(world, rng, before.at, "read", [rank], inner, error)
    return end_job(world, rng, before, causes, ["checkpoint.missing-shard"], truth_ranks=[rank])


def _dcp_failure(
    world: World, rng: random.Random, at: float, step: str, failed: list[int], inner: tuple[Call, ...], error: str
) -> list[Line]:
    """Return the CheckpointException that all ranks raise after these ranks failed in a step of the load."""
    base = f"{site_packages(world)}/torch/distributed/checkpoint"
    utils, loader = f"{base}/utils.py", f"{base}/state_dict_loader.py"
    if step == "plan":
        local = Call(loader, 241, "local_step", "local_plan = planner.create_local_plan()")
        source = 'central_plan: LoadPlan = distW.reduce_scatter("plan", local_step, global_step)'
        own = Call(utils, 192, "reduce_scatter", "local_data = map_fun()")
        raised = Call(utils, 219, "reduce_scatter", "raise result")
    else:
        local = Call(loader, 264, "read_data", "all_reads = storage_reader.read_data(final_local_plan, planner)")
        source = '_ = distW.all_gather("read", read_data)'
        own = Call(utils, 240, "all_gather", "result = map_fun()")
        raised = Call(utils, 254, "all_gather", "raise CheckpointException(step, node_failures)")
    part = format_traceback(world, [own, local, *inner], error).split("\n", 1)[1]
    message = "".join(f"\nTraceback (most recent call last): (RANK {rank})\n{part}" for rank in failed)
    outer = (Call(loader, 199, "load", "_load_state_dict("), Call(loader, 251, "_load_state_dict", source), raised)
    name = f"torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys({failed})"
    calls = setup_calls(world, rng, "dcp.load(state, checkpoint_id=path)", *outer)
    text = format_traceback(world, calls, f"{name}{message}\n")
    return [uncaught(world, rank, end, text, names_rank=True) for rank, end in all_ranks(world, rng, at, 0.3)]


FAULTS = (
    Fault("checkpoint-disk-full", disk_full, BACKENDS),
    Fault("permission-denied", permission_denied, BACKENDS),
    Fault("filesystem-read-only", read_only, BACKENDS),
    Fault("input-output-error", input_output_error, BACKENDS),
    Fault("checkpoint-corrupt", corrupt, BACKENDS),
    Fault("checkpoint-size-mismatch", size_mismatch, BACKENDS),
    Fault("checkpoint-missing-key", missing_key),
    Fault("checkpoint-missing-shard", missing_shard),
)
