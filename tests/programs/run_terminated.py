"""SIGTERM to shadowprof: it detaches from the program, which keeps running, and writes the profile. SIGKILL:
it writes nothing, and the program keeps running as well, except while it is being single-stepped, because
the kernel then leaves the trap flag behind."""

import os
import signal
import subprocess

from vocabulary import (
    check,
    check_equal,
    profile_command,
    read_profile,
    scratch,
    state_of,
    tracer_of,
    wait_until,
)

SCRIPT = "echo $$; while [ ! -e stop ]; do i=$((i + 1)); done; echo $((6 * 7)) > finished"


def signal_profiler(number, *options):
    """Sends shadowprof a signal while the program runs; the program must finish. Gives shadowprof's
    status."""
    for leftover in ("stop", "finished", "profile.json"):
        if os.path.exists(leftover):
            os.remove(leftover)
    process = subprocess.Popen(
        profile_command(["sh", "-c", SCRIPT], *options),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    program = int(process.stdout.readline())
    check(tracer_of(program), "the program is not traced")
    process.send_signal(number)
    status = process.wait(60)
    check_equal("the tracers of the program", tracer_of(program), set())
    with open("stop", "w", encoding="ascii"):
        pass
    wait_until(lambda: os.path.exists("finished"), "for the program to finish")
    wait_until(lambda: state_of(program) in "ZX", "for the program to end")
    with open("finished", encoding="ascii") as file:
        check_equal("what the program computed", file.read(), "42\n")
    return status


with scratch():
    for options in ((), ("--mode", "step", "--sample-size", "0")):
        status = signal_profiler(signal.SIGTERM, *options)
        check_equal("the status of shadowprof", status, 128 + signal.SIGTERM)
        profile = read_profile()
        check(profile["run"]["interrupted"], "the profile does not say that it was cut short")
        check_equal("the recorded status", profile["targets"][0]["exit"], None)

    for _ in range(10):
        signal_profiler(signal.SIGKILL, "--period", "2ms")
        check(not os.path.exists("profile.json"), "half a profile was left")
