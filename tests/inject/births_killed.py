"""kill -9 of a profiler at every one of its ptrace requests, before and after it, while it makes
programs give birth to replicas: the programs go on as if nothing had happened, nothing of what they
do is done twice or not at all, and no replica is left.

births_killed.py BIRTH_PROFILER KILLER BIRTH_TARGET BIRTH_SLEEPERS [SHADOWPROF]

KILLER is dies-at-request.so, which kills at the moment itself, or kill-at-request, which holds the
profiler at each of its requests: what it has seen of the program may be true no longer then.
With SHADOWPROF, that is attached and killed as well, at requests drawn at random.

Environment: PART, of the requests and programs that is tried (1/8 of them by default); 1 is all."""

import contextlib
import ctypes
import itertools
import os
import random
import select
import signal
import subprocess
import sys
import time

PROFILER, KILLER, TARGET, SLEEPERS = (os.path.abspath(path) for path in sys.argv[1:5])
SHADOWPROF = [os.path.abspath(path) for path in sys.argv[5:]]
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


def killed_at(number, how, profiler, **more):
    """Whether the profiler came that far; None if it ended before, with fewer births than asked for."""
    if KILLER.endswith(".so"):
        more["env"] = os.environ | {"LD_PRELOAD": KILLER, "DIES_AT_REQUEST": str(number), "DIES": how}
        outcomes = {-signal.SIGKILL: True, 0: False, 3: None}
    else:
        profiler = [KILLER, str(number), how, *profiler]
        outcomes = {0: True, 3: False}
    status = subprocess.run(profiler, timeout=60, check=False, **more).returncode
    check(status in outcomes, f"{profiler}, unharmed: {status}")
    return outcomes[status]


def is_chosen(_=None):
    return random.random() < PART


def check_it_goes_on(pid, when):
    """Untraced, and not stopped."""
    check(status_field(pid, "TracerPid") == "0", f"{when}: it is traced")
    for tid in os.listdir(f"/proc/{pid}/task"):
        state = status_field(f"{pid}/task/{tid}", "State")
        check(state and state[0] in "RSDI", f"{when}: thread {tid} is {state}")


def every_request():
    return filter(is_chosen, range(1, sys.maxsize))


def check_attached(command, check_output, profiler=(PROFILER, "2"), requests=None):
    """Runs of the program, each bereft of its profiler a few times: what is killed while it injects
    its first calls leaves them where the next must not put its own."""
    program = os.path.realpath(command[0])
    kills = 0
    requests = iter(requests or every_request())
    came_so_far = True
    while came_so_far:
        target = subprocess.Popen(command, stdout=subprocess.PIPE)
        when = f"{' '.join(command)}, attached"
        try:
            # It has counted its descriptors then.
            select.select([target.stdout], [], [], 60)
            came_so_far = False
            for number in itertools.islice(requests, 6):
                how = random.choice(("before", "after"))
                when = f"{' '.join(command)}, attached, {how} request {number} of {profiler[0]}"
                came_so_far = killed_at(number, how, [*profiler, str(target.pid)])
                check(came_so_far is not None, f"{when}: too few births")
                kills += came_so_far
                check(target.poll() is None, f"{when}: it ended with {target.returncode}")
                check_it_goes_on(target.pid, when)
                if not came_so_far:
                    break
            check_nothing_is_left(program, {target.pid}, when)
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
    kills = barren = 0
    for number in every_request():
        came_so_far = False
        for how in ("before", "after"):
            when = f"{' '.join(command)}, launched, {how} request {number}"
            read_end, write_end = os.pipe()
            came_so_far = killed_at(number, how, [PROFILER, "2", *command], stdout=write_end)
            os.close(write_end)
            with open(read_end, encoding="utf-8") as output:
                said = output.read()
            # Before the program is let go it ends with the profiler.
            check(check_output(said) or said == "", f"{when}: it says {said!r}")
            # On a busy machine a brief program may never be seen to run.
            barren += came_so_far is None
            check(barren <= 20, f"{when}: too few births once more")
            kills += came_so_far is True and said != ""
            check_nothing_is_left(program, set(), when)
            with contextlib.suppress(ChildProcessError):
                while True:
                    pid, status = os.wait()
                    if said:
                        # Replicas are killed, or end by themselves with 0.
                        check(status in (0, signal.SIGKILL), f"{when}: {pid} ended with {status:#x}")
        if came_so_far is False:
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
if SHADOWPROF:
    # So far, each has begun and sampled for about half a second.
    last_requests, kills_of_each = {"shadow": 1500, "burst": 300}, int(300 * PART)
    for scenario in SCENARIOS:
        for mode, last_request in last_requests.items():
            numbers = [random.randint(1, last_request) for _ in range(kills_of_each)]
            options = ("attach", "-q", "--overhead", "50%", "-m", mode, "-o", os.devnull)
            print(scenario, "attached, shadowprof in mode", mode + ":",
                  check_attached([SLEEPERS, scenario, "0"], rounds_and_fine, (*SHADOWPROF, *options), numbers),
                  flush=True)  # fmt: skip
