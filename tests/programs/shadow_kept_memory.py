"""Replicas do not have what a program keeps from its children: it is told so and gets bursts."""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, scratch

kept_from_children = os.path.abspath(sys.argv[1])
with scratch():
    outcome = profiled([kept_from_children, "2"], "--mode", "shadow", "--overhead", "20%")
    check_equal("how it ended", outcome.status, 0)
    profile = read_profile()
    warnings = profile["run"]["warnings"]
    told = [w for w in warnings if "MADV_DONTFORK" in w or "all processors are busy" in w]
    check(told, f"{warnings}, {profile['coverage']}")
    check(profile["coverage"]["samples"] >= 1, f"{profile['coverage']}")
