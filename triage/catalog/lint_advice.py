"""Rules about roles and advice: costly actions, placeholders, captures that decide, references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from triage.base.lazy_re import lazy_re
from triage.catalog.branches import (
    Conjunction,
    find_groups,
    is_bound,
    iter_patterns,
    list_branches,
    list_certain_captures,
)
from triage.catalog.match import positive_leaves
from triage.catalog.model import Leaf, Signature
from triage.catalog.problems import Remark
from triage.catalog.remediation import PLACEHOLDERS, fill_remediation

ENDS = frozenset({"ending", "waiting", "peer-lost"})  # what tells how something ended, but not why
# What the summary says of each costly action.
COSTLY: Mapping[str, str] = {
    "drain-node": r"\b(?i:drain|cordon|out of (?:the )?(?:queue|service|scheduling))",
    "reset-gpu": r"\b(?i:reset|reboot|power.?cycle|reload)",
    "contact-vendor": r"\b(?i:vendor|support\b|report|RMA\b|return|manufacturer|NVIDIA|Huawei|AMD\b|AWS\b|Intel\b)",
}
# Captures that name the device, so that a single line of the kernel proves which hardware failed.
DEVICES = frozenset(
    (
        *("bdf", "bus", "bus_id", "busid", "card", "chip", "dev", "device", "devices", "disk", "eid", "gpu", "gpus"),
        *("hca", "interface", "link", "mount", "npu", "path", "pci", "port", "xid"),
    )
)
# A pattern with one of these reads the log of the kernel or of a driver in it.
_KERNEL_LOG = lazy_re(
    r"NVRM|SXid|Xid|mlx[45]_|EDAC|Hardware Error|PCIe Bus Error|\bAER\b|nvswitch|bnxt_en|EXT4-fs|XFS|I/O error, dev"
    r"|medium error, dev|BTRFS|nvme|mce:|devdrv|ascend_|hns3|amdgpu"
)
DECIDING = lazy_re(r"(?:.+_)?(?:reason|error|status|signal|code)")
_VERBS = lazy_re(r"\b(?i:drain|RMA|reseat|(?:reset|replace|(?<!not )delete) (?:the|it|its|this|that))\b")
_CONDITION = lazy_re(r"(?i)\b(?:if|when|where|once|only|unless|after|until|before|not|while|whether|or)\b")
_SENTENCE = lazy_re(r"(?<=[.!?;:]) +")
_PARENTHESES = lazy_re(r"\([^()]*\)")
_PLACEHOLDER = lazy_re(r"\{([A-Za-z_]\w*)\}")


def check_advice(signature: Signature) -> Iterator[Remark]:
    """Problems of the role, the action and the summary of one signature."""
    if signature.status == "deprecated":
        return
    yield from _check_role(signature)
    yield from _check_cost(signature)
    yield from _check_placeholders(signature)
    yield from _check_summary_alone(signature)
    yield from _check_deciding_captures(signature)
    yield from _check_references(signature)


def _check_role(signature: Signature) -> Iterator[Remark]:
    if signature.role == "cause" and signature.indicates in ENDS:
        message = f"a cause cannot have `tells: {signature.indicates}`, which says how something ended, but not why"
        yield "error", ("role",), message, "set `role: symptom` or `either`, or leave `tells` out"
    if signature.role == "noise" and signature.action != "none":
        message = f"noise has the action {signature.action}"
        yield "error", ("remediation", "action"), message, "set `action: none`, or another role"
    if signature.role == "noise" and signature.severity != "info":
        message = f"noise has the severity {signature.severity}"
        yield "error", ("severity",), message, "set `severity: info`, or another role"


def _check_cost(signature: Signature) -> Iterator[Remark]:
    costly = signature.action in COSTLY
    verb = _find_order(signature.summary)
    if signature.match is None or not (costly or verb):
        return
    what = f"the action {signature.action}" if costly else f"the order {verb!r}"
    place = ("remediation", "action" if costly else "summary")
    if signature.role != "cause":
        message = f"{what} is costly, but the role is {signature.role}"
        hint = "give a cheaper action, and name the costly step last in `steps` with its condition; or prove the cause"
        yield "error", place, message, hint
    elif not all(map(_is_proved, list_branches(signature.match))):
        message = f"{what} is costly, but a branch of `match` rests on one source"
        hint = (
            "add a second fact of another kind or component under `all`, or capture the device in a line of the kernel "
            f"({', '.join(sorted(DEVICES)[:6])} …); or give a cheaper action"
        )
        yield "error", place, message, hint
    if costly and not lazy_re(COSTLY[signature.action]).search(signature.summary):
        hint = "say in the summary what to do, or give a cheaper action"
        yield "error", ("remediation", "summary"), f"the summary does not say the action {signature.action}", hint


def _find_order(summary: str) -> str:
    """The costly verb that a sentence of the summary orders without a condition."""
    for sentence in _SENTENCE.split(summary):
        verb = _VERBS.search(sentence)
        if verb is not None and not _CONDITION.search(sentence):
            return verb[0]
    return ""


def _is_proved(branch: Conjunction) -> bool:
    """Whether two sources agree, or the kernel (or the driver in its log) names the device that failed."""
    origins = {(leaf.kind, leaf.component, _is_of_kernel(leaf)) for leaf in branch if not leaf.context}
    return len(origins) > 1 or any(map(_names_device, branch))


def _names_device(leaf: Leaf) -> bool:
    return "xid" in leaf.fields or (_is_of_kernel(leaf) and not list_certain_captures([leaf]).isdisjoint(DEVICES))


def _is_of_kernel(leaf: Leaf) -> bool:
    return "kernel" in (leaf.kind, leaf.component) or _KERNEL_LOG.search(leaf.text or "") is not None


def _check_placeholders(signature: Signature) -> Iterator[Remark]:
    """Names outside of parentheses must be captured by every branch; what has no value takes its sentence with it."""
    used = set(_PLACEHOLDER.findall(_PARENTHESES.sub("", signature.summary))) - PLACEHOLDERS
    branches = list_branches(signature.match)
    for name in sorted(
        used & {name for branch in branches for one in iter_patterns(branch) for name in find_groups(one).inner}
    ):
        lacking = [branch for branch in branches if name not in list_certain_captures(branch)]
        if lacking:
            text = next(iter_patterns(lacking[0]), lacking[0][0].kind or "")
            message = f"the summary uses {{{name}}}, which is not certain to be captured by: {text}"
            hint = f"add (?P<{name}>…) to it, or write the summary without it (or in parentheses, which are left out)"
            yield "error", ("remediation", "summary"), message, hint


def _check_summary_alone(signature: Signature) -> Iterator[Remark]:
    """Where no log fills in the captures, as on a page of the catalog, something of the summary must be left."""
    if signature.summary and not fill_remediation(signature, {}).summary:
        message = "nothing is left of the summary where no capture is known"
        hint = "put the placeholders into parentheses, or into a sentence of their own"
        yield "error", ("remediation", "summary"), message, hint


def _check_deciding_captures(signature: Signature) -> Iterator[Remark]:
    if signature.role != "cause" or signature.table:
        return
    shown = set(_PLACEHOLDER.findall(f"{signature.summary} {signature.title}"))
    free = {
        name
        for pattern in iter_patterns(positive_leaves(signature.match))
        for name, inner in find_groups(pattern).inner.items()
        if DECIDING.fullmatch(name) and not all(map(is_bound, inner))
    }
    for name in sorted(free - shown):
        message = f"the capture {name} takes any value, and the summary does not show it"
        hint = f"list the values, (?P<{name}>one|two), or show {{{name}}} in the summary, or rename the group"
        yield "error", ("match",), message, hint


def _check_references(signature: Signature) -> Iterator[Remark]:
    for index, url in enumerate(signature.references):
        if not url.startswith("https://"):
            yield "error", ("references", index), f"the address is not https: {url}", "give an address with https://"
    if needs_reference(signature) and not signature.references:
        message = "no reference says that this is the cause, or that the action helps"
        yield "info", (), message, "add `references:` with a page of the vendor, a source file or a public thread"


def needs_reference(signature: Signature) -> bool:
    """Whether a reference must say what the signature claims: a cause, or a costly action."""
    is_live = signature.match is not None and signature.status != "deprecated"
    return is_live and (signature.role == "cause" or signature.action in COSTLY)
