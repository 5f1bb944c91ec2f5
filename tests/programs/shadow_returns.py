"""Other programs need all processors for a while, so there can be no replicas. Afterwards replicas come back."""

import os
import subprocess
import sys

from vocabulary import check, check_equal, profiled, read_profile, scratch

from busy_machine import seconds_without_processors

self_checking = os.path.abspath(sys.argv[1])
BUSY = "import time\nend = time.monotonic() + 4\nwhile time.monotonic() < end: pass"
with scratch():
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2 * os.cpu_count())]
    outcome = profiled([self_checking, "16"], "--mode", "shadow", "--overhead", "20%")
    for other in others:
        other.wait()
    check_equal("how it ended", (outcome.status, outcome.stdout), (0, b"all right\n"))
    profile = read_profile()
    warnings, cost = profile["run"]["warnings"], profile["cost"]
    without = seconds_without_processors(warnings)
    check(without is not None and 0 < without < 15, f"{warnings}, {cost}")
    check(cost["forks"] >= 10, f"{cost}")
