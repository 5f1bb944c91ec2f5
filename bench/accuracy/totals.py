#!/usr/bin/env python3
"""How near are the totals of sampled profiles to what the program executed?

    bench/accuracy/totals.py [--build DIR] [--out STEM] [--scale X] [--runs N] [PROGRAM...] [-- OPTION...]

Each program runs once in mode full, which counts its instructions, and N times sampled, with the OPTIONs of
`shadowprof run` (none: the defaults). Printed is what the sampled profiles say the program executed
(`coverage.weighted_instructions`), over that: the median and the extremes, with the median of the samples.
"""

import argparse
import json
import os
import shlex
import statistics
import sys
import tempfile

from common import machine, profile
from workloads import SERVERS, workloads


def coverage(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["coverage"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", help="where the table goes, without suffix")
    parser.add_argument("--scale", type=float, default=0.5)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("programs", nargs="*")
    arguments = sys.argv[1:]
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options, sampling = parser.parse_args(arguments[:cut]), arguments[cut + 1:]
    shadowprof = os.path.join(options.build, "shadowprof")
    lines = []
    with tempfile.TemporaryDirectory(prefix="bench-totals-") as folder:
        out = os.path.join(folder, "profile.json")
        made = workloads(folder, options.scale)
        for name in options.programs or made:
            if name in SERVERS:
                continue  # it has to be driven from outside
            command = made[name]()
            profile(shadowprof, ["-m", "full", "-p", "edge"], command, out)
            truth = coverage(out)["instructions"]
            ratios, samples = [], []
            for _ in range(options.runs):
                profile(shadowprof, sampling, command, out)
                seen = coverage(out)
                ratios.append(seen["weighted_instructions"] / truth)
                samples.append(seen["samples"])
            lines.append(f"| {name} | {truth / 1e9:.2f}G | {statistics.median(samples):.0f} | "
                         f"{statistics.median(ratios):.2f} | {min(ratios):.2f} | {max(ratios):.2f} |")
            print(lines[-1], flush=True)
    text = (f"Measured on: {machine()}.\n\nMade by: "
            f"`{shlex.join(['bench/accuracy/totals.py', *sys.argv[1:]])}`.\n\n"
            "| program | instructions | samples | estimate / truth | least | most |\n"
            "|---|--:|--:|--:|--:|--:|\n" + "\n".join(lines) + "\n")
    if options.out:
        with open(options.out + ".md", "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
