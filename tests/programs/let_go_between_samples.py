"""Programs whose signals come so often that tracing them would be dear are let go of between samples: what they
do is what they do natively, whatever they do meanwhile: end, execute another program, start threads, be
stopped, be killed, be traced by somebody else. Samples are taken all the same.

ROUNDS: how often shadowprof is killed."""

import contextlib
import ctypes
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
    check_left_alone,
    check_saw_code_of,
    children_of,
    memory_map,
    read_profile,
    same_as_native,
    scratch,
    start,
    state_of,
    stop,
    tracer_of,
    wait_until,
)

trapping, known_shares = (os.path.abspath(argument) for argument in sys.argv[1:3])
ROUNDS = int(os.environ.get("ROUNDS", "3"))
MODES = ("shadow", "instant", "auto", "burst")
SAYS_SO = "the program's signals come too often to trace them all: between samples it was let go of"
FOREVER = "100000000"


def check_says_so(profile):
    check(SAYS_SO in profile["run"]["warnings"], f"the profile says only {profile['run']['warnings']}")


def program_of(profiler):
    """The one that it has started."""
    found = []

    def executes(pid):
        with contextlib.suppress(OSError):
            return os.path.samefile(f"/proc/{pid}/exe", trapping)
        return False

    def look():
        found.extend(pid for pid in children_of(profiler.pid) if executes(pid))
        return found

    wait_until(look, "it starts nothing")
    return found[0]


def await_letting_go(pid):
    wait_until(lambda: not tracer_of(pid), "it is not let go of")


def as_natively():
    for mode in MODES:
        for what in (["faults", "15000"], ["alarms", "20000"], ["threads", "1500"], ["exec", "3000", "4"]):
            profile = same_as_native([trapping, *what], "--mode", mode)
            check_says_so(profile)
    # The last program has no signals, and is known for another one.
    command = [trapping, "become", "8000", known_shares, "800000000"]
    profile = same_as_native(command, "--mode", "burst", "--overhead", "20%")
    check_says_so(profile)
    check_saw_code_of(profile, "known-shares")


def run_in_background(mode, *options):
    command = [SHADOWPROF, "run", "-m", mode, "--no-progress", "-o", "profile.json", *options]
    return start([*command, "--", trapping, "faults", FOREVER], stderr=subprocess.PIPE)


def stopped_and_killed(mode):
    profiler = run_in_background(mode)
    try:
        program = program_of(profiler)
        await_letting_go(program)
        os.kill(program, signal.SIGSTOP)
        wait_until(lambda: state_of(program) in "Tt", "it does not stop")
        time.sleep(0.3)
        check(state_of(program) in "Tt", "it goes on by itself")
        os.kill(program, signal.SIGCONT)
        wait_until(lambda: state_of(program) not in "Tt", "it does not go on")
        await_letting_go(program)
        os.kill(program, signal.SIGKILL)
        _, said = profiler.communicate(timeout=60)
        check_equal("the exit status", profiler.returncode, 128 + signal.SIGKILL)
        check_says_so(read_profile())
    finally:
        for child in children_of(profiler.pid) if profiler.poll() is None else ():
            os.kill(child, signal.SIGKILL)
        stop(profiler)


def attached(mode):
    program = start([trapping, "faults", FOREVER], stdout=subprocess.DEVNULL)
    try:
        command = [SHADOWPROF, "attach", "-q", "-m", mode, "-o", "profile.json"]
        done = subprocess.run([*command, "--duration", "1.5", str(program.pid)], timeout=60, check=False)
        check_equal("the exit status", done.returncode, 0)
        check_says_so(read_profile())
        check_left_alone(program.pid)
        check("shadowprof" not in memory_map(program.pid), "something is left in it")
        for _ in range(ROUNDS):
            profiler = start([*command, str(program.pid)])
            wait_until(lambda: tracer_of(program.pid), "nobody traces it")
            await_letting_go(program.pid)
            time.sleep(random.uniform(0, 0.5))
            stop(profiler)
            check_equal("its end", program.poll(), None)
            check_left_alone(program.pid)
        # Its end is noticed, whoever hears of it.
        profiler = start([*command, str(program.pid)])
        wait_until(lambda: tracer_of(program.pid), "nobody traces it")
        await_letting_go(program.pid)
        stop(program)
        check_equal("the exit status", profiler.wait(60), 0)
        check_says_so(read_profile())
    finally:
        stop(program)


def traced_by_another(mode):
    seize = 0x4206
    libc = ctypes.CDLL(None, use_errno=True)
    program = start([trapping, "faults", FOREVER])
    profiler = start(
        [SHADOWPROF, "attach", "--no-progress", "-m", mode, "-o", "profile.json", str(program.pid)],
        stderr=subprocess.PIPE,
    )
    try:
        wait_until(lambda: tracer_of(program.pid), "nobody traces it")
        await_letting_go(program.pid)
        # It may be held for a sample just now.
        wait_until(lambda: libc.ptrace(seize, program.pid, None, None) == 0, "it cannot be traced")
        time.sleep(2)
        check_equal("its tracers", tracer_of(program.pid), {os.getpid()})
        profiler.terminate()
        _, said = profiler.communicate(timeout=60)
        check_equal("the exit status", profiler.returncode, 0)
        check(b"no samples could be taken any more" in said and b"already traces it" in said, f"it says {said}")
    finally:
        stop(profiler)
        # As its tracer we are told of its stops, too, which are not its end.
        os.kill(program.pid, signal.SIGKILL)


with scratch():
    as_natively()
    for mode in ("shadow", "instant"):
        stopped_and_killed(mode)
        attached(mode)
    traced_by_another("burst")
