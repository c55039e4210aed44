"""Stacks of all processes as py-spy and faulthandler print them."""

from __future__ import annotations

import random
from collections.abc import Callable

from triage.testing.schedules.evidence.interface import Form, Scene, Shown, WrittenEvidence
from triage.testing.schedules.evidence.stack_frames import Frames, frames_of_call, frames_of_host
from triage.testing.schedules.model import RankView

_NAMES = ("pyspy/rank_{}.txt", "stacks/rank{}.txt", "pyspy_rank{}.dump", "rank_{}/py-spy.txt")
_THREADING = "/usr/lib/python3.11/threading.py"
_WATCHERS: tuple[tuple[str, Frames], ...] = (
    ("Thread-1 (_read_thread)", [("_recv_msg", "/usr/local/lib/python3.11/dist-packages/torch/_inductor/"
                                  "compile_worker/subproc_pool.py", 55),
                                 ("_read_thread", "/usr/local/lib/python3.11/dist-packages/torch/_inductor/"
                                  "compile_worker/subproc_pool.py", 187)]),
    ("Thread-2 (_pin_memory_loop)", [("select", "/usr/lib/python3.11/selectors.py", 415),
                                     ("get", "/usr/lib/python3.11/multiprocessing/queues.py", 113),
                                     ("_pin_memory_loop", "/usr/local/lib/python3.11/dist-packages/torch/utils/data/"
                                      "_utils/pin_memory.py", 57)]),
)  # fmt: skip


def main_frames(scene: Scene, view: RankView) -> Frames:
    """Return the frames of the main thread."""
    if view.activity == "queue" and view.records:
        return frames_of_call(view.records[-1].call, scene.script)
    return frames_of_host(view.activity, scene.script)


def _threads(scene: Scene, view: RankView) -> list[tuple[str, Frames]]:
    base: Frames = [("run", _THREADING, 982), ("_bootstrap_inner", _THREADING, 1045), ("_bootstrap", _THREADING, 1002)]
    return [(name, [*frames, *base]) for name, frames in _WATCHERS[: 1 + view.rank % 2]]


def py_spy_text(scene: Scene, view: RankView, pid: int) -> str:
    """Return `py-spy dump --pid PID`."""
    head = f"Process {pid}: /usr/bin/python3 -u {scene.script} --config configs/base.yaml\n"
    head += "Python v3.11.9 (/usr/bin/python3.11)\n"
    state = "active" if view.activity in ("item", "synchronize", "compute") else "idle"
    parts = [f'\nThread {pid} ({state}): "MainThread"\n' + _py_spy_frames(main_frames(scene, view))]
    for offset, (name, frames) in enumerate(_threads(scene, view), 40):
        parts.append(f'Thread {pid + offset} (idle): "{name}"\n' + _py_spy_frames(frames))
    return head + "".join(parts)


def _py_spy_frames(frames: Frames) -> str:
    return "".join(f"    {name} ({_short(file)}:{line})\n" for name, file, line in frames)


def _short(file: str) -> str:
    """Return the file as py-spy shortens it: below the directory of packages, or its name."""
    for mark in ("dist-packages/", "python3.11/"):
        if mark in file:
            return file.partition(mark)[2]
    return file.rpartition("/")[2]


def faulthandler_text(scene: Scene, view: RankView, limit: int) -> str:
    """Return what `faulthandler.dump_traceback_later` prints after `limit` seconds; the main thread is last."""
    threads = [frames for _, frames in reversed(_threads(scene, view))] + [main_frames(scene, view)]
    parts = [
        f"Thread 0x00007f{(view.rank * 0x1F3 + place * 0x10001) % 0xFFFFF:05x}{place:05x} (most recent call first):\n"
        + "".join(f'  File "{file}", line {line} in {name}\n' for name, file, line in frames)
        for place, frames in enumerate(threads)
    ]
    minutes, seconds = divmod(limit, 60)
    return f"Timeout (0:{minutes:02d}:{seconds:02d})!\n" + "\n".join(parts)


def write_py_spy(scene: Scene, rng: random.Random) -> WrittenEvidence:
    """Write a file for each process that is alive."""
    name, pid = rng.choice(_NAMES), rng.randrange(2000, 300000)
    views = [view for view in scene.views() if not view.has_left]
    files = {name.format(view.rank): py_spy_text(scene, view, pid + 71 * view.rank).encode() for view in views}
    return WrittenEvidence(files, _shown(views))


def _shown(views: list[RankView]) -> dict[int, Shown]:
    return {view.rank: Shown(view, has_types=False, has_members=False, has_activity=True) for view in views}


def _faulthandler(is_merged: bool) -> Callable[[Scene, random.Random], WrittenEvidence]:
    def write(scene: Scene, rng: random.Random) -> WrittenEvidence:
        views = [view for view in scene.views() if not view.has_left]
        limit = rng.choice((300, 600, 900))
        texts = {view.rank: faulthandler_text(scene, view, limit) for view in views}
        if not is_merged:
            name = rng.choice(("logs/rank_{}.log", "rank{}.err", "attempt_0/{}/stderr.log"))
            return WrittenEvidence({name.format(rank): text.encode() for rank, text in texts.items()}, _shown(views))
        order = rng.sample(sorted(texts), len(texts))
        return WrittenEvidence({"stderr.log": "".join(texts[rank] for rank in order).encode()}, {}, names_ranks=False)

    return write


FORMS = (
    Form("py-spy", write_py_spy),
    Form("faulthandler", _faulthandler(is_merged=False)),
    Form("faulthandler-one-file", _faulthandler(is_merged=True)),
)
