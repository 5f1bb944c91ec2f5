#!/usr/bin/env python3
"""Programs that have much memory: what they do is what they do natively, and how long they stand still.

    bench/soak/resident.py [--build DIR] [--gigabytes 5] [--steps 20000000] [--modes shadow,instant,...]

Runs resident.c without shadowprof, with `run` at its defaults, and attached to in each mode once its memory is filled.
Prints for each how long the program computed and its longest gap as it sees it (which includes what other programs
took of the processor), the stops and forks, and what they took as the profile has it. Exit status 1 if the program's
output or status differs, or if shadowprof failed."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def available_gigabytes():
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable")) / (1 << 20)


def row(name, said, profile):
    told = said.decode().strip().splitlines()[-1]
    if not profile:
        return f"{name}: {told}"
    cost, coverage = profile["cost"], profile["coverage"]
    stops = f"{cost['stops']} stops of {1e3 * cost['stop_time'] / max(1, cost['stops']):.2f} ms on average"
    faults = f"{cost['forks']} forks, {cost['extra_faults']} pages copied"
    why = "; ".join(profile["run"].get("warnings", []))
    return f"{name}: {told}; {stops}, {faults}, {coverage['samples']} samples; {why}"


def finish(program):
    output, said = program.communicate()
    return (output, program.returncode), said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(HERE, "../../build"))
    parser.add_argument("--gigabytes", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20_000_000)
    parser.add_argument("--modes", default="shadow,instant,auto,burst,step,full")
    options = parser.parse_args()
    shadowprof = os.path.abspath(os.path.join(options.build, "shadowprof"))
    if available_gigabytes() < 2.2 * options.gigabytes:
        sys.exit("too little memory is free")
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run(["cc", "-O2", os.path.join(HERE, "resident.c"), "-o", "resident"], check=True)
        command = ["./resident", str(options.gigabytes), str(options.steps)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

        def profile_of(name, seen, profiler_status):
            if seen != expected or profiler_status not in (0, expected[1]):
                failed.append(f"{name}: {seen}, shadowprof {profiler_status}; expected {expected}")
                return None
            with open("profile.json", encoding="utf-8") as file:
                return json.load(file)

        expected, said = finish(subprocess.Popen(command, **pipes))
        print(row("natively", said, None), flush=True)
        run = [shadowprof, "run", "-q", "-o", "profile.json", "--", *command]
        seen, said = finish(subprocess.Popen(run, **pipes))
        print(row("run", said, profile_of("run", seen, seen[1])), flush=True)
        for mode in options.modes.split(","):
            program = subprocess.Popen(command, **pipes)
            filled = program.stdout.readline()
            attach = [shadowprof, "attach", "-q", "-m", mode, "-o", "profile.json", str(program.pid)]
            status = subprocess.run(attach, stdin=subprocess.DEVNULL, check=False).returncode
            (output, its_status), said = finish(program)
            name = f"attach, {mode}"
            print(row(name, said, profile_of(name, (filled + output, its_status), status)), flush=True)
    sys.exit("\n".join(failed))


main()
