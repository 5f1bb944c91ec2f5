#!/usr/bin/env python3
"""Merged profiles: the same in any order and grouping, and nearer to the truth than each of their parts.

    bench/merge/run.py [--runs N] [--mode burst] [--overhead 1%] SHADOWPROF -- PROGRAM [ARG...]

Takes N profiles of the program with --limit 0, merges them in one go and in random groupings, and
compares single ones and merges of more and more of them with a perfect profile. Prints a table in
Markdown.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("shadowprof", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--groupings", type=int, default=5)
    parser.add_argument("--mode", default="burst")
    parser.add_argument("--overhead", default="1%")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    program = [word for word in options.program if word != "--"]
    shadowprof = str(options.shadowprof.resolve())
    folder = Path(tempfile.mkdtemp(prefix="shadowprof-merge-"))

    def take(name, *more):
        subprocess.run([shadowprof, "run", "-q", "--limit", "0", "-o", folder / name, *more, "--", *program],
                       check=True, stdout=subprocess.DEVNULL)
        return folder / name

    def merge(name, files):
        subprocess.run([shadowprof, "merge", "-o", folder / name, *files], check=True)
        return folder / name

    def accuracy(file):
        told = json.loads(subprocess.run([shadowprof, "compare", "--json", file, perfect], check=True,
                                         stdout=subprocess.PIPE).stdout)
        return {key: told[key]["value"] for key in ("path_accuracy", "edge_accuracy", "diff_top")}

    perfect = take("perfect.json", "-m", "full")
    files = [take(f"{i}.json", "-m", options.mode, "--overhead", options.overhead) for i in range(options.runs)]
    whole = merge("all.json", files).read_bytes()
    shuffle = random.Random(1)
    for number in range(options.groupings):
        left = shuffle.sample(files, len(files))
        step = 0
        while len(left) > 1:
            size = min(len(left), shuffle.randint(2, 12))
            left, group = left[size:], left[:size]
            left.insert(shuffle.randrange(len(left) + 1), merge(f"grouping{number}-{step}.json", group))
            step += 1
        if left[0].read_bytes() != whole:
            sys.exit(f"grouping {number} yields another file: {left[0]}")

    print("| profile | path accuracy | edge accuracy | Diff-Top |\n|---|--:|--:|--:|")

    def row(name, told):
        print(f"| {name} | {told['path_accuracy']:.1%} | {told['edge_accuracy']:.1%} | {told['diff_top']:.2%} |")

    single = [accuracy(file) for file in files[:20]]
    best = {"path_accuracy": max(s["path_accuracy"] for s in single),
            "edge_accuracy": max(s["edge_accuracy"] for s in single), "diff_top": min(s["diff_top"] for s in single)}
    row("the best of 20 single ones, in each column", best)
    number = 1
    while number <= len(files):
        row(f"{number} of {len(files)} merged", accuracy(merge(f"first{number}.json", files[:number])))
        number = number * 4 if number * 4 <= len(files) or number == len(files) else len(files)
    print(f"\n{options.groupings} random groupings of {len(files)} profiles: the same file, byte by byte.")


main()
