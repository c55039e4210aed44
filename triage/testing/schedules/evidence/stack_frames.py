"""Python frames of the training program: where it calls torch.distributed, and where its host stands otherwise.

Frames are (function, file, line), innermost first.
"""

from __future__ import annotations

from triage.testing.schedules.model import Activity, Call

Frames = list[tuple[str, str, int]]

_TORCH = "/usr/local/lib/python3.11/dist-packages/torch"
_C10D = f"{_TORCH}/distributed/distributed_c10d.py"
_PYTHON = "/usr/lib/python3.11"
_LOGGER = (f"{_TORCH}/distributed/c10d_logger.py", 81)
# The line of each function of the training script, and that of its call in the loop.
_SITES = {
    "setup": (58, 301),
    "forward": (112, 341),
    "backward": (131, 344),
    "train_step": (140, 345),
    "reduce_loss": (163, 352),
    "clip_grad_norm": (171, 349),
    "p2p_communication": (188, 338),
    "dispatch": (205, 340),
    "combine": (214, 342),
    "evaluate": (238, 361),
    "save_checkpoint": (252, 366),
    "save_best_model": (263, 368),
    "log_metrics": (229, 357),
    "finish": (281, 372),
}
_FUNCTIONS = {
    "all_reduce_barrier": ("barrier", 4159),
    "all_reduce": ("all_reduce", 2501),
    "broadcast": ("broadcast", 2421),
    "reduce": ("reduce", 2628),
    "all_gather": ("all_gather", 3345),
    "_all_gather_base": ("all_gather_into_tensor", 3513),
    "_reduce_scatter_base": ("reduce_scatter_tensor", 3842),
    "all_to_all": ("all_to_all_single", 3946),
    "send": ("isend", 2077),
    "recv": ("irecv", 2112),
    "coalesced": ("batch_isend_irecv", 2329),
}


def call_frames(call: Call, script: str) -> list[dict[str, str | int]]:
    """Return the frames of a call as the Flight Recorder writes them."""
    return [{"name": name, "filename": file, "line": line} for name, file, line in frames_of_call(call, script)]


def frames_of_call(call: Call, script: str) -> Frames:
    """Return the frames of a host inside a call."""
    function, line = _FUNCTIONS.get(call.operation, ("all_reduce", 2501))
    own, caller = _SITES.get(call.site, (140, 345))
    return [
        (function, _C10D, line),
        ("wrapper", *_LOGGER),
        (call.site, script, own),
        ("main", script, caller),
        ("<module>", script, 389),
    ]


def frames_of_host(activity: Activity, script: str) -> Frames:
    """Return the frames of a host that is in no call of torch.distributed."""
    inner: Frames = list(_HOSTS[activity])
    line = {"evaluation": 361, "checkpoint": 366, "data": 333, "item": 347, "synchronize": 346}.get(activity, 340)
    named = [(name, script if file == "script" else file, number) for name, file, number in inner]
    return [*named, ("main", script, line), ("<module>", script, 389)]


_HOSTS: dict[Activity, tuple[tuple[str, str, int], ...]] = {
    "compute": (
        ("_engine_run_backward", f"{_TORCH}/autograd/graph.py", 823),
        ("backward", f"{_TORCH}/_tensor.py", 581),
    ),
    "data": (
        ("select", f"{_PYTHON}/selectors.py", 415),
        ("wait", f"{_PYTHON}/multiprocessing/connection.py", 930),
        ("_poll", f"{_PYTHON}/multiprocessing/connection.py", 424),
        ("poll", f"{_PYTHON}/multiprocessing/connection.py", 257),
        ("get", f"{_PYTHON}/multiprocessing/queues.py", 113),
        ("_try_get_data", f"{_TORCH}/utils/data/dataloader.py", 1251),
        ("_get_data", f"{_TORCH}/utils/data/dataloader.py", 1415),
        ("_next_data", f"{_TORCH}/utils/data/dataloader.py", 1458),
        ("__next__", f"{_TORCH}/utils/data/dataloader.py", 708),
    ),
    "lock": (("acquire_shared_cache", "/workspace/cache.py", 41), ("lookup_tokens", "/workspace/cache.py", 77)),
    "io": (("readinto", f"{_PYTHON}/socket.py", 706), ("download_shard", "/workspace/shards.py", 52)),
    "compile": (
        ("poll", f"{_PYTHON}/selectors.py", 415),
        ("communicate", f"{_PYTHON}/subprocess.py", 1209),
        ("run", f"{_PYTHON}/subprocess.py", 550),
        ("_build", "/usr/local/lib/python3.11/dist-packages/triton/runtime/build.py", 40),
        ("compile", "/usr/local/lib/python3.11/dist-packages/triton/compiler/compiler.py", 273),
    ),
    "evaluation": (("generate_samples", "/workspace/evaluation.py", 96), ("evaluate", "/workspace/evaluation.py", 31)),
    "checkpoint": (
        ("_save", f"{_TORCH}/serialization.py", 1131),
        ("save", f"{_TORCH}/serialization.py", 852),
        ("write_checkpoint", "/workspace/checkpoint.py", 64),
    ),
    "sleep": (("wait_for_file", "script", 97),),
    "item": (("log_loss", "script", 220),),
    "synchronize": (("synchronize", f"{_TORCH}/cuda/__init__.py", 985),),
    "queue": (("forward", f"{_TORCH}/nn/modules/linear.py", 125),),
    "exit": (("destroy_process_group", _C10D, 2146),),
}
