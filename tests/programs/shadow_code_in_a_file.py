"""A program changes code that it has mapped from a file: a replica executes what there was at its birth,
not what another one had."""

import os
import sys

from vocabulary import check, check_equal, lacked_processors, profiled, read_profile, scratch

code_in_a_file = os.path.abspath(sys.argv[1])
with scratch():
    options = ["--mode", "shadow", "--load", "1", "--overhead", "50%", "--sample-size", "1M"]
    outcome = profiled([code_in_a_file, "4"], *options)
    check_equal("how it ended", (outcome.status, outcome.stdout), (0, b"fine\n"))
    profile = read_profile()
    coverage, cost, warnings = profile["coverage"], profile["cost"], profile["run"]["warnings"]
    busy = lacked_processors(profile) or "time limit" in coverage["ended"]
    check(cost["forks"] >= 3 or busy, f"{coverage}, {cost}, {warnings}")
    wrong = [why for why in coverage["ended"] if why.startswith("signal") or "no code" in why]
    check(not wrong, f"{coverage}, {cost}, {warnings}")
