"""How attach ends: by Ctrl-C, which detaches; by the end of the program."""

import signal
import subprocess
import time

from vocabulary import SHADOWPROF, check, check_equal, read_profile, scratch, stop, tracer_of


def attach(pid):
    return subprocess.Popen(
        [SHADOWPROF, "attach", "--no-progress", "-o", "profile.json", str(pid)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


SCRIPT = "while [ ! -e stop ]; do i=$((i + 1)); done; echo finished; exit 6"

with scratch():
    target = subprocess.Popen(["sh", "-c", SCRIPT], stdout=subprocess.PIPE)
    try:
        profiler = attach(target.pid)
        time.sleep(1)
        profiler.send_signal(signal.SIGINT)
        check_equal("the status after Ctrl-C", profiler.wait(60), 0)
        check_equal("tracers", tracer_of(target.pid), set())
        check(target.poll() is None, "the target has ended")
        read_profile()

        profiler = attach(target.pid)
        time.sleep(1)
        with open("stop", "w", encoding="ascii"):
            pass
        check_equal("the status at the program's end", profiler.wait(60), 0)
        check_equal("what the target wrote", target.stdout.read(), b"finished\n")
        check_equal("the target's status", target.wait(60), 6)
        read_profile()
    finally:
        stop(target)
