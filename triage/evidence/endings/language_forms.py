"""Forms of other runtimes: JVM, Node, Go, Rust, Julia, R, Perl, Ruby, Lua, .NET, Haskell, Erlang, OCaml, Fortran."""

from __future__ import annotations

from triage.evidence.endings.interface import HINT, INNER_MESSAGE, MESSAGE, Form, strong, weak

FORMS: tuple[Form, ...] = (
    strong(
        "panic",
        "any",
        r"^(?:\S{1,40}[: ] ?)?(?:thread .{0,80} )?(?:kernel )?(?:[Pp]anic|PANIC)(?:\(.{0,40}\))?: +\S",
        "panic: runtime error: index out of range [8] with length 8",
        INNER_MESSAGE,
    ),
    strong(
        "panic at a place, in quotes",
        "Rust",
        r"\bpanicked at '.",
        "thread 'main' panicked at 'called `Option::unwrap()` on a `None` value', src/loader.rs:41:49",
        INNER_MESSAGE,
    ),
    strong(
        "panic at a place",
        "Rust",
        r"\bpanicked at [^'\s]\S*:\d+:\d+:$",
        "thread 'main' (31124) panicked at crates/shard/src/plan.rs:88:17:",
        INNER_MESSAGE,
        "next line",
    ),
    strong(
        "fatal error",
        "any",
        r"^(?:[\w./ +-]{1,60}(?::\d+)*: ?)?(?:[Ff]atal(?: [Ee]rror| [Ee]xception)?|"
        r"FATAL(?: ERROR)?)(?: [\w ]{0,20})?:\s+\S",
        "fatal error: all goroutines are asleep - deadlock!",
        INNER_MESSAGE,
    ),
    strong(
        "uncaught error",
        "any",
        r"(?i)^.{0,40}\b(?:uncaught|unhandled)\b.{0,40}(?:exception|error|rejection|throw|promise|signal|condition)",
        "Unhandled exception. System.IO.FileNotFoundException: Could not find file '/data/vocab.bin'.",
        MESSAGE,
    ),
    strong(
        "cause of an exception",
        "JVM",
        r"^Caused by: \S",
        "Caused by: java.io.IOException: manifest lists 64 parts, 63 were found",
        INNER_MESSAGE + 2,
    ),
    strong(
        "exception in a thread",
        "JVM",
        r"^Exception in thread \"[^\"]{0,80}\" \S",
        'Exception in thread "main" scala.MatchError: fp4 (of class java.lang.String)',
        INNER_MESSAGE,
    ),
    strong(
        "error of a script",
        "Node",
        r"^(?:Error|[A-Z]\w*Error)(?: \[\w+\])?: \S",
        "Error: connect ECONNREFUSED 10.4.0.17:7077",
        INNER_MESSAGE,
    ),
    strong(
        "error with its type behind",
        "Ruby",
        r" \((?:\w+::)*[A-Z]\w*(?:Error|Exception)\)$",
        'feeder.rb:41:in `fetch\': key not found: "shards" (KeyError)',
        INNER_MESSAGE,
    ),
    strong(
        "exception with its type behind",
        "Ruby",
        r"^\S{1,300}\.rb:\d+:in [`'].{1,200}': .+ \((?:[A-Z]\w*::){0,10}[A-Z]\w*\)$",
        "ring.rb:41:in 'Ring#join': ring has 7 members, 8 wanted (Ring::Incomplete)",
        INNER_MESSAGE,
    ),
    strong(
        "error with a stack",
        "Julia",
        r"^ERROR: (?:LoadError: |TaskFailed\w*: )*\S",
        "ERROR: LoadError: BoundsError: attempt to access 4-element Vector{Int64} at index [5]",
        INNER_MESSAGE,
    ),
    strong(
        "error in a call, in the next line",
        "R",
        r"^Error (?:in|using) .{1,120}(?::\s*|\w)$",
        "Error in solve.default(A) : ",
        INNER_MESSAGE,
        "next line",
    ),
    strong("error in a call", "R", r"^Error(?: in .{1,120})?: \S", "Error: object 'w' not found", INNER_MESSAGE),
    strong("execution halted", "R", r"^Execution halted$", "Execution halted", HINT),
    strong(
        "died in a script",
        "Perl",
        r"^.{1,400} at \S{1,200} line \d+\.?(?:$|, <)",
        "Can't locate JSON/XS.pm in @INC (you may need to install the JSON::XS module) at prep.pl line 4.",
        MESSAGE,
    ),
    strong(
        "error at a place of a script",
        "any",
        # Behind a place in an installed package stands a warning.
        r"^(?:[\w.-]{1,40}: )?(?!\S*/site-packages/)[\w./-]{1,120}\."
        r"(?:lua|pl|rb|jl|tcl|sh|awk|py|js|ts|R|php|m|mjs|scm|lisp|el|vim|nim|hs):"
        r"(?:\d+:){1,2} (?!\w*Warning\b|\w*INFO|warning)\S",
        "lua: sampler.lua:31: attempt to index a nil value (field 'vocab')",
        INNER_MESSAGE,
    ),
    weak(
        "heading of a stack",
        "any",
        r"(?i)^(?:stack ?trace(?:back)?|call ?stack(?: \(from \w+\))?|backtrace|stack traceback|call trace|"
        r"goroutine \d+ \[[^\]]+\]):?$",
        "stack traceback:",
        HINT,
    ),
    strong(
        "partial function",
        "Haskell",
        r"^[\w./-]{1,60}: (?:Prelude\.|<<loop>>|internal error|\S+\.hs:\d+|thread blocked indefinitely in an? |"
        r"(?:stack|heap) (?:overflow|exhausted)$)",
        "feeder: Prelude.head: empty list",
        MESSAGE,
    ),
    strong(
        "init terminating",
        "Erlang",
        r"\binit terminating in |^\{\"init terminating|^Crash dump is being written|^=(?:ERROR|CRASH) REPORT",
        "init terminating in do_boot ({{badmatch,{error,enoent}},[{feeder_app,start,2,[{_},{_}]}]})",
        MESSAGE,
    ),
    strong(
        "place in a source",
        "Fortran",
        r"^At line \d+ of file ",
        "At line 7 of file src/halo.f90 (unit = 11, file = 'run.nml')",
        INNER_MESSAGE,
        "next line",
    ),
    strong(
        "run-time library",
        "Fortran",
        r"^(?:forrtl|Fortran runtime error|lib-\d+ : UNRECOVERABLE)\b|\bERROR STOP\b|^ ?STOP [1-9]",
        "forrtl: severe (24): end-of-file during read, unit 11, file /scratch/run/weights.dat",
        INNER_MESSAGE,
    ),
    weak(
        "no such thing",
        "any",
        r"(?i)^(?:can't|cannot|could not|couldn't|unable to|failed to|no such) \S",
        'can\'t read "nshards": no such variable',
        MESSAGE,
    ),
    strong(
        "debugger invoked",
        "Lisp",
        r"^debugger invoked on ",
        'debugger invoked on a TYPE-ERROR in thread #<THREAD "main thread">: The value NIL is not of type NUMBER',
    ),
)
