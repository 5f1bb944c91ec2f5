"""Code that a program makes at run time gets the names that the program publishes for perf."""

import os
import sys

from vocabulary import check_equal, profiled, read_profile, scratch

PROGRAM = os.path.abspath(sys.argv[1])

with scratch():
    for mode, rounds in (("full", 100), ("shadow", 4000)):
        outcome = profiled([PROGRAM, str(rounds)], "-m", mode)
        profile = read_profile()
        hottest = max(profile["edges"]["entries"], key=lambda edge: edge["count"])
        place = profile["locations"][hottest["from"]]
        check_equal(f"the hottest function in mode {mode}", place.get("function"), "counts_down")
        os.unlink(outcome.stdout.decode().strip())
