"""A program that writes over the memory that shadowprof shares with it: shadowprof ends as it should, says
so, and where only its own notes were written over the program does what it does natively.

SECONDS: how long this goes on, with another seed each time; without it, a few rounds."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time

from vocabulary import (
    SHADOWPROF,
    check,
    check_equal,
    children_of,
    processes_in,
    read_profile,
    scratch,
    start,
    stop,
    wait_until,
)

scribble = os.path.abspath(sys.argv[1])
SECONDS = float(os.environ.get("SECONDS", "0"))
TOO_LONG = 300 if SECONDS else 60  # for a long time it runs beside other work
CRASHES = (132, 133, 134, 135, 136, 137, 139)  # of a program that wrote over what it needs
MODES = (
    ["--mode", "full", "-p", "path"],
    ["--mode", "full", "-p", "all"],
    ["--mode", "shadow", "--overhead", "30%"],
    ["--mode", "shadow", "--overhead", "30%", "-p", "all"],
    ["--mode", "instant", "--overhead", "30%"],
    ["--mode", "instant", "--overhead", "30%", "-p", "all"],
    ["--mode", "auto", "--overhead", "30%", "-p", "all"],
    ["--mode", "burst", "--overhead", "30%"],
    ["--mode", "step", "--overhead", "30%"],
)


def check_end(status, errors, what):
    check(status >= 0, f"{what}: shadowprof died by signal {-status}: {errors}")
    check(b"failed" not in errors and b"ERROR: " not in errors, f"{what}: {errors.decode(errors='replace')}")


def reasons(profile):
    """That are about its writing."""
    ended = profile["coverage"]["ended"]
    return sum(count for why, count in ended.items() if "wrote into" in why)


def run(options, seed, kind):
    command = [SHADOWPROF, "run", "--no-progress", "-o", "profile.json", *options]
    command += ["--", scribble, "0.8", str(seed), kind]
    what = f"run {options} {kind}, seed {seed}"
    profiler = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, errors = profiler.communicate(timeout=TOO_LONG)
    except subprocess.TimeoutExpired:
        check(kind == "everything", f"{what}: it hangs")
        # What it waits for it has written over.
        for child in children_of(profiler.pid):
            os.kill(child, signal.SIGKILL)
        output, errors = profiler.communicate(timeout=TOO_LONG)
    finally:
        stop(profiler)
    status = profiler.returncode
    check_end(status, errors, what)
    if kind == "streams":
        check_equal(f"{what}: how it ended", (status, output), (6, b"0 wrong\n"))
    else:
        check(status in (6, *CRASHES), f"{what}: it ended with {status}")
    return reasons(read_profile())


def attach(options, seed, kind):
    target = subprocess.Popen([scribble, "60", str(seed), kind], stdout=subprocess.PIPE)
    try:
        command = [SHADOWPROF, "attach", "--no-progress", "-o", "profile.json", *options]
        command += ["--duration", "1", str(target.pid)]
        time.sleep(0.1)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TOO_LONG, check=False)
        what = f"attach {options} {kind}, seed {seed}"
        check_end(done.returncode, done.stderr, what)
        check_equal(f"{what}: the exit status, which says {done.stderr}", done.returncode, 0)
        if kind == "streams":
            check_equal(f"{what}: whether it lives", target.poll(), None)
        return reasons(read_profile())
    finally:
        stop(target)


def main():
    named = {}
    until = time.monotonic() + SECONDS
    rounds = itertools.product((run, attach), MODES, ("streams", "everything"))
    with scratch() as folder:
        for seed, (how, options, kind) in enumerate(rounds):
            named[" ".join(options[1:2])] = named.get(options[1], 0) + how(options, seed + 1, kind)
        while time.monotonic() < until:
            how, options = random.choice((run, attach)), random.choice(MODES)
            how(options, random.randrange(1, 1 << 40), random.choice(("streams", "everything")))
        # A replica that nobody could take ends by itself.
        wait_until(lambda: processes_in(folder) == [os.getpid()], "something is left behind")
    print(named)
    # How many replicas there are depends on how idle the machine is.
    check(named["full"] > 0, f"nobody noticed: {named}")


main()
