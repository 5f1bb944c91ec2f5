"""attach in mode burst puts nothing into a program with 50 threads. The program's memory map is the same
before, during and after, and it notices nothing."""

import os
import signal
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
    tracer_of,
    undisturbed_threads,
)

TARGET = os.path.abspath(sys.argv[1])

with scratch():
    with undisturbed_threads(TARGET) as target:
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
        # A thread that is stopped in a system call, as most are, gives no sample.
        check(samples >= 8, f"only {samples} samples")
