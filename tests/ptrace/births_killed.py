"""kill -9 of a profiler at every one of its ptrace requests, before and after it, while it makes
programs give birth to replicas: the programs go on as if nothing had happened, nothing of what they
do is done twice or not at all, and no replica is left.

births_killed.py BIRTH_PROFILER KILL_AT_REQUEST BIRTH_TARGET BIRTH_SLEEPERS

Environment: PART, of the requests and programs that is tried (1/8 of them by default); 1 is all."""

import contextlib
import ctypes
import itertools
import os
import random
import signal
import subprocess
import sys
import time

PROFILER, KILLER, TARGET, SLEEPERS = (os.path.abspath(path) for path in sys.argv[1:])
PART = float(os.environ.get("PART", "0.125"))
SCENARIOS = ("nanosleep", "poll", "futex", "read", "epoll_wait", "semtimedop", "sigtimedwait", "alarm",
             "longjmp", "wait")  # fmt: skip
PR_SET_CHILD_SUBREAPER = 36


def check(condition, otherwise):
    if not condition:
        sys.exit(f"FAILED: {otherwise}")


def status_field(pid, key):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return line.split(None, 1)[1].strip()
    return ""


def copies_of(program, but):
    """Processes that run it, zombies that init has yet to reap excepted."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{name}/exe") == program and int(name) not in but:
                found.append(int(name))
    return found


def check_nothing_is_left(program, but, when):
    deadline = time.monotonic() + 2
    while left := copies_of(program, but):
        check(time.monotonic() < deadline, f"{when}: replicas are left: {left}")
        time.sleep(0.05)


def killed_at(number, how, command, **more):
    """Whether the profiler came that far."""
    killer = subprocess.run([KILLER, str(number), how, PROFILER, *command], timeout=60, check=False, **more)
    check(killer.returncode in (0, 3), f"{KILLER}: {killer.returncode}")
    return killer.returncode == 0


def is_chosen(_=None):
    return random.random() < PART


def check_it_goes_on(pid, when):
    """Untraced, and not stopped."""
    check(status_field(pid, "TracerPid") == "0", f"{when}: it is traced")
    for tid in os.listdir(f"/proc/{pid}/task"):
        state = status_field(f"{pid}/task/{tid}", "State")
        check(state and state[0] in "RSDI", f"{when}: thread {tid} is {state}")


def is_known_shortcoming(command, said, when):
    """The profiler died between interrupting a thread that had just gone to sleep in a call that is
    never restarted, and having it issued again."""
    known = "sigtimedwait" in command and said.endswith("errno 4\n")
    if known:
        print(f"{when}: EINTR, which may be (docs/architecture.md)", flush=True)
    return known


def check_attached(command, check_output):
    """Runs of the program, each bereft of its profiler a few times: what is killed while it injects
    its first calls leaves them where the next must not put its own."""
    program = os.path.realpath(command[0])
    kills = 0
    requests = iter(range(1, sys.maxsize))
    came_so_far = True
    while came_so_far:
        target = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            for number in itertools.islice(filter(is_chosen, requests), 6):
                how = random.choice(("before", "after"))
                when = f"{' '.join(command)}, attached, {how} request {number}"
                came_so_far = killed_at(number, how, ["2", str(target.pid)])
                kills += came_so_far
                if target.poll() is not None and is_known_shortcoming(command, target.stdout.read().decode(), when):
                    break
                check(target.poll() is None, f"{when}: it ended with {target.returncode}")
                check_it_goes_on(target.pid, when)
                if not came_so_far:
                    break
            check_nothing_is_left(program, {target.pid}, when)
            if target.poll() is not None:
                continue
            target.send_signal(signal.SIGTERM)
            output = target.communicate(timeout=60)[0].decode()
            check(check_output(output), f"{when}, or before: it says {output!r}")
            check(target.returncode == 0, f"{when}, or before: status {target.returncode}")
        finally:
            target.kill()
            target.wait()
    return kills


def check_launched(command, check_output):
    """A run for each kill; the program, whose new parent we are, ends by itself."""
    program = os.path.realpath(command[0])
    kills = 0
    for number in filter(is_chosen, range(1, sys.maxsize)):
        came_so_far = False
        for how in ("before", "after"):
            when = f"{' '.join(command)}, launched, {how} request {number}"
            read_end, write_end = os.pipe()
            came_so_far = killed_at(number, how, ["2", *command], stdout=write_end)
            os.close(write_end)
            with open(read_end, encoding="utf-8") as output:
                said = output.read()
            is_known = is_known_shortcoming(command, said, when)
            # Before the program is let go it ends with the profiler.
            check(is_known or check_output(said) or said == "", f"{when}: it says {said!r}")
            kills += came_so_far and said != ""
            check_nothing_is_left(program, set(), when)
            with contextlib.suppress(ChildProcessError):
                while True:
                    pid, status = os.wait()
                    if said:
                        # Replicas are killed, or end by themselves with 0.
                        check(is_known or status in (0, signal.SIGKILL), f"{when}: {pid} ended with {status:#x}")
        if not came_so_far:
            break
    return kills


def rounds_and_fine(output):
    lines = output.splitlines()
    return lines[-1:] == ["fine"] and lines[:-1] == [str(n) for n in range(1, len(lines))]


seed = random.randrange(1 << 32)
print(f"seed {seed}")
random.seed(seed)
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
print("registers and masks, attached:",
      check_attached([TARGET, "2"], lambda output: output == "ready\nfine\n"), flush=True)  # fmt: skip
for scenario in SCENARIOS:
    if is_chosen() or scenario == "longjmp":
        print(scenario, "attached:", check_attached([SLEEPERS, scenario, "0"], rounds_and_fine), flush=True)
for scenario in SCENARIOS:
    if is_chosen() or scenario == "alarm":
        print(scenario, "launched:", check_launched([SLEEPERS, scenario, "100"], rounds_and_fine), flush=True)
