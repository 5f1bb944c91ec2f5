"""How attach ends: by Ctrl-C, which detaches; by the end of the program."""

import signal
import subprocess
import time

from vocabulary import SHADOWPROF, check, check_equal, read_profile, scratch, stop, tracer_of, wait_until


def attach_for_a_second(pid):
    """Waits until the program is traced. On a busy machine that takes a while."""
    profiler = subprocess.Popen(
        [SHADOWPROF, "attach", "--no-progress", "-o", "profile.json", str(pid)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: tracer_of(pid) or profiler.poll() is not None, "nobody traces it")
    time.sleep(1)
    return profiler


def check_ends_well(profiler, when):
    _, said = profiler.communicate(timeout=60)
    check_equal(f"the status {when}, where it said {said!r}", profiler.returncode, 0)


SCRIPT = "while [ ! -e stop ]; do i=$((i + 1)); done; echo finished; exit 6"

with scratch():
    target = subprocess.Popen(["sh", "-c", SCRIPT], stdout=subprocess.PIPE)
    try:
        profiler = attach_for_a_second(target.pid)
        profiler.send_signal(signal.SIGINT)
        check_ends_well(profiler, "after Ctrl-C")
        check_equal("tracers", tracer_of(target.pid), set())
        check(target.poll() is None, "the target has ended")
        read_profile()

        profiler = attach_for_a_second(target.pid)
        with open("stop", "w", encoding="ascii"):
            pass
        check_ends_well(profiler, "at the program's end")
        check_equal("what the target wrote", target.stdout.read(), b"finished\n")
        check_equal("the target's status", target.wait(60), 6)
        read_profile()
    finally:
        stop(target)
