"""kill -9 of shadowprof at random moments (ROUNDS, 100) in the modes MODES (full instant), beside programs whose faults
have handlers that look: Go, Java, and one in C for SIGSEGV, SIGFPE, SIGILL, SIGTRAP and SIGBUS. After each kill the
program goes on and its results are right. Says how often it did not.

faults.py FAULT_HANDLERS      needs golang-go and a JDK"""

import os
import random
import select
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tests/programs"))
from vocabulary import (  # noqa: E402
    SHADOWPROF,
    check,
    check_left_alone,
    memory_map,
    scratch,
    start,
    stop,
    wait_until,
)

HERE = os.path.dirname(os.path.abspath(__file__))
FAULT_HANDLERS = os.path.abspath(sys.argv[1])
ROUNDS = int(os.environ.get("ROUNDS", "100"))
MODES = os.environ.get("MODES", "full instant").split()
NAMES = os.environ.get("PROGRAMS", "c go java").split()


def build():
    if "go" in NAMES:
        environment = {**os.environ, "GOCACHE": os.path.abspath("go-cache"), "GO111MODULE": "off"}
        subprocess.run(["go", "build", "-o", "faults", f"{HERE}/programs/faults.go"], check=True, env=environment)
    if "java" in NAMES:
        subprocess.run(["javac", "-d", ".", f"{HERE}/programs/Faults.java"], check=True)


COMMANDS = {
    "c": [FAULT_HANDLERS, "100000", "20000"],
    "go": ["./faults"],
    "java": ["java", "-Xmx64m", "-XX:-CreateCoredumpOnCrash", "-XX:ErrorFile=/dev/null", "Faults"],
}


def ends_within(program, seconds):
    try:
        program.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def goes_on(program, name):
    """It has computed for a while since, and says nothing else than that all is right."""
    if name == "c":  # ends at what is wrong
        return not ends_within(program, 0.2)
    while select.select([program.stdout], [], [], 0)[0]:
        if os.read(program.stdout.fileno(), 65536) == b"":
            return False
    for _ in range(2):
        if not select.select([program.stdout], [], [], 60)[0]:
            return False
        if set(os.read(program.stdout.fileno(), 65536).split()) != {b"right"}:
            return False
    return True


def kill_once(name, mode):
    """What it did to the program, or None. The program is a new one each time: what was put into one stays there
    when its profiler dies, and there is no room for a second code cache."""
    program = start(COMMANDS[name], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        check(goes_on(program, name), f"{name} does not begin")
        profiler = start(
            [SHADOWPROF, "attach", "-q", "-m", mode, "--overhead", "30%", "-o", "profile.json", str(program.pid)],
            stderr=subprocess.PIPE,
        )
        wait_until(lambda: " r-xs " in memory_map(program.pid) or profiler.poll() is not None, "there is no cache")
        if profiler.poll() is not None:
            sys.exit(f"{name}, mode {mode}: it cannot be attached to: {profiler.stderr.read()}")
        time.sleep(random.uniform(0, 0.6))
        stop(profiler)
        if not goes_on(program, name):
            stop(program)
            return f"status {program.returncode}: {program.stderr.read()[:200]}"
        check_left_alone(program.pid)
        return None
    finally:
        stop(program)


with scratch():
    build()
    for mode in MODES:
        for name in NAMES:
            harmed = [what for what in (kill_once(name, mode) for _ in range(ROUNDS)) if what]
            print(f"mode {mode}, {name}: {len(harmed)} of {ROUNDS} kills harmed it {harmed or ''}", flush=True)
