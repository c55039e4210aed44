"""Forms of Python: exceptions with or without a traceback, argument parsers, the interpreter's own messages."""

from __future__ import annotations

from triage.evidence.endings.interface import HINT, INNER_MESSAGE, MESSAGE, Form, strong, weak

_TYPE = r"(?:[A-Za-z_$][\w$]*(?:\.|::)){0,10}[A-Z][\w$]*"
_KINDS = r"(?:Error|Exception|Fault|Failure|Panic|Interrupt|Violation|Mismatch|Denied|Aborted)"
_DETAIL = r"(?:\[[^\]]{1,80}\]|\([\w. ]{1,80}\))?"

FORMS: tuple[Form, ...] = (
    strong(
        "exception",
        "any",
        rf"^(?P<type>{_TYPE}{_KINDS}|(?:Base)?Exception){_DETAIL}(?:: +\S|:$| \(|$)",
        "RuntimeError: mesh axis 'tp' has size 6",
        INNER_MESSAGE,
    ),
    strong(
        "exception behind a heading",
        "any",
        rf"^[\w\"'(\[][\w \"'()\[\]<>./:-]{{0,80}}[:.\"] +{_TYPE}{_KINDS}{_DETAIL}: +\S",
        'Exception in thread "main" java.lang.IllegalStateException: feature join did not start',
    ),
    weak(
        "exception of any name",
        "Python",
        r"^(?:[a-z_][a-z\d_]{0,60}\.){2,12}[A-Z]\w{0,40}[a-z]\d{0,3}[A-Z]\w{0,60}: \S",
        "torch.distributed.elastic.rendezvous.etcd_rendezvous.EtcdRendezvousRetryImmediately: Must join",
        MESSAGE,
    ),
    weak(
        "warning that was raised",
        "Python",
        r"^(?:\w{1,60}\.){0,12}[A-Z][a-z]\w{0,60}Warning: \S",
        "DeprecationWarning: The redirect_output argument is deprecated.",
        MESSAGE,
        any_level=True,
    ),
    strong(
        "exception group",
        "Python",
        r"^[\s|+]*(?:Base)?ExceptionGroup: ",
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)",
        HINT,
    ),
    strong(
        "fatal Python error",
        "Python",
        r"^Fatal Python error: \S",
        "Fatal Python error: Aborted",
    ),
    strong(
        "traceback",
        "Python",
        r"^Traceback \(most recent call (?:last|first)\)",
        "Traceback (most recent call last):",
        HINT,
    ),
    strong(
        "process of multiprocessing",
        "Python",
        r"^Process \S{1,60}:$",
        "Process SpawnProcess-3:",
        HINT,
    ),
    strong(
        "cannot open the program",
        "Python",
        r"^\S*python[\d.]*: (?:can't (?:open|find)|No module|Error while finding)",
        "/usr/bin/python3: can't open file '/workspace/train_v2.py': [Errno 2] No such file or directory",
    ),
    weak(
        "error of a command line",
        "any",
        r"^[\w./-]{1,80}: error: \S",
        "train.py: error: unrecognized arguments: --zero-stage=2",
        MESSAGE,
    ),
    weak(
        "override of a configuration",
        "Python",
        r"^(?:Could not override|Key '[^']{1,80}' is not in struct|In '[^']{1,80}': |Primary config )",
        "Could not override 'optim.lrr'.",
        MESSAGE,
    ),
)
