"""A profile says where the time goes: in which functions, in which system calls, and what threads wait for. Where
the kernel's clock is refused it says so, and where threads run is known from samples."""

import ctypes
import errno
import os
import struct
import sys

from vocabulary import SHADOWPROF, check, check_equal, profiled, read_profile, run, scratch

known_times = os.path.abspath(sys.argv[1])
SECONDS = 4
NR_PERF_EVENT_OPEN = 298


def refuse_clock():
    """From now on perf_event_open(2) is refused, as it is in most containers."""

    def statement(code, true, false, value):
        return struct.pack("HBBI", code, true, false, value)

    load, jump_if_equal, answer = 0x20, 0x15, 0x06
    program = (
        statement(load, 0, 0, 0)
        + statement(jump_if_equal, 0, 1, NR_PERF_EVENT_OPEN)
        + statement(answer, 0, 0, 0x00050000 | errno.EACCES)
        + statement(answer, 0, 0, 0x7FFF0000)
    )
    code = ctypes.create_string_buffer(program)
    filtered = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, by_filter = 38, 22, 2
    libc.prctl(no_new_privileges, 1, 0, 0, 0)
    if libc.prctl(set_seccomp, by_filter, filtered) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def function_of(profile, index):
    return profile["locations"][index].get("function", "")


def share_of(profile, holds):
    time = profile["time"]
    return sum(e["count"] for e in time["entries"] if holds(e)) / time["total"]


def waited(profile, thread, state):
    entries = profile["time"]["entries"]
    return sum(e["waiting"]["count"] for e in entries if (e["thread"], e["state"]) == (thread, state)) / 1e9


def check_waiting(profile):
    for thread, state in (("locked", "lock"), ("asleep", "sleep")):
        seconds = waited(profile, thread, state)
        check(0.7 * SECONDS < seconds < 1.3 * SECONDS, f"{thread} waits for {state} for {seconds} s")
    names = {e["thread"] for e in profile["time"]["entries"]}
    check({"locked", "asleep"} <= names, f"threads: {names}")


def check_stack_of_sleeper(profile):
    stacks = [e["frames"] for e in profile["time"]["entries"] if e["state"] == "lock"]
    callers = {function_of(profile, frame) for stack in stacks for frame in stack}
    check("wait_for_lock" in callers, f"who waits for the lock: {callers}")


def check_times(profile):
    def calls(name):
        return lambda e: any(function_of(profile, frame) == name for frame in e["frames"])

    twice, once = share_of(profile, calls("twice")), share_of(profile, calls("once"))
    in_mix = share_of(profile, lambda e: e["frames"] and function_of(profile, e["frames"][0]) == "mix")
    in_kernel = share_of(profile, lambda e: e["state"] == "kernel")
    in_read = share_of(profile, lambda e: e["state"] == "kernel" and e["call"] == "read")
    seen = f"twice {twice:.3f}, once {once:.3f}, mix {in_mix:.3f}, kernel {in_kernel:.3f}, read {in_read:.3f}"
    looks = profile["time"]["samples"]
    check(looks > 30, f"{looks} looks")
    check(1.3 < twice / once < 3.1, seen)
    check(abs(twice + once - in_mix) < 0.05, seen)
    # A few looks: one more or less in another call is no fault.
    check(in_read > 0.005 and in_kernel - in_read < 0.12, seen)
    check(abs(twice + once + in_kernel - 1) < 0.1, seen)
    check(profile["time"]["unknown"] < 0.1 * profile["time"]["total"], seen)


with scratch():
    outcome = profiled([known_times, str(SECONDS)], "-p", "time")
    check_equal("what the program says", outcome.stdout, b"done\n")
    profile = read_profile()
    check_waiting(profile)
    check_stack_of_sleeper(profile)
    if not any("perf_event_open" in warning for warning in profile["run"]["warnings"]):
        check_times(profile)
        report = run([SHADOWPROF, "report", "profile.json"]).stdout.decode()
        for word in ("Where time goes", "read", "mix", "locked", "asleep", "lock (futex)"):
            check(word in report, f"the report does not say {word}: {report}")

    command = [SHADOWPROF, "run", "-q", "-p", "time", "-o", "refused.json", known_times, str(SECONDS)]
    outcome = run(command, preexec_fn=refuse_clock)
    check_equal("how it ends", (outcome.status, outcome.stdout), (0, b"done\n"))
    profile = read_profile("refused.json")
    check(any("perf_event_open" in warning for warning in profile["run"]["warnings"]), f"{profile['run']}")
    check_waiting(profile)
    # Samples are seen instead of looks, and are few.
    in_mix = share_of(profile, lambda e: e["frames"] and function_of(profile, e["frames"][0]) == "mix")
    in_kernel = share_of(profile, lambda e: e["state"] == "kernel")
    check(in_mix + in_kernel > 0.8, f"mix {in_mix:.3f}, kernel {in_kernel:.3f}")
    check(in_mix > 0.4, f"mix {in_mix:.3f}")

    outcome = run([SHADOWPROF, "run", "-m", "full", "-p", "time", "-o", "full.json", "true"])
    check_equal("the status of what makes no sense", outcome.status, 125)
