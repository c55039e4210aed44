"""Values that drift by node: agreed at first, then each node has its own."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import triage
from triage.model.diagnosis import Finding

SINCE = 61
STEPS = 140
Side = Callable[[int, int], float]


def norm(step: int, kind: int = 0) -> float:
    """A value of the step that all ranks compute."""
    return random.Random(step * 31 + kind).uniform(0.5, 2)


def drifted(step: int, side: float, since: int = SINCE) -> float:
    """The value of one side, which goes its own way since a step."""
    return norm(step) * (1 + (0.02 * side if step >= since else 0))


def write_job(
    directory: Path,
    line: str,
    *,
    nodes: int = 2,
    per_node: int = 2,
    side_of: Callable[[int, int], float] = lambda node, local: node,
    head: Callable[[int, int], str] = lambda node, rank: "",
    end: str = "",
) -> Path:
    """One file for each rank in a directory for each node; nodes are named n1, n2 …"""
    for node in range(nodes):
        for local in range(per_node):
            rank = node * per_node + local
            rows = []
            for step in range(1, STEPS + 1):
                value = drifted(step, side_of(node, local))
                digest = hashlib.md5(f"{value:.9f}".encode()).hexdigest()
                rows.append(line.format(rank=rank, local=local, step=step, v=value, digest=digest, total=STEPS))
            path = directory / f"node{node + 1}" / f"rank{rank}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(head(node, rank) + "\n".join(rows) + "\n" + end.format(rank=rank))
    return directory


def root(directory: Path) -> Finding | None:
    """The root cause of a job."""
    return triage.ingest(directory).root_cause


@pytest.mark.parametrize(("since", "is_drift"), [(SINCE, True), (1, False)])
def test_all_ranks_of_a_shared_file_are_compared_from_their_first_steps(
    since: int, is_drift: bool, tmp_path: Path
) -> None:
    """Sixteen ranks print a long line each: their first step is behind the start of the file that the scan keeps."""
    rows = [f"rank {rank} of 16 on n{rank // 8}" for rank in range(16)]
    for step in range(1, STEPS + 1):
        for rank in range(16):
            rows.append(f"[rank{rank}]: step {step} loss {drifted(step, rank // 8, since):.7f} {'x' * 600}")
    (tmp_path / "job.log").write_text("\n".join(rows) + "\n")
    cause = root(tmp_path)
    assert (cause is not None and cause.signature == "numeric.rank-divergence") is is_drift


STYLES = [
    "2026-03-04 05:00:01 [rank {rank}] INFO step {step} loss 2.1 grad_norm {v:.4f}",
    "[rank{rank}]: {{'loss': {v:.4f}, 'grad_norm': 1.25, 'step': {step}}}",
    "INFO rank={rank} step={step} param_checksum=0x{digest:.16}",
    "[{rank}] iter {step}: grad norm: {v:.3f}",
    "rank {rank} | {step}/{total} | gnorm {v:.4f}",
    "Rank {rank} iteration {step:>6}/ {total:>6} | global_grad_norm: {v:.6E} |",
    "Rank {rank} step {step} weight_md5: {digest}",
    "Rank {rank} step {step} loss (all-reduced): {v:.4f}",
    "Rank {rank} global_step: {step} embed.weight grad_sum = {v:.5f}",
    "rank {rank} step {step} param_l2=tensor({v:.4f}, device='cuda:{local}')",
]


@pytest.mark.parametrize("line", STYLES, ids=range(len(STYLES)))
def test_two_nodes_that_agreed_and_differ(tmp_path: Path, line: str) -> None:
    """In any style and for any name of the value: nodes, last equal and first differing step are named."""
    result = root(write_job(tmp_path, line))
    assert result is not None
    assert (result.signature, result.ranks, result.hosts) == (
        "numeric.rank-divergence",
        (0, 1, 2, 3),
        ("node1", "node2"),
    )
    text = result.evidence[0].text
    assert f": node1 and node2 agreed until step {SINCE - 1}, differ since step {SINCE} (" in text


def test_the_end_of_the_job_does_not_make_up_for_a_drift(tmp_path: Path) -> None:
    """A job that finished while its nodes differed is not clean."""
    line = "[rank{rank}]: step {step} grad_norm={v:.6f}"
    diagnosis = triage.ingest(write_job(tmp_path, line, end="[rank{rank}]: training complete\n"))
    assert diagnosis.verdict == "known"
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.signature == "numeric.rank-divergence"


@pytest.mark.parametrize(("nodes", "odd"), [(3, 1), (4, 2)])
def test_one_node_drifts(tmp_path: Path, nodes: int, odd: int) -> None:
    """Of three or four nodes the one that differs is named, with its ranks."""
    line = "[rank{rank}]: step {step} grad_norm={v:.6f}"
    result = root(write_job(tmp_path, line, nodes=nodes, side_of=lambda node, local: float(node == odd)))
    assert result is not None
    assert (result.ranks, result.hosts) == ((2 * odd, 2 * odd + 1), (f"node{odd + 1}",))
    text = result.evidence[0].text
    assert text.startswith(f"grad_norm: node{odd + 1} (ranks {2 * odd}-{2 * odd + 1}) differs from node1")
    assert text.endswith(f"; all agreed until step {SINCE - 1}")


def test_two_pairs_of_nodes(tmp_path: Path) -> None:
    """The nodes that still agree with each other are named together."""
    line = "[rank{rank}]: step {step} grad_norm={v:.6f}"
    result = root(write_job(tmp_path, line, nodes=4, per_node=1, side_of=lambda node, local: float(node > 1)))
    assert result is not None
    assert "node1, node2, node3 and node4 agreed until step 60" in result.evidence[0].text
    assert "node1 and node2 agree; node3 and node4 agree" in result.evidence[0].text


@pytest.mark.parametrize("line", ["[default{local}]:step {step} grad_norm={v:.6f}", "step {step} grad_norm={v:.6f}"])
def test_nodes_known_only_by_their_files(tmp_path: Path, line: str) -> None:
    """Without global ranks the nodes are named, and no rank."""
    for node in range(2):
        rows = (
            line.format(local=local, step=step, v=drifted(step, node))
            for step in range(1, STEPS + 1)
            for local in range(2)
        )
        (tmp_path / f"node{node + 1}.log").write_text("\n".join(rows) + "\n")
    result = root(tmp_path)
    assert result is not None
    assert (result.signature, result.hosts) == ("numeric.rank-divergence", ("node1", "node2"))
    assert "node1 and node2 agreed until step 60, differ since step 61" in result.evidence[0].text


def test_a_rank_of_two_nodes_is_a_local_rank(tmp_path: Path) -> None:
    """Files called rank0.log in the directories of two nodes are of two processes."""
    for node in range(2):
        for rank in range(2):
            rows = (f"[rank{rank}]: step {step} grad_norm={drifted(step, node):.6f}\n" for step in range(1, 100))
            path = tmp_path / f"node{node + 1}" / f"rank{rank}.log"
            path.parent.mkdir(exist_ok=True)
            path.write_text("world_size=4\n" + "".join(rows))
    result = root(tmp_path)
    assert result is not None
    assert "node1 and node2 agreed until step 60" in result.evidence[0].text


SETTINGS = [
    ("+ export NCCL_ALGO={}", "Ring", "Tree"),
    ("export NVIDIA_TF32_OVERRIDE={}", "0", "1"),
    ("using torch {}+cu124, nccl 2.21.5", "2.4.0", "2.4.1"),
    ("cudnn version {}", "9.1.0", "9.3.0"),
    ("torch.backends.cuda.matmul.allow_tf32={}", "False", "True"),
    ("HCCL_DETERMINISTIC={}", "true", "false"),
]


@pytest.mark.parametrize(("text", "one", "other"), SETTINGS, ids=[text for text, _, _ in SETTINGS])
@pytest.mark.parametrize("end", ["", "[rank{rank}]: training complete\n"], ids=["cut", "finished"])
def test_a_setting_along_the_same_line_is_the_cause(tmp_path: Path, text: str, one: str, other: str, end: str) -> None:
    """A variable, a version or a switch that differs between the same nodes explains the drift."""
    line = "[rank{rank}]: step {step} grad_norm={v:.6f}"

    def head(node: int, rank: int) -> str:
        return f"[rank{rank}]: world_size=6\n{text.format(other if node == 1 else one)}\n"

    result = root(write_job(tmp_path, line, nodes=3, side_of=lambda node, _: float(node == 1), head=head, end=end))
    assert result is not None
    assert (result.signature, result.ranks, result.hosts) == ("config.env-mismatch", (2, 3), ("node2",))
    assert result.evidence[0].text.endswith("; grad_norm differs between the same ranks")


def test_a_remark_on_another_line_is_no_cause(tmp_path: Path) -> None:
    """A harmless setting that differs between other ranks than the drift stays a remark."""
    line = "[rank{rank}]: step {step} grad_norm={v:.6f}"
    directory = write_job(tmp_path, line, head=lambda node, rank: f"cudnn version 9.{rank % 2}.0\n")
    result = root(directory)
    assert result is not None
    assert result.signature == "numeric.rank-divergence"


def test_a_seed_along_the_same_line_is_mentioned(tmp_path: Path) -> None:
    """What was printed before training and differs between the same nodes stands in the sentence."""
    line = "[rank{rank}]: step {step} grad_norm={v:.6f}"
    result = root(write_job(tmp_path, line, head=lambda node, rank: f"[rank{rank}]: seed: {42 + node}\n"))
    assert result is not None
    assert result.evidence[0].text.endswith("; seed differs in the same way (42 and 43)")


FIXED = [
    "number of parameters: {}",
    "total_params={}",
    "seed={}",
    "data_hash: {:016x}",
    "embedding shape: torch.Size([{}, 64])",
]


@pytest.mark.parametrize("text", FIXED)
def test_one_rank_starts_with_something_else(tmp_path: Path, text: str) -> None:
    """A parameter count, a shape, a seed or a hash of the data that one of four ranks has alone is a finding."""
    line = "[rank{rank}]: step {step} loss {v:.2f}"

    def head(node: int, rank: int) -> str:
        return f"[rank{rank}]: {text.format(124439808 + (rank == 3))}\n"

    result = root(write_job(tmp_path, line, side_of=lambda *_: 0, head=head))
    assert result is not None
    assert (result.signature, result.ranks) == ("numeric.rank-divergence", (3,))


@pytest.mark.parametrize(
    "heads",
    [
        lambda node, rank: f"[rank{rank}]: seed: {42 + rank}\n",
        lambda node, rank: f"[rank{rank}]: number of parameters: {1000 + node}\n",
        lambda node, rank: f"[rank{rank}] > number of parameters on model parallel rank ({rank}): {9 + (rank == 3)}\n",
        lambda node, rank: f"[rank{rank}]: pipeline_parallel_size=4\n[rank{rank}]: total params {10 + (rank == 3)}\n",
    ],
    ids=["own seeds", "halves", "parts", "pipeline"],
)
def test_fixed_values_that_differ_by_design(tmp_path: Path, heads: Callable[[int, int], str]) -> None:
    """Own seeds and the sizes of pipeline stages are no finding."""
    line = "[rank{rank}]: step {step} loss {v:.2f}"
    assert root(write_job(tmp_path, line, side_of=lambda *_: 0, head=heads)) is None


QUIET: dict[str, Callable[[int, int], str]] = {
    "tensor parallel halves": lambda rank, step: f"grad_norm={norm(step, rank % 2):.5f} lm loss: {norm(step):.4f}",
    "pipeline stages": lambda rank, step: f"grad_norm={norm(step, rank // 2):.5f} param_hash={norm(0, rank // 2):.9f}",
    "stages on nodes": lambda rank, step: f"param_checksum=0x{int(norm(step, rank // 4) * 1e15):x}",
    "own losses": lambda rank, step: f"loss {norm(step, rank):.5f}",
    "own losses after equal ones": lambda rank, step: f"loss {10.8249 if step < 5 else norm(step, rank):.4f}",
    "skipped steps, then halves": lambda rank, step: f"grad_norm={'inf' if step < 5 else norm(step, rank // 4)}",
    "zero, then halves": lambda rank, step: f"grad_norm={0 if step < 5 else norm(step, rank // 4):.5f}",
    "clipped, then halves": lambda rank, step: f"grad_norm={1 if step < 30 else norm(step, rank // 4):.5f}",
    "last digit at times": lambda rank, step: f"grad_norm={norm(step) + 6e-4 * (rank > 3 and step % 7 == 0):.3f}",
    "last digit always": lambda rank, step: f"grad_norm={norm(step) * (1 + 1e-4 * (rank > 3)):.3f}",
    "last digit, exponent": lambda rank, step: f"grad norm: {norm(step) * (1 + 2e-6 * (rank > 3)):.4E}",
    "noise of changing ranks": lambda rank, step: (
        f"grad_norm={norm(step) * (1 + 3e-5 * (random.Random(step * 99 + rank).random() < 0.2)):.6f}"
    ),
    "one step alone": lambda rank, step: f"grad_norm={norm(step) * (1.5 if rank == 3 and step == 57 else 1):.6f}",
}


@pytest.mark.parametrize("value", QUIET.values(), ids=QUIET)
def test_what_differs_by_design_or_by_rounding_is_clean(tmp_path: Path, value: Callable[[int, int], str]) -> None:
    """Values that never agreed, that agree only where all agree, and rounding are no drift."""
    for rank in range(8):
        path = tmp_path / f"node{rank // 4 + 1}" / f"rank{rank}.log"
        path.parent.mkdir(exist_ok=True)
        rows = "".join(f"[rank{rank}]: step {step} {value(rank, step)}\n" for step in range(1, 61))
        path.write_text(f"{rows}[rank{rank}]: training complete\n")
    assert triage.ingest(tmp_path).verdict == "clean"


def test_settings_are_read_behind_any_prefix(tmp_path: Path) -> None:
    """Settings of NCCL in the records of a collector have the same values and writers as in plain lines."""
    line = "n{node}:{pid}:{pid} [{local}] NCCL INFO "
    for name, form in (("json", '{{"log":"{0}\\n","stream":"stderr"}}\n'), ("compose", "trainer-{1}  | {0}\n")):
        for node in (1, 2):
            rows = ""
            for local in range(2):
                start = line.format(node=node, pid=node * 100 + local, local=local)
                rank = 2 * node + local - 2
                for text in (
                    f"NCCL_ALGO set by environment to {'Ring' if node == 1 else 'Tree'}.",
                    f"comm 0x55 rank {rank} nranks 4 cudaDev {local} nvmlDev {local} busId 1b000 - Init COMPLETE",
                    f"[rank{rank}]: RuntimeError: wrong sum",
                ):
                    rows += form.format(start + text, node)
            path = tmp_path / name / f"n{node}.log"
            path.parent.mkdir(exist_ok=True)
            path.write_text(rows)
        diagnosis = triage.ingest(tmp_path / name)
        findings = [one for one in diagnosis.findings if one.signature == "config.env-mismatch"]
        assert len(findings) == 1, name
        assert findings[0].ranks in ((0, 1), (2, 3), (0, 1, 2, 3))
        texts = [fact.text for fact in findings[0].evidence]
        assert "NCCL_ALGO is Ring on" in texts[0]
        assert "Tree on" in texts[0]
        assert "stream" not in texts[0], texts


def test_numbers_of_parameters_and_hashes_of_one_rank(tmp_path: Path) -> None:
    """A rank that prints another number of parameters, or another hash of its data, than all others is named."""
    for form, usual, other in (
        ("number of parameters on rank {0}: {1}", "124439808", "124440576"),
        (" > number of parameters on rank ({0}): {1}", "124439808", "124440576"),
        ("[rank{0}] corpus hash {1}", "9f86d081884c7d65", "60303ae22b998861"),
        ("[rank{0}] tokenizer.json md5={1}", "9f86d081884c7d65", "60303ae22b998861"),
    ):
        for rank in range(4):
            text = form.format(rank, other if rank == 2 else usual)
            (tmp_path / f"rank{rank}.log").write_text(f"{text}\n[rank{rank}]: RuntimeError: data differ\n")
        one = root(tmp_path)
        assert one is not None
        assert (one.signature, one.ranks) == ("numeric.rank-divergence", (2,)), form
