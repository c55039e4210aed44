"""Texts of crashes in forty further forms: other languages, compilers, kernels, and tools that only look at a process.

They were written, with what a person reads in them, before any answer to them. Of every second form only the totals were
looked at until the readers were done; then Scala, c10 and MLIR were mended.
"""

# ruff: noqa: E101, E501, W291, W293  (texts are quoted as they are printed)

from __future__ import annotations

from collections.abc import Iterator

from tests.stacks.made_stacks import SUBJECTS, MadeStack

# (form, words for the type, the function, text); a form without words for the type is of a process that lives.
FOREIGN_FORMS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("kotlin on spark", ("uninitializedpropertyaccessexception",), "%M%", """\
26/03/12 08:15:58 ERROR Executor: Exception in task 3.0 in stage 7.0 (TID %n%)
kotlin.UninitializedPropertyAccessException: lateinit property rows has not been initialized
	at kotlin.jvm.internal.Intrinsics.throwUninitializedPropertyAccessException(Intrinsics.java:174)
	at org.%P%.feed.%O%.%M%(%O%.kt:%L%)
	at org.%P%.feed.MainKt.main(Main.kt:%l%)
	at org.apache.spark.executor.Executor$TaskRunner.run(Executor.scala:554)
	at java.base/java.lang.Thread.run(Thread.java:840)
"""),
    ("scala match", ("matcherror",), "%M%", """\
Exception in thread "main" scala.MatchError: None (of class scala.None$)
	at org.%P%.feed.%O%$.%M%(%O%.scala:%L%)
	at org.%P%.feed.%O%$.$anonfun$main$1(%O%.scala:%l%)
	at scala.collection.immutable.List.foreach(List.scala:333)
	at org.%P%.feed.Main.main(Main.scala)
"""),
    ("node", ("typeerror",), "%M%", """\
/src/%P%/lib/%f%.js:%L%
    return this.table.rows[n];
                      ^

TypeError: Cannot read properties of undefined (reading 'rows')
    at %O%.%M% (/src/%P%/lib/%f%.js:%L%:23)
    at async %C% (/src/%P%/main.js:%l%:3)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)

Node.js v20.11.1
"""),
    ("erlang crash report", ("badmatch", "no match"), "%M%", """\
=CRASH REPORT==== 12-Mar-2026::08:15:58.482915 ===
  crasher:
    initial call: %P%_server:init/1
    pid: <0.412.0>
    registered_name: []
    exception error: no match of right hand side value {error,enoent}
      in function  %P%_server:%M%/2 (src/%P%_server.erl, line %L%)
      in call from gen_server:try_handle_call/4 (gen_server.erl, line 1131)
      in call from gen_server:handle_msg/6 (gen_server.erl, line 1160)
    ancestors: [%P%_sup,<0.401.0>]
    message_queue_len: 0
"""),
    ("rocgdb", ("segv",), "%K%", """\
Thread 5 "python3" received signal SIGSEGV, Segmentation fault.
[Switching to thread 5, lane 0 (AMDGPU Lane 1:2:1:1/0 (0,0,0)[0,0,0])]
0x00007ffff5a%x% in %K% (out=0x0, in=0x7fffe8%x%, n=%n%) at /src/%P%/%f%.hip:%L%
%L%	  out[i] = in[i];
(gdb) bt
#0  0x00007ffff5a%x% in %K% (out=0x0, in=0x7fffe8%x%, n=%n%) at /src/%P%/%f%.hip:%L%
"""),
    ("eu-stack of an abort", ("abort",), "%M%", """\
PID %n% - core
TID %n%:
#0  0x00007f3%x%70 __pthread_kill_implementation
#1  0x00007f3%x%71 raise
#2  0x00007f3%x%72 abort
#3  0x000055d%x%a0 %P%::%O%::%M%(int)
#4  0x000055d%x%b0 main
#5  0x00007f3%x%75 __libc_start_call_main
"""),
    ("pstack", (), "%M%", """\
Thread 2 (Thread 0x7f3%x% (LWP %l%)):
#0  0x00007f3%x%70 in pthread_cond_wait@@GLIBC_2.3.2 () from /lib64/libpthread.so.0
#1  0x00007f3%x%71 in %P%::Stats::wait() () from /opt/%P%/lib/lib%P%.so
Thread 1 (Thread 0x7f3%x%40 (LWP %n%)):
#0  0x00007f3%x%a0 in %P%::%O%::%M%(int) () from /opt/%P%/lib/lib%P%.so
#1  0x000055d%x%b0 in %P%::%C%(std::vector<int>&) ()
#2  0x000055d%x%c0 in main ()
"""),
    ("jstack", (), "%M%", """\
2026-03-12 08:15:58
Full thread dump OpenJDK 64-Bit Server VM (17.0.12+7 mixed mode, sharing):

"main" #1 prio=5 os_prio=0 cpu=812.44ms elapsed=1204.11s tid=0x00007f3%x% nid=0x%L% runnable  [0x00007f4%x%]
   java.lang.Thread.State: RUNNABLE
	at org.%P%.feed.%O%.%M%(%O%.java:%L%)
	- locked <0x0000000712%x%> (a java.lang.Object)
	at org.%P%.feed.Main.main(Main.java:%l%)

"Reference Handler" #2 daemon prio=10 os_prio=0 cpu=0.41ms elapsed=1204.09s tid=0x00007f5%x% nid=0x2c waiting on condition  [0x00007f6%x%]
   java.lang.Thread.State: RUNNABLE
	at java.lang.ref.Reference.waitForReferencePendingList(java.base@17.0.12/Native Method)
"""),
    ("perf script", (), "%M%", """\
python3  %n% [003]  %n%.482915:     250000 cycles:P: 
	    7f3%x%a0 %P%::%O%::%M%(int)+0x1c (/opt/%P%/lib/lib%P%.so)
	    55d%x%b0 %P%::%C%(std::vector<int>&)+0x88 (/opt/%P%/bin/%P%)
	    55d%x%c0 main+0x2a (/opt/%P%/bin/%P%)
	    7f3%x%d0 __libc_start_call_main+0x80 (/lib/x86_64-linux-gnu/libc.so.6)
"""),
    ("bpftrace", (), "%M%", """\
Attaching 1 probe...
^C

@[
    %P%::%O%::%M%(int)+28
    %P%::%C%(std::vector<int>&)+136
    main+42
    __libc_start_call_main+128
, python3]: %n%
"""),
    ("rust full", ("panic",), "%M%", """\
thread 'main' panicked at src/%f%.rs:%L%:21:
index out of bounds: the len is 3 but the index is %n%
stack backtrace:
   0:     0x55d%x%00 - std::backtrace_rs::backtrace::libunwind::trace::h1f4b0c5d9e3a7286
                               at /rustc/07dca489/library/std/src/../../backtrace/src/backtrace/libunwind.rs:104:5
   1:     0x55d%x%01 - std::sys_common::backtrace::_print_fmt::h2b4f8e1c6d0a9357
                               at /rustc/07dca489/library/std/src/sys_common/backtrace.rs:68:5
   2:     0x55d%x%02 - std::panicking::default_hook::{{closure}}::h5e8a1d4c7f0b3926
                               at /rustc/07dca489/library/std/src/panicking.rs:271:22
   3:     0x55d%x%03 - std::panicking::rust_panic_with_hook::h6c9b2e5d8a1f4073
                               at /rustc/07dca489/library/std/src/panicking.rs:759:13
   4:     0x55d%x%04 - rust_begin_unwind
                               at /rustc/07dca489/library/std/src/panicking.rs:645:5
   5:     0x55d%x%05 - core::panicking::panic_bounds_check::h7d0a3f6e9b2c5184
                               at /rustc/07dca489/library/core/src/panicking.rs:208:5
   6:     0x55d%x%06 - <alloc::vec::Vec<T,A> as core::ops::index::Index<I>>::index::h8e1b4a7f0c3d6295
                               at /rustc/07dca489/library/alloc/src/vec/mod.rs:2770:9
   7:     0x55d%x%07 - %P%::%f%::%O%::%M%::h9f2c5b8a1d4e7306
                               at /src/%P%/src/%f%.rs:%L%:21
   8:     0x55d%x%08 - %P%::main::ha03d6c9b2e5f8417
                               at /src/%P%/src/main.rs:%l%:5
   9:     0x55d%x%09 - std::rt::lang_start::hb14e7d0c3f6a9528
                               at /rustc/07dca489/library/std/src/rt.rs:166:17
  10:                0x0 - <unknown>
"""),
    ("go race", ("data race",), "%m%", """\
==================
WARNING: DATA RACE
Write at 0x00c0000a4018 by goroutine 7:
  %P%.dev/%P%/feed.(*%O%).%m%()
      /src/%P%/feed/%f%.go:%L% +0x44
  main.%C%()
      /src/%P%/main.go:%l% +0x2c

Previous read at 0x00c0000a4018 by goroutine 8:
  %P%.dev/%P%/feed.(*Stats).Report()
      /src/%P%/feed/stats.go:9 +0x3b

Goroutine 7 (running) created at:
  main.main()
      /src/%P%/main.go:12 +0x6a
==================
Found 1 data race(s)
exit status 66
"""),
    ("julia signal", ("segmentation fault", "segv"), "%M%", """\

[%n%] signal (11.1): Segmentation fault
in expression starting at /src/train.jl:%l%
unsafe_load at ./pointer.jl:153 [inlined]
%M% at /src/%p%/src/%f%.jl:%L%
%C% at /src/%p%/src/main.jl:%l%
jfptr_%C%_%n% at /root/.julia/compiled/v1.10/%p%/x.so (unknown line)
_jl_invoke at /cache/build/builder/julialang/julia-release/src/gf.c:2895 [inlined]
ijl_apply_generic at /cache/build/builder/julialang/julia-release/src/gf.c:3077
jl_apply at /cache/build/builder/julialang/julia-release/src/julia.h:1982 [inlined]
do_call at /cache/build/builder/julialang/julia-release/src/interpreter.c:126
unknown function (ip: 0x7f3%x%)
Allocations: 2907 (Pool: 2900; Big: 7); GC: 0
Segmentation fault (core dumped)
"""),
    ("ocaml", ("invalid_argument",), "%M%", """\
Fatal error: exception Invalid_argument("index out of bounds")
Raised by primitive operation at %p%__%O%.%M% in file "src/%f%.ml", line %L%, characters 4-17
Called from %p%__Main.build in file "src/main.ml", line %l%, characters 2-19
Called from Dune__exe__Main in file "bin/main.ml", line 12, characters 9-33
"""),
    ("forrtl", ("sigsegv", "segmentation fault"), "%M%", """\
forrtl: severe (174): SIGSEGV, segmentation fault occurred
Image              PC                Routine            Line        Source             
libpthread-2.28.s  00007F3A1C894CF0  Unknown               Unknown  Unknown
%P%                000000000040355D  %M%_                 %L%  %f%.f90
%P%                0000000000402B12  MAIN__                    %l%  main.f90
%P%                00000000004028DE  Unknown               Unknown  Unknown
libc-2.28.so       00007F3A1C29DD85  __libc_start_main     Unknown  Unknown
%P%                00000000004027AE  Unknown               Unknown  Unknown
"""),
    ("gfortran runtime error", ("above upper bound", "runtime error"), "%M%", """\
At line %L% of file /src/%P%/%f%.f90
Fortran runtime error: Index '%n%' of dimension 1 of array 'rows' above upper bound of 3

Error termination. Backtrace:
#0  0x7f3%x%0 in ???
#1  0x7f3%x%1 in ???
#2  0x55d%x%a in %M%_
	at /src/%P%/%f%.f90:%L%
#3  0x55d%x%b in %P%_main
	at /src/%P%/main.f90:%l%
#4  0x55d%x%c in main
	at /src/%P%/main.f90:3
"""),
    ("open mpi mangled", ("segmentation fault", "segv"), "%M%", """\
[node17:%n%] *** Process received signal ***
[node17:%n%] Signal: Segmentation fault (11)
[node17:%n%] Signal code: Address not mapped (1)
[node17:%n%] Failing at address: 0x18
[node17:%n%] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x42520)[0x7f3%x%20]
[node17:%n%] [ 1] /opt/%P%/lib/lib%P%.so(%Z%+0x1c)[0x7f3%x%a0]
[node17:%n%] [ 2] /opt/%P%/bin/%P%(main+0x88)[0x55d%x%b0]
[node17:%n%] [ 3] /lib/x86_64-linux-gnu/libc.so.6(+0x29d90)[0x7f3%x%90]
[node17:%n%] *** End of error message ***
"""),
    ("absl signal", ("sigsegv", "segv"), "%M%", """\
*** SIGSEGV received at time=17%n%000 on cpu 12 ***
PC: @     0x55d%x%05  (unknown)  %P%::%O%::%M%()
    @     0x7f3%x%00        928  absl::lts_20240722::AbslFailureSignalHandler()
    @     0x7f3%x%01   25968656  (unknown)
    @     0x55d%x%05         32  %P%::%O%::%M%()
    @     0x55d%x%06        112  %P%::%C%()
    @     0x7f3%x%07        144  __libc_start_main
Segmentation fault (core dumped)
"""),
    ("dotnet inner", ("invalidoperationexception",), "%m%", """\
Unhandled exception. System.AggregateException: One or more errors occurred. (%f% is closed)
 ---> System.InvalidOperationException: %f% is closed
   at %p%.%O%.%m%(Int32 n) in C:\\src\\%P%\\%O%.cs:line %L%
   at %p%.Program.<>c.<Main>b__0_0() in C:\\src\\%P%\\Program.cs:line %l%
   --- End of inner exception stack trace ---
   at System.Threading.Tasks.Task.Wait(Int32 millisecondsTimeout, CancellationToken cancellationToken)
   at %p%.Program.Main(String[] args) in C:\\src\\%P%\\Program.cs:line 12
"""),
    ("faulthandler on windows", ("access violation",), "%M%", """\
Windows fatal exception: access violation

Thread 0x00002b%L% (most recent call first):
  File "C:\\Python311\\Lib\\threading.py", line 324 in wait

Current thread 0x00001a%L% (most recent call first):
  File "C:\\work\\%P%\\%f%.py", line %L% in %M%
  File "C:\\work\\%P%\\train.py", line %l% in main
  File "C:\\work\\%P%\\train.py", line 400 in <module>
"""),
    ("std stacktrace", ("terminate", "abort"), "%M%", """\
terminate called without an active exception
   0# %P%::on_terminate() at /src/%P%/crash.cpp:9
   1# __cxxabiv1::__terminate(void (*)()) at /build/gcc/libstdc++-v3/libsupc++/eh_terminate.cc:48
   2# std::terminate() at /build/gcc/libstdc++-v3/libsupc++/eh_terminate.cc:58
   3# %P%::%O%::%M%(int) at /src/%P%/%f%.cpp:%L%
   4# main at /src/%P%/main.cpp:%l%
   5# __libc_start_call_main at ../sysdeps/nptl/libc_start_call_main.h:58
   6# 
Aborted (core dumped)
"""),
    ("mlir crash", ("segmentation fault", "segv"), "%M%", """\
PLEASE submit a bug report to https://github.com/llvm/llvm-project/issues/ and include the crash backtrace.
Stack dump:
0.	Program arguments: /usr/bin/python3 train.py
 #0 0x00007f3%x%00 llvm::sys::PrintStackTrace(llvm::raw_ostream&, int) (/opt/%P%/lib%P%.so+0x4a%x%)
 #1 0x00007f3%x%01 llvm::sys::RunSignalHandlers() (/opt/%P%/lib%P%.so+0x4b%x%)
 #2 0x00007f3%x%02 SignalHandler(int) (/opt/%P%/lib%P%.so+0x4c%x%)
 #3 0x00007f3%x%03 (/lib/x86_64-linux-gnu/libc.so.6+0x42520)
 #4 0x00007f3%x%04 mlir::Operation::getAttr(mlir::StringAttr) (/opt/%P%/lib%P%.so+0x1a%x%)
 #5 0x00007f3%x%05 (anonymous namespace)::%O%Pass::%M%() (/opt/%P%/lib%P%.so+0x1b%x%)
 #6 0x00007f3%x%06 mlir::detail::OpToOpPassAdaptor::run(mlir::Pass*, mlir::Operation*, mlir::AnalysisManager, bool, unsigned int) (/opt/%P%/lib%P%.so+0x1c%x%)
Segmentation fault (core dumped)
"""),
    ("xla check", ("check",), "%M%", """\
2026-03-12 08:15:%L%.482915: F external/%P%/%f%.cc:%L%] Check failed: size_ <= limit_ (%n% vs. 8)
*** Begin stack trace ***
	tsl::CurrentStackTrace[abi:cxx11]()
	%P%::%O%::%M%(int)
	%P%::%C%(std::vector<int>&)
	
	__libc_start_main
	_start
*** End stack trace ***
Aborted (core dumped)
"""),
    ("c10 captured", ("exception", "%f% is closed"), "%M%", """\
terminate called after throwing an instance of 'c10::Error'
  what():  %f% is closed
Exception raised from %M% at /src/%P%/%f%.cpp:%L% (most recent call first):
C++ CapturedTraceback:
#4 std::_Function_handler<std::shared_ptr<c10::LazyValue<std::string> const> (), c10::SetStackTraceFetcher(std::function<std::string ()>)::{lambda()#1}>::_M_invoke(std::_Any_data const&) from Logging.cpp:0
#5 c10::Error::Error(c10::SourceLocation, std::string) from ??:0
#6 %P%::%O%::%M%(int) from /src/%P%/%f%.cpp:%L%
#7 %P%::%C%(std::vector<int>&) from /src/%P%/main.cpp:%l%
#8 __libc_start_main_impl from ./csu/../csu/libc-start.c:392

Aborted (core dumped)
"""),
    ("paddle signal", ("segmentation fault", "segv"), "%M%", """\


--------------------------------------
C++ Traceback (most recent call last):
--------------------------------------
0   %P%::%C%(std::vector<int>&)
1   %P%::%O%::%M%(int)

----------------------
Error Message Summary:
----------------------
FatalError: `Segmentation fault` is detected by the operating system.
  [TimeInfo: *** Aborted at 17%n%0000 (unix time) try "date -d @17%n%0000" if you are using GNU date ***]
  [SignalInfo: *** SIGSEGV (@0x18) received by PID %n% (TID 0x7f3%x%) from PID 24 ***]

Segmentation fault (core dumped)
"""),
    ("mindspore", ("runtimeerror",), "%M%", """\
Traceback (most recent call last):
  File "/work/train.py", line %l%, in <module>
    main()
  File "/work/train.py", line 40, in main
    net(rows)
  File "/usr/lib/python3.9/site-packages/mindspore/common/api.py", line 1608, in __call__
    return self._executor(args)
RuntimeError: The %f% of '%P%' is closed, but %n% rows are wanted.

----------------------------------------------------
- C++ Call Stack: (For framework developers)
----------------------------------------------------
mindspore/ccsrc/%P%/%f%.cc:%L% %M%
"""),
    ("macos report", ("segv", "bad_access"), "%M%", """\
Process:               %P% [%n%]
Path:                  /opt/%P%/bin/%P%
Crashed Thread:        0  Dispatch queue: com.apple.main-thread

Exception Type:        EXC_BAD_ACCESS (SIGSEGV)
Exception Codes:       KERN_INVALID_ADDRESS at 0x0000000000000018

Thread 0 Crashed:: Dispatch queue: com.apple.main-thread
0   lib%P%.dylib                  	       0x104%x% %P%::%O%::%M%(int) + 28 (%f%.cpp:%L%)
1   %P%                           	       0x103%x% %P%::%C%(std::vector<int>&) + 136 (main.cpp:%l%)
2   dyld                          	       0x19a%x% start + 2476

Thread 1:
0   libsystem_kernel.dylib        	       0x19b%x% __psynch_cvwait + 8
"""),
    ("py-spy native", (), "%M%", """\
Process %n%: python3 train.py
Python v3.11.9 (/usr/bin/python3.11)

Thread %n% (active): "MainThread"
    %P%::%O%::%M% (%P%/%f%.cpp:%L%)
    step (train.py:%l%)
    <module> (train.py:400)
"""),
    ("perl confess", ("%f% is closed",), "%M%", """\
%f% is closed at /src/%P%/lib/%p%/%O%.pm line %L%.
	%p%::%O%::%M%(%p%::%O%=HASH(0x55d%x%), %n%) called at /src/%P%/bin/feed.pl line %l%
	main::%C%(ARRAY(0x55d%x%)) called at /src/%P%/bin/feed.pl line 12
"""),
    ("ruby", ("nomethoderror",), "%M%", """\
/src/%P%/lib/%f%.rb:%L%:in `%M%': undefined method `rows' for nil:NilClass (NoMethodError)
	from /src/%P%/main.rb:%l%:in `%C%'
	from /src/%P%/main.rb:12:in `<main>'
"""),
    ("lua", ("attempt to index",), "%M%", """\
lua5.4: /src/%P%/%f%.lua:%L%: attempt to index a nil value (field 'rows')
stack traceback:
	[C]: in metamethod 'index'
	/src/%P%/%f%.lua:%L%: in method '%M%'
	/src/%P%/main.lua:%l%: in function '%C%'
	/src/%P%/main.lua:12: in main chunk
	[C]: in ?
"""),
    ("r", ("subscript out of bounds",), "%M%", """\
Error in %M%(rows, %n%) : subscript out of bounds
Calls: %C% -> %M%
Execution halted
"""),
    ("device assertion", ("assert",), "%K%", """\
/src/%P%/%f%.cu:%L%: void %K%(float *, int): block: [3,0,0], thread: [31,0,0] Assertion `i < n` failed.
/src/%P%/%f%.cu:%L%: void %K%(float *, int): block: [3,0,0], thread: [32,0,0] Assertion `i < n` failed.
"""),
    ("valgrind signal", ("sigsegv", "segv"), "%M%", """\
==%n%== 
==%n%== Process terminating with default action of signal 11 (SIGSEGV)
==%n%==  Access not within mapped region at address 0x18
==%n%==    at 0x4D%x%: %P%::%O%::%M%(int) (%f%.cpp:%L%)
==%n%==    by 0x4E%x%: %P%::%C%(std::vector<int>&) (main.cpp:%l%)
==%n%==    by 0x4F%x%: main (main.cpp:12)
==%n%==  If you believe this happened as a result of a stack
==%n%==  overflow in your program's main thread (unlikely but
==%n%==  possible), you can try to increase the size of the
==%n%==  main thread stack using the --main-stacksize= flag.
==%n%== 
Segmentation fault (core dumped)
"""),
    ("kernel protection fault", ("general protection fault", "oops"), "%K%", """\
[%n%.482915] general protection fault, probably for non-canonical address 0xdead000000000108: 0000 [#1] PREEMPT SMP NOPTI
[%n%.482921] CPU: 12 PID: %n% Comm: python Tainted: P           OE      6.5.0-35-generic #35-Ubuntu
[%n%.482923] RIP: 0010:%K%+0x2a/0x110 [%P%]
[%n%.482925] Code: 48 89 e5 41 57
[%n%.482927] Call Trace:
[%n%.482929]  <TASK>
[%n%.482931]  ? die_addr+0x36/0x90
[%n%.482933]  ? exc_general_protection+0x1c5/0x430
[%n%.482935]  %P%_ioctl+0x2a/0x90 [%P%]
[%n%.482937]  do_syscall_64+0x59/0x90
[%n%.482939]  </TASK>
"""),
    ("kernel rcu stall", ("stall",), "%K%", """\
[%n%.482915] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
[%n%.482916] rcu: 	12-....: (20999 ticks this GP) idle=9fa/1/0x4000000000000000 softirq=%n%/%n% fqs=5250
[%n%.482917] rcu: 	(detected by 3, t=21002 jiffies, g=%n%, q=1802)
[%n%.482918] Sending NMI from CPU 3 to CPUs 12:
[%n%.482919] NMI backtrace for cpu 12
[%n%.482921] CPU: 12 PID: %n% Comm: python Tainted: P           OE      6.5.0-35-generic #35-Ubuntu
[%n%.482923] RIP: 0010:%K%+0x2a/0x110 [%P%]
[%n%.482927] Call Trace:
[%n%.482929]  <TASK>
[%n%.482935]  %P%_ioctl+0x2a/0x90 [%P%]
[%n%.482937]  do_syscall_64+0x59/0x90
[%n%.482939]  </TASK>
"""),
    ("kernel hung task", ("blocked", "hung"), "%K%", """\
[%n%.482915] INFO: task python:%n% blocked for more than 120 seconds.
[%n%.482916]       Tainted: P           OE      6.5.0-35-generic #35-Ubuntu
[%n%.482917] "echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.
[%n%.482918] task:python          state:D stack:0     pid:%n% ppid:1      flags:0x00004002
[%n%.482927] Call Trace:
[%n%.482929]  <TASK>
[%n%.482930]  __schedule+0x2cc/0x770
[%n%.482931]  schedule+0x63/0x110
[%n%.482932]  schedule_timeout+0x157/0x170
[%n%.482935]  %K%+0x2a/0x110 [%P%]
[%n%.482936]  %P%_ioctl+0x2a/0x90 [%P%]
[%n%.482937]  do_syscall_64+0x59/0x90
[%n%.482939]  </TASK>
"""),
    ("kasan", ("use-after-free",), "%K%", """\
[%n%.482915] ==================================================================
[%n%.482916] BUG: KASAN: slab-use-after-free in %K%+0x2a/0x110 [%P%]
[%n%.482917] Read of size 8 at addr ffff8881%x% by task python/%n%
[%n%.482918] 
[%n%.482921] CPU: 12 PID: %n% Comm: python Tainted: P           OE      6.5.0-35-generic #35-Ubuntu
[%n%.482927] Call Trace:
[%n%.482929]  <TASK>
[%n%.482930]  dump_stack_lvl+0x37/0x50
[%n%.482931]  print_report+0xcc/0x620
[%n%.482932]  kasan_report+0xb0/0xe0
[%n%.482933]  %K%+0x2a/0x110 [%P%]
[%n%.482935]  %P%_ioctl+0x2a/0x90 [%P%]
[%n%.482939]  </TASK>
"""),
    ("v8 fatal", ("check", "fatal"), "%M%", """\


#
# Fatal error in , line 0
# Check failed: size_ <= limit_.
#
#
#
#FailureMessage Object: 0x7ffd%x%
----- Native stack trace -----

 1: 0xb8d0a%L% node::Abort() [node]
 2: 0x19f%x% V8_Fatal(char const*, ...) [node]
 3: 0x7f3%x% %P%::%O%::%M%(int) [/src/%P%/build/Release/%P%.node]
 4: 0x7f4%x% %P%::%C%(std::vector<int>&) [/src/%P%/build/Release/%P%.node]
Trace/breakpoint trap (core dumped)
"""),
    ("haskell", ("%f% is closed",), "%M%", """\
%P%: %f% is closed
CallStack (from HasCallStack):
  error, called at src/%p%/%O%.hs:%L%:17 in %P%-0.1.0.0-inplace:%p%.%O%
  %M%, called at app/Main.hs:%l%:3 in main:Main
"""),
    ("zig", ("index out of bounds", "panic"), "%M%", """\
thread %n% panic: index out of bounds: index %n%, len 3
/src/%P%/%f%.zig:%L%:17: 0x1039%L% in %M% (%P%)
    return self.rows[n];
                ^
/src/%P%/main.zig:%l%:3: 0x1034%L% in main (%P%)
    try index.grow(n);
    ^
/usr/lib/zig/std/start.zig:511:22: 0x1032f9 in posixCallMainAndExit (%P%)
            root.main();
                     ^
Aborted (core dumped)
"""),
    ("swift", ("index out of range", "fatal error"), "%M%", """\
Swift/ContiguousArrayBuffer.swift:600: Fatal error: Index out of range

*** Program crashed: Illegal instruction at 0x00007f3%x% ***

Thread 0 "%P%" crashed:

0 [inlined] [system]  0x00007f3%x%00 _assertionFailure(_:_:file:line:flags:) in libswiftCore.so
1                     0x000055d%x%a0 %O%.%M%(_:) + 128 in %P% at /src/%P%/Sources/%O%.swift:%L%:17
2                     0x000055d%x%b0 main + 60 in %P% at /src/%P%/Sources/main.swift:%l%:3
"""),
)  # fmt: skip


def foreign_stacks() -> Iterator[tuple[bool, MadeStack]]:
    """Yield two texts of each form, with whether the form is set aside."""
    for number, (form, types, point, text) in enumerate(FOREIGN_FORMS):
        for subject in (SUBJECTS[number % len(SUBJECTS)], SUBJECTS[(number + 3) % len(SUBJECTS)]):
            mangled = (
                f"_ZN{''.join(f'{len(name)}{name}' for name in (subject.package, subject.owner, subject.method))}Ei"
            )
            type_terms = tuple(map(subject.fill, types))
            filled = subject.fill(text.replace("%Z%", mangled))
            yield number % 2 == 1, MadeStack(form, subject.package, filled, type_terms, subject.fill(point))
