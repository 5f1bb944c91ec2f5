"""Programs that are hard to fork notice nothing. If there can be no replicas, or no more of them, the profile
says why and has bursts."""

import contextlib
import os
import subprocess
import sys

from vocabulary import SHADOWPROF, check, check_equal, profiled, read_profile, run, scratch

from busy_machine import lacked_processors

hard_to_fork = os.path.abspath(sys.argv[1])
OPTIONS = ["-m", "shadow", "--overhead", "20%"]
# Nearly nothing is free.
MEMORY = "MemTotal: 100000 kB\nMemFree: 8 kB\nMemAvailable: 8 kB\n"


def check_profile(way, why, least_forks):
    profile = read_profile()
    warnings, cost, coverage = profile["run"]["warnings"], profile["cost"], profile["coverage"]
    busy = lacked_processors(profile)
    warned = any(why in warning for warning in warnings) if why else not warnings
    check(warned or busy, f"{way}: {warnings}, {cost}, {coverage}")
    check(cost["forks"] >= least_forks or busy, f"{way}: {warnings}, {cost}, {coverage}")
    check(coverage["instructions"] >= 1, f"{way}: {warnings}, {cost}, {coverage}")


@contextlib.contextmanager
def small_group():
    """A control group with room for few processes, or None if it cannot be made."""
    for root in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
        group = f"{root}/shadowprof-test-{os.getpid()}"
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            with open(f"{group}/pids.max", "w", encoding="ascii") as most:
                most.write("8")
        except OSError:
            os.rmdir(group)
            continue
        try:
            yield group
        finally:
            os.rmdir(group)
        return
    yield None


def check_attached(way, why, least_forks, group=None):
    with subprocess.Popen([hard_to_fork, way, "6"], stdout=subprocess.PIPE) as target:
        if group:
            with open(f"{group}/cgroup.procs", "w", encoding="ascii") as members:
                members.write(str(target.pid))
        outcome = run([SHADOWPROF, "attach", "-q", "-o", "profile.json", *OPTIONS, str(target.pid)])
        check_equal("shadowprof's status", outcome.status, 0)
        check_equal(f"what {way} says, attached to", target.communicate()[0], b"fine\n")
    check_profile(f"{way}, attached to", why, least_forks)


with scratch():
    for way, why, least_forks in (
        ("nothing", None, 1),
        ("notified", None, 2),
        ("filter", "seccomp filter that it had not", 1),
        ("first-thread", "first thread has ended", 1),
        ("userfaults", "userfaultfd", 0),
        ("watches", "fanotify", 0),
        ("counts", "perf_event_open", 0),
        ("few", "RLIMIT_NPROC", 0),
        ("namespace", "another pid namespace", 1),
    ):
        # A busy machine needs longer for a second fork.
        outcome = profiled([hard_to_fork, way, "5" if least_forks > 0 else "2"], *OPTIONS)
        if outcome.stdout.startswith(b"no ") and b" here" in outcome.stdout:
            continue
        check_equal(f"how {way} ended", (outcome.status, outcome.stdout), (0, b"fine\n"))
        check_profile(way, why, least_forks)

    # Our text replaces what the kernel says about the machine's memory, if we are allowed to do that.
    with open("meminfo", "w", encoding="ascii") as file:
        file.write(MEMORY)
    in_its_place = ["unshare", "--mount", "sh", "-c", 'mount --bind meminfo /proc/meminfo && exec "$@"', "sh"]
    if subprocess.run([*in_its_place, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        command = [*in_its_place, SHADOWPROF, "run", "-q", "-o", "profile.json", *OPTIONS, "--", hard_to_fork, "nothing", "2"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        check_equal("how it ended without memory", (done.returncode, done.stdout), (0, b"fine\n"))
        check_profile("no memory", "only 0 MB of memory are available", 0)

    check_attached("adopts", "adopts orphans", 1)
    with small_group() as group:
        if group:
            check_attached("nothing", "room for only 7 processes more (pids.max)", 0, group)
