"""--mode full: programs that run from the code cache do what they do without shadowprof, and the profile
has everything that they did."""

import os
import sys

from vocabulary import check, check_equal, same_as_native, scratch, threaded_python

hostile, confined, heap = map(os.path.abspath, sys.argv[1:])

with scratch():
    with open("text", "w", encoding="ascii") as text:
        for number in range(60_000):
            text.write(f"{number * number % 9973} ")
    for command in (
        ["gzip", "-9", "-n", "-c", "text"],
        ["sort", "-n", "text"],
        ["/usr/bin/python3", "-c", threaded_python(2000)],
        ["sh", "-c", "echo one; (exit 4); kill -TERM $$"],
        [hostile],
        [confined],
        [heap],
    ):
        for options in (["-p", "path,edge"], ["-p", "all"]):
            profile = same_as_native(command, "--mode", "full", *options)
            check_equal("the mode", profile["run"]["mode"], "full")
            check(profile["coverage"]["instructions"] > 50_000, f"{command[0]}: too little was seen")
            check(not profile["run"].get("interrupted"), f"{command[0]}: profiling was cut short")
            warnings = profile["run"].get("warnings", [])
            of_confinement = [w for w in warnings if "seccomp" in w]
            check_equal("warnings", warnings, of_confinement if command == [confined] else [])
            check(command != [confined] or of_confinement, "it has not confined itself")
