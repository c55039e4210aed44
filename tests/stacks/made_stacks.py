"""Texts of crashes in forty forms, each with the type and the function that a person reads in it.

A form is a template of what one tool prints; a subject fills in the names of a program. Half of the texts, by a hash,
is set aside: nobody reads their answers while forms and rules are written, only totals.
"""

# ruff: noqa: E501  (texts are quoted as they are printed)

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

PREFIXES = ("", "", "[rank3]: ", "worker-3  | ")


@dataclass(frozen=True)
class Subject:
    """The names of one program: `method` of `owner` in C++, Rust, Go and Java, `kernel` on a device and in Linux."""

    package: str
    owner: str
    method: str
    caller: str
    kernel: str
    line: int

    def fill(self, template: str) -> str:
        """Return the template with this program's names and numbers."""
        names = {
            "P": self.package, "O": self.owner, "M": self.method, "C": self.caller, "K": self.kernel,
            "p": self.package.capitalize(), "L": str(self.line), "l": str(self.line + 31), "n": str(self.line * 7 + 3),
            "x": f"{self.line * 4099:x}", "m": self.method.capitalize(), "f": self.owner.lower(),
        }  # fmt: skip
        for name, value in names.items():
            template = template.replace(f"%{name}%", value)
        return template


@dataclass(frozen=True)
class MadeStack:
    """One text. `types` are words of which each one names the type rightly; `point` is the function that matters."""

    form: str
    subject: str
    text: str
    types: tuple[str, ...]
    point: str

    @property
    def is_set_aside(self) -> bool:
        """Whether only totals of it are looked at."""
        return hashlib.sha256(f"{self.form}/{self.subject}".encode()).digest()[0] % 2 == 0


SUBJECTS = (
    Subject("heron", "Index", "grow", "Build", "heron_scan", 58),
    Subject("plover", "Shard", "seek", "Prefetch", "plover_pack", 141),
    Subject("dunnock", "RingBuffer", "push_back_all", "Drain", "dunnock_topk", 77),
    Subject("siskin", "Journal", "replay", "Recover", "siskin_merge", 412),
    Subject("wryneck", "PageTable", "evict", "Reclaim", "wryneck_gather", 23),
    Subject("linnet", "Router", "dispatch", "Route", "linnet_dispatch", 305),
    Subject("brambling", "Codec", "decode_block", "ReadAll", "brambling_unpack", 96),
    Subject("redwing", "Lattice", "relax", "Iterate", "redwing_relax", 219),
)

_ASAN_STACK = """    #%0% 0x55d%x%a in %P%::%O%::%M%(int) /src/%P%/%f%.cpp:%L%:17
    #%1% 0x55d%x%b in %P%::%C%(std::vector<int>&) /src/%P%/main.cpp:%l%:3
    #%2% 0x7f3%x%c in __libc_start_call_main ../sysdeps/nptl/libc_start_call_main.h:58:16
    #%3% 0x55d%x%d in _start (/opt/%P%/bin/%P%+0x21%x%)
"""


def _frames(first: int) -> str:
    text = _ASAN_STACK
    for number in range(4):
        text = text.replace(f"%{number}%", str(first + number))
    return text


_GDB_CALLERS = """#%1%  0x000055d%x%b0 in %P%::%C% (rows=std::vector of length 3, capacity 4 = {...}) at /src/%P%/main.cpp:%l%
#%2%  0x000055d%x%c0 in main (argc=1, argv=0x7ffd%x%8) at /src/%P%/main.cpp:12
"""


def _gdb(first: int) -> str:
    return _GDB_CALLERS.replace("%1%", str(first)).replace("%2%", str(first + 1))


_C10_CALLERS = """frame #%1%: %P%::%C%(std::vector<int>&) + 0x1%x% (0x7f3%x%b0 in /opt/%P%/lib/lib%P%.so)
frame #%2%: <unknown function> + 0x94ac3 (0x7f4e1c894ac3 in /lib/x86_64-linux-gnu/libc.so.6)
"""

