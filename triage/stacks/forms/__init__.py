"""The ways in which programs print stacks. FORMS is the ordered list; each reads its own lines of a text and passes
over the others.
"""

from __future__ import annotations

from triage.stacks.forms.gdb import Gdb
from triage.stacks.forms.interface import Form
from triage.stacks.forms.native import BACKWARD, C10, CAFFE2, GLIBC, GLOG, LLVM, OPEN_MPI, PADDLE, UCX
from triage.stacks.forms.python import FaultHandler, PyStack
from triage.stacks.forms.tools import COMPUTE_SANITIZER, EU_STACK, HS_ERR, JVM, LLDB, SANITIZER, STACKCORE, SYSTEMD

# The forms that look alike stand with the stricter one first: what one of a group has read, the others of it leave
# alone.
FORMS: tuple[Form, ...] = (
    SANITIZER,
    COMPUTE_SANITIZER,
    STACKCORE,
    SYSTEMD,
    EU_STACK,
    BACKWARD,
    LLVM,
    Gdb(),  # behind all that number their frames with #
    LLDB,
    C10(),
    CAFFE2,
    UCX,
    OPEN_MPI,
    GLIBC,  # behind Open MPI, whose frames are glibc's with a number
    GLOG,
    PADDLE,
    PyStack(),
    FaultHandler(),
    HS_ERR,
    JVM,
)
HASHED = frozenset(("asan", "stackcore", "systemd", "eu-stack", "backward", "llvm", "gdb"))
SYMBOLS = frozenset(("ucx", "openmpi", "glibc"))
GROUPS: tuple[frozenset[str], ...] = (HASHED, SYMBOLS)
