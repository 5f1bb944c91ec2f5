#!/usr/bin/env python3
"""How much longer does a program take in mode full that writes code while it runs?

    bench/rewritten/run.py [--build DIR] [--rounds N] [--times N] [WAY|PROGRAM...]

Ways are those of rewriter.c: nanoseconds for each time that code is written and executed, natively and in mode full
with edges, without the program's start. Programs are short scripts of luajit, node and java: seconds. Medians of N rounds
(3), in which both follow each other. What is missing is left out, and said to be.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

WAYS = ["constant", "next", "target", "two", "function", "page", "append"]
LUA = """
local sum = 0
for i = 1, 4000 do
  local t = {}
  for k = 1, 100 do t[k] = i * k % 97 end
  table.sort(t)
  sum = sum + t[50]
end
for j = 1, 400 do
  sum = sum + loadstring("local a = 0 for i = 1, 200 do a = a + i * " .. j .. " end return a")()
end
print(sum)
"""
JAVASCRIPT = """
let sum = 0;
for (let round = 0; round < 5; round++) {
  const all = [];
  for (let i = 0; i < 20000; i++) all.push({key: i * 7919 % 10007, value: "x" + i});
  all.sort((a, b) => a.key - b.key);
  sum += JSON.parse(JSON.stringify(all)).length;
}
console.log(sum);
"""
JAVA = """
import java.util.HashMap;
public class Work {
    public static void main(String[] arguments) {
        HashMap<Integer, Integer> map = new HashMap<>();
        long sum = 0;
        for (int i = 0; i < 2000000; i++) {
            map.merge(i & 0xffff, i, Integer::sum);
            sum += map.containsKey(i * 31 & 0xffff) ? 1 : 0;
        }
        System.out.println(sum);
    }
}
"""


def programs(folder):
    def script(name, text):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return path

    java = script("Work.java", JAVA)
    if shutil.which("javac"):
        subprocess.run(["javac", "-d", folder, java], check=True)
    return {"luajit": ["luajit", script("work.lua", LUA)], "node": ["node", script("work.js", JAVASCRIPT)],
            "java": ["java", "-cp", folder, "Work"]}


def nanoseconds(command):
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return float(done.stderr.split()[0])


def seconds(command):
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--times", type=int, default=50000)
    parser.add_argument("only", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-rewritten-") as folder:
        full = [os.path.abspath(os.path.join(options.build, "shadowprof")), "run", "-q", "-m", "full", "-p", "edge",
                "-o", os.path.join(folder, "profile.json"), "--"]
        rewriter = os.path.join(folder, "rewriter")
        subprocess.run(["gcc", "-O2", "-o", rewriter,
                        os.path.join(os.path.dirname(os.path.abspath(__file__)), "rewriter.c")], check=True)
        rows = [(way, nanoseconds, [rewriter, way, str(options.times)], "ns") for way in WAYS]
        rows += [(name, seconds, command, "s") for name, command in programs(folder).items()]
        print(f"{'':10} {'native':>12} {'full':>12} {'ratio':>7}")
        for name, measure, command, unit in rows:
            if options.only and name not in options.only:
                continue
            if not shutil.which(command[0]):
                print(f"{name:10} is left out: no {command[0]}")
                continue
            pairs = [(measure(command), measure(full + command)) for _ in range(options.rounds)]
            native, ours = (statistics.median(column) for column in zip(*pairs))
            ratio = statistics.median(b / a for a, b in pairs)
            digits = 0 if unit == "ns" else 2
            print(f"{name:10} {native:9.{digits}f} {unit:2} {ours:9.{digits}f} {unit:2} {ratio:7.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
