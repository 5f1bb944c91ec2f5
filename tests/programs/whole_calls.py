"""Calls that move megabytes are not cut short by our interruptions, in any mode. If shadowprof is killed, even
while it issues the rest of such a call, a program that checks how much was done loses nothing and does
nothing twice."""

import os
import random
import subprocess
import sys
import time

from vocabulary import SHADOWPROF, check, check_equal, check_left_alone, profiled, scratch, start, stop

whole_calls = os.path.abspath(sys.argv[1])
ROUNDS = int(os.environ.get("ROUNDS", "8"))


def kill_again_and_again(mode, expected):
    target = subprocess.Popen([whole_calls, "600", "finish"], stdout=subprocess.PIPE)
    options = ["-m", mode, "--overhead", "50%", "-q", "--no-progress", "-o", "profile.json"]
    try:
        for _ in range(ROUNDS):
            profiler = start([SHADOWPROF, "attach", *options, str(target.pid)], stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0.05, 0.3))
            stop(profiler)
            if target.poll() is None:
                check_left_alone(target.pid)
        check_equal("what it wrote", target.communicate(timeout=120)[0], expected)
        check_equal("its status", target.returncode, 0)
    finally:
        stop(target)


def attach_again_and_again(mode, expected):
    """The profiler completes whatever is unfinished when it attaches, continues or detaches."""
    target = subprocess.Popen([whole_calls, "400"], stdout=subprocess.PIPE)
    options = ["-m", mode, "--overhead", "20%", "--duration", "0.1s", "-q", "--no-progress", "-o", "profile.json"]
    try:
        while target.poll() is None:
            subprocess.run(
                [SHADOWPROF, "attach", *options, str(target.pid)], stderr=subprocess.DEVNULL, check=False, timeout=60
            )
        check_equal(f"what it wrote, {mode}", target.communicate(timeout=120)[0], expected)
        check_equal(f"its status, {mode}", target.returncode, 0)
    finally:
        stop(target)


with scratch():
    seed = random.randrange(1 << 32)
    print(f"seed {seed}, {ROUNDS} rounds")
    random.seed(seed)
    native = subprocess.run([whole_calls, "5"], stdout=subprocess.PIPE, check=True).stdout
    check(native.endswith(b"\nthe bytes are right\n") and native.count(b": 0 did less\n") == 12, f"natively {native}")
    for mode in ("shadow", "burst", "step"):
        outcome = profiled([whole_calls, "150"], "--mode", mode, "--overhead", "20%")
        check_equal(f"what it wrote in mode {mode}", outcome.stdout, native)
        check_equal(f"its status in mode {mode}", outcome.status, 0)
    for mode in ("shadow", "burst"):
        attach_again_and_again(mode, native)
        kill_again_and_again(mode, native)
