"""How long should a burst be? See sample_size.sh.

A burst costs a fixed time (stopping a thread, fetching the first pages) and some nanoseconds an
instruction. Longer bursts give more instructions for the same budget; but neighbouring instructions
resemble each other, and what counts for accuracy is how many independent samples there are. So each
length is judged by what it is for: the relative standard error of the twenty hottest paths and edges
(as the profile states it, the root mean square of those with a share above 0.3 %) that a run of ten
seconds would have at a budget of 1 %."""

import argparse
import json
import math
import statistics
import subprocess
import tempfile
import time

from targets import ON_EXIT, TARGETS

SIZES = [1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]
BUDGET = 0.01 * 10  # seconds of stops in the run that is extrapolated to


def relative_variance(hotlist):
    """The variance of an estimate from one sample. With n samples it is an n-th of that."""
    found = []
    for entry in hotlist["entries"][:20]:
        low, high = entry["interval"]
        if entry["share"] > 0.003 and low > 0:
            found.append(((high - low) / 2 / 1.96 / entry["share"]) ** 2)
    return statistics.fmean(found) if found else math.nan


def one_size(target, size, options, profile):
    subprocess.run(
        [f"{options.build}/shadowprof", "attach", "-q", "--mode", "burst", "--overhead", "30%",
         "--duration", f"{options.seconds}s", "--sample-size", str(size), "-p", "path,edge",
         "-o", profile, str(target.pid)], check=True)  # fmt: skip
    with open(profile, encoding="utf-8") as file:
        seen = json.load(file)
    samples = seen["coverage"]["samples"]
    share = seen["cost"]["slowdown"] / (1 + seen["cost"]["slowdown"])
    price = share * seen["run"]["duration"] / samples
    affordable = BUDGET / price
    row = f"{size:>8}{samples:>9}{seen['coverage']['instructions'] / samples:>14.0f}{price * 1e6:>8.0f}"
    row += f"{affordable / 10:>11.1f}"
    for name in ("paths", "edges"):
        row += f"{math.sqrt(relative_variance(seen[name]) * samples / affordable):>8.1%}"
    print(row, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--seconds", type=float, default=8, help="for each length")
    parser.add_argument("--scratch", help="where files go; best in memory")
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], default=[])
    options = parser.parse_args()
    for name in options.targets or TARGETS:
        print(f"{name}\n{'length':>8}{'samples':>9}{'instructions':>14}{'us':>8}{'per s, 1 %':>11}"
              f"{'paths':>8}{'edges':>8}")  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="cost-", dir=options.scratch) as folder, ON_EXIT:
            target = TARGETS[name](folder, options.build)
            time.sleep(2)
            for size in SIZES:
                one_size(target, size, options, f"{folder}/profile.json")


main()
