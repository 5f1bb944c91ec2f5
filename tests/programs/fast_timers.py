"""Three timers whose signals come faster than they can be delivered to a thread in the code cache, on a busy machine:
in each mode the program ends as it does natively. In mode full its thread goes on natively, with a line, and so it is
left without a trace, too. Their handlers may interrupt each other, and themselves.

ROUNDS: how often."""

import contextlib
import os
import subprocess
import sys

from vocabulary import SHADOWPROF, check, check_equal, check_left_alone, memory_map, profiled, read_profile, run, scratch, start, stop

FAST_TIMERS = os.path.abspath(sys.argv[1])
ROUNDS = int(os.environ.get("ROUNDS", "1"))
MICROSECONDS, SHORT, LONG = "200", "30", "100000"
GIVEN_UP = "a thread runs on unprofiled: signals come faster than they can be delivered there"


@contextlib.contextmanager
def busy_processor():
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        stop(other)


def run_in(mode, *how):
    outcome = profiled([FAST_TIMERS, MICROSECONDS, SHORT, *how], "-m", mode, "-p", "edge", timeout=100)
    check_equal(f"how it ends in {mode} {how}", (outcome.status, outcome.stdout), (0, b"fine\n"))
    warnings = read_profile()["run"].get("warnings", [])
    if mode == "full":
        check(GIVEN_UP in warnings, f"it is not given up on, and said is {warnings}")


def come_and_go(*how):
    program = start([FAST_TIMERS, MICROSECONDS, LONG, *how])
    try:
        options = ["-m", "full", "-q", "--no-progress", "-o", "profile.json", "--duration", "1"]
        outcome = run([SHADOWPROF, "attach", *options, str(program.pid)], timeout=100)
        check_equal(f"how attach ends {how}", (outcome.status, outcome.stderr), (0, b""))
        check_left_alone(program.pid)
        check("shadowprof" not in memory_map(program.pid), f"memory stays {how}")
    finally:
        stop(program)


with scratch(), busy_processor():
    for _ in range(ROUNDS):
        for how in ((), ("nested",)):
            run_in("full", *how)
            come_and_go(*how)
            for mode in ("auto", "shadow", "instant", "burst", "step"):
                run_in(mode, *how)
