#!/usr/bin/env python3
"""How near the shares of time by function are to those that perf's own clock sees in the same run:

    bench/examples/overlap.py SHADOWPROF COMMAND...

Prints the overlap (the sum of the lesser of both shares), what two profiles of so few looks would have by chance if
both were right, and the functions that differ most. Code without a name counts by its file, and the kernel as one."""

import collections
import json
import os
import random
import subprocess
import sys
import tempfile

FREQUENCY = "499"


def base(path):
    return os.path.basename(path) or "[anonymous]"


def seen_by_perf(folder):
    lines = subprocess.run(["perf", "script", "-i", "perf.data", "-F", "comm,ip,sym,dso"], cwd=folder, capture_output=True,
                           text=True, check=True).stdout.splitlines()
    found = collections.Counter()
    for line in lines:
        name, _, place = line.strip().partition(")")[0].rpartition("(")
        words = name.split()
        if not words or words[0] == "shadowprof":
            continue
        at = next((n for n, word in enumerate(words) if n and all(c in "0123456789abcdef" for c in word)), None)
        if at is None:
            continue
        symbol = " ".join(words[at + 1:])
        if place.startswith("[kernel") or place.startswith("[guest"):
            found["[kernel]"] += 1
        else:
            found[symbol.split("(")[0] if symbol and symbol != "[unknown]" else base(place)] += 1
    return found


def seen_by_clock(folder):
    with open(os.path.join(folder, "profile.json"), encoding="utf-8") as file:
        profile = json.load(file)
    found = collections.Counter()
    for entry in profile["time"]["entries"]:
        if not entry["count"]:
            continue
        if entry["state"] != "user" or not entry["frames"]:
            found["[kernel]" if entry["state"] != "user" else "[unknown]"] += entry["count"]
            continue
        at = profile["locations"][entry["frames"][0]]
        name = at.get("function", "").split("(")[0]
        is_name = name and "+0x" not in name
        found[name if is_name else base(profile["modules"][at["module"]]["path"] if "module" in at else "")] += entry["count"]
    return found, profile["time"]["samples"]


def shares(counts):
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}


def overlap(a, b):
    return sum(min(share, b.get(name, 0)) for name, share in a.items())


def by_chance(truth, looks, others, rounds=50):
    names, weights = list(truth), list(truth.values())
    draw = lambda n: shares(collections.Counter(random.choices(names, weights, k=n)))
    return sum(overlap(draw(looks), draw(others)) for _ in range(rounds)) / rounds


def main():
    shadowprof, command = os.path.abspath(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "profile.json")
        subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", FREQUENCY, "-o", os.path.join(folder, "perf.data"), "--",
                        shadowprof, "run", "-q", "-o", profile, "--", *command], stdout=subprocess.DEVNULL, check=False)
        perf, (clock, looks) = seen_by_perf(folder), seen_by_clock(folder)
    ours, theirs = shares(clock), shares(perf)
    print(f"overlap {overlap(ours, theirs):.1%} of {looks} looks and perf's {sum(perf.values())}; "
          f"by chance {by_chance(theirs, looks, sum(perf.values())):.1%}")
    names = sorted(ours.keys() | theirs.keys(), key=lambda n: -abs(ours.get(n, 0) - theirs.get(n, 0)))
    for name in names[:4]:
        print(f"  {ours.get(name, 0):6.1%} {theirs.get(name, 0):6.1%}  {name}")


main()
