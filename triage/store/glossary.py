"""The words of people who describe a failure, and the words of the field that the signatures use.

A person writes "graphics card", "saved model" or "the switch between the cards"; a signature says GPU, checkpoint and
NVSwitch. The sentence model does not know these pairs. Entries name things of the field in general. None is made for
one signature.
"""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re
from triage.catalog.model import Signature

_PAIRS = (
    (r"(?:graphics|video|accelerator|display) (?:cards?|chips?|processors?|boards?)", "GPU"),
    (r"ascend (?:cards?|chips?|accelerators?|devices?)", "Ascend NPU"),
    (r"cards?", "GPU device"),
    (r"(?:graphics|video|card|GPU) (?:memory|ram)|vram", "GPU memory"),
    (
        r"(?:saved|stored) (?:model|state|weights|file)(?: file)?s?|model files?|snapshots?|saving|saves?",
        "checkpoint",
    ),
    (r"workers?|process(?:es)?", "rank"),
    (r"(?:cluster|batch|queue|workload) (?:manager|system)|scheduler", "Slurm"),
    (r"(?:allotted|allowed|granted|maximum|wall) (?:hours|time)|run ?time limit", "time limit"),
    (r"machines?|computers?|servers?|boxes", "node host"),
    (r"master|head node", "master address rendezvous"),
    (r"show(?:ed)? up|turn(?:ed)? up|appear(?:ed)?", "join"),
    (r"communication (?:library|thread)", "NCCL"),
    (r"(?:communication|reduction) (?:step|call|operation)|reduction|synchroni[sz]ation", "collective"),
    (r"all-?reduce|broadcast|all-?gather", "collective"),
    (r"not a number", "NaN"),
    (r"drift(?:ed)? apart|different results", "diverge"),
    (r"left-?over|left behind|zombie|orphan(?:ed)?", "residual stale old"),
    (r"RAM", "host memory"),
    (r"lack of memory|memory (?:ran|was) (?:out|full|used up)|used up", "out of memory"),
    (r"vanish(?:ed)?|disappear(?:ed)?|is gone|not seen any more", "lost fallen off the bus"),
    (r"shot|ended by the (?:operating )?system", "killed"),
    (r"operating system", "kernel"),
    (r"(?:helper|loading) process(?:es)?|loads? data|data loading (?:helpers?|process(?:es)?)", "DataLoader worker"),
    (r"cannot be corrected", "uncorrectable ECC"),
    (r"memory chips?", "memory ECC"),
    (r"switch between the (?:cards|gpus)", "NVSwitch fabric manager"),
    (r"(?:cable|link|bridge|connection) between (?:two |the )?(?:cards|gpus)", "NVLink"),
    (r"(?:does not|doesn.t|do not|don.t) (?:answer|reply|get answers)|no answers?", "not responding timeout retry"),
    (r"toolkit", "CUDA"),
    (r"older than", "too old"),
    (r"is taken|occupied|already used", "already in use"),
    (r"no progress|stands? still|stuck", "hang timeout"),
    (r"index outside|out of range", "index out of bounds device-side assert"),
    (r"python lock", "GIL"),
    (r"environment setting", "environment variable"),
)
_FIELD_WORDS = [(lazy_re(rf"\b(?:{pattern})\b", re.IGNORECASE), terms.split()) for pattern, terms in _PAIRS]
_ASCEND = lazy_re(r"\b(?:ascend|npu|hccl|huawei|cann|acl)\b", re.IGNORECASE)
_SUBJECTS = {  # words of which a question names one when it means a special platform; by domain
    "hccl": _ASCEND,
    "npu": _ASCEND,
    "rocm": lazy_re(r"\b(?:amd|amdgpu|rocm|rccl|hip|instinct|radeon)\b", re.IGNORECASE),
    "intel": lazy_re(r"\b(?:intel|xpu|oneccl|level zero|gaudi)\b", re.IGNORECASE),
    "jax": lazy_re(r"\b(?:jax|xla|tpu)\b", re.IGNORECASE),
    "vllm": lazy_re(r"\b(?:vllm|serving|inference|server|engine|kv)\b", re.IGNORECASE),
    "sglang": lazy_re(r"\b(?:sglang|serving|inference|server|engine)\b", re.IGNORECASE),
    "ray": lazy_re(r"\b(?:ray|actors?|raylet)\b", re.IGNORECASE),
    "paddle": lazy_re(r"\bpaddle", re.IGNORECASE),
    "mpi": lazy_re(r"\b(?:mpi|horovod|ucx|mpirun)\b", re.IGNORECASE),
    "kubernetes": lazy_re(r"\b(?:kubernetes|k8s|pods?|containers?|kubelet|images?)\b", re.IGNORECASE),
    "deepspeed": lazy_re(r"\b(?:deepspeed|zero)\b", re.IGNORECASE),
    "triton": lazy_re(r"\b(?:triton|inductor|compil\w*|kernels?)\b", re.IGNORECASE),
}
_CODE = lazy_re(r"\d|\b(?:codes?|xid|sxid)\b", re.IGNORECASE)
_TABLE_ROW = 1.5


def field_words(text: str) -> list[str]:
    """Return the words of the field for what a person wrote, each once, in the order of the glossary."""
    terms = (term for pattern, terms in _FIELD_WORDS if pattern.search(text) for term in terms)
    return list(dict.fromkeys(terms))


def subject_distance(item: Signature, text: str) -> float:
    """Return how far a signature is from the subject of a question, 0 when it is not.

    A signature of a special platform is 1 away from a question that does not name the platform, and a row of a table of
    codes 1.5 away from a question without a number or the word "code".
    """
    if item.table and not _CODE.search(text):
        return _TABLE_ROW
    domain = "rocm" if item.id.startswith("gpu.amdgpu") else item.domain
    subject = _SUBJECTS.get(domain)
    return 0.0 if subject is None or subject.search(text) else 1.0
