"""A storm of signals, a thousand a second of each of two kinds, while a program executes ever new code and makes system
calls that block: every signal arrives once and in order, and finds nothing of ours. So it is in each mode, and
when shadowprof comes and goes. A sample in place ends, however many signals there are.

ROUNDS: how often."""

import os
import sys
import time

from vocabulary import SHADOWPROF, check_equal, profiled, read_profile, run, scratch, start

NEW_CODE = os.path.abspath(sys.argv[1])
ROUNDS = int(os.environ.get("ROUNDS", "1"))
# How many rounds of its own the program makes. In mode full a signal takes as long as the pause to the next one.
LONG, SHORT = "300", "2"
OFTEN = ["--overhead", "30%"]


def run_in(mode, length):
    outcome = profiled([NEW_CODE, length, "1000"], *mode)
    check_equal(f"how it ends with {mode}", (outcome.status, outcome.stdout), (0, b"fine\n"))
    read_profile()


def come_and_go(mode):
    program = start([NEW_CODE, "4000", "1000"], stdout=-1)
    for _ in range(3):
        time.sleep(0.3)
        options = ["-q", "--no-progress", "-o", "profile.json", "--duration", "0.4"]
        outcome = run([SHADOWPROF, "attach", *mode, *options, str(program.pid)])
        check_equal(f"how attach ends with {mode}", (outcome.status, outcome.stderr), (0, b""))
    said, _ = program.communicate(timeout=120)
    check_equal(f"how it ends after {mode}", (program.returncode, said), (0, b"fine\n"))


with scratch():
    for _ in range(ROUNDS):
        run_in(["-m", "full", "-p", "edge"], SHORT)
        run_in(["-m", "burst", *OFTEN], LONG)
        run_in(["-m", "shadow", *OFTEN], LONG)
        run_in(["-m", "instant", *OFTEN], LONG)
        run_in(["-m", "instant", "--all-threads", *OFTEN], LONG)
        come_and_go(["-m", "full", "-p", "edge"])
        come_and_go(["-m", "instant", *OFTEN])