# (form, words for the type, the function, text)
FORMS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("asan use after free", ("heap-use-after-free",), "%M%", "=================================================================\n==%n%==ERROR: AddressSanitizer: heap-use-after-free on address 0x6020%x% at pc 0x55d%x% bp 0x7ffd%x% sp 0x7ffd%x%8\nREAD of size 4 at 0x6020%x% thread T0\n" + _frames(0) + "\n0x6020%x% is located 0 bytes inside of 40-byte region\nfreed by thread T0 here:\n    #0 0x7f1%x% in operator delete(void*) (/usr/lib/libasan.so.8+0xb3)\n    #1 0x55d%x%f in %P%::%O%::~%O%() /src/%P%/%f%.cpp:9:3\n\nSUMMARY: AddressSanitizer: heap-use-after-free /src/%P%/%f%.cpp:%L%:17 in %P%::%O%::%M%(int)\n==%n%==ABORTING\n"),
    ("asan interceptor", ("heap-buffer-overflow",), "%M%", "==%n%==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6020%x% at pc 0x55d%x% bp 0x7ffd%x% sp 0x7ffd%x%8\nSCARINESS: 45 (multi-byte-write-heap-buffer-overflow)\nWRITE of size 64 at 0x6020%x% thread T3 (feed)\n    #0 0x7f1%x%1 in __asan_memcpy (/opt/%P%/bin/%P%+0x31)\n    #1 0x7f1%x%2 in std::vector<int, std::allocator<int> >::operator[](unsigned long) /usr/include/c++/13/bits/stl_vector.h:1126:9\n" + _frames(2) + "SUMMARY: AddressSanitizer: heap-buffer-overflow /src/%P%/%f%.cpp:%L%:17 in __asan_memcpy\n==%n%==ABORTING\n"),
    ("asan wild pointer", ("segv",), "%M%", "AddressSanitizer:DEADLYSIGNAL\n=================================================================\n==%n%==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000018 (pc 0x55d%x% bp 0x7ffd%x% sp 0x7ffd%x%8 T0)\n==%n%==The signal is caused by a READ memory access.\n==%n%==Hint: address points to the zero page.\nSCARINESS: 10 (null-deref)\n" + _frames(0) + "\nAddressSanitizer can not provide additional info.\nSUMMARY: AddressSanitizer: SEGV /src/%P%/%f%.cpp:%L%:17 in %P%::%O%::%M%(int)\n==%n%==ABORTING\n"),
    ("asan recursion", ("stack-overflow",), "%M%", "==%n%==ERROR: AddressSanitizer: stack-overflow on address 0x7ffd%x% (pc 0x55d%x% bp 0x7ffd%x% sp 0x7ffd%x%8 T0)\n" + "".join(f"    #{number} 0x55d%x%a in %P%::%O%::%M%(int) /src/%P%/%f%.cpp:%L%:17\n" for number in range(12)) + "\nSUMMARY: AddressSanitizer: stack-overflow /src/%P%/%f%.cpp:%L%:17 in %P%::%O%::%M%(int)\n==%n%==ABORTING\n"),
    ("lsan new", ("leak",), "%M%", "\n=================================================================\n==%n%==ERROR: LeakSanitizer: detected memory leaks\n\nDirect leak of 4096 byte(s) in 1 object(s) allocated from:\n    #0 0x7f1%x% in operator new(unsigned long) (/usr/lib/libasan.so.8+0xb1)\n" + _frames(1) + "\nSUMMARY: AddressSanitizer: 4096 byte(s) leaked in 1 allocation(s).\n"),
    ("lsan strdup", ("leak",), "%M%", "==%n%==ERROR: LeakSanitizer: detected memory leaks\n\nDirect leak of %n% byte(s) in 3 object(s) allocated from:\n    #0 0x7f1%x%0 in __interceptor_malloc (/usr/lib/libasan.so.8+0xb1)\n    #1 0x7f1%x%1 in strdup (/lib/x86_64-linux-gnu/libc.so.6+0x9)\n" + _frames(2) + "\nIndirect leak of 32 byte(s) in 1 object(s) allocated from:\n    #0 0x7f1%x%0 in calloc (/usr/lib/libasan.so.8+0xb1)\n    #1 0x55d%x%e in %P%::%C%(std::vector<int>&) /src/%P%/main.cpp:%l%:3\n\nSUMMARY: LeakSanitizer: %n% byte(s) leaked in 4 allocation(s).\n"),
    ("ubsan overflow", ("signed integer overflow", "undefined"), "%M%", "/src/%P%/%f%.cpp:%L%:17: runtime error: signed integer overflow: 2147483647 + %n% cannot be represented in type 'int'\n" + _frames(0) + "\nSUMMARY: UndefinedBehaviorSanitizer: undefined-behavior /src/%P%/%f%.cpp:%L%:17 in \n"),
    ("ubsan null", ("null pointer", "undefined"), "%M%", "/src/%P%/%f%.cpp:%L%:9: runtime error: member call on null pointer of type '%P%::%O%'\n" + _frames(0) + "SUMMARY: UndefinedBehaviorSanitizer: undefined-behavior /src/%P%/%f%.cpp:%L%:9 in \n"),
    ("ubsan segv", ("segv",), "%M%", "UndefinedBehaviorSanitizer:DEADLYSIGNAL\n==%n%==ERROR: UndefinedBehaviorSanitizer: SEGV on unknown address 0x000000000018 (pc 0x55d%x% bp 0x7ffd%x% sp 0x7ffd%x%8 T%n%)\n==%n%==The signal is caused by a WRITE memory access.\n" + _frames(0) + "\nUndefinedBehaviorSanitizer can not provide additional info.\nSUMMARY: UndefinedBehaviorSanitizer: SEGV /src/%P%/%f%.cpp:%L%:17 in %P%::%O%::%M%(int)\n"),
    ("msan", ("use-of-uninitialized-value",), "%M%", "==%n%==WARNING: MemorySanitizer: use-of-uninitialized-value\n" + _frames(0) + "\n  Uninitialized value was created by a heap allocation\n    #0 0x55d%x%9 in malloc /src/llvm/msan_interceptors.cpp:1021:3\n    #1 0x55d%x%8 in %P%::%C%(std::vector<int>&) /src/%P%/main.cpp:%l%:3\n\nSUMMARY: MemorySanitizer: use-of-uninitialized-value /src/%P%/%f%.cpp:%L%:17 in %P%::%O%::%M%(int)\nExiting\n"),
    ("msan memcmp", ("use-of-uninitialized-value",), "%M%", "==%n%==WARNING: MemorySanitizer: use-of-uninitialized-value\n    #0 0x55d%x%0 in __interceptor_memcmp /src/llvm/sanitizer_common_interceptors.inc:892:10\n" + _frames(1) + "\nSUMMARY: MemorySanitizer: use-of-uninitialized-value /src/llvm/sanitizer_common_interceptors.inc:892:10 in __interceptor_memcmp\nExiting\n"),
    ("tsan race", ("data race",), "%M%", "==================\nWARNING: ThreadSanitizer: data race (pid=%n%)\n  Write of size 8 at 0x7b04%x% by thread T2 (mutexes: write M12):\n    #0 %P%::%O%::%M%(int) /src/%P%/%f%.cpp:%L%:17 (%P%+0x4c%x%)\n    #1 %P%::%C%(std::vector<int>&) /src/%P%/main.cpp:%l%:3 (%P%+0x4d%x%)\n\n  Previous read of size 8 at 0x7b04%x% by main thread:\n    #0 %P%::Stats::report() /src/%P%/stats.cpp:9:3 (%P%+0x4e%x%)\n\n  Thread T2 (tid=%n%, running) created by main thread at:\n    #0 pthread_create /src/llvm/tsan_interceptors_posix.cpp:1001:3 (%P%+0x42)\n    #1 main /src/%P%/main.cpp:12:3 (%P%+0x4f)\n\nSUMMARY: ThreadSanitizer: data race /src/%P%/%f%.cpp:%L%:17 in %P%::%O%::%M%(int)\n==================\n"),
    ("tsan memcpy", ("data race",), "%M%", "WARNING: ThreadSanitizer: data race (pid=%n%)\n  Read of size 8 at 0x7b04%x% by thread T7:\n    #0 memcpy /src/llvm/tsan_interceptors.cpp:651:3 (%P%+0x41)\n    #1 %P%::%O%::%M%(int) /src/%P%/%f%.cpp:%L%:17 (%P%+0x4c%x%)\n    #2 %P%::%C%(std::vector<int>&) /src/%P%/main.cpp:%l%:3 (%P%+0x4d%x%)\n\n  Previous write of size 8 at 0x7b04%x% by thread T2:\n    #0 %P%::Stats::report() /src/%P%/stats.cpp:9:3 (%P%+0x4e%x%)\n\nSUMMARY: ThreadSanitizer: data race /src/%P%/%f%.cpp:%L%:17 in %P%::%O%::%M%(int)\n"),
    ("tsan deadlock", ("lock-order-inversion",), "%M%", "WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=%n%)\n  Cycle in lock order graph: M11 (0x7b10%x%) => M12 (0x7b14%x%) => M11\n\n  Mutex M12 acquired here while holding mutex M11 in main thread:\n    #0 pthread_mutex_lock /src/llvm/sanitizer_common_interceptors.inc:4481:3 (%P%+0x41)\n    #1 %P%::%O%::%M%(int) /src/%P%/%f%.cpp:%L%:17 (%P%+0x4c%x%)\n    #2 main /src/%P%/main.cpp:%l%:3 (%P%+0x4d%x%)\n\nSUMMARY: ThreadSanitizer: lock-order-inversion (potential deadlock) /src/%P%/%f%.cpp:%L%:17 in %P%::%O%::%M%(int)\n"),
    ("glog check", ("check",), "%M%", "F0312 08:15:%L%.482915 %n% %f%.cc:%L%] Check failed: size_ <= limit_ (%n% vs. 8) \n*** Check failure stack trace: ***\n    @     0x7f3%x%01  google::LogMessage::Fail()\n    @     0x7f3%x%02  google::LogMessage::SendToLog()\n    @     0x7f3%x%03  google::LogMessage::Flush()\n    @     0x7f3%x%04  google::LogMessageFatal::~LogMessageFatal()\n    @     0x55d%x%05  %P%::%O%::%M%()\n    @     0x55d%x%06  %P%::%C%()\n    @     0x7f3%x%07  __libc_start_main\nAborted (core dumped)\n"),
    ("absl check", ("check",), "%M%", "F0000 00:00:17%n%.482915 %n% %f%.cc:%L%] Check failed: head_ != nullptr \n*** Check failure stack trace: ***\n    @     0x7f3%x%01  absl::lts_20240722::log_internal::LogMessage::SendToLog()\n    @     0x7f3%x%02  absl::lts_20240722::log_internal::LogMessage::Flush()\n    @     0x7f3%x%03  absl::lts_20240722::log_internal::LogMessageFatal::~LogMessageFatal()\n    @     0x55d%x%05  %P%::%O%::%M%()\n    @     0x55d%x%06  %P%::%C%()\n"),
    ("glog signal", ("segv",), "%M%", "*** Aborted at 17%n%0000 (unix time) try \"date -d @17%n%0000\" if you are using GNU date ***\nPC: @     0x55d%x%05 %P%::%O%::%M%()\n*** SIGSEGV (@0x18) received by PID %n% (TID 0x7f3%x%) from PID 24; stack trace: ***\n    @     0x7f3%x%01 (unknown)\n    @     0x55d%x%05 %P%::%O%::%M%()\n    @     0x55d%x%06 %P%::%C%()\n    @     0x7f3%x%07 __libc_start_main\nSegmentation fault (core dumped)\n"),
    ("assertion of glibc", ("assert",), "%M%", "%P%: /src/%P%/%f%.cpp:%L%: void %P%::%O%::%M%(int): Assertion `count > 0' failed.\nAborted (core dumped)\n"),
    ("assertion of a template", ("assert",), "%M%", "python3: /src/%P%/%f%.h:%L%: T& %P%::%O%<T>::%M%(std::size_t) const [with T = float; std::size_t = long unsigned int]: Assertion `i < size_' failed.\n"),
    ("assertion of macOS", ("assert",), "%M%", "Assertion failed: (count > 0), function %M%, file %f%.cpp, line %L%.\nAbort trap: 6\n"),
    ("terminate c10", ("exception", "%f% is closed"), "%M%", "terminate called after throwing an instance of 'c10::Error'\n  what():  %f% is closed\nException raised from %M% at /src/%P%/%f%.cpp:%L% (most recent call first):\nframe #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f3%x%90 in /opt/%P%/lib/libc10.so)\nframe #1: c10::detail::torchCheckFail(char const*, char const*, unsigned int, std::string const&) + 0x64 (0x7f3%x%a0 in /opt/%P%/lib/libc10.so)\nframe #2: %P%::%O%::%M%(int) + 0x9%x% (0x7f3%x%a8 in /opt/%P%/lib/lib%P%.so)\n" + _C10_CALLERS.replace("%1%", "3").replace("%2%", "4") + "\nAborted (core dumped)\n"),
    ("gdb crashed thread", ("segv",), "%M%", "[New LWP %n%]\nCore was generated by `/opt/%P%/bin/%P%'.\nProgram terminated with signal SIGSEGV, Segmentation fault.\n#0  0x000055d%x%a0 in %P%::%O%::%M% (this=0x0, n=3) at /src/%P%/%f%.cpp:%L%\n[Current thread is 1 (Thread 0x7f3%x%40 (LWP %n%))]\n(gdb) bt\n#0  0x000055d%x%a0 in %P%::%O%::%M% (this=0x0, n=3) at /src/%P%/%f%.cpp:%L%\n" + _gdb(1)),
    ("gdb handler frame", ("segv",), "%M%", "#0  0x00007f3%x%70 in __GI___wait4 (pid=%n%, stat_loc=0x0, options=0, usage=0x0) at ../sysdeps/unix/sysv/linux/wait4.c:30\n#1  0x00007f3%x%71 in %P%::dump_stack (signal=11) at /src/%P%/crash.cpp:9\n#2  <signal handler called>\n#3  0x000055d%x%a0 in %P%::%O%::%M% (this=0x0, n=3) at /src/%P%/%f%.cpp:%L%\n" + _gdb(4)),
    ("gdb abort", ("abort",), "%M%", "#0  __pthread_kill_implementation (no_tid=0, signo=6, threadid=140%n%) at ./nptl/pthread_kill.c:44\n#1  __pthread_kill_internal (signo=6, threadid=140%n%) at ./nptl/pthread_kill.c:78\n#2  __GI_raise (sig=sig@entry=6) at ../sysdeps/posix/raise.c:26\n#3  __GI_abort () at ./stdlib/abort.c:79\n#4  0x000055d%x%a0 in %P%::%O%::%M% (this=0x55%x%, n=3) at /src/%P%/%f%.cpp:%L%\n" + _gdb(5)),
    ("gdb glib", ("trap", "abort"), "%M%", "Thread 1 \"%P%\" received signal SIGTRAP, Trace/breakpoint trap.\n#0  0x00007f3%x%70 in g_logv () from /lib/x86_64-linux-gnu/libglib-2.0.so.0\n#1  0x00007f3%x%71 in g_log () from /lib/x86_64-linux-gnu/libglib-2.0.so.0\n#2  0x000055d%x%a0 in %P%::%O%::%M% (this=0x55%x%, n=3) at /src/%P%/%f%.cpp:%L%\n" + _gdb(3)),
    ("kernel null pointer", ("null pointer", "null dereference", "oops"), "%K%", "[%n%.482915] BUG: kernel NULL pointer dereference, address: 0000000000000018\n[%n%.482917] #PF: supervisor read access in kernel mode\n[%n%.482919] Oops: 0000 [#1] PREEMPT SMP NOPTI\n[%n%.482921] CPU: 12 PID: %n% Comm: python Tainted: P           OE      6.5.0-35-generic #35-Ubuntu\n[%n%.482923] RIP: 0010:%K%+0x2a/0x110 [%P%]\n[%n%.482925] Code: 48 89 e5 41 57\n[%n%.482927] Call Trace:\n[%n%.482929]  <TASK>\n[%n%.482931]  ? __die+0x24/0x70\n[%n%.482933]  ? page_fault_oops+0x99/0x1a0\n[%n%.482935]  %P%_ioctl+0x2a/0x90 [%P%]\n[%n%.482937]  do_syscall_64+0x59/0x90\n[%n%.482939]  </TASK>\n"),
    ("kernel bug", ("kernel bug",), "%K%", "[%n%.482915] ------------[ cut here ]------------\n[%n%.482916] kernel BUG at drivers/%P%/%f%.c:%L%!\n[%n%.482917] invalid opcode: 0000 [#1] SMP NOPTI\n[%n%.482921] CPU: 3 PID: %n% Comm: kworker/3:1 Not tainted 5.14.0-427.el9.x86_64 #1\n[%n%.482923] RIP: 0010:%K%+0x1d/0x60 [%P%]\n[%n%.482927] Call Trace:\n[%n%.482929]  <TASK>\n[%n%.482935]  process_one_work+0x1e5/0x3b0\n[%n%.482937]  worker_thread+0x50/0x3a0\n[%n%.482939]  </TASK>\n"),
    ("rust panic", ("panic",), "%M%", "thread 'main' panicked at src/%f%.rs:%L%:21:\nindex out of bounds: the len is 3 but the index is %n%\nstack backtrace:\n   0: rust_begin_unwind\n             at /rustc/07dca489/library/std/src/panicking.rs:645:5\n   1: core::panicking::panic_fmt\n             at /rustc/07dca489/library/core/src/panicking.rs:72:14\n   2: core::panicking::panic_bounds_check\n             at /rustc/07dca489/library/core/src/panicking.rs:208:5\n   3: <usize as core::slice::index::SliceIndex<[T]>>::index\n             at /rustc/07dca489/library/core/src/slice/index.rs:255:10\n   4: %P%::%f%::%O%::%M%\n             at ./src/%f%.rs:%L%:21\n   5: %P%::main\n             at ./src/main.rs:%l%:5\n   6: core::ops::function::FnOnce::call_once\n             at /rustc/07dca489/library/core/src/ops/function.rs:250:5\nnote: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n"),
    ("rust unwrap", ("panic",), "%M%", "thread 'feed-%n%' panicked at 'called `Option::unwrap()` on a `None` value', src/%f%.rs:%L%:40\nstack backtrace:\n   0: rust_begin_unwind\n             at /rustc/9fc6b431/library/std/src/panicking.rs:593:5\n   1: core::panicking::panic_fmt\n             at /rustc/9fc6b431/library/core/src/panicking.rs:67:14\n   2: core::panicking::panic\n             at /rustc/9fc6b431/library/core/src/panicking.rs:117:5\n   3: core::option::Option<T>::unwrap\n             at /rustc/9fc6b431/library/core/src/option.rs:935:21\n   4: %P%::%f%::%O%::%M%\n             at ./src/%f%.rs:%L%:40\n   5: std::sys_common::backtrace::__rust_begin_short_backtrace\n             at /rustc/9fc6b431/library/std/src/sys_common/backtrace.rs:135:18\n"),
    ("go nil", ("panic", "nil pointer"), "%m%", "panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x18 pc=0x4a%x%]\n\ngoroutine %n% [running]:\n%P%.dev/%P%/feed.(*%O%).%m%(0xc000%x%)\n\t/src/%P%/feed/%f%.go:%L% +0xea\nmain.main()\n\t/src/%P%/main.go:%l% +0x20\nexit status 2\n"),
    ("go fatal", ("concurrent map writes", "fatal error"), "%m%", "fatal error: concurrent map writes\n\ngoroutine %n% [running]:\nruntime.throw({0x4b%x%, 0x15})\n\t/usr/local/go/src/runtime/panic.go:1047 +0x5d fp=0xc000%x% sp=0xc000%x% pc=0x43%x%\nruntime.mapassign_faststr(0x5f%x%, 0xc000%x%, {0xc000%x%, 0x7})\n\t/usr/local/go/src/runtime/map_faststr.go:212 +0x39c\n%P%.dev/%P%/feed.(*%O%).%m%(...)\n\t/src/%P%/feed/%f%.go:%L%\ncreated by main.main in goroutine 1\n\t/src/%P%/main.go:%l% +0x20\nexit status 2\n"),
    ("java cause", ("illegalstateexception",), "%M%", "Exception in thread \"feed-%n%\" java.lang.RuntimeException: pump failed\n\tat org.%P%.feed.Pump.run(Pump.java:66)\n\tat java.base/java.lang.Thread.run(Thread.java:833)\nCaused by: java.lang.IllegalStateException: %f% is closed\n\tat java.base/java.util.Objects.checkIndex(Objects.java:385)\n\tat org.%P%.feed.%O%.%M%(%O%.java:%L%)\n\tat org.%P%.feed.Pump.run(Pump.java:61)\n\t... 1 more\n"),
    ("java null", ("nullpointerexception",), "%M%", "Exception in thread \"main\" java.lang.NullPointerException: name\n\tat java.base/java.util.Objects.requireNonNull(Objects.java:233)\n\tat org.%P%.feed.%O%.%M%(%O%.java:%L%)\n\tat org.%P%.feed.Main.main(Main.java:%l%)\n"),
    ("julia bounds", ("boundserror",), "%M%", "ERROR: LoadError: BoundsError: attempt to access 10-element Vector{Float64} at index [%n%]\nStacktrace:\n  [1] throw_boundserror(A::Vector{Float64}, I::Tuple{Int64})\n    @ Base ./essentials.jl:14\n  [2] getindex\n    @ ./essentials.jl:916 [inlined]\n  [3] %M%(index::%p%.%O%)\n    @ %p% /src/%p%/src/%f%.jl:%L%\n  [4] top-level scope\n    @ /src/train.jl:%l%\nin expression starting at /src/train.jl:%l%\n"),
    ("cuda-gdb", ("illegal address", "cuda_exception_14"), "%K%", "Thread 1 \"python\" received signal CUDA_EXCEPTION_14, Warp Illegal Address.\n[Switching focus to CUDA kernel 0, grid %n%, block (0,0,0), thread (32,0,0), device 0, sm 0, warp 1, lane 0]\n0x00007f3%x%10 in %K%<<<(128,1,1),(256,1,1)>>> (out=0x7f3%x%, n=%n%) at /src/%P%/%f%.cu:%L%\n%L%\t  out[i] = in[i];\n(cuda-gdb) bt\n#0  0x00007f3%x%10 in %K%<<<(128,1,1),(256,1,1)>>> (out=0x7f3%x%, n=%n%) at /src/%P%/%f%.cu:%L%\n"),
    ("cuda core", ("illegal address",), "%K%", "Opening GPU coredump: core_%n%.cudacore\n\nCUDA Exception: Warp Illegal Address\nThe exception was triggered at PC 0x7f3%x%50  %K%(float*, float const*, int)  (%f%.cu:%L%)\n[Current focus set to CUDA kernel 0, grid %n%, cluster (0,0,0), block (0,0,0), thread (0,0,0), device 0, sm 0, warp 0, lane 0]\n#0  0x00007f3%x%70 in %K%(float*, float const*, int)<<<(1,1,1),(32,1,1)>>> () at /src/%P%/%f%.cu:%L%\n"),
    ("compute-sanitizer", ("invalid __global__ write",), "%K%", "========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 4 bytes\n=========     at %K%(float *, int)+0x90 in /src/%P%/%f%.cu:%L%\n=========     by thread (31,0,0) in block (7,0,0)\n=========     Address 0x7f3%x% is out of bounds\n=========     and is 1 bytes after the nearest allocation at 0x7f3%x% of size 512 bytes\n=========     Saved host backtrace up to driver entry point at kernel launch time\n=========     Host Frame: [0x2%x%] in libcuda.so.1\n=========     Host Frame: %P%::%C% in /src/%P%/main.cpp:%l% [0xb%x%] in %P%\n=========\n========= ERROR SUMMARY: 1 error\n"),
    ("faulthandler", ("segv", "segmentation fault"), "%M%", "Fatal Python error: Segmentation fault\n\nThread 0x00007f3%x%00 (most recent call first):\n  File \"/usr/lib/python3.11/threading.py\", line 324 in wait\n  File \"/usr/lib/python3.11/threading.py\", line 622 in wait\n\nCurrent thread 0x00007f4%x%40 (most recent call first):\n  File \"/work/%P%/%f%.py\", line %L% in %M%\n  File \"/work/%P%/train.py\", line %l% in main\n  File \"/work/%P%/train.py\", line 400 in <module>\n\nExtension modules: numpy.core._multiarray_umath, torch._C (total: 2)\nSegmentation fault (core dumped)\n"),
    ("lldb", ("segv",), "%M%", "(lldb) bt\n* thread #1, name = '%P%', stop reason = signal SIGSEGV: invalid address (fault address: 0x18)\n  * frame #0: 0x000055d%x%a0 %P%`%P%::%O%::%M%(this=0x0000000000000000, n=3) at %f%.cpp:%L%:17\n    frame #1: 0x000055d%x%b0 %P%`%P%::%C%(rows=size=3) at main.cpp:%l%:3\n    frame #2: 0x000055d%x%c0 %P%`main(argc=1, argv=0x00007ffd%x%8) at main.cpp:12:3\n    frame #3: 0x00007f3%x%d0 libc.so.6`__libc_start_call_main + 128\n"),
    ("valgrind", ("invalid read",), "%M%", "==%n%== Invalid read of size 4\n==%n%==    at 0x4C%x%: memcpy@@GLIBC_2.14 (in /usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so)\n==%n%==    by 0x4D%x%: %P%::%O%::%M%(int) (%f%.cpp:%L%)\n==%n%==    by 0x4E%x%: %P%::%C%(std::vector<int>&) (main.cpp:%l%)\n==%n%==    by 0x4F%x%: main (main.cpp:12)\n==%n%==  Address 0x5a%x% is 0 bytes after a block of size 40 alloc'd\n==%n%==\n==%n%== ERROR SUMMARY: 1 errors from 1 contexts (suppressed: 0 from 0)\n"),
)  # fmt: skip


def made_stacks() -> Iterator[MadeStack]:
    """Yield every form with every subject, some behind the prefix of a launcher."""
    for number, (form, types, point, template) in enumerate(FORMS):
        for index, subject in enumerate(SUBJECTS):
            prefix = PREFIXES[(number + index) % len(PREFIXES)]
            text = subject.fill(template)
            yield MadeStack(
                form,
                subject.package,
                "".join(f"{prefix}{line}\n" for line in text.rstrip("\n").split("\n")),
                tuple(subject.fill(one) for one in types),
                subject.fill(point),
            )
