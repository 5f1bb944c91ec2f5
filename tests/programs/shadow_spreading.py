"""Replicas of a program that maps memory at the places where their code cache is. The cache moves, but only
when no other replica uses it."""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, scratch

from busy_machine import of_other_reasons

spreading = os.path.abspath(sys.argv[1])
with scratch():
    outcome = profiled([spreading, "3"], "--mode", "shadow", "--overhead", "50%", "--load", "2")
    check_equal("how it ended", outcome.status, 0)
    profile = read_profile()
    warnings, cost = profile["run"]["warnings"], profile["cost"]
    refused = [w for w in of_other_reasons(warnings) if "no replicas" in w]
    check(not refused, f"{warnings}, {cost}")
    check(profile["coverage"]["samples"] >= 2, f"{profile['coverage']}, {cost}")
