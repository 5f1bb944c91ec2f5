"""--replica-threads: eight threads hand items over by condition variable, mutex, barrier and spin lock. In replicas
with all threads, those that they start among them, each stage has its true share, and nothing of it reaches the world: not through a pipe, not through
shared memory, and no process is left, even if shadowprof is killed."""

import contextlib
import os
import subprocess
import sys
import time

from vocabulary import SHADOWPROF, check, check_equal, profiled, read_profile, scratch, start, stop, wait_until

from busy_machine import of_other_reasons

PROGRAM = os.path.abspath(sys.argv[1])
STAGES = 8
# One processor is left for replicas.
COMMAND = ["taskset", "-c", str(min(os.sched_getaffinity(0))), PROGRAM]
OPTIONS = ["-m", "shadow", "--load", "0.8", "--overhead", "30%", "--replica-threads", "-p", "method"]


def check_output(output):
    """Each item once, in order, whatever its replicas have done."""
    *items, verdict = output.decode().splitlines()
    check_equal("what the program says", verdict, "in order")
    check_equal("the items", items, [str(n) for n in range(1, len(items) + 1)])


def shares(profile):
    """Of each stage, among all stages, with the interval."""
    found = {}
    for entry in profile["methods"]["entries"]:
        name = profile["locations"][entry["function"]].get("function") or ""
        if name.startswith("stage_"):
            found[int(name.removeprefix("stage_"))] = entry["instructions"]
    whole = sum(entry["share"] for entry in found.values())
    return {n: [value / whole for value in (e["share"], *e["interval"])] for n, e in found.items()}


def processes():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.path.samefile(f"/proc/{pid}/exe", PROGRAM):
                found.append(int(pid))
    return found


def check_shares(*way):
    ran = profiled([*COMMAND, "4", *way], *OPTIONS)
    check_equal("the exit status", ran.status, 0)
    check_output(ran.stdout)
    check_equal("processes that are left", processes(), [])
    profile = read_profile()
    coverage = profile["coverage"]
    check(profile["cost"]["forks"] > 0, f"no replica: {profile['cost']}")
    complete = coverage["ended"].get("sample size", 0) + coverage["ended"].get("end of thread", 0)
    warnings = profile["run"].get("warnings", [])
    check(not of_other_reasons(warnings), f"{way}: {warnings}, {coverage}")
    if complete < 100 or warnings:
        print(f"{way}: the machine is busy: {coverage}")
        return
    of_stages = shares(profile)
    check_equal("the stages", sorted(of_stages), list(range(1, STAGES + 1)))
    for stage, (share, low, high) in of_stages.items():
        truth = stage / sum(range(1, STAGES + 1))
        print(f"stage {stage}: {share:.3f} [{low:.3f}, {high:.3f}], in truth {truth:.3f}")
        # With a few samples the interval itself is not well known.
        check(low - 0.02 <= truth <= high + 0.02 and abs(share - truth) < 0.05 + truth / 3, f"stage {stage}: {coverage}")


def check_killed():
    read_end, write_end = os.pipe()
    profiler = start([SHADOWPROF, "run", "-q", *OPTIONS, "--", *COMMAND, "3"], stdout=write_end, stderr=subprocess.DEVNULL)
    os.close(write_end)
    wait_until(lambda: len(processes()) > 1, "there is no replica")
    time.sleep(0.2)
    stop(profiler)
    with open(read_end, "rb") as output:
        check_output(output.read())
    wait_until(lambda: not processes(), "processes are left")


with scratch():
    check_shares()
    check_shares("anew")
    check_killed()
