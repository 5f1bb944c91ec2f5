"""A program that traces its child, which computes before, can do so; one that cannot have itself traced is told of."""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, run, scratch, skip

tracing = os.path.abspath(sys.argv[1])
WHY = "its parent, which calls ptrace(2), may want to trace it itself"

with scratch():
    if run([tracing, "child"]).stdout != b"traced\n":
        skip("nothing can be traced here")
    for mode in "auto", "shadow", "burst":
        outcome = profiled([tracing, "child"], "-q", "-m", mode, "--overhead", "20%")
        check_equal(f"how it ended in mode {mode}", (outcome.status, outcome.stdout), (0, b"traced\n"))
    processes = read_profile().get("processes", [])
    check(any(WHY in process.get("not_seen", "") for process in processes), f"{processes}")

    check_equal("the status of one that is traced", profiled([tracing, "itself"]).status, 7)
    warnings = read_profile()["run"]["warnings"]
    check(any("PTRACE_TRACEME" in warning for warning in warnings), f"{warnings}")
