"""Environment variables and versions, from dumps and from lines of logs that state them, without secrets.

Names in capitals are variables, names in small letters are programs with their version: `NCCL_ALGO`, `torch`, `driver`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from triage.base.digit_masks import ask_masked, list_masks
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import widen_digits
from triage.evidence import health
from triage.evidence.redact import redact
from triage.sources.environment_dumps import is_gpu_query

# Only variables that may affect training are read; the rest of an environment is private.
_RELEVANT = lazy_re(
    r"(?:NCCL|RCCL|HCCL|LCCL|TORCH|TORCHELASTIC|TORCHINDUCTOR|PYTORCH|CUDA|CUBLAS|CUDNN|ASCEND|ATB|ACL|NPU|NVTE|NVIDIA|GLOO|UCX|UCC|FI|IBV|RDMAV"
    r"|OMP|MKL|KMP|GOMP|OPENBLAS|HSA|HIP|ROCR|MIOPEN|TRITON|XLA|JAX|TF|DS|DEEPSPEED|ACCELERATE|MEGATRON|FLASH|VLLM|TOKENIZERS|PYTHONHASHSEED"
    r"|MALLOC|TASK|CLOSE|COMBINED|MULTI|MS|GE|OP|P2P|INF|CPU|LOCAL|WORLD|MASTER|GROUP|ROLE|NODE|SLURM|OMPI_COMM_WORLD|PMI|PMIX|RANK)(?:_[A-Z0-9_]+)?"
    r"|LD_PRELOAD|LD_LIBRARY_PATH|HOSTNAME|PATH"
)
_SECRET = lazy_re(r"(?i)key|token|secret|passw|credential|auth|cookie|session")
HEALTH = "health-"  # begins the names of fields with faulty devices
LONGEST_VALUE = 400
LONGEST_LINE = 1 << 14

# Programs print settings at the start of a text. Bytes that are read of all starts together, and of one at most; the
# head that the scan keeps is always searched.
MAX_TOTAL_BYTES = 1 << 25
MAX_BYTES_PER_TEXT = 1 << 20
_LONGEST_MASKED = 1 << 16  # bytes of a start that other rooms mask too
NCCL_HINT = b" set by environment to "
_STATES_SETTING = (
    rb"(?:NCCL_[A-Z0-9_]+ set to |[ot]rch[_-]?(?:npu)?(?:\.__version__)? ?(?:version)? ?[:=] ?\d|NCCL version 2"
    rb"|Driver Version: \d|CANN[ _-]?[Vv]?e?r?s?i?o?n? ?[:=] ?\d|CUDA used to build|environ\(?\{"
    rb"|deterministic|cudnn|cuDNN|allow_tf32|matmul_precision"
    rb"|(?:orch|nccl|NCCL|cann|driver)(?: version)?[ :]{1,3}v?\d+\.\d"
    rb"|(?:^|[ \t\"'])(?:NCCL|HCCL|LCCL|TORCH|PYTORCH|CUDA|CUBLAS|ATB|ASCEND|GLOO|NVTE|FLASH|MASTER|WORLD|TASK|CLOSE"
    rb"|NVIDIA|CUDNN|TRITON|XLA|MKL|OMP)_[A-Z0-9_]+=|\bPYTHONHASHSEED=)"
)
_NAME = r"[A-Z][A-Z0-9_]{2,63}"
_VALUE = r"(?:'[^']*'|\"[^\"]*\"|[^\s;'\"]*)"
_BY_NCCL = lazy_re(rf"NCCL (?:INFO|WARN) ({_NAME}) set (?:by environment )?to (.+?)\.?$")
_ASSIGNED = lazy_re(
    rf"(?:\+ )?(?:(?:export|declare -x|typeset -x|env:|environment:) *)?({_NAME}={_VALUE})"
    rf"((?:[ ;]+{_NAME}={_VALUE})*)\s*$"
)
_COMMAND = lazy_re(
    rf"\+ (?:env |exec )?((?:{_NAME}={_VALUE} +)+)(?:\S*(?:python|torchrun|srun|mpirun|deepspeed|accelerate))"
)
_EXPORTED = lazy_re(rf"\bexport ({_NAME}={_VALUE}) *;")
_DICT = lazy_re(r"environ\(?\{(.*)\}")
_DICT_PAIR = lazy_re(rf"['\"]({_NAME})['\"]: ['\"]([^'\"]*)['\"]")
_PAIR = lazy_re(rf"({_NAME})=({_VALUE})")
_VERSION = r"v?(\d+(?:\.\w+)+(?:[.+-]\w+)*)"
_VERSIONS = (
    ("nccl", lazy_re(rf"NCCL version {_VERSION}|Nvidia NCCL(?: runtime)? version: {_VERSION}")),
    ("torch", lazy_re(rf"(?i)\b(?:py)?torch version *[:=] ?{_VERSION}|\btorch(?:\.__version__)? ?[:=] ?{_VERSION}")),
    ("torch-npu", lazy_re(rf"(?i)\btorch[_-]npu(?: version)? ?[:=]+ ?{_VERSION}")),
    ("cann", lazy_re(rf"(?i)\bCANN(?:[ _-]?version)? ?[:=] ?{_VERSION}")),
    ("driver", lazy_re(rf"Driver Version: {_VERSION}|Nvidia driver version: {_VERSION}")),
    ("cuda-driver", lazy_re(rf"CUDA Version: {_VERSION}")),
    ("npu-smi", lazy_re(rf"npu-smi {_VERSION}")),
    ("cuda", lazy_re(rf"CUDA used to build PyTorch: {_VERSION}|CUDA runtime version: {_VERSION}")),
    ("python", lazy_re(rf"^Python version: {_VERSION}")),
    ("glibc", lazy_re(rf"^Libc version: glibc-{_VERSION}")),
    ("cudnn", lazy_re(rf"cuDNN version: \S*?{_VERSION}")),
)
# Switches that programs print, by torch's names: `cudnn.benchmark=False`, `use_deterministic_algorithms(True)`.
_SWITCH = lazy_re(
    r"(?i)(?<![\w`'.-])(?:torch\.)?(?:backends\.)?(?:cuda\.)?(?:matmul\.)?['\"]?(?:--)?(?P<name>use_deterministic_algorithms"
    r"|deterministic(?:_algorithms)?|cudnn[._]deterministic|cudnn[._]benchmark|(?:cudnn[._])?allow_tf32"
    r"|float32_matmul_precision)['\"]?(?: ?[:=(] ?| )['\"]?(?P<value>true|false|on|off|[01]\b|high(?:est)?|medium)"
)
# `torch 2.4.0+cu121, nccl 2.20.5`: a banner, where nothing but versions follows.
_BANNER = lazy_re(
    rf"(?i)(?<![\w-])(py)?(?P<name>torch|nccl|cudnn|cann|torch_npu|driver)(?: version)?[ :=]{{1,3}}"
    rf"{_VERSION}(?=[,;|)]|\s*$)"
)
_PACKAGE = lazy_re(
    r"(?:\[(?:pip|conda)\d?\] )?([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[\w,]+\])?(?:==|\s+)v?(\d[\w.!+-]*)(?:\s.*)?$"
)
_SOURCE = lazy_re(r"([A-Za-z0-9][A-Za-z0-9._-]*) @ (?:\S*/)?([^\s/]+)$")
_DEVICE = lazy_re(
    r"\| *\d+ +(NVIDIA [\w -]+?|Tesla [\w -]+?|\d{3}\w+) +(?:On|Off|\|)"
    r"|^GPU \d+: (.+?)(?: \(UUID: .*)?$"
    r"|\| *\d+ +(\d{3}[A-Z]\w*) +\|"
)
_PACKAGES = {
    "nvidia-nccl-cu11": "nccl",
    "nvidia-nccl-cu12": "nccl",
    "nvidia-nccl-cu13": "nccl",
    "torch_npu": "torch-npu",
}
_SWITCH_NAMES = {"deterministic_algorithms": "use_deterministic_algorithms"}

Pair = tuple[str, str]


def count_start_bytes(texts: int) -> int:
    """Return how many bytes of the start of each text are searched, where a job has so many texts."""
    return min(MAX_BYTES_PER_TEXT, MAX_TOTAL_BYTES // max(1, texts))


def round_start_bytes(texts: int) -> int:
    """Return at least as many bytes, and the same for nearly equal numbers of texts: a job may still grow."""
    return 1 << max(0, count_start_bytes(texts) - 1).bit_length()


def may_state_settings(start: bytes) -> bool:
    """Whether the start of a text may state a setting."""
    if len(start) <= _LONGEST_MASKED and not any(_may_state_setting.of_masks(list_masks(start))):
        return False
    return NCCL_HINT in start or setting_pattern().search(start) is not None


@ask_masked
def _may_state_setting(line: bytes) -> bool:
    return NCCL_HINT in line or _with_any_digit().search(line) is not None


@cache
def setting_pattern() -> Any:
    """A pattern of lines that may state a setting; over bytes, in time linear in them."""
    return _compile(_STATES_SETTING)


@cache
def _with_any_digit() -> Any:
    """The same for masks."""
    return _compile(widen_digits(_STATES_SETTING.decode()).encode())


def _compile(pattern: bytes) -> Any:
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(b"(?m)" + pattern, options)


def settings_in_line(line: str) -> list[Pair]:
    """Return the settings and versions that a line of a log states, without its prefixes. Advice states none."""
    text = line[:LONGEST_LINE].strip()
    if by_nccl := _BY_NCCL.search(text):
        return list(_relevant([(by_nccl[1], by_nccl[2].strip())]))
    if assigned := _ASSIGNED.match(text):
        return list(_relevant(_pairs(assigned.group())))
    if command := _COMMAND.search(text):
        return list(_relevant(_pairs(command[1])))
    if exported := _EXPORTED.findall(text):
        return list(_relevant(pair for part in exported for pair in _pairs(part)))
    if mapping := _DICT.search(text):
        return list(_relevant(_DICT_PAIR.findall(mapping[1])))
    stated = dict(versions_in_line(text))
    for match in _BANNER.finditer(text):
        stated.setdefault(match["name"].lower().replace("_", "-"), _release(match[3]))
    return [*stated.items(), *_switches(text)]


def _switches(text: str) -> Iterator[Pair]:
    for match in _SWITCH.finditer(text):
        name = match["name"].lower().replace(".", "_")
        yield _SWITCH_NAMES.get(name, name), match["value"].lower()


def versions_in_line(text: str) -> Iterator[Pair]:
    """Yield the versions that a line states."""
    for name, pattern in _VERSIONS:
        if match := pattern.search(text):
            yield name, _release(next(group for group in match.groups() if group))


def settings_in_dump(data: bytes) -> dict[str, tuple[str, int, int]]:
    """Return name to (value, offset, line) of all settings in a dump; the first of several values counts."""
    settings: dict[str, tuple[str, int, int]] = {}
    separator = b"\0" if b"\0" in data else b"\n"
    offset, packages = 0, data.lstrip().startswith(b"Package ")
    for number, raw in enumerate(data.split(separator), 1):
        line = raw.decode("utf-8", "replace").rstrip("\r")
        for name, value in _of_dumped(line, packages):
            settings.setdefault(name, (value, offset, 1 if separator == b"\0" else number))
            if name == "device":
                settings["devices"] = (str(1 + int(settings.get("devices", ("0",))[0])), offset, number)
        offset += len(raw) + 1
    for number, fault in enumerate(
        health.device_faults(data.decode("utf-8", "replace"))
        if b"smi " in data.lower() or b"NVSMI" in data or is_gpu_query(data)
        else ()
    ):
        settings[f"{HEALTH}{number}"] = (health.pack_fault(fault), 0, fault.line)
    return settings


def _of_dumped(line: str, packages: bool) -> list[Pair]:
    text = line.removeprefix("export ").removeprefix("declare -x ").removeprefix("typeset -x ")
    name, equals, value = text.partition("=")
    if equals and not value.startswith("=") and re.fullmatch(r"[A-Za-z_]\w*", name):
        return list(_relevant([(name, _unquoted(value))]))
    device = _DEVICE.search(line)
    if device is not None:
        return [("device", next(group for group in device.groups() if group).strip())]
    stated = list(versions_in_line(line))
    if stated:
        return stated
    package = _PACKAGE.match(line) if "==" in line or line.startswith("[") or packages else None
    match = package or _SOURCE.match(line)
    if match is None:
        return []
    name = match[1].lower()
    return [(_PACKAGES.get(name, name.replace("_", "-")), redact(_release(match[2]))[:LONGEST_VALUE])]


def _pairs(text: str) -> list[Pair]:
    return [(name, _unquoted(value)) for name, value in _PAIR.findall(text)]


def _relevant(pairs: Iterator[Pair] | list[Pair]) -> Iterator[Pair]:
    for name, value in pairs:
        if _is_relevant(name):
            yield name, _without_secrets(name, value)


@lru_cache(maxsize=1 << 12)
def _is_relevant(name: str) -> bool:
    return _RELEVANT.fullmatch(name) is not None and not _SECRET.search(name)


@lru_cache(maxsize=1 << 12)
def _without_secrets(name: str, value: str) -> str:
    """Return the value without secrets; cached, because thousands of ranks have the same."""
    return redact(f"{name}={value}").removeprefix(f"{name}=")[:LONGEST_VALUE]


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def _release(version: str) -> str:
    """Return the version without its build: 2.6.0+cu124 and 2.6.0 are one release."""
    return version.partition("+")[0]
