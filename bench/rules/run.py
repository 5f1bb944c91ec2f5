#!/usr/bin/env python3
"""What rules find when they look at bursts, and what they cost.

    bench/rules/run.py [--build DIR] [--scale X] [--pairs N] [--only bursts|costs] [--kinds KIND,...]
                       [--costs COST,...] [--out FILE] [PROGRAM...]

bursts: the tables of the paper on HPS. A program runs once in mode full, with rules that look always and the same rules
with bursts of 1 to 100 events at frequencies of 1/100 to 1/10000, all at the same time. Printed is the overlap of what
each finds with what the rule that looks always finds: the sum, over entries, of the smaller share.

costs: how long a program takes in mode full with one rule of each type, over the time without any, for which only
edges are counted; medians of N pairs, one after the other. Rules with streams have runs a tenth as long.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "accuracy"))
from common import machine, profile  # noqa: E402
from workloads import workloads  # noqa: E402

BURSTS, FREQUENCIES = (1, 10, 50, 100), (100, 1000, 10000)
ACTIONS = {
    "call pairs": "call => count by target",
    "methods": "call || branch back && local => count at target function",
    "data streams": "load || store => stream",
}
COSTS = {
    "count": "call => count by target",
    "value of a register": "conditional => value(op 1)",
    "argument": "call => value(arg 1)",
    "returned value": "call => value(return)",
    "memory": "load => value(memory)",
    "address": "store => value(address)",
    "condition on a value": "store && immediate == 0 => count",
    "state as key": "call => count by thread, errno",
    "signals as key": "call => count by signals",
    "locks as key": "call => count by locks",
    "stream": "load || store => stream",
    "stream in bursts": "S[burst=100,sparsity=9900]: load || store => stream",
}
# Streams of all references of a program take long to find: their runs are shorter.
SCALE_OF_STREAMS = 0.1
PROGRAMS = ["gzip", "sqlite3", "python3", "bzip2", "xz", "lua5.4", "perl", "zstd", "openssl", "cc1"]


def name_of(kind, burst=None, frequency=None):
    return kind.split()[-1][0].upper() + (f"{burst}.{frequency}" if burst else "")


def rules_of(kind):
    yield f"{name_of(kind)}: {ACTIONS[kind]}"
    for frequency in FREQUENCIES:
        for burst in BURSTS:
            yield f"{name_of(kind, burst, frequency)}[burst={burst},sparsity={burst * (frequency - 1)}]: {ACTIONS[kind]}"


def key_of(entry):
    stream = entry.get("stream")
    return json.dumps([stream["references"], stream["steps"]]) if stream else (entry["at"], entry.get("target"))


def shares(found, name):
    entries = [e for e in found["rules"]["entries"] if e["rule"] == name]
    total = sum(e["count"] for e in entries)
    return {key_of(e): e["count"] / total for e in entries} if total else {}


def overlap(one, other):
    return sum(min(share, other.get(key, 0)) for key, share in one.items())


def find(shadowprof, kind, command, out):
    words = [word for rule in rules_of(kind) for word in ("--rule", rule)]
    profile(shadowprof, ["-m", "full", "-p", "rule", "--limit", "0", *words], command, out)
    with open(out, encoding="utf-8") as file:
        found = json.load(file)
    always = shares(found, name_of(kind))
    return {(burst, frequency): overlap(shares(found, name_of(kind, burst, frequency)), always)
            for burst in BURSTS for frequency in FREQUENCIES}


def table_of_bursts(shadowprof, kind, made, out):
    cells = {}
    for name, make in made.items():
        try:
            found = find(shadowprof, kind, make(), out)
        except subprocess.CalledProcessError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        for cell, value in found.items():
            cells.setdefault(cell, []).append(value)
        print(f"{kind}, {name}: {found[100, 1000]:.1%} at bursts of 100 and 1/1000", file=sys.stderr, flush=True)
    yield f"\n**{kind[0].upper()}{kind[1:]}** (median, and the least, of {len(made)} programs):\n"
    yield "| burst | " + " | ".join(f"1/{f}" for f in FREQUENCIES) + " |"
    yield "|--:|" + "--:|" * len(FREQUENCIES)
    for burst in BURSTS:
        yield f"| {burst} | " + " | ".join(
            f"{statistics.median(cells[burst, f]):.1%} ({min(cells[burst, f]):.1%})" for f in FREQUENCIES) + " |"


def seconds(shadowprof, options, command, out):
    began = time.monotonic()
    profile(shadowprof, ["-m", "full", *options], command, out)
    return time.monotonic() - began


def table_of_costs(shadowprof, made, made_for_streams, out, pairs, wanted):
    yield "\n**Cost** (time in mode full over that without a rule, and the same over all programs):\n"
    yield "| rule | " + " | ".join(made) + " | median |"
    yield "|---|" + "--:|" * (len(made) + 1)
    for what, rule in COSTS.items():
        if wanted and what not in wanted:
            continue
        ratios = []
        for command in [make() for make in (made_for_streams if "stream" in what else made).values()]:
            options = ["-p", "edge,rule", "--rule", rule if ": " in rule else f"r: {rule}"]
            ratios.append(statistics.median(
                seconds(shadowprof, options, command, out) / seconds(shadowprof, ["-p", "edge"], command, out)
                for _ in range(pairs)))
        print(f"{what}: {statistics.median(ratios):.2f}", file=sys.stderr, flush=True)
        yield f"| `{rule}` | ".replace("||", "\\|\\|") + " | ".join(f"{r:.2f}" for r in (*ratios, statistics.median(ratios))) + " |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--only", choices=("bursts", "costs"))
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(ACTIONS),
                        help=f"of {', '.join(ACTIONS)}")
    parser.add_argument("--costs", type=lambda text: text.split(","), help=f"of {', '.join(COSTS)}")
    parser.add_argument("--out")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    shadowprof = os.path.join(options.build, "shadowprof")
    lines = [f"Measured on: {machine()}.", "", f"Made by: `{shlex.join(['bench/rules/run.py', *sys.argv[1:]])}`."]
    with tempfile.TemporaryDirectory(prefix="bench-rules-") as folder:
        out = os.path.join(folder, "profile.json")

        def made(scale, names):
            all_of_them = workloads(folder, scale)
            return {name: all_of_them[name] for name in names}

        if options.only != "costs":
            for kind in options.kinds:
                scale = options.scale * (SCALE_OF_STREAMS if kind == "data streams" else 1)
                lines += table_of_bursts(shadowprof, kind, made(scale, options.programs or PROGRAMS), out)
        if options.only != "bursts":
            programs = options.programs or PROGRAMS[:4]
            lines += table_of_costs(shadowprof, made(options.scale, programs),
                                    made(options.scale * SCALE_OF_STREAMS, programs), out, options.pairs, options.costs)
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main())
