"""attach in burst mode puts nothing into a program of 50 threads: its memory map is the same before,
during and after, and it notices nothing."""

import os
import signal
import subprocess
import sys
import time

from vocabulary import (
    SHADOWPROF,
    check,
    check_equal,
    check_same_lines,
    memory_map,
    read_profile,
    scratch,
    start,
    stop,
    tracer_of,
)

TARGET = os.path.abspath(sys.argv[1])
UNDISTURBED = b"""epoll_wait: 0 EINTR, 0 unexpected
sigtimedwait: 0 EINTR, 0 unexpected
semtimedop: 0 EINTR, 0 unexpected
recv: 0 EINTR, 0 unexpected
0 wrong results
"""

with scratch():
    target = subprocess.Popen([TARGET], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        check_equal("the first line", target.stdout.readline(), b"ready\n")
        time.sleep(1)
        before = memory_map(target.pid)
        options = ["-m", "burst", "--overhead", "20%", "--no-progress", "-q", "-o", "profile.json"]
        profiler = start([SHADOWPROF, "attach", *options, str(target.pid)])
        time.sleep(1)
        for _ in range(100):
            check_same_lines("the memory map meanwhile", memory_map(target.pid), before)
            time.sleep(0.02)
        check_equal("the number of tracers", len(tracer_of(target.pid)), 1)
        profiler.send_signal(signal.SIGINT)
        check_equal("shadowprof's status", profiler.wait(60), 0)
        check_same_lines("the memory map afterwards", memory_map(target.pid), before)
        check_equal("the tracers afterwards", tracer_of(target.pid), set())
        samples = read_profile()["coverage"]["samples"]
        # Where it is stopped in a system call, which it mostly is, there is none.
        check(samples >= 8, f"only {samples} samples")
        said, _ = target.communicate(timeout=60)
        check_equal("what the target tells", said, UNDISTURBED)
        check_equal("its exit status", target.returncode, 0)
    finally:
        stop(target)
