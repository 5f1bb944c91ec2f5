"""attach, 40 times or ROUNDS, to a program with 50 threads, half of which sleep while the others come and go. The
program notices nothing, and afterwards nothing is left in it."""

import os
import sys

from vocabulary import (
    SHADOWPROF,
    check,
    check_equal,
    check_same_lines,
    memory_map,
    read_profile,
    run,
    scratch,
    tracer_of,
    undisturbed_threads,
)

TARGET = os.path.abspath(sys.argv[1])
ROUNDS = int(os.environ.get("ROUNDS", "40"))

with scratch():
    with undisturbed_threads(TARGET) as target:
        before = memory_map(target.pid)
        samples = 0
        for number in range(ROUNDS):
            options = ["--duration", "150ms", "--no-progress"]
            if number % 2:
                options += ["--mode", "step", "--overhead", "50%"]
            else:
                # With the default overhead, only two of eight such rounds had a sample on a slow machine.
                options += ["--overhead", "20%"]
            outcome = run([SHADOWPROF, "attach", *options, "-o", "profile.json", str(target.pid)])
            check(outcome.status == 0, f"round {number}: {outcome.status}, {outcome.stderr.decode()}")
            check_equal(f"round {number}: tracers", tracer_of(target.pid), set())
            check(target.poll() is None, f"round {number}: the target has ended: {target.returncode}")
            check_same_lines(f"round {number}: the memory map", memory_map(target.pid), before)
            profile = read_profile()
            check(profile["targets"][0]["attached"], "the profile does not say that it was attached")
            samples += profile["coverage"]["samples"]
        # Where stops are dear 19 of 40 have one.
        check(samples >= ROUNDS / 4, f"only {samples} samples in {ROUNDS} rounds")
