"""A program gets much memory and writes to all of it. A replica would make it copy each page, so none is forked
until the budget covers that."""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, scratch

from busy_machine import lacked_processors

growing = os.path.abspath(sys.argv[1])
MEGABYTES = 400
PAGES = MEGABYTES * 256
with scratch():
    outcome = profiled([growing, str(MEGABYTES), "2"], "--mode", "shadow")
    check_equal("how it ended", (outcome.status, outcome.stdout), (0, b"fine\n"))
    profile = read_profile()
    warnings, cost, coverage = profile["run"]["warnings"], profile["cost"], profile["coverage"]
    told = any("may cost more than the budget" in w for w in warnings) or lacked_processors(profile)
    check(told or cost["forks"] <= 1, f"{warnings}, {cost}, {coverage}")
    check(cost["extra_faults"] < PAGES / 10, f"{warnings}, {cost}, {coverage}")
    check(coverage["samples"] >= 1, f"{warnings}, {cost}, {coverage}")
