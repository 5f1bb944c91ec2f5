"""--mode full: handlers of faults see the program's own instruction, address and registers, also after
kill -9 of shadowprof: a thread leaves the code cache by itself when its profiler dies.

A fault that the profiler is just being told of when it dies is delivered as it is in the cache: with five
threads that fault fifty times a second each, in about one round of fifteen. If the threads stayed in the
cache until they had to ask for something, it would be half of the rounds.

ROUNDS: how often shadowprof is killed."""

import os
import random
import subprocess
import sys
import time

from vocabulary import SHADOWPROF, check, check_equal, profiled, scratch, stop

ROUNDS = int(os.environ.get("ROUNDS", "16"))
MOST_WRONG = ROUNDS // 3
fault_handlers = os.path.abspath(sys.argv[1])
RIGHT = b"all faults as they should be\n"

with scratch():
    outcome = profiled([fault_handlers, "1", "2000"], "--mode", "full")
    check_equal("how it ended", (outcome.status, outcome.stdout), (0, RIGHT))

    wrong = []
    for _ in range(ROUNDS):
        program = subprocess.Popen(
            [fault_handlers, "1.1", "20000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        profiler = subprocess.Popen(
            [SHADOWPROF, "attach", "-m", "full", "-q", "-o", "profile.json", str(program.pid)],
            stderr=subprocess.DEVNULL,
        )
        time.sleep(random.uniform(0.4, 0.8))
        stop(profiler)
        output, errors = program.communicate()
        if (program.returncode, output) != (0, RIGHT):
            wrong.append((program.returncode, output, errors))
    check(len(wrong) <= MOST_WRONG, f"{len(wrong)} of {ROUNDS}: {wrong}")
