#!/usr/bin/env python3
"""How near the shares of time by function are to those that perf's own clock sees in the same run:

    bench/examples/overlap.py [--row NAME] SHADOWPROF COMMAND...

Prints the overlap (the sum of the lesser of both shares) of the functions themselves and of all that is on the stack
(there relative to the sum of perf's), what two profiles of so few looks would have by chance if both were right, and
the functions that differ most. With --row it prints a row of a Markdown table, and that to standard error. Code without
a name counts by its file, the kernel as one, and so does code that was made at run time. Where perf's stacks end for
want of tables the rest is left out. After some ten seconds the command is interrupted."""

import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile

FREQUENCY = "199"
SECONDS = "12"


def base(path):
    return os.path.basename(path) or "[anonymous]"


RUNTIME_CODE = "[runtime code]"
UNKNOWN = "[unknown]"


def without_return_type(name):
    """Names of templates' instances have it in one symbol table, and not in another."""
    depth = 0
    for i in range(len(name) - 1, -1, -1):
        depth += (name[i] == ">") - (name[i] == "<")
        if name[i] == " " and depth == 0 and not name.endswith(("operator new", "operator delete")):
            return name[i + 1:]
    return name


def name_of(symbol, path):
    if re.search(r"perf-\d+\.map$|^//anon|^\[anon", path):
        path = RUNTIME_CODE
    if not symbol or symbol == UNKNOWN:
        return base(path)
    # Of the names that libc has for the same function either may be told, and perf leaves out what is returned.
    name = symbol.split("(")[0].split("@")[0].removeprefix("__GI_").removeprefix("__libc_")
    return without_return_type(name.replace("__memcpy_", "__memmove_").strip())


def seen_by_perf(folder):
    """Looks: each a list of names, innermost first."""
    words = ["perf", "script", "--no-inline", "-i", "perf.data", "-F", "comm,ip,sym,dso"]
    text = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout
    for look in text.split("\n\n"):
        head, *lines = look.strip("\n").split("\n")
        if not lines or head.split()[0] == "shadowprof":
            continue
        names = []
        for line in lines:
            symbol, _, path = line.strip().removesuffix(")").rpartition("(")
            symbol = symbol.strip().partition(" ")[2]
            is_kernel = path.startswith(("[kernel", "[guest"))
            names.append("[kernel]" if is_kernel else name_of(symbol.strip(), path))
        yield names


def seen_by_clock(profile):
    """The same, with the time that was seen."""

    def name(frame):
        at = profile["locations"][frame]
        symbol = at.get("function", "")
        path = profile["modules"][at["module"]]["path"] if "module" in at else ""
        return name_of("" if "+0x" in symbol else symbol, path)

    for entry in profile["time"]["entries"]:
        if entry["count"]:
            names = [name(frame) for frame in entry["frames"]]
            yield (names if entry["state"] == "user" else ["[kernel]", *names]) or ["[unknown]"], entry["count"]


def counted(looks):
    own, anywhere = collections.Counter(), collections.Counter()
    for names, count in looks:
        own[names[0]] += count
        for each in set(names) - {UNKNOWN}:
            anywhere[each] += count
    return own, anywhere


def shares(counts, total):
    return {name: count / total for name, count in counts.items()}


def overlap(a, b):
    """Relative to the sum of b's."""
    return sum(min(share, b.get(name, 0)) for name, share in a.items()) / sum(b.values())


def by_chance(truth, looks, others, rounds=50):
    names, weights = list(truth), list(truth.values())
    draw = lambda n: shares(collections.Counter(random.choices(names, weights, k=n)), n)
    return sum(overlap(draw(looks), draw(others)) for _ in range(rounds)) / rounds


def main():
    words = sys.argv[1:]
    row = words[1] if words[0] == "--row" else None
    shadowprof, *command = words[2:] if row else words
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "profile.json")
        perf = ["perf", "record", "-q", "-e", "cpu-clock", "-F", FREQUENCY, "--call-graph", "dwarf,16384",
                "-o", os.path.join(folder, "perf.data"), "--"]
        profiled = ["timeout", "-s", "INT", SECONDS, os.path.abspath(shadowprof), "run", "-q", "-o", profile, "--"]
        subprocess.run([*perf, *profiled, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        theirs, theirs_anywhere = counted((names, 1) for names in seen_by_perf(folder))
        with open(profile, encoding="utf-8") as file:
            seen = json.load(file)
        ours, ours_anywhere = counted(seen_by_clock(seen))
    looks, time, others = seen["time"]["samples"], ours.total(), theirs.total()
    own = overlap(shares(ours, time), shares(theirs, others))
    anywhere = overlap(shares(ours_anywhere, time), shares(theirs_anywhere, others))
    chance = by_chance(theirs, looks, others)
    if row:
        print(f"| {row} | {looks} | {others} | {own:.1%} | {chance:.1%} | {anywhere:.1%} |")
        sys.stdout = sys.stderr
    print(f"overlap {own:.1%} (by chance {chance:.1%}), on the stack {anywhere:.1%}, "
          f"of {looks} looks and perf's {others}")
    for title, a, b in ("itself", ours, theirs), ("on the stack", ours_anywhere, theirs_anywhere):
        print(title)
        a, b = shares(a, time), shares(b, others)
        for name in sorted(a.keys() | b.keys(), key=lambda n: -abs(a.get(n, 0) - b.get(n, 0)))[:6]:
            print(f"  {a.get(name, 0):6.1%} {b.get(name, 0):6.1%}  {name}")


main()
