"""--mode full: code that is written while it runs is executed as it is at that moment, be it by the
instruction just before it, in all versions of the translated code, and is counted each time. Versions that differ in
constants only are one place, in the end."""

import os
import sys

from vocabulary import check, check_equal, same_as_native, scratch

rewriting = os.path.abspath(sys.argv[1])
ROUNDS = 1000
RETURNS = {"always new": 0x100000205, "by itself": 0x100000C0B}  # of these functions of rewriting.c
MOST_VERSIONS = 40


def full(command, *options):
    profile = same_as_native(command, "--mode", "full", *options)
    warnings = profile["run"].get("warnings", [])
    check(not warnings, warnings)
    return profile


def check_returns(profile):
    locations = profile["locations"]
    for what, at in RETURNS.items():
        counts = {}
        for edge in profile["edges"]["entries"]:
            location = locations[edge["from"]]
            if int(location["offset"], 16) == at:
                counts[location["content"]] = counts.get(location["content"], 0) + edge["count"]
        check_equal(f"returns, {what}", sum(counts.values()), ROUNDS)
        check(len(counts) <= MOST_VERSIONS, f"{what}: {len(counts)} versions")


with scratch():
    for options in (["-p", "path,edge", "--limit", "100000"], ["-p", "all"], ["-p", "all", "--exhaustive"]):
        seen = full([rewriting, str(ROUNDS)], *options)
        if "--limit" in options:
            check_returns(seen)
