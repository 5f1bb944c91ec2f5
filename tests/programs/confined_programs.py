"""A program that puts a filter of system calls (seccomp) on itself which ends it for nearly every call: it does
what it does natively, in every mode, whoever of its threads installs the filter and whenever; also if it had the
filter when it was attached to, and if shadowprof is under a filter as well that allows all but one call."""

import itertools
import os
import subprocess
import sys
import time

from vocabulary import (
    SHADOWPROF,
    check,
    check_equal,
    read_profile,
    run,
    same_as_native,
    scratch,
    stop,
)

CONFINING = os.path.abspath(sys.argv[1])
ROUNDS = int(os.environ.get("ROUNDS", "1"))
FINE = 21
BY_ITSELF = ("self", "strict", "handler", "everybody", "child")
MODES = {
    "auto": BY_ITSELF,
    "instant": BY_ITSELF,
    "full": BY_ITSELF,
    "shadow": ("self", "everybody"),
    "burst": ("self", "everybody"),
    "step": ("self",),
}
# That shadowprof has a program make and does not need itself. The last one is what a call becomes that a tracer
# skips: filters are asked about that as well.
CALLS = {"close_range": 436, "setpgid": 109, "none": -1}


def attach_to_confined(mode):
    with subprocess.Popen([CONFINING, "self"], stdout=subprocess.PIPE) as target:
        try:
            check_equal("what it says first", target.stdout.readline(), b"before\n")
            command = [SHADOWPROF, "attach", "-q", "-m", mode, "--overhead", "60%", "-o", "profile.json"]
            run([*command, "--duration", "0.2s", str(target.pid)], timeout=60)
            check_equal("what it says then", target.stdout.read(), b"after\n")
            check_equal("how it ends", target.wait(timeout=60), FINE)
        finally:
            stop(target)


def main():
    began = time.monotonic()
    with scratch():
        for _ in range(ROUNDS):
            for mode, ways in MODES.items():
                for how in ways:
                    same_as_native([CONFINING, how], "--mode", mode, "--overhead", "60%")
                print(f"{mode}: {read_profile()['coverage']}, {time.monotonic() - began:.1f} s", flush=True)
            for mode in ("auto", "full"):
                attach_to_confined(mode)
            for (name, number), mode in itertools.product(CALLS.items(), ("auto", "full")):
                command = [CONFINING, "under", str(number), SHADOWPROF, "run", "-q", "-m", mode, "-o", "profile.json"]
                outcome = run([*command, "--overhead", "60%", "--", CONFINING, "self"], timeout=60)
                what = (outcome.status, outcome.stdout)
                check(what == (FINE, b"before\nafter\n"), f"{mode} without {name}: {what}, {outcome.stderr}")


main()
