"""A program's processes: which are looked at, what is told of them, and that they notice nothing.

    family.py FAMILY"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from vocabulary import SHADOWPROF, check

FAMILY = os.path.abspath(sys.argv[1])


def run(*command, options=(), status=0, output="", **how):
    outcome = subprocess.run([SHADOWPROF, "run", "--seed", "3", "-q", *options, "--", *command],
                             capture_output=True, text=True, check=False, timeout=120, **how)
    check((outcome.returncode, outcome.stdout) == (status, output),
          f"{command}: {outcome.returncode}, {outcome.stdout!r}, {outcome.stderr!r}")
    with open("shadowprof.json", encoding="utf-8") as file:
        return json.load(file)


def report(*arguments, status=0):
    outcome = subprocess.run([SHADOWPROF, "report", "--no-color", *arguments], capture_output=True, text=True, check=False)
    check(outcome.returncode == status, f"report {arguments}: {outcome.returncode}, {outcome.stderr}")
    return outcome.stdout + outcome.stderr


def named(profile, name):
    return [process for process in profile["processes"] if os.path.basename(process["program"]) == name]


def entries(sections):
    return {key: value["total"] for key, value in sections.items() if isinstance(value, dict) and "total" in value}


folder = tempfile.mkdtemp(prefix="shadowprof-test-")
os.chdir(folder)
os.environ["XDG_CACHE_HOME"] = folder
try:
    # Children are looked at, each has a part of its own, and the parts are the whole.
    profile = run(FAMILY, "children", "2", "1.5", options=["--overhead", "10%"], status=3, output="reaped\n")
    children = named(profile, "family")
    check(len(children) == 3, f"{children}")
    check(sum(child["samples"] > 0 for child in children) == 2, f"samples of both children: {children}")
    check(all(child["cpu"] > 1 for child in children if child["samples"]), f"{children}")
    check(profile["coverage"]["samples"] == sum(child["samples"] for child in children), "all samples are somebody's")
    parts = [entries(part) for part in profile["parts"]]
    for key, total in entries(profile).items():
        check(total == sum(part[key] for part in parts), f"the parts of {key} are {total}")
    check(profile["cost"]["slowdown"] < 0.4, f"{profile['cost']}")
    text = report()
    check("Processes" in text and "3 processes" in text and "spin_hot" in text, text)
    one = max(children, key=lambda child: child["samples"])
    check("spin_hot" in report("--process", str(one["pid"])), "one process")
    check("spin_hot" in report("--process", "family"), "one program")
    check("it has family" in report("--process", "other", status=1), "no such process")

    # One that is not followed: a profile of one process, as ever.
    profile = run(FAMILY, "children", "1", "0.3", options=["--no-follow"], status=3, output="reaped\n")
    check("processes" not in profile and "parts" not in profile, "not followed")
    profile = run(FAMILY, "spin", "0.3")
    check("processes" not in profile, f"alone: {profile.get('processes')}")
    check("one process" in report("--process", "family", status=1), "nothing to cut")

    # Where the whole program is followed it is the first process, and that is said.
    profile = run(FAMILY, "children", "1", "0.1", options=["-m", "full"], status=3, output="reaped\n")
    check(any("follows the first process only: 1 more" in warning for warning in profile["run"]["warnings"]), f"{profile['run']}")

    # Processes that are short cost nothing and are counted.
    profile = run(FAMILY, "short", "300", output="reaped\n")
    run(FAMILY, "vfork", "50", output="reaped\n")
    profile = run(FAMILY, "deep", "12", options=["--overhead", "10%"], output="reaped\n")
    check(sum(child["samples"] > 0 for child in named(profile, "family")) == 1, f"{profile['processes']}")

    # Those that end before a sample of them could be paid for are looked at by the clock.
    profile = run("sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do {FAMILY} spin 0.2; done")
    looked_at = profile["time"]["total"] / 1e9
    clock_is_refused = any("perf_event_open" in warning for warning in profile["run"]["warnings"])
    check(looked_at > 0.7 or clock_is_refused, f"{looked_at} s of 1.6 were looked at")

    # Programs that are executed one after the other, in a pipeline and in one process.
    profile = run("sh", "-c", f"{FAMILY} spin 0.6 | cat; exec {FAMILY} spin 0.6", options=["--overhead", "10%"])
    check(sum(child["samples"] > 0 for child in named(profile, "family")) == 2, f"{profile['processes']}")

    # A child outlives the program, and is let go of.
    began = time.monotonic()
    run(FAMILY, "orphan", "3", "written", status=5, stdin=subprocess.DEVNULL)
    check(not os.path.exists("written"), "nobody waits for it")
    while not os.path.exists("written") and time.monotonic() < began + 30:
        time.sleep(0.05)
    check(os.path.exists("written"), "it runs on")

    # Processes that one starts which was attached to; and nothing is left behind in any when the profiler is killed.
    for is_killed in (False, True):
        server = subprocess.Popen([FAMILY, "serve", "2", "1.5"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check(server.stdout.readline() == "ready\n", "it is ready")
        profiler = subprocess.Popen([SHADOWPROF, "attach", "-q", "--overhead", "10%", "--duration", "20s", str(server.pid)])
        time.sleep(0.5)
        server.stdin.write("\n")
        server.stdin.flush()
        if is_killed:
            time.sleep(0.7)
            profiler.kill()
        check(server.stdout.readline() == "reaped\n", "it has reaped its children")
        server.stdin.close()
        check(server.wait(20) == 0, "it ended well")
        profiler.wait(30)
        if not is_killed:
            with open("shadowprof.json", encoding="utf-8") as file:
                profile = json.load(file)
            check(sum(child["samples"] > 0 for child in profile["processes"]) == 2, f"{profile['processes']}")

    # Ctrl-C reaches all, as it does without us.
    profiler = subprocess.Popen([SHADOWPROF, "run", "-q", "--", FAMILY, "children", "2", "20"], start_new_session=True)
    time.sleep(1.0)
    os.killpg(profiler.pid, signal.SIGINT)
    check(profiler.wait(20) == 128 + signal.SIGINT, f"{profiler.returncode}")
finally:
    shutil.rmtree(folder)
