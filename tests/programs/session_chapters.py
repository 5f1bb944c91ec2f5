"""A program keeps making code and removing it. What is known of removed code is put into a chapter and
forgotten, and the profile consists of all chapters. (Bursts see more of such code in a few seconds than
replicas do, which bench/soak/run.py --kind code tests.)"""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, scratch

churning = os.path.abspath(sys.argv[1])
with scratch():
    outcome = profiled([churning, "5"], "--mode", "burst", "--overhead", "50%", "--sample-size", "1M")
    check_equal("how it ended", (outcome.status, outcome.stdout), (0, b"fine\n"))
    profile = read_profile()
    warnings, coverage = profile["run"]["warnings"], profile["coverage"]
    what = f"{warnings}, {coverage}, {profile['cost']}"
    check(any("chapters" in w for w in warnings), what)
    # The last chapter alone has fewer.
    check_equal(what, profile["edges"]["samples"], coverage["samples"])
    names = {n: place.get("function") for n, place in enumerate(profile["locations"])}
    shares = {names[e["function"]]: e["instructions"]["share"] for e in profile["methods"]["entries"]}
    check(shares["steady"] > 0.5, f"{what}: {shares}")
