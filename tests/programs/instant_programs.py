"""--mode instant and auto: programs do what they do without shadowprof, although their threads enter and leave
a code cache all the time; the profile is of their own code; and nothing is left behind in a program that was
attached to. Signals, faults that handlers see and threads that come and go included."""

import os
import sys

from vocabulary import (
    SHADOWPROF,
    check,
    check_equal,
    check_same_lines,
    check_saw_code_of,
    memory_map,
    read_profile,
    run,
    same_as_native,
    scratch,
    threaded_python,
    tracer_of,
    undisturbed_threads,
)

MANY_THREADS, SIGNALS_IN_ORDER, SELF_CHECKING, FAULT_HANDLERS = (os.path.abspath(path) for path in sys.argv[1:])
ROUNDS = int(os.environ.get("ROUNDS", "3"))

with scratch():
    with open("text", "w", encoding="ascii") as text:
        for number in range(1_000_000):
            text.write(f"{number * number % 9973} ")
    for mode in ("instant", "auto"):
        for code, command in (
            ("gzip", ["gzip", "-9", "-n", "-c", "text"]),
            ("bzip2", ["bzip2", "-c", "text"]),
            ("python", ["/usr/bin/python3", "-c", threaded_python(300_000)]),
            ("signals", [SIGNALS_IN_ORDER, "50000"]),
            ("self", [SELF_CHECKING, "2"]),
            ("fault", [FAULT_HANDLERS, "2", "2000"]),
            ("sh", ["sh", "-c", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); /bin/true; done; echo $i"]),
        ):
            profile = same_as_native(command, "--mode", mode, "--overhead", "60%")
            check_equal("the mode", profile["run"]["mode"], mode)
            if code in ("gzip", "bzip2", "python"):
                # The number depends on how idle the machine is.
                check(profile["coverage"]["samples"] >= 1, f"{code}: {profile['coverage']}")
                check_saw_code_of(profile, code, rf"{code}.*", r"libbz2.*")
            print(f"{mode}, {code}: {profile['coverage']}", flush=True)

    with undisturbed_threads(MANY_THREADS) as target:
        before = memory_map(target.pid)
        seen = 0
        for _ in range(ROUNDS):
            command = [SHADOWPROF, "attach", "-q", "-m", "instant", "--overhead", "30%", "-o", "profile.json"]
            outcome = run([*command, "--duration", "1s", str(target.pid)], timeout=60)
            check_equal("status, and what it says", (outcome.status, outcome.own_lines()), (0, []))
            seen += read_profile()["coverage"]["instructions"]
            check_same_lines("the memory map afterwards", memory_map(target.pid), before)
            check_equal("the tracers afterwards", tracer_of(target.pid), set())
        check(seen > 10_000, f"only {seen} instructions were seen")
