"""Whatever ends shadowprof but SIGKILL: the program runs on, and whoever called `run` still waits for its
end and gets its exit status."""

import ctypes
import os
import signal
import subprocess

from vocabulary import (
    SHADOWPROF,
    check,
    check_equal,
    scratch,
    shell_status,
    start,
    state_of,
    stop,
    tracer_of,
    wait_until,
)

SCRIPT = "echo $$; while [ ! -e stop ]; do i=$((i + 1)); done; echo computed; exit {status}"
FATAL = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)
# One sample takes seconds.
STEPS_ALWAYS = ("-m", "step", "--sample-size", "1000000", "--overhead", "90%")

LIBC = ctypes.CDLL(None, use_errno=True)


def signal_thread(process, thread, number):
    check_equal("tgkill", LIBC.tgkill(process, thread, int(number)), 0)


def executes_anew(profiler):
    with open(f"/proc/{profiler}/cmdline", "rb") as file:
        return b"--wait-for-program" in file.read()


def is_stepped(thread):
    """It is seen stopped again and again."""
    return sum(state_of(thread) == "t" for _ in range(200)) > 20


def fail(mode, number, which, status):
    """A thread of shadowprof gets a fatal signal: the first one or the one that traces."""
    if os.path.exists("stop"):
        os.remove("stop")
    with subprocess.Popen(
        [SHADOWPROF, "run", *mode, "-o", "profile.json", "--", "sh", "-c", SCRIPT.format(status=status)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as profiler:
        program = int(profiler.stdout.readline())
        try:
            # Between samples nobody may trace it.
            wait_until(lambda: tracer_of(program), "nobody traces it")
            wait_until(lambda: mode != STEPS_ALWAYS or is_stepped(program), "nobody steps it")
            tracing_thread = max(tracer_of(program) or {profiler.pid})
            thread = tracing_thread if which == "tracing" else profiler.pid
            signal_thread(profiler.pid, thread, number)
            wait_until(lambda: executes_anew(profiler.pid), "shadowprof does not execute itself anew")
            wait_until(lambda: not tracer_of(program), "it is not let go of")
            check(profiler.poll() is None, "shadowprof does not wait for the program")
        finally:
            with open("stop", "w", encoding="ascii"):
                pass
        said, errors = profiler.communicate(timeout=60)
    case = f"{' '.join(mode)}, {signal.Signals(number).name}"
    check_equal(f"what the program printed ({case})", said, b"computed\n")
    check(b"shadowprof itself failed" in errors, f"nothing was said ({case}): {errors}")
    check_equal(f"the status ({case})", shell_status(profiler.returncode), status or 125)
    check(not os.path.exists("profile.json"), "half a profile was left")


def fail_while_attached(number, which):
    """It steps the program, and nobody waits for that."""
    os.remove("stop")
    program = start(["sh", "-c", SCRIPT.format(status=7)], stdout=subprocess.PIPE)
    profiler = start([SHADOWPROF, "attach", *STEPS_ALWAYS, "-o", "profile.json", str(program.pid)])
    try:
        program.stdout.readline()
        wait_until(lambda: is_stepped(program.pid), "nobody steps it")
        thread = max(tracer_of(program.pid)) if which == "tracing" else profiler.pid
        signal_thread(profiler.pid, thread, number)
        check_equal(f"the status of attach ({which})", profiler.wait(60), -number)
        with open("stop", "w", encoding="ascii"):
            pass
        said, _ = program.communicate(timeout=60)
        check_equal(f"how the program ends ({which})", (program.returncode, said), (7, b"computed\n"))
    finally:
        stop(program)
        stop(profiler)


with scratch():
    for mode in ("auto", "shadow", "burst", "instant", "full"):
        for number in FATAL:
            for thread in ("first", "tracing"):
                fail(("-m", mode), number, thread, 7)
    for number in FATAL:
        for thread in ("first", "tracing"):
            fail(STEPS_ALWAYS, number, thread, 7)
    fail(("-m", "auto"), signal.SIGSEGV, "first", 0)
    for thread in ("first", "tracing"):
        fail_while_attached(signal.SIGSEGV, thread)
