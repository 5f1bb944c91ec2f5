"""attach ends by itself after a number of samples, or when shares are known well enough. The program keeps running."""

import os
import subprocess
import sys

from vocabulary import SHADOWPROF, check, check_equal, read_profile, run, scratch, start, stop, tracer_of

PROGRAM = os.path.abspath(sys.argv[1])


def attached(target, *options):
    command = [SHADOWPROF, "attach", "-q", "-o", "profile.json", "-p", "edge", *options, str(target.pid)]
    check_equal("shadowprof's status", run(command).status, 0)
    check_equal("the tracers afterwards", tracer_of(target.pid), set())
    check(target.poll() is None, "the program has ended")
    return read_profile()


with scratch():
    # The program would run for hours.
    target = start([PROGRAM, "100000G"], stdout=subprocess.DEVNULL)
    try:
        for mode in ("burst", "shadow"):
            profile = attached(target, "-m", mode, "--overhead", "20%", "--max-samples", "12")
            samples = profile["coverage"]["samples"]
            # On a busy machine not every replica gets to run.
            check(samples == 12 or (mode == "shadow" and 1 <= samples < 12), f"{samples} samples in mode {mode}")
            check_equal("why it ended", profile["run"]["interrupted"], "max-samples")
        profile = attached(target, "-m", "burst", "--overhead", "50%", "--until-converged", "5%")
        check_equal("why it ended", profile["run"]["interrupted"], "converged")
        check(profile["coverage"]["samples"] >= 30, "it was sure too soon")
    finally:
        stop(target)
