#!/usr/bin/env python3
"""What does a run cost besides its samples?

    bench/start/run.py [--build DIR] [--rounds N] [--shadowprof FILE]

Programs that end at once run natively, under `shadowprof run` at the defaults with nothing kept from earlier runs
(first), with what those have kept (kept), and with --no-cache, one after the other in each of N rounds (11). Shown are
medians: processor time, of all processes together, wall time, peak memory of the largest process, and page faults
without reading. What the bench itself has in memory, some 15 MB, is the least that a peak can show. The last table has the processor time that shadowprof has taken when the program begins
(parents-time, a target of the build).
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAMS = {"true": ["true"], "python3 -c pass": ["/usr/bin/python3", "-c", "pass"]}
COLUMNS = ("processor ms", "wall ms", "peak MB", "faults")


def run(command, cache):
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env={**os.environ, "XDG_CACHE_HOME": cache})
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with status {process.returncode}")
    return said, ((usage.ru_utime + usage.ru_stime) * 1e3, elapsed * 1e3, usage.ru_maxrss / 1024, usage.ru_minflt)


class Kinds:
    def __init__(self, shadowprof, folder):
        self.folder = folder
        self.words = [shadowprof, "run", "-q", "-o", os.path.join(folder, "profile.json")]

    def take(self, kind, command):
        kept = os.path.join(self.folder, "kept")
        if kind == "native":
            return run(command, kept)
        if kind == "first":
            cache = os.path.join(self.folder, "first")
            shutil.rmtree(cache, ignore_errors=True)
            return run([*self.words, "--", *command], cache)
        return run([*self.words, *(["--no-cache"] if kind == "no cache" else []), "--", *command], kept)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--shadowprof", help="another one than that of the build")
    options = parser.parse_args()
    shadowprof = os.path.abspath(options.shadowprof or os.path.join(options.build, "shadowprof"))
    names = ("native", "first", "kept", "no cache")
    with tempfile.TemporaryDirectory(prefix="bench-start-") as folder:
        kinds = Kinds(shadowprof, folder)
        print(f"| program | | {' | '.join(COLUMNS)} |\n|---|---|{'--:|' * len(COLUMNS)}")
        for name, command in PROGRAMS.items():
            for _ in range(3):
                kinds.take("kept", command)
            rounds = [{kind: kinds.take(kind, command)[1] for kind in names} for _ in range(options.rounds)]
            for kind in names:
                medians = [statistics.median(r[kind][column] for r in rounds) for column in range(len(COLUMNS))]
                print(f"| `{name}` | {kind} | {' | '.join(f'{number:,.0f}' for number in medians)} |", flush=True)
        print("\n| | processor ms before the program's first instruction |\n|---|--:|")
        asks = [os.path.abspath(os.path.join(options.build, "bench/start/parents-time"))]
        for kind in names[1:]:
            took = [int(kinds.take(kind, asks)[0]) / 1e6 for _ in range(options.rounds)]
            print(f"| {kind} | {statistics.median(took):.1f} |")


if __name__ == "__main__":
    main()
