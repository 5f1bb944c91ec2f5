#!/usr/bin/env python3
"""Do the stated 95 % intervals contain the true shares in 95 % of the cases?

    bench/accuracy/intervals.py [--build DIR] [--runs N] [--workload NAME]... [--scale X] [--out STEM] [OPTION...]

A workload is a short program that does the same in every run: one of ours, or a program of the accuracy bench, which
at --scale 0.06 takes about half a second. It runs once in mode full, for the true shares, and N times sampled, each
time by other random choices; OPTIONs are those of `shadowprof run` (after --; by default `-m shadow --overhead 20%`,
for a second or two must do). Every share of at least 2 % in the perfect profile is looked up in every sampled one:
functions (by instructions), edges, calls and paths. Printed are, for each workload and kind, in how many per cent of
the cases the interval had the truth in it, how often the truth lay above and below it, how often the share was not in
the profile at all, and the mean error; apart for runs that had about 5, 10, 20, 50, 100 … samples. What is not in the
profile is said to be at most what so many samples miss in one of 40 runs: a half for 5 samples, 3.6 % for 100.

With --state FILE the figures of each run are kept there, and a later call goes on where it stopped.
"""

import argparse
import collections
import json
import math
import os
import shlex
import sys
import tempfile

from common import build, machine, profile
from judging import judge, shares
from workloads import workloads

WORKLOADS = {
    # name: source, arguments
    "phases": ("phases.c", ["6G", "4M"]),
    "long phases": ("phases.c", ["10G", "50M"]),
    "requests of 10,000": ("requests.c", ["100k", "10k", "30"]),
    "requests of 1,000,000": ("requests.c", ["4000", "1M", "30"]),
    "branches": ("branches.c", ["2G"]),
}
LEAST_SHARE = 0.02
NUMBERS = [5, 10, 20, 50, 100, 200, 500]  # of samples in a run
FEWEST_RUNS = 10


def by_number_of_samples(runs):
    """[number, runs that had about so many samples]"""
    groups = collections.defaultdict(list)
    for run in runs:
        groups[min(NUMBERS, key=lambda number: abs(math.log(max(run[0], 0.5) / number)))].append(run)
    return [(number, group) for number, group in sorted(groups.items()) if len(group) >= FEWEST_RUNS]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workload", action="append")
    parser.add_argument("--scale", type=float, default=0.06)
    parser.add_argument("--state", help="figures of runs that are done")
    parser.add_argument("--out", help="where the tables and figures go, without suffix")
    parser.add_argument("options", nargs="*", default=["-m", "shadow", "--overhead", "20%"])
    options = parser.parse_args()
    shadowprof = os.path.join(options.build, "shadowprof")
    state = {}
    if options.state and os.path.exists(options.state):
        with open(options.state, encoding="utf-8") as file:
            state = json.load(file)
    lines = []
    with tempfile.TemporaryDirectory(prefix="bench-intervals-") as folder:
        out = os.path.join(folder, "profile.json")
        for name in options.workload or WORKLOADS:
            if name in WORKLOADS:
                source, arguments = WORKLOADS[name]
                command = [build(folder, source), *arguments]
            else:
                command = workloads(folder, options.scale)[name]()
            types = ["-p", "path,edge,method", "--limit", "0"]
            profile(shadowprof, ["-m", "full", *types], command, out)
            truth = {key: share for key, (share, _, _) in shares(out)[0].items()
                     if share >= LEAST_SHARE}
            done = state.setdefault(name + " " + shlex.join(options.options), [])
            while len(done) < options.runs:
                profile(shadowprof, [*options.options, *types], command, out)
                found, samples = shares(out)
                done.append([samples, [[repr(key), found[key]] for key in truth if key in found]])
                if options.state and (len(done) % 10 == 0 or len(done) == options.runs):
                    with open(options.state + ".new", "w", encoding="utf-8") as file:
                        json.dump(state, file)
                    os.replace(options.state + ".new", options.state)
            names = {repr(key): key for key in truth}
            for number, runs in by_number_of_samples(done[:options.runs]):
                rounds = [(run[0], {names[k]: v for k, v in run[1] if k in names}) for run in runs]
                by_kind, worst = judge(truth, rounds)
                for kind, count in by_kind.items():
                    n = count["cases"]
                    lines.append(f"| {name} | {kind} | {n // len(rounds)} | {number} | {len(rounds)} | "
                                 f"{100 * count['contained'] / n:.1f} % | {100 * count['absent'] / n:.1f} % | "
                                 f"{100 * count['above'] / n:.1f} % | {100 * count['below'] / n:.1f} % | "
                                 f"{100 * worst.get(kind, 0):+.2f} % |")
                    print(lines[-1], flush=True)
    text = (f"Measured on: {machine()}.\n\nMade by: "
            f"`{shlex.join(['bench/accuracy/intervals.py', *sys.argv[1:]])}`: {options.runs} runs each.\n\n"
            "| workload | shares of | shares | samples a run | runs | within | absent | truth above | truth below "
            "| largest mean error |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n" + "\n".join(lines) + "\n")
    print("\n" + text)
    if options.out:
        with open(options.out + ".md", "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
