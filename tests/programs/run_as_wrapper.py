"""run stands between a program and the process that started it. It ends when the program does, with the
program's status, even if it stops profiling before. Signals to the program's group and parent do not end
it. Files that the program has closed are closed. It lives as long as the program, whose parent it is."""

import os
import subprocess
import sys
import time

from vocabulary import check, check_equal, profile_command, read_profile, run, scratch

# Asks to be told when its parent ends (PR_SET_PDEATHSIG), and computes for a second and a half.
WATCHES_PARENT = """
import ctypes, signal, sys, time
told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
ctypes.CDLL(None).prctl(1, signal.SIGUSR1)
end = time.time() + 1.5
while time.time() < end: pass
sys.exit(9 if told else 7)
"""
TELLS_GROUP = """
import os, signal, sys
told = []
for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGRTMIN + 3):
    signal.signal(number, lambda *_: told.append(1))
    os.kill(0, number)
    os.kill(os.getppid(), number)
sys.exit(10 + len(told))
"""

with scratch():
    for options in (("--duration", "300ms"), ("--mode", "burst", "--max-samples", "1")):
        began = time.monotonic()
        outcome = run(profile_command([sys.executable, "-c", WATCHES_PARENT], *options))
        check_equal(f"{options}: the status", outcome.status, 7)
        check(time.monotonic() - began > 1.4, f"{options}: it did not wait for the program")
        check_equal(f"{options}: why it stopped", read_profile()["run"]["interrupted"], options[-2].strip("-"))

    # In a group of its own, or the test gets the signals as well.
    outcome = subprocess.run(profile_command([sys.executable, "-c", TELLS_GROUP]), start_new_session=True, check=False)
    check_equal("the status of one that sends signals", outcome.returncode, 13)
    read_profile()

    ours, theirs = os.pipe()
    command = profile_command(["sh", "-c", f"exec {theirs}>&-; sleep 3"])
    with subprocess.Popen(command, pass_fds=[theirs]) as process:
        os.close(theirs)
        check_equal("what comes of a pipe that was closed", os.read(ours, 1), b"")
        check(process.poll() is None, "the pipe was closed no sooner than the program ended")
