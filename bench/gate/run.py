#!/usr/bin/env python3
"""Whether `shadowprof check` can be trusted in CI: a regression of 1 % of the instructions, planted in
one function of Lua, must fail it and be named; the unchanged program must never fail it.

    bench/gate/run.py SHADOWPROF LUA_SOURCE [--repeats N] [--baselines N] [--folder DIR]

LUA_SOURCE is what `apt-get source lua5.4` leaves, or any source tree of Lua 5.4. The regression is a
needless loop in luaO_tostring; how long it must be follows from a profile of the unchanged program.
Prints a table in Markdown.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FUNCTION = "luaO_tostring"
FILE = "lobject.c"
HEAD = "void luaO_tostring (lua_State *L, TValue *obj) {"
LIMITS = ("--max-instructions", "+0.5%", "--max-any-function", "+5%")
# One round of the loop, compiled with -O2: load, add, store, load, compare, jump.
LOOP = "for (volatile int waste = 0; waste < {}; ++waste) continue;"
LOOP_INSTRUCTIONS = 6


def build(source, into, waste):
    into.mkdir()
    files = [f for f in sorted((source / "src").glob("*.c")) if f.name != "luac.c"]
    objects = []
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        if waste and file.name == FILE:
            if HEAD not in text:
                sys.exit(f"{file}: no {FUNCTION} as in Lua 5.4")
            text = text.replace(HEAD, HEAD + LOOP.format(waste), 1)
        copy = into / file.name
        copy.write_text(text, encoding="utf-8")
        objects.append(str(copy))
    subprocess.run(["gcc", "-O2", "-g", "-DLUA_USE_POSIX", f"-I{source / 'src'}", "-o", into / "lua", *objects, "-lm"],
                   check=True)
    return into / "lua"


class Gate:
    def __init__(self, shadowprof, work, folder):
        self.shadowprof, self.work, self.folder = shadowprof, work, folder

    def profile(self, lua, name):
        file = self.folder / name
        subprocess.run([self.shadowprof, "run", "-q", "-m", "full", "-p", "method,call,edge", "--limit", "0",
                        "-o", file, "--", lua, self.work], check=True, stdout=subprocess.DEVNULL)
        return file

    def check(self, bases, new):
        done = subprocess.run([self.shadowprof, "check", "--json", *LIMITS, *bases, new], stdout=subprocess.PIPE,
                              check=False)
        if done.returncode not in (0, 3):
            sys.exit(f"check ended with {done.returncode}")
        return done.returncode, json.loads(done.stdout)


def of_function(file, name):
    """Calls of a function and instructions of the run."""
    profile = json.loads(file.read_text(encoding="utf-8"))
    calls = sum(m["calls"] + m["tail_calls"] for m in profile["methods"]["entries"]
                if profile["locations"][m["function"]].get("function") == name)
    return calls, profile["coverage"]["instructions"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("shadowprof", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--baselines", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="shadowprof-gate-"))
    gate = Gate(options.shadowprof.resolve(), Path(__file__).resolve().parent / "work.lua", folder)

    lua = build(options.source, folder / "unchanged", 0)
    bases = [gate.profile(lua, f"base{i}.json") for i in range(options.baselines)]
    calls, instructions = of_function(bases[0], FUNCTION)
    waste = max(1, round(0.01 * instructions / calls / LOOP_INSTRUCTIONS))

    failures, least, most = 0, 0.0, 0.0
    for i in range(options.repeats):
        file = gate.profile(lua, "again.json")
        status, result = gate.check(bases, file)
        failures += status != 0
        change = result["instructions"]["new"] / result["instructions"]["base"] - 1
        least, most = min(least, change), max(most, change)
        if status != 0:
            os.rename(file, folder / f"failed{i}.json")
            print([v for v in result["verdicts"] if v["exceeded"]], file=sys.stderr)

    slower = build(options.source, folder / "slower", waste)
    caught, named, growths = 0, 0, []
    tries = 5
    for i in range(tries):
        status, result = gate.check(bases, gate.profile(slower, f"slower{i}.json"))
        caught += status == 3
        exceeded = [v for v in result["verdicts"] if v["exceeded"]]
        blamed = {v["change"]["name"] for v in exceeded} - {"instructions"}
        blamed |= {v["causes"][0]["name"] for v in exceeded if v["causes"]}
        named += blamed == {FUNCTION}
        growths.append(result["instructions"]["new"] / result["instructions"]["base"] - 1)
    noise = result["instructions"]["noise"] / result["instructions"]["base"]

    print("| | |\n|---|--:|")
    print(f"| instructions of a run | {instructions / 1e6:.1f} M |")
    print(f"| baselines | {options.baselines} |")
    print(f"| noise learnt from them | ±{noise:.3%} |")
    print(f"| limits | `{' '.join(LIMITS)}` |")
    print(f"| unchanged program: runs that failed the gate | {failures} of {options.repeats} |")
    print(f"| unchanged program: instructions against the baselines | {least:+.3%} to {most:+.3%} |")
    print(f"| planted regression, in `{FUNCTION}` | {min(growths):+.2%} to {max(growths):+.2%} |")
    print(f"| regression: runs that failed the gate | {caught} of {tries} |")
    print(f"| regression: that function named, and no other | {named} of {tries} |")
    return 0 if failures == 0 and caught == named == tries else 1


if __name__ == "__main__":
    sys.exit(main())
