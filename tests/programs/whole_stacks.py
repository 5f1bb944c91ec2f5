"""What is on every stack has all of the time and of the instructions, also where stacks lead through code that was not
there when the program began, and where they are unwound when it has ended."""

import os
import sys

from vocabulary import check, profiled, read_profile, scratch

program, library = (os.path.abspath(argument) for argument in sys.argv[1:])

with scratch():
    profiled([program, library, "2"], "-p", "time,context")
    profile = read_profile()
functions = [location.get("function", "") for location in profile["locations"]]


def share(entries, name):
    total = sum(e["count"] for e in entries)
    return sum(e["count"] for e in entries if name in [functions[i] for i in e["frames"]]) / total


looks = [e for e in profile["time"]["entries"] if e["state"] == "user" and e["frames"]]
for name, least in (("compute", 0.9), ("call_back", 0.6), ("main", 0.95), ("_start", 0.95)):
    found = share(looks, name)
    check(found >= least, f"{name} is on stacks of {100 * found:.1f} % of the time")
if profile["coverage"]["samples"] > 0:
    found = share(profile["contexts"]["entries"], "_start")
    check(found > 0.9, f"_start is on stacks of {100 * found:.1f} % of the instructions")
