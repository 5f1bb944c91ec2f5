#!/usr/bin/env python3
"""How much longer does a program take in mode full?

    bench/full/run.py [--build DIR] [--pairs N] [--scale X] [--peers TOOL,...] [PROGRAM...]

Pairs of runs, native and translated, one after the other; the median of the pairs' ratios, for paths
and edges, and with values. At scale 1 a program runs natively for some ten seconds, so that its
start does not count. With --peers the same for valgrind's tools: callgrind (with jumps), lackey and
nulgrind (take --scale 0.05, or hours). The machine should have nothing else to do.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

from workloads import cells, print_summary, programs, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--peers", default="")
    parser.add_argument("--json", help="writes the figures there")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    shadowprof = os.path.join(options.build, "shadowprof")
    with tempfile.TemporaryDirectory(prefix="bench-full-") as folder:
        def full(profiles):
            return [shadowprof, "run", "-q", "-m", "full", "-p", profiles,
                    "-o", os.path.join(folder, "profile.json"), "--"]

        tools = {"path,edge": full("path,edge"), "with values": full("path,edge,value")}
        peers = {
            "callgrind": ["--tool=callgrind", "--collect-jumps=yes",
                          f"--callgrind-out-file={os.path.join(folder, 'callgrind.out')}"],
            "lackey": ["--tool=lackey", "--trace-mem=no"],
            "nulgrind": ["--tool=none"],
        }
        for peer in filter(None, options.peers.split(",")):
            tools[peer] = ["valgrind", *peers[peer]]
        print(f"{'program':10} {'native':>8}" + "".join(f" {name:>12}" for name in tools), flush=True)
        table = {}
        for name, make in programs(folder, options.scale).items():
            if options.programs and name not in options.programs:
                continue
            command = make()
            seconds(command)
            natives, ratios = [], {tool: [] for tool in tools}
            for _ in range(options.pairs):
                for tool, words in tools.items():
                    native = seconds(command)
                    natives.append(native)
                    ratios[tool].append(seconds(words + command) / native)
            table[name] = {tool: statistics.median(r) for tool, r in ratios.items()}
            print(f"{name:10} {statistics.median(natives):7.2f}s"
                  + cells(table[name].values()), flush=True)
        print_summary(table, 19)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
