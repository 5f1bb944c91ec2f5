"""Profile type stream: the order in which linked.c walks its records is found, exactly where everything is seen
and in samples elsewhere, and advised upon; records in walking order, or in none, are not."""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, run, scratch, SHADOWPROF

PROGRAM = os.path.abspath(sys.argv[1])
RECORDS = 4096  # of a line each: 256 KB, more than the nearest cache
ADVICE = "[data-stream]"


def own_streams(profile, function="walk"):
    at = profile["locations"]
    return [e for e in profile["streams"]["entries"] if at[e["references"][0]].get("function") == function]


def report():
    return run([SHADOWPROF, "report", "profile.json"]).stdout.decode()


def check_walk(profile, stream):
    at = profile["locations"]
    check_equal("the variable", at[stream["data"]]["function"], "records")
    texts = [at[i]["text"] for i in stream["references"]]
    check(all(text.startswith("mov") and "[rdi" in text for text in texts), f"not the loads of walk: {texts}")
    # The value of each record, then its link.
    check(set(stream["steps"][1::2]) in ({8}, {-8}) or set(stream["steps"][2::2]) == {8}, str(stream["steps"]))


def check_rules(profile):
    """Rules say the same as the built-in type; of one function's loads, what these yield."""
    keys = ("references", "steps", "data", "times", "lines", "packed_lines", "regular")

    def streams(entries):
        return sorted((e["count"], str([e.get("stream", e).get(key) for key in keys])) for e in entries)

    of = {name: [e for e in profile["rules"]["entries"] if e["rule"] == name] for name in ("all", "walk")}
    totals = {rule["name"]: rule for rule in profile["rules"]["rules"]}
    check_equal("the streams of the rule for all", streams(of["all"]), streams(profile["streams"]["entries"]))
    for key in ("total", "unknown", "exhaustive"):
        check_equal(f"the {key} of the rule for all", totals["all"][key], profile["streams"][key])
    check_equal("streams of the rule for walk", len(of["walk"]), 1)
    check_equal("the variable", profile["locations"][of["walk"][0]["stream"]["data"]]["function"], "records")
    check("records" in report() and "in step" in report(), "the report does not show the rule's stream")


with scratch():
    rounds = 50
    rules = ["--rule", "all: load || store => stream", "--rule", "walk: load in function walk => stream"]
    profiled([PROGRAM, "linked", str(RECORDS), str(rounds)], "-m", "full", "-p", "stream", "--limit", "0", *rules)
    profile = read_profile()
    check_rules(profile)
    check(profile["streams"]["exhaustive"], "mode full has not seen all references")
    found = own_streams(profile)
    check_equal("streams of walk", len(found), 1)
    check_walk(profile, found[0])
    # The first reference of all has another one before it.
    check_equal("its references", found[0]["count"], 2 * RECORDS * rounds - 1)
    check_equal("its frequency", found[0]["times"], rounds)
    check_equal("its lines", found[0]["lines_each"], RECORDS)
    check_equal("its lines side by side", found[0]["packed_lines"], RECORDS // 4 * rounds)
    check(found[0]["regularity"] < 0.1, f"{found[0]['regularity']} of it are in step")
    text = report()
    check(ADVICE in text and "records" in text, f"no advice:\n{text}")

    profiled([PROGRAM, "ordered", str(RECORDS), str(rounds)], "-m", "full", "-p", "stream")
    found = own_streams(read_profile())
    check_equal("streams of walk in order", len(found), 1)
    check(found[0]["regularity"] > 0.99, f"only {found[0]['regularity']} of it are in step")
    check(ADVICE not in report(), f"advice where the processor fetches ahead:\n{report()}")

    profiled([PROGRAM, "random", str(RECORDS), str(rounds)], "-m", "full", "-p", "stream")
    check_equal("streams where there are none", own_streams(read_profile(), "pick"), [])
    check(ADVICE not in report(), f"advice without a stream:\n{report()}")

    for mode in ("shadow", "instant"):
        profiled([PROGRAM, "linked", "1024", "60000"], "-m", mode, "--overhead", "30%", "-p", "stream")
        profile = read_profile()
        if profile["coverage"]["samples"] < 20:
            print(f"mode {mode}: too few samples on this machine")
            continue
        found = own_streams(profile)
        check(found, f"mode {mode} has not found the walk")
        check_walk(profile, found[0])
        check(found[0]["share"] > 0.8, f"mode {mode}: the walk is {found[0]['share']} of all references")
        check(found[0]["length"] > 1000, f"mode {mode}: its length is {found[0]['length']}")
