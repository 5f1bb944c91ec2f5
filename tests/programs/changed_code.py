"""Programs change code that they have mapped from a file, or code of their own image. Each sample executes
the code that was there when the sample began, not the code of an earlier sample. (A burst looks at the
mappings before it stops its thread, so it may miss a page of the program's image that is changed for the
first time just then.)"""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, scratch

from busy_machine import lacked_processors, lacked_time

PATCHED_PAGES = 16  # of patched_image.c

programs = [os.path.abspath(program) for program in sys.argv[1:]]
replicas = ["--mode", "shadow", "--load", "1", "--overhead", "50%", "--sample-size", "1M"]
bursts = ["--mode", "burst", "--overhead", "50%"]
for program in programs:
    for options in replicas, bursts:
        with scratch():
            outcome = profiled([program, "3"], *options)
            check_equal("how it ended", (outcome.status, outcome.stdout), (0, b"fine\n"))
            profile = read_profile()
            coverage, cost, warnings = profile["coverage"], profile["cost"], profile["run"]["warnings"]
            what = f"{program} {options}: {coverage}, {cost}, {warnings}"
            check(options == bursts or cost["forks"] >= 2 or lacked_time(profile), what)
            ended = coverage["ended"].items()
            wrong = sum(count for why, count in ended if why.startswith(("signal", "trap")) or "no code" in why)
            burst = options == bursts or lacked_processors(profile)
            may_miss = burst and os.path.basename(program) == "patched-image"
            check(wrong <= (PATCHED_PAGES if may_miss else 0), what)
