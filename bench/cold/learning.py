#!/usr/bin/env python3
"""What do samples in place see of code that is new, and what once earlier runs have translated it?

    bench/cold/learning.py [--build DIR] [--runs N] [--sp OTHER_SHADOWPROF] -- COMMAND...

The command is profiled N times (3) at the defaults, beginning with an empty folder of kept files. For each run: its
time, the processor time of shadowprof's own, its peak memory, instructions seen, and samples by how they ended. The
last lines are what is kept. With --sp the same is done with another build, by turns.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time


def run(shadowprof, command, folder):
    profile = os.path.join(folder, "profile.json")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    subprocess.run([shadowprof, "run", "-q", "-o", profile, "--", *command], check=False, stdout=subprocess.DEVNULL,
                   env={**os.environ, "XDG_CACHE_HOME": folder})
    took = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(profile, encoding="utf-8") as file:
        found = json.load(file)
    coverage = found["coverage"]
    ended = ", ".join(f"{count} {why}" for why, count in coverage["ended"].items())
    print(f"  {took:6.2f} s, ours {found['cost'].get('extra_cpu', 0):5.2f} s, {after.ru_maxrss // 1024:5} MB, "
          f"{coverage['instructions'] / 1e6:8.2f} M seen, slowdown {100 * found['cost']['slowdown']:.1f} %; {ended} "
          f"(all: {after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.2f} s)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sp")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    for shadowprof in [os.path.join(options.build, "shadowprof"), *([options.sp] if options.sp else [])]:
        print(shadowprof)
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(options.runs):
                run(os.path.abspath(shadowprof), options.command, folder)
            kept = os.path.join(folder, "shadowprof")
            for name in sorted(os.listdir(kept)) if os.path.isdir(kept) else []:
                if name.startswith(("units-", "code-")):
                    print(f"  {os.path.getsize(os.path.join(kept, name)) / 1e6:8.2f} MB {name[:24]}")


main()
