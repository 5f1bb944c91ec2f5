#!/usr/bin/env python3
"""How fast do replicas run, digestion included?

    bench/full/replicas.py [--build DIR] [--scale X] [--sample MS | --sample-size N] [--after S]
                           [--json FILE] [PROGRAM...]

Each program runs natively, in mode full, which counts its instructions, and in mode shadow with a
replica at work all the time, for paths and edges, and with values. With --after the profiler comes
to it when it has run for so many seconds: what it does at its start, all of it for the first time, is
no steady state, and half of what is seen of a program that runs for five seconds. A replica's speed is the
instructions in all samples by the processor time of replicas and shadowprof together, as the profile
tells them; printed is how many times longer than natively an instruction takes. Samples of as many
instructions as take 30 ms natively, the default, come near to the steady state; in shorter ones a
replica's birth, warming up and end tell. The machine should have nothing else to do."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from workloads import cells, print_summary, programs, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--sample", type=float, default=30)
    parser.add_argument("--sample-size")
    parser.add_argument("--after", type=float, default=0.0)
    parser.add_argument("--json", help="writes the figures there")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    shadowprof = os.path.join(options.build, "shadowprof")
    table = {}
    with tempfile.TemporaryDirectory(prefix="bench-replicas-") as folder:
        output = os.path.join(folder, "profile.json")

        def result():
            with open(output, encoding="utf-8") as file:
                return json.load(file)

        def profile(command, *words):
            seconds([shadowprof, "run", "-q", "-o", output, *words, "--", *command])
            return result()

        def profile_later(command, *words):
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as program:
                time.sleep(options.after)
                seconds([shadowprof, "attach", "-q", "-o", output, *words, str(program.pid)])
            return result()

        ways = {"path,edge": "path,edge", "with values": "path,edge,value"}
        print(f"{'program':10} {'native':>8} {'instr/ns':>9}" + "".join(f" {way:>12}" for way in ways))
        for name, make in programs(folder, options.scale).items():
            if options.programs and name not in options.programs:
                continue
            command = make()
            native = statistics.median(seconds(command) for _ in range(3))
            counted = profile(command, "-m", "full", "-p", "edge")["coverage"]["instructions"]
            rate = counted / native
            table[name] = {}
            sample_size = options.sample_size or str(int(options.sample * 1e-3 * rate))
            for way, profiles in ways.items():
                seen = (profile_later if options.after else profile)(
                    command, "-m", "shadow", "-p", profiles, "--load", "1", "--overhead", "50%",
                    "--sample-size", sample_size)
                speed = seen["coverage"]["instructions"] / seen["cost"]["extra_cpu"]
                table[name][way] = rate / speed
            print(f"{name:10} {native:7.2f}s {rate / 1e9:9.2f}"
                  + cells(table[name].values()), flush=True)
        print_summary(table, 29)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
