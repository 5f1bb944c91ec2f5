"""The registers of AVX-512 and AMX's tiles keep what a program has in them, in all modes: where threads are stopped,
forked, run from a code cache or interpreted, and around system calls, signals and forks of the program's own."""

import os
import sys

from vocabulary import SKIPPED, check, run, same_as_native, scratch, skip

wide_state = os.path.abspath(sys.argv[1])
MODES = ("shadow", "instant", "auto", "burst", "step", "full")

with scratch():
    kinds = [kind for kind in ("vectors", "tiles") if run([wide_state, kind, "1"]).status != SKIPPED]
    if not kinds:
        skip("the processor has neither AVX-512 nor AMX")
    samples = {}
    for kind in kinds:
        for mode in MODES:
            budget = () if mode == "full" else ("--overhead", "50%")
            profile = same_as_native([wide_state, kind, "300"], "--mode", mode, "-p", "all", *budget)
            samples[kind, mode] = profile["coverage"]["samples"]
    print(samples)
    check(all(samples[kind, mode] > 0 for kind in kinds for mode in ("instant", "burst", "full")), f"{samples}")
