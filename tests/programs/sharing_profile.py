"""Profile type sharing: two threads that use one line, the same bytes of it, a lock word, or nothing of each
other's, are told apart; both instructions and the variables are named."""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, run, scratch, SHADOWPROF

PROGRAM = os.path.abspath(sys.argv[1])
BAD_USAGE = 125  # of run
ROUNDS = "1000000"


def shared(profile):
    """Of the program's own functions: (kind, function, other function) and the entry."""
    at = profile["locations"]
    found = {}
    for entry in profile["sharing"]["entries"]:
        here, there = at[entry["location"]].get("function"), at[entry["other"]].get("function")
        if here and here.startswith(("first_", "second_", "alone")):
            found[entry["kind"], here, there] = entry
    return found


def variable(profile, index):
    place = profile["locations"][index]
    return place["function"], int(place["offset"], 16) - int(place["function_offset"], 16)


def check_way(way, kind, *options, rounds=ROUNDS):
    profiled([PROGRAM, way, rounds], "-p", "sharing", *options)
    profile = read_profile()
    found = shared(profile)
    if kind is None:
        check_equal(f"what is shared in {way}", found, {})
        return profile, found
    name = {"false": "together", "true": "same", "lock": "lock"}[way]
    pair = f"first_{name}", f"second_{name}"
    for here, there in (pair, pair[::-1]):
        check((kind, here, there) in found, f"{way}, {options}: {kind} of {here} and {there} is not among {found}")
    return profile, found


with scratch():
    profile, found = check_way("false", "false-sharing", "-m", "full")
    entry = found["false-sharing", "first_together", "second_together"]
    check_equal("the variable", variable(profile, entry["data"]), ("together", 0))
    check_equal("the other's", variable(profile, entry["other_data"]), ("together", 8))
    check_equal("the offsets", (entry["offset"], entry["other_offset"]), (0, 8))
    check(profile["sharing"]["exhaustive"], "mode full has not seen all accesses")
    report = run([SHADOWPROF, "report", "profile.json"]).stdout.decode()
    check("[false-sharing]" in report and "together+8" in report, f"no advice on false sharing:\n{report}")

    check_way("padded", None, "-m", "full")
    report = run([SHADOWPROF, "report", "profile.json"]).stdout.decode()
    check("[false-sharing]" not in report, f"advice where the line is not shared:\n{report}")
    check_way("true", "true-sharing", "-m", "full")
    check_way("lock", "lock-word", "-m", "full")
    check_way("private", None, "-m", "full")

    # As long as it takes to be sampled.
    for way, kind in (("false", "false-sharing"), ("padded", None), ("lock", "lock-word")):
        check_way(way, kind, "-m", "instant", "--all-threads", "--overhead", "30%", rounds="1000000000")

    for options in (["-m", "shadow"], ["-m", "instant"], ["-m", "full", "-p", "latency"]):
        refused = run([SHADOWPROF, "run", "-p", "sharing", *options, "--", PROGRAM, "false", "1"])
        check_equal(f"the exit status of {options}", refused.status, BAD_USAGE)
        check_equal("the lines of the refusal", len(refused.own_lines()), 1)
