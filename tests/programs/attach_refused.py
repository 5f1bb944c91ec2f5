"""Targets that cannot be attached to: shadowprof says why in one line and exits with status 1."""

import os
import subprocess
import time

from vocabulary import SHADOWPROF, check, check_equal, check_one_line, run, scratch, start, stop


def refused(pid, *words):
    outcome = run([SHADOWPROF, "attach", "-o", "profile.json", str(pid)])
    check_equal(f"the status for {pid}", outcome.status, 1)
    check_one_line(outcome)
    line = outcome.own_lines()[0]
    check(all(word in line for word in words), f"{line!r} does not say {words}")
    check(not os.path.exists("profile.json"), "a profile was written")


with scratch():
    refused(2**22 + 1, "process")

    zombie = subprocess.Popen(["true"])
    time.sleep(0.2)
    refused(zombie.pid, "zombie")
    zombie.wait()

    busy = start(["sh", "-c", "while :; do :; done"])
    first = start([SHADOWPROF, "attach", "--no-progress", "-o", "first.json", str(busy.pid)])
    try:
        time.sleep(1)
        refused(busy.pid, "already traces")
        check(busy.poll() is None, "the target has ended")
        first.terminate()
        check_equal("the status of the first", first.wait(60), 0)
        check(os.path.exists("first.json"), "the first has no profile")
    finally:
        stop(first)
        stop(busy)

    check_equal("bad usage", run([SHADOWPROF, "attach", "many"]).status, 2)
