"""The ways in which programs print stacks. FORMS is the ordered list; each form skips the lines of the others."""

from __future__ import annotations

from triage.stacks.forms.gdb import Gdb
from triage.stacks.forms.interface import Form
from triage.stacks.forms.languages import DOTNET, JULIA, KERNEL, RUST
from triage.stacks.forms.native import (
    BACKWARD,
    C10,
    CAFFE2,
    GFORTRAN,
    GLIBC,
    GLOG,
    LLVM,
    OPEN_MPI,
    PADDLE,
    STACKTRACE,
    UCX,
)
from triage.stacks.forms.pyspy import PySpy
from triage.stacks.forms.python import FaultHandler, PyStack
from triage.stacks.forms.runtimes import FORRTL, JULIA_SIGNAL, MACOS, SAMPLE, SCRIPT, V8, XLA
from triage.stacks.forms.tools import COMPUTE_SANITIZER, EU_STACK, HS_ERR, JVM, LLDB, SANITIZER, STACKCORE, SYSTEMD

# Of forms that look alike the stricter one comes first: when one of a group has read the stacks, the others do not.
FORMS: tuple[Form, ...] = (
    SANITIZER,
    COMPUTE_SANITIZER,
    STACKCORE,
    SYSTEMD,
    EU_STACK,
    BACKWARD,
    LLVM,
    GFORTRAN,
    Gdb(),  # after all others that number their frames with #
    LLDB,
    C10(),
    CAFFE2,
    UCX,
    OPEN_MPI,
    GLIBC,  # after Open MPI, whose frames are those of glibc with a number
    GLOG,
    STACKTRACE,
    PADDLE,
    PyStack(),
    FaultHandler(),
    PySpy(),
    HS_ERR,
    DOTNET,
    JVM,
    RUST,
    JULIA,
    KERNEL,
    JULIA_SIGNAL,
    FORRTL,
    XLA,
    V8,
    MACOS,
    SAMPLE,
    SCRIPT,  # last: its frames look like those of others
)
_NUMBERED_WITH_HASH = frozenset(("asan", "stackcore", "systemd", "eu-stack", "backward", "llvm", "gfortran", "gdb"))
_BACKTRACE_SYMBOLS = frozenset(("ucx", "openmpi", "glibc"))
_AT_METHODS = frozenset(("dotnet", "jvm"))
GROUPS: tuple[frozenset[str], ...] = (_NUMBERED_WITH_HASH, _BACKTRACE_SYMBOLS, _AT_METHODS)
