"""The arguments of the calls that --keep-samples keeps: what a program with known ones shows, in every mode, whether it is
optimised or not; and that without debug information there are none.

call_arguments.py KNOWN_ARGUMENTS KNOWN_ARGUMENTS_OPTIMISED"""

import json
import os
import sys

from vocabulary import SHADOWPROF, check, check_equal, read_profile, run, scratch

plain, optimised = map(os.path.abspath, sys.argv[1:])


def address_of(program, variable):
    lines = run(["nm", program]).stdout.decode().splitlines()
    return next(hex(int(line.split()[0], 16)) for line in lines if line.split()[-1] == variable)


def known(program):
    counter = address_of(program, "counter")
    return {
        "integers": {"n": 42, "negative": -7, "large": str(1 << 60), "small": -3, "tiny": -128},
        "others": {"letter": "'x'", "yes": True, "no": False, "place": counter, "colour": "green", "sign": "minus"},
        "mixed": {"after_real": 5, "last": 6},
        "by_reference": {"n": 12, "after_wide": 13},
        "large": {"n": 11},
        "seven": dict(zip("abcdef", range(1, 7))),
        "Counter::add": {"this": counter, "by": -1},
        "in_two_parts": {"n": 21, "of": counter},
        "Counter::reset": {"counter": counter},
    }


def calls(program, *arguments, options):
    """By sample and in order: functions and arguments of calls that were seen to begin."""
    check_equal("the exit status", run([SHADOWPROF, "run", "-q", *options, "-o", "a.json", "--", program,
                                        *arguments]).status, 0)
    check_equal("export", run([SHADOWPROF, "export", "--format", "trace", "-o", "a.trace", "a.json"]).status, 0)
    threads = {}
    with open("a.trace") as file:
        for e in json.load(file)["traceEvents"]:
            if e.get("cat") == "call" and e["ts"] > 0:
                passed = {key: value for key, value in e["args"].items() if key != "instructions"}
                threads.setdefault(e["pid"], []).append((e["name"].split("(")[0], passed))
    return threads


def check_calls(what, program, threads, fewest):
    expected = known(program)
    number = 0
    for thread in threads.values():
        counted = [passed["n"] for name, passed in thread if name == "counted"]
        check_equal(f"{what}: numbers", counted, list(range(counted[0], counted[0] + len(counted))) if counted else [])
        depths = [passed["depth"] for name, passed in thread if name == "recursive"]
        check_equal(f"{what}: depths", depths, [(depths[0] - n) % 3 for n in range(len(depths))])
        for name, passed in thread:
            if name in expected:
                number += 1
                check_equal(f"{what}: {name}", passed, expected[name])
            if name.startswith("pointed_to") and "pair" in passed:
                check(int(passed["pair"], 16) > 0x1000, f"{what}: {passed} is no pointer")
    check(number >= fewest, f"{what}: only {number} calls")


def in_every_mode():
    for program in plain, optimised:
        check_calls(f"{program} in mode full", program, calls(program, options=("-m", "full", "--keep-samples", "1")), 8)
        for mode, fewest in (("step", 1), ("burst", 1), ("instant", 30), ("shadow", 30)):
            threads = calls(program, "1000", options=("-m", mode, "--overhead", "20%", "--keep-samples", "3"))
            check_calls(f"{program} in mode {mode}", program, threads, fewest)
        # Beside the values of windows.
        threads = calls(program, "1000", options=("-m", "instant", "-p", "value,context,latency", "--overhead", "20%",
                                                  "--keep-samples", "3"))
        check_calls(f"{program} with values", program, threads, 30)
        threads = calls(program, options=("-m", "full", "-p", "value,context", "--exhaustive", "--keep-samples", "1"))
        check_calls(f"{program} with all values", program, threads, 8)


def without_debug_information():
    run(["objcopy", "--strip-debug", plain, "stripped"])
    threads = calls("./stripped", options=("-m", "full", "--keep-samples", "1"))
    names = known(plain)
    found = [call for thread in threads.values() for call in thread if call[0] in names]
    check(len(found) >= 8, f"{found}")
    check(all(not passed for _, passed in found), f"arguments of what is not known: {found}")
    document = read_profile("a.json")
    places = [document["locations"][e["frames"][-1]] for e in document["samples"]["entries"] if e.get("arguments")]
    own = [place for place in places if document["modules"][place["module"]]["path"].endswith("stripped")]
    check(not own, f"raw arguments of {own}")


with scratch():
    in_every_mode()
    without_debug_information()
