"""Profile type latency: the load that waits is named, with its pattern and, by the model of given caches,
its level. Other modes do not have the type. A test cannot know how long the load waits."""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, run, scratch, SHADOWPROF

from busy_machine import lacked_processors

CHASE, KNOWN = map(os.path.abspath, sys.argv[1:3])
BAD_USAGE = 125  # of run
CACHES = "--cache=32k,256k,1M"


def hottest_load(profile, function):
    """Of the loads in the function, the one that waits longest by measurement or model."""
    for entry in profile["latencies"]["entries"]:
        place = profile["locations"][entry["location"]]
        if place.get("function") == function:
            return entry, place
    sys.exit(f"FAILED: the profile has no load of {function}")


def check_entries(profile):
    for entry in profile["latencies"]["entries"]:
        check_equal("the histogram", sum(b["count"] for b in entry["histogram"]), entry["timed"])
        check_equal("the levels of those timed", sum(entry["timed_levels"].values()), entry["timed"])
        check(sum(entry["levels"].values()) <= entry["modelled"], "more loads have a level than were modelled")
        check(entry["timed"] + entry["disturbed"] <= entry["loads"], "more loads were timed than executed")


def level_share(entry, level):
    return entry["levels"][level] / max(entry["modelled"], 1)


with scratch():
    for mode, more in (("full", []), ("shadow", ["--overhead", "20%"])):
        # On a busy machine there are few replicas in two seconds.
        for seconds in ("2", "8", "20"):
            profiled([CHASE, "16384", seconds], "-m", mode, *more, CACHES)
            profile = read_profile()
            check("latency" in profile["run"]["profiles"], f"mode {mode} is without latencies by default")
            if lacked_processors(profile):
                break
            check_entries(profile)
            load, _ = hottest_load(profile, "chase")
            if load["modelled"] > 1000:
                break
        if lacked_processors(profile):
            print(f"mode {mode}: there was no processor for replicas, which alone can time loads")
            continue
        check_equal("the pattern", load["pattern"], "chase")
        check(load["modelled"] > 1000, f"only {load['modelled']} loads were modelled")
        check(level_share(load, "L1") > 0.95, f"of 16 KB the first level holds {load['levels']}")
        if profile["latencies"]["clock"]["usable"]:
            check(load["timed"] > 100, f"only {load['timed']} loads were timed")

    # The level of a load is only known if its line is seen in two stretches of addresses. A slow or busy
    # machine needs seconds for two.
    profiled([CHASE, "16777216", "4"], "-m", "full", "-p", "latency", CACHES)
    load, _ = hottest_load(read_profile(), "chase")
    check(level_share(load, "memory") > 0.9, f"of 16 MB the levels hold {load['levels']}, of {load}")

    profiled([KNOWN, "rows", "0.5"], "-m", "full", "-p", "latency", CACHES)
    load, _ = hottest_load(read_profile(), "by_rows")
    check_equal("the pattern", load["pattern"], "stride")

    profiled([CHASE, "16384", "0.2"], "-m", "burst")
    check("latencies" not in read_profile(), "a profile in mode burst has latencies")
    for options in (["-m", "burst"], ["-m", "full", "--exhaustive"]):
        refused = run([SHADOWPROF, "run", "-p", "latency", *options, "--", CHASE, "16384", "0"])
        check_equal(f"the exit status of {options}", refused.status, BAD_USAGE)
