"""Replicas continue from where the program was, with all its registers and flags: in the cache, outside it
for a while to see how fast the original code is, and in it again."""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, scratch

self_checking = os.path.abspath(sys.argv[1])
with scratch():
    outcome = profiled([self_checking, "3"], "--mode", "shadow", "--overhead", "20%")
    check_equal("how it ended", (outcome.status, outcome.stdout), (0, b"all right\n"))
    profile = read_profile()
    ended = profile["coverage"]["ended"]
    check(not any(why.startswith("signal") for why in ended), f"samples ended by {ended}")
    # The number depends on how idle the machine is.
    check(sum(ended.values()) >= 1, f"{profile['coverage']}")
