#!/usr/bin/env python3
"""How long does a program take whose code is all new?

    bench/cold/run.py [--build DIR] [--rounds N] [--only NAME,...] [--json FILE]

Programs that end soon run natively, under QEMU's user mode, under callgrind and in mode full, one
after the other in each of N rounds (5); "warm" and "warm all" are runs with edges, and with all
default profiles, that know what an earlier one has learned and translated. Shown are the median times, the medians of the rounds' ratios
to QEMU and to callgrind, and of shadowprof its processor time, without the program's, and its peak
memory. cc1 compiles 300 functions. Programs and peers that are missing are left out, and said
to be. The machine should have nothing else to do.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

FUNCTION = """
int f{0}(int *values, int count) {{
    int sum = {0};
    for (int i = 0; i < count; ++i)
        if (values[i] > {0} + i) sum += values[i] * {0};
        else sum ^= values[i] - (sum >> 3);
    return sum;
}}
"""


def programs(folder):
    source = os.path.join(folder, "functions.c")
    with open(source, "w", encoding="ascii") as file:
        file.write("".join(FUNCTION.format(n) for n in range(300)))
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, text=True, check=False) \
        if shutil.which("gcc") else None
    return {
        "python3": ["/usr/bin/python3", "-c", "pass"],
        "perl": ["perl", "-e", "1"],
        "ls": ["ls", "-l", "/usr/bin"],
        "git": ["git", "--version"],
        "ruby": ["ruby", "-e", "1"],
        "node": ["node", "-e", "1"],
        "cc1": [cc1.stdout.strip() if cc1 else "cc1", "-quiet", "-O1", source, "-o", "/dev/null"],
    }


def tools(build, folder):
    def full(*profiles):
        return [os.path.join(build, "shadowprof"), "run", "-q", "-m", "full", *profiles,
                "-o", os.path.join(folder, "profile.json"), "--"]

    return {
        "native": [],
        "qemu": ["qemu-x86_64"],
        "callgrind": ["valgrind", "-q", "--tool=callgrind", "--collect-jumps=no",
                      f"--callgrind-out-file={os.path.join(folder, 'callgrind.out')}"],
        "edge": full("-p", "edge", "--no-cache"),
        "warm": full("-p", "edge"),
        "default": full("--no-cache"),
        "warm all": full(),
    }


def run(command):
    """Its time, its processor time without its children's, and the peak of its memory or of a child's."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    elapsed = time.monotonic() - began
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with status {process.returncode}")
    return elapsed, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", help="writes the figures there")
    options = parser.parse_args()
    table = {}
    with tempfile.TemporaryDirectory(prefix="bench-cold-") as folder:
        os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
        kinds = tools(options.build, folder)
        for name in [k for k, words in kinds.items() if words and not shutil.which(words[0])]:
            print(f"{name} is left out: no {kinds.pop(name)[0]}")
        peers = [peer for peer in ("qemu", "callgrind") if peer in kinds]
        head = "".join(f" {kind:>9}" for kind in kinds)
        compared = {"edge": peers, "warm": peers, "default": peers, "warm all": peers}
        for kind in compared:
            head += "".join(f" {kind + '/' + peer:>19}" for peer in peers)
            head += f" {kind + ' cpu':>12} {kind + ' MB':>11}"
        print(f"{'program':10}{head}", flush=True)
        for name, command in programs(folder).items():
            if options.only and name not in options.only.split(","):
                continue
            if not shutil.which(command[0]):
                print(f"{name:10} is left out: no {command[0]}")
                continue
            command = [shutil.which(command[0]), *command[1:]]  # QEMU looks at no PATH
            run(command)
            run(kinds["warm"] + command)
            run(kinds["warm all"] + command)
            rounds = [{kind: run(words + command) for kind, words in kinds.items()}
                      for _ in range(options.rounds)]

            def median(of):
                return statistics.median(of(r) for r in rounds)

            row = {kind: median(lambda r: r[kind][0]) for kind in kinds}
            line = "".join(f" {row[kind]:8.3f}s" for kind in kinds)
            for kind in compared:
                for peer in peers:
                    row[f"{kind}/{peer}"] = ratio = median(lambda r: r[kind][0] / r[peer][0])
                    line += f" {ratio:18.2f}x"
                row[f"{kind} cpu"] = median(lambda r: r[kind][1])
                row[f"{kind} MB"] = median(lambda r: r[kind][2])
                line += f" {row[f'{kind} cpu']:11.2f}s {row[f'{kind} MB']:11.0f}"
            table[name] = row
            print(f"{name:10}{line}", flush=True)
    if table:
        medians = {key: statistics.median(row[key] for row in table.values())
                   for key in next(iter(table.values())) if "/" in key}
        print("medians   " + "".join(f"  {key} {ratio:.2f}x" for key, ratio in medians.items()))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
