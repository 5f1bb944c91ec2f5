"""--mode full: a thread that is not the first becomes another program, again and again, while others are on
their way into the code cache, in it, and out of it.

ROUNDS: how often."""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, scratch

ROUNDS = int(os.environ.get("ROUNDS", "4"))
exec_by_threads = os.path.abspath(sys.argv[1])

with scratch():
    for _ in range(ROUNDS):
        outcome = profiled([exec_by_threads, "10"], "--mode", "full")
        check_equal("how it ended", (outcome.status, outcome.stdout), (5, b"0, 2 arguments\n"))
        profile = read_profile()
        check_equal("warnings", profile["run"].get("warnings", []), [])
        check(profile["coverage"]["instructions"] > 100_000, f"{profile['coverage']}")
