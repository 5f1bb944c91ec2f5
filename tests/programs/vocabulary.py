"""The vocabulary of the program tests: they run a program with and without shadowprof, and say what must
hold. Each test is a script in this folder, whose name says what it is about. It needs the environment that
meson.build gives it: SHADOWPROF and SCHEMA."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))

from busy_machine import wait_until  # noqa: E402, F401
from processes import children_of, memory_map, processes_in, state_of, thread_states, tracer_of  # noqa: E402, F401

SHADOWPROF = os.environ["SHADOWPROF"]
SCHEMA = os.environ["SCHEMA"]
SKIPPED = 77
UNDISTURBED = b"""epoll_wait: 0 EINTR, 0 unexpected
sigtimedwait: 0 EINTR, 0 unexpected
semtimedop: 0 EINTR, 0 unexpected
recv: 0 EINTR, 0 unexpected
0 wrong results
"""
HOTLISTS = ("time", "timeline", "contexts", "paths", "edges", "calls", "methods", "values", "latencies")


def check(condition, otherwise):
    """Stops the test unless the condition holds."""
    if not condition:
        sys.exit(f"FAILED: {otherwise}")


def check_equal(what, seen, expected):
    check(seen == expected, f"{what} is {seen!r}, expected {expected!r}")


def check_same_lines(what, seen, expected):
    """Compares long texts, and prints only lines that differ."""
    there, wanted = seen.splitlines(), expected.splitlines()
    added = [line for line in there if line not in wanted]
    lost = [line for line in wanted if line not in there]
    check(seen == expected, f"{what}: there is also {added[:5]}, and no longer {lost[:5]}")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


@contextlib.contextmanager
def scratch():
    """A temporary folder, which is the current one meanwhile."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="shadowprof-test-") as folder:
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


class Outcome:
    def __init__(self, status, stdout, stderr):
        self.status = status
        self.stdout = stdout
        self.stderr = stderr

    def own_lines(self):
        """What shadowprof itself printed."""
        return [line for line in self.stderr.decode(errors="replace").splitlines() if line]


def shell_status(status):
    return 128 - status if status < 0 else status


def run(command, stdin=subprocess.DEVNULL, timeout=300, **more):
    done = subprocess.run(command, stdin=stdin, capture_output=True, timeout=timeout, check=False, **more)
    return Outcome(shell_status(done.returncode), done.stdout, done.stderr)


def profile_command(command, *options):
    return [SHADOWPROF, "run", "-o", "profile.json", *options, "--", *command]


def profiled(command, *options, **more):
    """Runs the program under shadowprof; the profile is then in profile.json."""
    return run(profile_command(command, *options), **more)


def read_profile(path="profile.json"):
    """Reads a profile and checks what must hold for every profile."""
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    check_equal("the schema", profile["schema"], "shadowprof-profile")
    check_schema(profile)
    check_equal("what failed", profile["run"].get("failures", []), [])
    for name in HOTLISTS:
        if name not in profile:
            continue
        entries = profile[name]["entries"]
        total = sum(e["executions"] if "executions" in e else e["count"] for e in entries)
        check_equal(f"the sum of {name}", total + profile[name]["unknown"], profile[name]["total"])
    return profile


def check_schema(profile):
    try:
        import jsonschema
    except ImportError:
        print("python3-jsonschema is not installed: the schema is not checked")
        return
    with open(SCHEMA, encoding="utf-8") as file:
        errors = list(jsonschema.Draft7Validator(json.load(file)).iter_errors(profile))
    check(not errors, "the schema: " + "; ".join(e.message[:200] for e in errors[:5]))


def same_as_native(command, *options, **more):
    """Runs the program without and with shadowprof: nothing that the program does may differ. Gives
    the profile."""
    without = run(command, **more)
    with_it = profiled(command, *options, **more)
    check_equal("stdout", with_it.stdout, without.stdout)
    check_equal("the exit status", with_it.status, without.status)
    profile = read_profile()
    check_equal("the recorded exit status", profile["targets"][0]["exit"], without.status)
    return profile


def refused(command, *statuses):
    """shadowprof cannot run the command: it says so in one line and leaves no profile."""
    outcome = profiled(command)
    check(outcome.status in statuses, f"the exit status is {outcome.status}, expected {statuses}")
    check_equal("stdout", outcome.stdout, b"")
    check_one_line(outcome)
    check(not os.path.exists("profile.json"), "a profile was written")


def check_one_line(outcome):
    lines = outcome.own_lines()
    check_equal("the number of lines on stderr", len(lines), 1)
    check(lines[0].startswith("shadowprof: "), f"stderr says {lines[0]!r}")


def modules_seen(profile):
    """The base names of the modules that have code in the profile."""
    used = {location["module"] for location in profile["locations"]}
    return {os.path.basename(profile["modules"][i]["path"]) for i in used}


def check_saw_code_of(profile, *names):
    """The profile has code of one of these files."""
    check(profile["coverage"]["samples"] > 0, "there are no samples")
    check(profile["coverage"]["instructions"] > 0, "there are no instructions")
    seen = modules_seen(profile)
    check(any(re.fullmatch(name, s) for name in names for s in seen), f"only code of {seen} was seen")


def start(command, **more):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, **more)


def stop(process):
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def undisturbed_threads(program):
    """The program of 50 threads, half of which sleep, after they have begun. When it is told to end
    it tells what disturbed it: nothing has."""
    target = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        check_equal("the first line", target.stdout.readline(), b"ready\n")
        time.sleep(1)
        yield target
        said, _ = target.communicate(timeout=60)
        check_equal("what the target tells", said, UNDISTURBED)
        check_equal("its exit status", target.returncode, 0)
    finally:
        stop(target)


def check_left_alone(target):
    """Nobody traces the process, and none of its threads is stopped."""
    check_equal("tracers", tracer_of(target), set())
    states = thread_states(target)
    check(not states & set("tT"), f"threads are stopped: {states}")


def threaded_python(rounds):
    """A program with threads, exceptions and a regular expression, as python3 -c takes it."""
    return """
import re, threading
def count(n):
    total = 0
    for i in range(ROUNDS):
        try:
            if i % 5 == 0:
                raise ValueError(i)
            total += i % n
        except ValueError as e:
            total += int(str(e))
    sums.append(total)
sums = []
threads = [threading.Thread(target=count, args=(n + 1,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sorted(sums), len(re.findall(r"a+b", "aab" * 500)))
""".replace("ROUNDS", str(rounds))
