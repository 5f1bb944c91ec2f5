"""shadowprof merge: profiles of several runs become one, which does not depend on their order or grouping.
Profiles that do not belong together are refused."""

import os
import random
import sys

from vocabulary import SHADOWPROF, check, check_equal, check_one_line, read_profile, run, scratch

program = os.path.abspath(sys.argv[1])
RUNS = 6


def take(file, *options):
    outcome = run([SHADOWPROF, "run", "-q", "-o", file, *options, "--", program])
    check_equal(f"the exit status for {file}", outcome.status, 0)


def merge(into, *files):
    return run([SHADOWPROF, "merge", "-o", into, *files])


def merged(into, *files):
    outcome = merge(into, *files)
    check_equal("the exit status of merge", outcome.status, 0)
    check_equal("stderr of merge", outcome.stderr, b"")
    with open(into, "rb") as file:
        return file.read()


def refused(status, *files):
    outcome = merge("refused.json", *files)
    check_equal("the exit status of a refused merge", outcome.status, status)
    check_one_line(outcome)
    check(not os.path.exists("refused.json"), "a refused merge wrote a file")


with scratch():
    files = [f"{i}.json" for i in range(RUNS)]
    for i, file in enumerate(files):
        take(file, "-m", "full", "--limit", "0", "--seed", str(i + 1))
    whole = merged("all.json", *files)
    shuffled = random.Random(1).sample(files, RUNS)
    merged("left.json", *shuffled[:2])
    merged("right.json", *shuffled[2:])
    check(merged("grouped.json", "right.json", "left.json") == whole, "grouping shows in a merge")

    one, all_of_them = read_profile("0.json"), read_profile("all.json")
    check_equal("the number of seeds", len(all_of_them["run"]["seeds"]), RUNS)
    for name in ("paths", "edges", "calls", "methods", "values"):
        sums = [read_profile(file)[name]["total"] for file in files]
        check_equal(f"the total of {name}", all_of_them[name]["total"], sum(sums))
        check_equal(f"exhaustiveness of {name}", all_of_them[name]["exhaustive"], one[name]["exhaustive"])

    take("other_mode.json", "-m", "burst")
    refused(4, "0.json", "other_mode.json")
    with open("nothing.json", "w", encoding="ascii") as file:
        file.write("{}")
    refused(1, "0.json", "nothing.json")
    refused(1, "0.json", "absent.json")
    check_equal("the exit status of a merge of nothing", merge("refused.json").status, 2)
