"""kill -9 of shadowprof at random moments of a session: the program goes on as if nothing had happened.
Its output and exit status are right, nobody traces it, none of its threads stands still, and two
seconds later no replica is left.

MODE: the mode of the session, by default burst.
ROUNDS: how often shadowprof is killed in each way with each program.
PROGRAMS: with which of them, separated by commas."""

import contextlib
import ctypes
import os
import random
import subprocess
import sys
import time

from vocabulary import (
    SHADOWPROF,
    check,
    check_equal,
    check_left_alone,
    children_of,
    scratch,
    start,
    stop,
    wait_until,
)

MANY_THREADS, SIGNALS_IN_ORDER, NEW_CODE = (os.path.abspath(path) for path in sys.argv[1:])
ROUNDS = int(os.environ.get("ROUNDS", "4"))
MODE = os.environ.get("MODE", "burst")
OPTIONS = ["-m", MODE, "--overhead", "30%", "--no-progress", "-q", "-o", "profile.json"]
# In modes full and instant, what was put into a program stays there when its profiler dies, and there is little room.
MOST_IN_ONE_RUN = 2 if MODE in ("full", "instant") else ROUNDS
PR_SET_CHILD_SUBREAPER = 36
# It computes for half a second.
PYTHON = """
words = {}
for n in range(700000):
    words.setdefault(f"{n * 7919 % 1009:x}", []).append(n)
print(sum(len(word) * sum(numbers) for word, numbers in words.items()), sorted(words)[::97])
"""


def kill_after_a_while(profiler):
    time.sleep(random.uniform(0, 0.3))
    stop(profiler)


def check_nothing_is_left_but(program):
    """Makes us the parent of the processes that a killed profiler leaves behind."""

    def all_are_gone():
        for child in children_of(os.getpid()):
            if child != program:
                os.waitpid(child, os.WNOHANG)
        return set(children_of(os.getpid())) <= {program}

    wait_until(all_are_gone, "replicas are left", seconds=2)


def kill_while_attached(command, expected, most):
    """Attaches to one run of the program again and again. Returns how often."""
    target = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    rounds = 0
    try:
        while target.poll() is None and rounds < most:
            rounds += 1
            profiler = start([SHADOWPROF, "attach", *OPTIONS, str(target.pid)], stderr=subprocess.DEVNULL)
            kill_after_a_while(profiler)
            if target.poll() is None:
                check_left_alone(target.pid)
            check_nothing_is_left_but(target.pid)
        check_equal("what it wrote", target.communicate(timeout=120)[0], expected)
        check_equal("its status", target.returncode, 0)
    finally:
        stop(target)
    return rounds


def has_become(pid, program):
    try:
        return os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(program)
    except FileNotFoundError:
        return False


def kill_while_running(command, expected):
    """Kills shadowprof run. We become the parent of the program, which ends by itself."""
    read_end, write_end = os.pipe()
    profiler = start([SHADOWPROF, "run", *OPTIONS, "--", *command], stdout=write_end)
    os.close(write_end)
    programs = []

    def program_runs():
        check_equal("shadowprof's end", profiler.poll(), None)
        programs[:] = [child for child in children_of(profiler.pid) if has_become(child, command[0])]
        return programs

    wait_until(program_runs, "the program has not been started")
    kill_after_a_while(profiler)
    check_nothing_is_left_but(programs[0])
    with open(read_end, "rb") as output:
        check_equal("what it wrote", output.read(), expected)
    with contextlib.suppress(ChildProcessError):  # it ended while shadowprof was still its parent
        _, status = os.waitpid(programs[0], 0)
        check_equal("its status", status, 0)


def output_of(command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout


def kill_while_attached_to_threads():
    target = subprocess.Popen([MANY_THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        check_equal("the first line", target.stdout.readline(), b"ready\n")
        for _ in range(min(ROUNDS, MOST_IN_ONE_RUN)):
            profiler = start([SHADOWPROF, "attach", *OPTIONS, str(target.pid)], stderr=subprocess.DEVNULL)
            kill_after_a_while(profiler)
            check_left_alone(target.pid)
        said, _ = target.communicate(timeout=60)
        check(b"\n0 wrong results" in said, f"the target says {said!r}")
        check(b" unexpected" in said and said.count(b": 0 EINTR, 0 unexpected") == 4, f"{said!r}")
        check_equal("its status", target.returncode, 0)
    finally:
        stop(target)


with scratch():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}, {ROUNDS} rounds")
    random.seed(seed)
    with open("input", "wb") as file:
        file.write(random.randbytes(1 << 20) * 3)

    programs = {
        "bzip2": ["/bin/bzip2", "-c", "input"],
        "gzip": ["/bin/gzip", "-9nc", "input"],
        "python3": ["/usr/bin/python3", "-c", PYTHON],
        "signals": [SIGNALS_IN_ORDER, "100000"],
        # It mostly waits for code.
        "new code": [NEW_CODE, "400"],
    }
    # Modes full and instant hold back a signal that finds a thread in the cache, and send it again later. If the
    # profiler dies
    # in between, the signal's siginfo is lost.
    if MODE in ("full", "instant"):
        del programs["signals"]
    for name in os.environ.get("PROGRAMS", ",".join(programs)).split(","):
        command = programs[name]
        expected = output_of(command)
        attached = 0
        while attached < ROUNDS:
            attached += kill_while_attached(
                command, expected, min(MOST_IN_ONE_RUN, ROUNDS - attached)
            )
        for _ in range(ROUNDS):
            kill_while_running(command, expected)
        print(f"{name}: as without shadowprof", flush=True)
    # Mode full interrupts threads that sleep. If the profiler dies at that moment, some calls return EINTR.
    if MODE != "full":
        kill_while_attached_to_threads()
