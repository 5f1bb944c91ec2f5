#!/usr/bin/env python3
"""Does a run at the defaults find what is planted, and nothing where there is nothing?

    bench/findings/run.py [--build DIR] [--runs N] [--scale X] [--out FILE] [OPTION...]

Profiles tests/opportunities/planted.c and the programs here, which say in their source what is planted, and some
without anything, N times each for some ten seconds (--scale 1); OPTIONs are those of `shadowprof run`. Writes in how
many runs each of the planted was found, and whatever else was, as a table of Markdown. --only takes some of them, by
name."""

import argparse
import collections
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(HERE, "../../tests/opportunities")
# Each takes some ten seconds.
HERE_ROUNDS = {"iterated.c": 60e6, "by_value.cpp": 16e6, "looked_up.cpp": 20e6, "spinning.cpp": 220e3,
               "barriers.cpp": 230e3, "tallies.cpp": 4e9, "powers.cpp": 1.6e9, "flushed.cpp": 30e6,
               "by_reference.cpp": 14e6, "in_order.cpp": 9000}
sys.path += [TESTS, os.path.join(HERE, "../accuracy")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--out", default="/dev/stdout")
    options, more = parser.parse_known_args()
    os.environ["SHADOWPROF"] = os.path.join(os.path.abspath(options.build), "shadowprof")
    from check_opportunities import findings, planted  # which wants it in the environment
    from common import build, machine

    programs = {os.path.join(TESTS, "planted.c"): 40e6, os.path.join(TESTS, "unremarkable.c"): 70000}
    programs |= {os.path.join(HERE, name): rounds for name, rounds in HERE_ROUNDS.items()}
    if options.only:
        programs = {path: rounds for path, rounds in programs.items() if os.path.basename(path) in options.only}
    lines = [f"{machine()}: `bench/findings/run.py {' '.join(sys.argv[1:])}`.", "",
             "| program | kind | line | found in runs |", "|---|---|--:|--:|"]
    with tempfile.TemporaryDirectory(prefix="bench-findings-") as folder:
        for source, rounds in programs.items():
            name = os.path.basename(source)
            flags = ["-fopenmp"] if name == "barriers.cpp" else ["-pthread"]
            command = [build(folder, source, "-g", *flags), str(int(rounds * options.scale))]
            wanted = {(kind, f"{name}:{n}"): (kind, line) for kind, line in planted(source) for n in (line, line + 1)}
            found = collections.Counter({place: 0 for place in wanted.values()})
            for run in range(options.runs):
                seen = {wanted.get(finding, finding) for finding in findings(command, more, folder)[0]}
                found.update(seen)
                print(f"{name}: {run + 1}, {len(seen)} findings", file=sys.stderr)
            for (kind, line), times in found.items():
                planted_here = "" if (kind, line) in wanted.values() else " (not planted)"
                lines.append(f"| {name} | {kind}{planted_here} | {line} | {times} of {options.runs} |")
            if not found:
                lines.append(f"| {name} | none | | {options.runs} of {options.runs} |")
    with open(options.out, "w", encoding="utf-8") as file:
        print("\n".join(lines), file=file)


main()
