"""Whatever ends shadowprof but SIGKILL: the program runs on, and whoever called `run` still waits for its
end and gets its exit status."""

import ctypes
import os
import signal
import subprocess

from vocabulary import SHADOWPROF, check, check_equal, scratch, shell_status, tracer_of, wait_until

SCRIPT = "echo $$; while [ ! -e stop ]; do i=$((i + 1)); done; echo computed; exit {status}"
FATAL = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)

LIBC = ctypes.CDLL(None, use_errno=True)


def signal_thread(process, thread, number):
    check_equal("tgkill", LIBC.tgkill(process, thread, int(number)), 0)


def executes_anew(profiler):
    with open(f"/proc/{profiler}/cmdline", "rb") as file:
        return b"--wait-for-program" in file.read()


def fail(mode, number, which, status):
    """A thread of shadowprof gets a fatal signal: the first one or the one that traces."""
    if os.path.exists("stop"):
        os.remove("stop")
    with subprocess.Popen(
        [SHADOWPROF, "run", "-m", mode, "-o", "profile.json", "--", "sh", "-c", SCRIPT.format(status=status)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as profiler:
        program = int(profiler.stdout.readline())
        try:
            # Between samples nobody may trace it.
            wait_until(lambda: tracer_of(program), "nobody traces it")
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
    case = f"{mode}, {signal.Signals(number).name}"
    check_equal(f"what the program printed ({case})", said, b"computed\n")
    check(b"shadowprof itself failed" in errors, f"nothing was said ({case}): {errors}")
    check_equal(f"the status ({case})", shell_status(profiler.returncode), status or 125)
    check(not os.path.exists("profile.json"), "half a profile was left")


with scratch():
    for mode in ("auto", "shadow", "burst", "instant", "full", "step"):
        for number in FATAL:
            for thread in ("first", "tracing"):
                fail(mode, number, thread, 7)
    fail("auto", signal.SIGSEGV, "first", 0)
