#!/usr/bin/env python3
"""Does mode full count what callgrind counts, in whole programs?

    bench/full/counts.py [--build DIR] [PROGRAM...]

Each program runs under both, on the same input and in the same environment (the one that valgrind
makes, with its preloaded library), and every branch within the modules that are its own is compared:
how often it was executed and, if it is conditional, taken. Left out are the modules that choose their
code by the processor, which valgrind imitates (the C library, the dynamic linker). The programs are
ones that do the same in every run: lua5.4 is not, as it seeds its hashes with the time and with
addresses, and zstd is only without its threads for reading and writing. Callgrind does not list jumps
of the procedure linkage table; what it has not is counted beside. Exit status 1 if a branch that both
have was counted differently.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict

CALLGRIND = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--collect-jumps=yes", "--dump-line=no",
             "--compress-pos=no", "--compress-strings=no", "--skip-plt=no"]
NOT_ITS_OWN = ("libc.so", "libm.so", "ld-linux", "libpthread", "libstdc++", "libgcc", "[", "vgpreload")


def is_own(module):
    return not any(part in os.path.basename(module) for part in NOT_ITS_OWN)


def counted_by_callgrind(path):
    """(module, branch) -> executions; (module, branch, target) -> times taken; functions."""
    executions, taken, functions = Counter(), Counter(), {}
    module, function, pending = "", "", None
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            key, _, rest = line.rstrip("\n").partition("=")
            if pending:
                taken[module, int(line.split()[0], 16), pending[1]] += pending[0]
                pending = None
            elif key == "ob":
                module = rest
            elif key == "fn":
                function = rest
            elif key == "jcnd":
                count, target = rest.split()[:2]
                pending = int(count.split("/")[0]), int(target, 16)
            elif key in ("calls", "jump"):
                next(lines)  # the callee's cost, or the jump's address once more
            elif line.startswith("0x"):
                address, count = line.split()[:2]
                executions[module, int(address, 16)] += int(count)
                functions.setdefault((module, int(address, 16)), function)
    return executions, taken, functions


def counted_by_us(path):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    modules = [m["path"] for m in document["modules"]]
    places = [(modules[l["module"]] if l["module"] is not None else "", int(l["offset"], 16),
               l.get("function")) for l in document["locations"]]
    executions, taken, conditional, functions = Counter(), Counter(), set(), {}
    for entry in document["edges"]["entries"]:
        (module, branch, function), target = places[entry["from"]], places[entry["to"]][1]
        functions[module, branch] = function
        executions[module, branch] += entry["count"]
        if entry["kind"] == "taken":
            taken[module, branch, target] += entry["count"]
        if entry["kind"] == "fallthrough":
            conditional.add((module, branch))
    return executions, taken, conditional, functions


def programs(folder):
    text = os.path.join(folder, "text")
    with open(text, "w", encoding="ascii") as file:
        for number in range(200_000):
            file.write(f"{number * number % 9973} ")
    sql = ("create table t(a integer primary key, b text);with recursive n(x) as (select 1 union all"
           " select x+1 from n where x<20000) insert into t select x, 'row ' || (x*7919 % 1007) from n;"
           "create index i on t(b);select b, count(*) from t group by b order by 2 desc, 1 limit 5;")
    return {
        "bzip2": ["bzip2", "-c", text],
        "gzip": ["gzip", "-n", "-c", text],
        "xz": ["xz", "-T1", "-2", "-c", text],
        "zstd": ["zstd", "-q", "-T1", "--single-thread", "--no-asyncio", "-5", "-c", text],
        "perl": ["perl", "-e", "my %h; $h{$_ % 97} .= chr(65 + $_ % 26) for 1..50000;"
                               " print join ',', map { length $h{$_} } sort keys %h"],
        "sqlite3": ["sqlite3", ":memory:", sql],
    }


def run(command, environment):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment, check=True).stdout


def environment_within_callgrind(environment):
    """Valgrind adds variables of its own, which a program like perl reads one by one."""
    lines = run([*CALLGRIND, "--callgrind-out-file=/dev/null", "/usr/bin/env", "-0"], environment)
    return dict(line.split("=", 1) for line in lines.decode().split("\0") if line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    shadowprof = os.path.abspath(os.path.join(options.build, "shadowprof"))
    failed = False
    outside = {"PATH": os.environ["PATH"], "PERL_HASH_SEED": "0", "LC_ALL": "C"}
    inside = environment_within_callgrind(outside)
    with tempfile.TemporaryDirectory(prefix="bench-full-") as folder:
        for name, command in programs(folder).items():
            if options.programs and name not in options.programs or not shutil.which(command[0]):
                continue
            command[0] = os.path.realpath(shutil.which(command[0]))
            theirs, ours = os.path.join(folder, "theirs"), os.path.join(folder, "ours")
            run([*CALLGRIND, "--callgrind-out-file=" + theirs, *command], outside)
            run([shadowprof, "run", "-q", "-m", "full", "-p", "edge", "--limit", "0", "-o", ours, "--",
                 *command], inside)
            expected, expected_taken, functions = counted_by_callgrind(theirs)
            seen, seen_taken, conditional, our_functions = counted_by_us(ours)
            compared, different, unlisted = 0, defaultdict(list), 0
            for module, branch in seen:
                if not is_own(module):
                    continue
                place = module, branch
                function = module, functions.get(place) or our_functions.get(place) or "?"
                if not expected[place]:
                    unlisted += 1
                    continue
                compared += 1
                if seen[place] != expected[place]:
                    different[function].append((branch, "executed", seen[place], expected[place]))
            for edge, count in seen_taken.items():
                if edge[:2] not in conditional or not is_own(edge[0]) or not expected[edge[:2]]:
                    continue
                if count != expected_taken[edge]:
                    function = edge[0], functions.get(edge[:2]) or "?"
                    different[function].append((edge[1], "taken", count, expected_taken[edge]))
            wrong = sum(map(len, different.values()))
            total = sum(n for place, n in seen.items() if is_own(place[0]))
            print(f"{name:10} {compared} branches compared, executed {total} times: {wrong} counts differ;"
                  f" {unlisted} branches are not in callgrind's file", flush=True)
            for (module, function), branches in sorted(different.items()):
                branch, what, got, wanted = branches[0]
                print(f"    {function} in {os.path.basename(module)}: {len(branches)}, as {what} at"
                      f" {branch:#x}: {got}, callgrind {wanted}")
            failed = failed or bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
