"""Programs with ThreadSanitizer do under shadowprof what they do without it, and mode full says why it takes long."""

import os
import sys

from vocabulary import check_equal, profiled, run, scratch, skip

if len(sys.argv) < 2:
    skip("the compiler has no ThreadSanitizer")
sanitized = os.path.abspath(sys.argv[1])
WHY = "calls a function at each access: mode full"

with scratch():
    native = run([sanitized, "0"])
    if native.status != 0:
        skip("ThreadSanitizer does not work here")
    for mode, is_told in ("auto", False), ("full", True):
        outcome = profiled([sanitized, "0"], "-m", mode)
        check_equal(f"how it ends in mode {mode}", (outcome.status, outcome.stdout), (0, native.stdout))
        lines = outcome.own_lines()
        check_equal(f"whether mode {mode} says why it takes long: {lines}", any(WHY in line for line in lines), is_told)
