"""Replicas do not get memory that a program keeps from its children. The profile says so and has bursts."""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, scratch

from busy_machine import lacked_processors

kept_from_children = os.path.abspath(sys.argv[1])
with scratch():
    outcome = profiled([kept_from_children, "2"], "--mode", "shadow", "--overhead", "20%")
    check_equal("how it ended", outcome.status, 0)
    profile = read_profile()
    warnings = profile["run"]["warnings"]
    warned = any("MADV_DONTFORK" in warning for warning in warnings)
    check(warned or lacked_processors(profile), f"{warnings}, {profile['coverage']}")
    check(profile["coverage"]["samples"] >= 1, f"{profile['coverage']}")
