"""A program that forks and becomes another one, again and again, while shadowprof attaches to it: it does what it
does, whatever the moment, and shadowprof ends properly.

ROUNDS: how often."""

import os
import random
import subprocess
import sys
import time

from vocabulary import SHADOWPROF, check, check_equal, read_profile, run, scratch, start, stop

ROUNDS = int(os.environ.get("ROUNDS", "12"))
exec_chain = os.path.abspath(sys.argv[1])
# In mode full each is translated anew. Where processes are quick so few would be over before we attach.
GENERATIONS = {"shadow": "200", "burst": "200", "full": "40"}

with scratch():
    profiles = 0
    for n in range(ROUNDS):
        mode = ("shadow", "burst", "full")[n % 3]
        command = [exec_chain, GENERATIONS[mode]]
        began = time.monotonic()
        expected = run(command)
        took = time.monotonic() - began
        check_equal("the program's status", expected.status, 7)
        program = subprocess.Popen(command, stdout=subprocess.PIPE)
        time.sleep(random.uniform(0, took / 2))
        profiler = start(
            [SHADOWPROF, "attach", "-m", mode, "-q", "-o", "profile.json", str(program.pid)],
            stderr=subprocess.PIPE,
        )
        try:
            output, _ = program.communicate(timeout=120)
            _, said = profiler.communicate(timeout=120)
        finally:
            stop(profiler)
            stop(program)
        what = f"in mode {mode}, round {n}"
        check_equal(f"the output {what}", output, expected.stdout)
        check_equal(f"the status {what}", program.returncode, expected.status)
        # It may have come too late.
        came_too_late = b"no process" in said or b"has ended" in said
        check(profiler.returncode == (1 if came_too_late else 0), f"{what}: {profiler.returncode} {said}")
        profiles += not came_too_late
        if not came_too_late:
            read_profile()
    check(profiles > 0, "it always came too late")
