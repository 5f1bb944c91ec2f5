"""A program whose control group has little memory left keeps it: nobody in the group is killed because of what shadowprof
would need, and the profile says what was done instead."""

import os
import sys

from vocabulary import SHADOWPROF, check, check_equal, read_profile, run, scratch, skip

program = os.path.abspath(sys.argv[1])
LIMIT = 128 << 20
GROUPS = {"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"}


def make_group():
    for root, limit in GROUPS.items():
        group = f"{root}/shadowprof-test-{os.getpid()}"
        try:
            os.mkdir(group)
            with open(f"{group}/{limit}", "w", encoding="ascii") as file:
                file.write(str(LIMIT))
            return group
        except OSError:
            if os.path.isdir(group):
                os.rmdir(group)
    return skip("no control group with a limit on memory can be made")


def enter(group):
    with open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))


with scratch():
    group = make_group()
    try:
        for mode in "auto", "instant", "shadow", "full":
            command = [SHADOWPROF, "run", "-m", mode, "-o", "profile.json", "--", program, "45", "150"]
            outcome = run(command, preexec_fn=lambda: enter(group))
            check_equal(f"the exit status in mode {mode}", outcome.status, 6)
            check_equal(f"the output in mode {mode}", outcome.stdout, b"1\n")
            warnings = read_profile()["run"]["warnings"]
            # The other modes may have seen too little to say anything.
            told = any("memory" in warning for warning in warnings)
            check(told or mode != "full", f"mode {mode}: the profile says only {warnings}")
    finally:
        os.rmdir(group)
