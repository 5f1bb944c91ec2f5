#!/usr/bin/env python3
"""What does a run at the defaults show for what it takes from the program, and is it true?

    bench/sight/run.py [--build DIR | --shadowprof FILE] [--seconds S]... [--busy] [--runs N] [--with "OPTION..."]
                       [--cache DIR] [--prepare] [--again] [--out STEM] [--list] [PROGRAM...]

Each program (all, if none is named) does a fixed amount of work, which takes about S seconds (5 and 10). It runs once
in mode full, whose counts are exact, and N times (1) at the defaults, or with the options that --with gives. With
--busy a busy loop runs beside it on each processor; programs of two threads keep both processors busy by
themselves, and run without. The perfect profiles and the commands are kept in DIR (/var/tmp/shadowprof-sight), so that
two builds meet the same: --prepare makes them and nothing else, --again makes them anew.

Columns: samples; sight, which is the program's processor time that samples showed, over the time that profiling is
said to have cost it:

    (instructions that samples saw / all instructions) x processor time without us / (cost.slowdown x duration);

what it is said to have cost; the processor time of shadowprof and its replicas, over the program's; accuracy of edges
and paths, overlap of calls and methods, Diff-Top (`shadowprof compare`); the total that the profile gives, over the truth; and
how many of the shares of functions, edges and paths that are 1 % and more lie within their 95 % intervals (what
was not seen at all is said to be at most what so many samples miss in one of 40 runs).

Needs, besides what is built: gcc, gawk, lua5.4, python3, sqlite3, gzip, xz-utils, zstd, perl. What is not installed
is left out.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

from programs import PROGRAMS, THREADED, Program, neighbours, own_time_of

from common import machine
from judging import compare, judge, load, shares

LEAST_SHARE = 0.01
FEWEST_SAMPLES = 5  # from which intervals are judged
COLUMNS = {  # name: width, digits of its per cent
    "sight": (7, 1), "cost": (6, 2), "extra": (7, 1), "edge": (6, 1), "path": (6, 1), "call": (6, 1),
    "method": (6, 1), "Diff-Top": (8, 2),
}
MORE_IS_WORSE = ("cost", "extra", "Diff-Top")


def figures_of(shadowprof, program, sampled, own, native):
    whole = load(sampled)
    figures = compare(shadowprof, sampled, program.perfect)
    coverage, cost = whole["coverage"], whole["cost"]
    seen = coverage["instructions"] / program.facts["instructions"]
    lost = (cost.get("slowdown") or 0) * whole["run"]["duration"]
    figures["samples"] = coverage["samples"]
    figures["seen"] = seen
    figures["sight"] = seen * native / lost if lost > 0 else None
    figures["cost"] = cost.get("slowdown")
    figures["extra"] = max(own, cost.get("extra_cpu") or 0) / native
    figures["total"] = coverage.get("weighted_instructions", 0) / program.facts["instructions"]
    found, samples = shares(sampled)
    kinds = {kind for kind, _ in found}  # what was not asked for is not judged
    truth = {key: share for key, (share, *_) in shares(program.perfect)[0].items()
             if share >= LEAST_SHARE and key[0] in kinds}
    by_kind, _ = judge(truth, [(samples, found)])
    figures["within"] = {kind: [count["contained"], count["cases"]] for kind, count in by_kind.items()}
    figures["duration"] = whole["run"]["duration"]
    return figures


def within(figures):
    """How many shares were within their intervals, of how many."""
    counts = figures["within"].values()
    return sum(held for held, _ in counts), sum(cases for _, cases in counts)


def percent(value, digits):
    return "-" if value is None else f"{100 * value:.{digits}f}"


def cells(row):
    held, cases = within(row)
    return [f"{row['samples']:.0f}",
            *(percent(row.get(name), digits) for name, (_, digits) in COLUMNS.items()),
            f"{row['total']:.2f}", f"{held}/{cases}"]


WIDTHS = [7, *(width for width, _ in COLUMNS.values()), 6, 8]
HEADS = ["samples", *COLUMNS, "total", "within"]


def line(name, state, seconds, words):
    return f"{name:14}{state:8}{seconds:>4} " + " ".join(
        f"{word:>{width}}" for word, width in zip(words, WIDTHS))


def middle_and_worst(rows):
    """Two lists of words, and of all intervals how many held."""
    known = {name: [row[name] for row in rows if row.get(name) is not None] for name in COLUMNS}
    judged = [within(row) for row in rows if row["samples"] >= FEWEST_SAMPLES]
    held, cases = sum(h for h, _ in judged), sum(c for _, c in judged)
    totals = [row["total"] for row in rows]
    near = sum(0.85 <= total <= 1.15 for total in totals)
    middle = [f"{statistics.median(row['samples'] for row in rows):.0f}",
              *(percent(statistics.median(known[n]) if known[n] else None, d) for n, (_, d) in COLUMNS.items()),
              f"{statistics.median(totals):.2f}", percent(held / cases, 1) + " %" if cases else "-"]
    worst = [f"{min(row['samples'] for row in rows):.0f}",
             *(percent((max if n in MORE_IS_WORSE else min)(known[n]) if known[n] else None, d)
               for n, (_, d) in COLUMNS.items()),
             f"{near}/{len(totals)}", ""]
    return middle, worst


def summary(rows):
    lines = []
    for state in dict.fromkeys(row["state"] for row in rows):
        middle, worst = middle_and_worst([row for row in rows if row["state"] == state])
        lines += [line("median", state, "", middle), line("worst", state, "", worst)]
    return lines


def measure(options, name, seconds, scratch):
    program = Program(name, seconds, options.cache)
    program.prepare(options.shadowprof, options.again)
    busy = options.busy and name not in THREADED
    native = program.native(busy)
    state = "busy" if busy else "threads" if name in THREADED else "free"
    rows = []
    for _ in range(0 if options.prepare else options.runs):
        sampled = os.path.join(scratch, "sampled.json")
        with neighbours(busy):
            own = own_time_of([options.shadowprof, "run", "-q", *shlex.split(options.options), "--limit", "0",
                               "-o", sampled, "--", *program.facts["command"]])
        row = figures_of(options.shadowprof, program, sampled, own, native)
        row.update(program=name, state=state, wanted=seconds, native=native)
        rows.append(row)
        print(line(name, state, f"{seconds:g}", cells(row)), flush=True)
    return rows


def write(stem, rows):
    with open(stem + ".json", "w", encoding="utf-8") as file:
        json.dump({"machine": machine(), "arguments": sys.argv[1:], "rows": rows}, file, indent=1)
        file.write("\n")
    text = (f"Measured on: {machine()}.\n\nMade by: `{shlex.join(['bench/sight/run.py', *sys.argv[1:]])}`.\n\n"
            f"| program | processors | seconds | {' | '.join(HEADS)} |\n|---|---|--:|" + "--:|" * len(HEADS) + "\n")
    for row in rows:
        text += f"| {row['program']} | {row['state']} | {row['wanted']:g} | {' | '.join(cells(row))} |\n"
    for state in dict.fromkeys(row["state"] for row in rows):
        for what, words in zip(("median", "worst"),
                               middle_and_worst([row for row in rows if row["state"] == state])):
            text += f"| **{what}** | {state} | | {' | '.join(words)} |\n"
    with open(stem + ".md", "w", encoding="utf-8") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--shadowprof", help="the program itself, instead of that of a build folder")
    parser.add_argument("--seconds", type=float, action="append")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--with", dest="options", default="", help="options of `shadowprof run`")
    parser.add_argument("--cache", default="/var/tmp/shadowprof-sight")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--out", help="where the table and the figures go, without suffix")
    parser.add_argument("--list", action="store_true", help="names the programs")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    options = parser.parse_args()
    if options.list:
        print("\n".join(PROGRAMS))
        return 0
    for name in options.programs:
        if name not in PROGRAMS:
            parser.error(f"{name}: there are {', '.join(PROGRAMS)}")
    options.shadowprof = os.path.abspath(options.shadowprof or os.path.join(options.build, "shadowprof"))
    rows = []
    if not options.prepare:
        print(line("program", "", "s", HEADS), flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-sight-") as scratch:
        for seconds in options.seconds or [5, 10]:
            for name in options.programs or PROGRAMS:
                try:
                    rows += measure(options, name, seconds, scratch)
                except (subprocess.CalledProcessError, FileNotFoundError) as error:
                    print(f"{name:14}{error}", file=sys.stderr, flush=True)
    if rows:
        print("\n".join(summary(rows)))
        if options.out:
            write(options.out, rows)
    return 0 if rows or options.prepare else 1


if __name__ == "__main__":
    sys.exit(main())
