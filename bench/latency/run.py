#!/usr/bin/env python3
"""Do latencies mean what they say? Against the programs' own clocks, and where it is known from the
source which load waits.

    run.py SHADOWPROF CHASE KNOWN [--mode shadow|full] [--repeat 20] [chase] [known] [multiply] [cost]

CHASE and KNOWN are bench-chase and bench-known-loads of the build directory.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

KNOWN = ("join", "list", "columns", "tree")
SIZES = {"16 KB": 16 << 10, "256 KB": 256 << 10, "8 MB": 8 << 20, "512 MB": 512 << 20}
LEVELS = ("L1", "L2", "L3", "memory")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known.c")


def profile(options, command):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "profile.json")
        run = [options.shadowprof, "run", "-q", "-m", options.mode, "-p", options.profiles, "-o", path, "--", *command]
        output = subprocess.run(run, check=True, capture_output=True, text=True).stdout
        with open(path, encoding="utf-8") as file:
            return json.load(file), output


def slowest(found):
    """The load that waits most, and its place."""
    if not found["latencies"]["entries"]:
        sys.exit("nothing was seen of the program: let it run longer (--seconds), or on a less busy machine")
    entry = found["latencies"]["entries"][0]
    return entry, found["locations"][entry["location"]]


def levels_of(entry):
    all_of_them = max(entry["modelled"], 1)
    known = sum(entry["levels"].values())
    shares = [f"{name} {entry['levels'][name] / all_of_them:.1%}" for name in LEVELS if entry["levels"][name]]
    return ", ".join(shares + ([f"not known {1 - known / all_of_them:.1%}"] if known < entry["modelled"] else []))


def beyond(entry):
    far = entry["timed_levels"]["L3"] + entry["timed_levels"]["memory"]
    return far / max(entry["timed"], 1)


def chase(options):
    # A set of lines that is touched over and over, with one load for each line. If all fit into the second
    # level, longer times are misses that we or other programs have caused. Where neighbours share the third
    # level and memory, it is better to compare with what the program measures while it is profiled.
    print(f"{'size':8} {'native':>8} {'profiled':>8} {'timed':>8} {'error':>7} {'timed n':>8} {'beyond L2':>9} "
          f"{'disturbed':>9}  model")
    for name, size in SIZES.items():
        command = [options.chase, str(size), str(options.seconds)]
        native = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        found, output = profile(options, command)
        entry, _ = slowest(found)
        mean = entry.get("mean_ns", 0)
        own = float(output)
        print(f"{name:8} {native:8.2f} {own:8.2f} {mean:8.2f} {mean / own - 1:+7.1%} {entry['timed']:8} "
              f"{beyond(entry):9.2%} {entry['disturbed'] / max(entry['timed'] + entry['disturbed'], 1):9.2%}  {levels_of(entry)}; "
              f"resolution {found['latencies']['clock'].get('resolution_ns', 0):.1f} ns", flush=True)


def lines_that_wait():
    """By function, the lines with the comment."""
    with open(SOURCE, encoding="utf-8") as file:
        return {number for number, line in enumerate(file, 1) if "waits" in line and not line.startswith("//")}


def known(options, names):
    lines = lines_that_wait()
    for name in names:
        right = 0
        for _ in range(options.repeat):
            found, _ = profile(options, [options.known, name, str(options.seconds)])
            entry, place = slowest(found)
            is_right = place.get("line") in lines
            if name == "multiply":
                # The first of the two operands' loads.
                is_right = place.get("function", "").startswith("multiply") and far_operand(found, entry)
            right += is_right
        print(f"{name:10} {right} of {options.repeat}: {place.get('function')}:{place.get('line')} "
              f"{place.get('text')}, {entry.get('mean_ns', 0):.1f} ns, {entry['share']:.1%}, {entry['pattern']}; "
              f"{levels_of(entry)}", flush=True)


def far_operand(found, entry):
    """Of the two loads of `multiply` the one at the lower address is the one from 256 MB."""
    places = [found["locations"][e["location"]] for e in found["latencies"]["entries"]]
    loads = sorted(p["offset"] for p in places
                   if p.get("function", "").startswith("multiply") and "*8" in p.get("text", ""))
    return found["locations"][entry["location"]]["offset"] == loads[0]


# Each prints its processor time at the end of its output.
WORK = "import time; s = {}; \nfor i in range(3000000): s[i % 997] = s.get(i % 991, 0) + i\nprint(time.process_time())"
LUA = "local s = {} for i = 1, 30000000 do s[i % 997] = (s[i % 991] or 0) + i end print(os.clock())"


def cost(options):
    """What latencies add to the time of translated code, in mode full. Replicas run the same code."""
    commands = {"python": [sys.executable, "-c", WORK], "lua": ["lua5.4", "-e", LUA]}
    print(f"{'program':8} {'without':>8} {'with':>8} {'ratio':>6}")
    for name, command in commands.items():
        times = {"path,edge,value": [], "path,edge,value,latency": []}
        for _ in range(options.repeat):
            for profiles, of_them in times.items():  # in turn, because the machine's speed changes
                options.profiles, options.mode = profiles, "full"
                of_them.append(float(profile(options, command)[1].split()[-1]))
        without, with_it = (statistics.median(each) for each in times.values())
        print(f"{name:8} {without:8.2f} {with_it:8.2f} {with_it / without:6.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shadowprof")
    parser.add_argument("chase")
    parser.add_argument("known")
    parser.add_argument("what", nargs="*", default=["chase", "known", "multiply"])
    parser.add_argument("--mode", default="shadow")
    parser.add_argument("--profiles", default="latency")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    if "chase" in options.what:
        chase(options)
    if "known" in options.what:
        known(options, KNOWN)
    if "multiply" in options.what:
        known(options, ["multiply"])
    if "cost" in options.what:
        cost(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
