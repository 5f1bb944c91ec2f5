"""Programs that look for leaks when they end, which fails in a program that is traced, end as without shadowprof:
they are left alone, one line says why, and the clock sees where their time goes all the same."""

import os
import re
import subprocess
import sys

from vocabulary import SHADOWPROF, check, check_equal, profiled, read_profile, run, scratch, skip

if len(sys.argv) < 2:
    skip("the compiler has no AddressSanitizer")
leaking = os.path.abspath(sys.argv[1])
WHY = "the program looks for leaks when it ends (LeakSanitizer)"


def without_numbers(output):
    """Process ids and addresses differ."""
    return re.sub(rb"0x[0-9a-f]+|\d{2,}", b"N", output)


def check_left_alone(what):
    profile = read_profile()
    check_equal(f"the samples of {what}", profile["coverage"]["instructions"], 0)
    warnings = profile["run"]["warnings"]
    check(any(WHY in warning and "ASAN_OPTIONS=detect_leaks=0" in warning for warning in warnings), f"{what}: {warnings}")
    return profile


def like_natively(command, mode, what):
    native = run(command)
    outcome = profiled(command, "-q", "-m", mode)
    check_equal(f"the status of {what}", outcome.status, native.status)
    check_equal(f"the output of {what}", outcome.stdout, native.stdout)
    check_equal(f"stderr of {what}", *map(without_numbers, (outcome.stderr, native.stderr)))


os.environ.pop("ASAN_OPTIONS", None)
os.environ.pop("LSAN_OPTIONS", None)
with scratch():
    if b"detected memory leaks" not in run([leaking, "0", "leaks"]).stderr or run([leaking, "0"]).status != 0:
        skip("leaks are not found here")
    for mode in "auto", "shadow", "instant", "burst", "full", "step":
        for arguments in ([["0.1"], ["0.1", "leaks"]] if mode in ("auto", "full") else [["0.1"]]):
            like_natively([leaking, *arguments], mode, f"{arguments} in mode {mode}")
            check_left_alone(f"{arguments} in mode {mode}")
    # Where another program becomes it, and where another one starts it.
    like_natively(["sh", "-c", f"exec {leaking} 0.3"], "auto", "what a shell becomes")
    check("time" in check_left_alone("what a shell becomes"), "the clock did not look")
    like_natively(["sh", "-c", f"{leaking} 0.3; exit 5"], "auto", "what a shell starts")
    # The end of profiling does not lay hold of it either.
    like_natively(["sh", "-c", f'"$0" run -q -d 0.2 -o part.json {leaking} 0.5', SHADOWPROF], "auto", "a part of its time")
    with subprocess.Popen([leaking, "0.6"], stdout=subprocess.PIPE) as target:
        check_equal("attach", run([SHADOWPROF, "attach", "-q", "-o", "profile.json", str(target.pid)]).status, 0)
        check_equal("what it was attached to says", target.communicate()[0], b"done\n")
        check_equal("how it ended", target.returncode, 0)
    check_left_alone("attach")

    os.environ["ASAN_OPTIONS"] = "verbosity=0:detect_leaks=0"
    check_equal("the status without leaks", profiled([leaking, "0.1"], "-q", "-m", "full").status, 0)
    check(read_profile()["coverage"]["instructions"] > 0, "it was not profiled although it looks for no leaks")
