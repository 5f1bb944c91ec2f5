"""attach in mode full to a program of 50 threads, half of which sleep, and to one with a single thread.
Everything that runs is seen, the programs notice nothing, and afterwards nothing is left in them."""

import os
import subprocess
import sys
import time

from vocabulary import (
    SHADOWPROF,
    check,
    check_equal,
    check_same_lines,
    memory_map,
    read_profile,
    run,
    scratch,
    stop,
    tracer_of,
    undisturbed_threads,
)

TARGET = os.path.abspath(sys.argv[1])
ROUNDS = int(os.environ.get("ROUNDS", "3"))
COUNT = "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; echo $i; exit 3"


def attach(pid, *options):
    command = [SHADOWPROF, "attach", "-q", "-m", "full", "-o", "profile.json", *options, str(pid)]
    outcome = run(command, timeout=120)
    check_equal("shadowprof's status, and what it says", (outcome.status, outcome.own_lines()), (0, []))
    profile = read_profile()
    check_equal("warnings", profile["run"].get("warnings", []), [])
    check_equal("the slowdown, which nobody knows", profile["cost"].get("slowdown"), None)
    return profile["coverage"]["instructions"]


with scratch():
    with undisturbed_threads(TARGET) as target:
        before = memory_map(target.pid)
        seen = 0
        for number in range(ROUNDS):
            profiles = "all" if number % 2 else "path,edge"
            seen += attach(target.pid, "-p", profiles, "--duration", "2s")
            check_same_lines("the memory map afterwards", memory_map(target.pid), before)
            check_equal("the tracers afterwards", tracer_of(target.pid), set())
        check(seen > 100_000, f"only {seen} instructions were seen")

    # Once until the program ends, once detached before that.
    for options in ([], ["--duration", "0.2s"]):
        target = subprocess.Popen(["sh", "-c", COUNT], stdout=subprocess.PIPE)
        try:
            time.sleep(0.05)
            seen = attach(target.pid, *options)
            check(seen > 1000, f"only {seen} instructions were seen")
            check_equal("what it says", target.communicate(timeout=60)[0], b"500000\n")
            check_equal("its status", target.returncode, 3)
        finally:
            stop(target)
