#!/usr/bin/env python3
"""How much longer does a program take in mode full?

    bench/full/run.py [--build DIR] [--pairs N] [--scale X] [--peers] [PROGRAM...]

Pairs of runs, native and translated, one after the other; the median of the pairs' ratios, for paths
and edges, and with values. At scale 1 a program runs natively for some ten seconds, so that its
start does not count. With --peers the same for callgrind with jumps, lackey and nulgrind (take
--scale 0.05, or hours). The machine should have nothing else to do.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

SQL = (
    "create table t(a integer primary key, b text, c real);"
    "with recursive n(x) as (select 1 union all select x+1 from n where x<{0})"
    " insert into t select x, 'row ' || (x*7919 % 10007), x*0.5 from n;"
    "create index i on t(b);"
    "select count(*), sum(c) from t where b like '%77%';"
    "select b, count(*) from t group by b order by 2 desc, 1 limit 5;"
)
LUA = """
local t, s = {{}}, 0
for i = 1, {0} do
  t[i % 1000 + 1] = (t[i % 1000 + 1] or 0) + i % 7
  if i % 16 == 0 then s = s + #tostring(i) end
end
print(s, t[77])
"""
PERL = """
my (%h, $s);
for my $i (1..{0}) {{ $h{{$i % 1009}} .= "x" if $i % 11 == 0; $s += ($i * 7) % 13; }}
my $n = 0; for (sort keys %h) {{ $n += length $h{{$_}} if /7/ }} print "$s $n\\n";
"""
PYTHON = """
class Point:
    def __init__(self, x, y): self.x, self.y = x, y
    def plus(self, other): return Point(self.x + other.x, self.y - other.y)
total, seen = Point(0, 0), {{}}
for i in range({0}):
    total = total.plus(Point(i % 7, i % 5))
    seen[i % 997] = seen.get(i % 997, 0) + 1
print(total.x, total.y, len(seen))
"""


def programs(folder, scale):
    def text(name, megabytes):
        """Words as they occur in texts: few often, many rarely."""
        chance = random.Random(1)
        words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(5000)]
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as file:
            while file.tell() < megabytes * scale * 1e6:
                picked = [words[int(len(words) * chance.random() ** 3)] for _ in range(2000)]
                file.write(" ".join(picked) + "\n")
        return path

    def n(count):
        return str(max(1, int(count * scale)))

    return {
        "bzip2": lambda: ["bzip2", "-c", text("bzip2", 115)],
        "gzip": lambda: ["gzip", "-c", text("gzip", 170)],
        "xz": lambda: ["xz", "-T1", "-2", "-c", text("xz", 130)],
        "lua5.4": lambda: ["lua5.4", "-e", LUA.format(n(170e6))],
        "python3": lambda: ["/usr/bin/python3", "-c", PYTHON.format(n(22e6))],
        "perl": lambda: ["perl", "-e", PERL.format(n(60e6))],
        "sqlite3": lambda: ["sqlite3", ":memory:", SQL.format(n(8e6))],
    }


def seconds(command):
    began = time.monotonic()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--json", help="writes the figures there")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    shadowprof = os.path.join(options.build, "shadowprof")
    with tempfile.TemporaryDirectory(prefix="bench-full-") as folder:
        def full(profiles):
            return [shadowprof, "run", "-q", "-m", "full", "-p", profiles,
                    "-o", os.path.join(folder, "profile.json"), "--"]

        tools = {"path,edge": full("path,edge"), "with values": full("path,edge,value")}
        if options.peers:
            out = os.path.join(folder, "callgrind.out")
            tools["callgrind"] = ["valgrind", "--tool=callgrind", "--collect-jumps=yes",
                                  f"--callgrind-out-file={out}"]
            tools["lackey"] = ["valgrind", "--tool=lackey", "--trace-mem=no"]
            tools["nulgrind"] = ["valgrind", "--tool=none"]
        print(f"{'program':10} {'native':>8}" + "".join(f" {name:>12}" for name in tools), flush=True)
        table = {}
        for name, make in programs(folder, options.scale).items():
            if options.programs and name not in options.programs:
                continue
            command = make()
            seconds(command)
            natives, ratios = [], {tool: [] for tool in tools}
            for _ in range(options.pairs):
                for tool, words in tools.items():
                    native = seconds(command)
                    natives.append(native)
                    ratios[tool].append(seconds(words + command) / native)
            table[name] = {tool: statistics.median(r) for tool, r in ratios.items()}
            print(f"{name:10} {statistics.median(natives):7.2f}s"
                  + "".join(f" {ratio:11.2f}x" for ratio in table[name].values()), flush=True)
        if table:
            for what, of in (("median", statistics.median), ("worst", max)):
                print(f"{what:10} {'':8}"
                      + "".join(f" {of([row[t] for row in table.values()]):11.2f}x" for t in tools))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
