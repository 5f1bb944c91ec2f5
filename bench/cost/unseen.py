#!/usr/bin/env python3
"""What a sample takes from a program, beside what the profile says it does.

units.c times pieces of the same work. A piece that takes longer than its neighbours has lost
something; what pieces lose natively, run in turns, is subtracted. Prints a line for each size of
memory in use, in microseconds a sample."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

NEIGHBOURS = 10
NOTICEABLE = 20.0  # microseconds


def lost(pieces):
    """Microseconds lost, over all pieces but those of the first third, when much is new."""
    total = 0.0
    for i in range(len(pieces) // 3, len(pieces) - NEIGHBOURS):
        usual = statistics.median(pieces[i - NEIGHBOURS : i + NEIGHBOURS + 1])
        if pieces[i] - usual > NOTICEABLE:
            total += pieces[i] - usual
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shadowprof", default="build/shadowprof")
    parser.add_argument("--units", default="build/bench/cost/units")
    parser.add_argument("--mode", default="instant")
    parser.add_argument("--period", default="30ms")
    parser.add_argument("--pieces", default="30000")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--kilobytes", type=int, nargs="+", default=[16, 512, 8192])
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    took, profile = folder / "took", folder / "profile.json"

    def run(prefix, kilobytes):
        command = [*prefix, given.units, str(took), given.pieces, str(kilobytes)]
        if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode != 0:
            sys.exit("failed: " + " ".join(command))
        return lost([float(line) for line in took.read_text().split()])

    for kilobytes in given.kilobytes:
        losses, said = [], []
        for _ in range(given.rounds):
            natively = run([], kilobytes)
            options = ["--mode", given.mode, "--period", given.period, "--overhead", "60%"]
            profiled = run([given.shadowprof, "run", "-q", "-o", str(profile), *options], kilobytes)
            data = json.loads(profile.read_text())
            samples = data["coverage"]["samples"]
            losses.append((profiled - natively) / (samples * 2 / 3))
            told = data["cost"]["slowdown"] * data["run"]["duration"]
            said.append(told * 1e6 / samples)
        print(f"{kilobytes:6} KB: lost {statistics.median(losses):5.0f} µs a sample "
              f"({min(losses):.0f} to {max(losses):.0f}), the profile says "
              f"{statistics.median(said):5.0f} ({min(said):.0f} to {max(said):.0f})")


if __name__ == "__main__":
    main()
