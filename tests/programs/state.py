"""Values and events are told apart by the state of the thread: errno, the last system call, the scheduling class, the
processor, the thread and its name. Exactly where all is followed, and never wrongly in samples."""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, scratch

PROGRAM = os.path.abspath(sys.argv[1])
LINKED_STATICALLY = os.path.abspath(sys.argv[2])
RULE = "seen: function observe && mnemonic mov && !load && !store => value(result) by {}"
EXACT = {(11, "EAGAIN", "getppid", "batch"): 3000, (22, "ENOENT", "getuid", "other"): 1000, (33, "0", "getuid", "other"): 1000}
TIMES = "120000"  # long enough for a busy machine


def number(text):
    return int(text, 16) & (1 << 64) - 1


def observed(profile):
    """The entries of what observe() moves to rax."""
    places = profile["locations"]
    return [
        e
        for e in profile["values"]["entries"]
        if places[e["location"]].get("function", "") == "observe" and e["operand"] == "rax" and places[e["location"]]["text"].startswith("mov rax, r")
    ]


def counts(entries, values_of, keys):
    found = {}
    for e in entries:
        for top in values_of(e)["top"]:
            key = (number(top["value"]), *(e.get(k) for k in keys))
            found[key] = found.get(key, 0) + top["count"]
    return found


with scratch():
    keys = ("errno", "system_call", "scheduling")
    words = "errno, syscall, scheduling, processor, tid"
    for mode in (["-m", "full", "--exhaustive"], ["-m", "step", "--sample-size", "0"]):
        outcome = profiled([PROGRAM], *mode, "-p", "value,rule", "--limit", "0", "--value-by", words, "--rule", RULE.format(words))
        if outcome.status == 77:
            sys.exit(77)
        check_equal("the exit status", outcome.status, 0)
        profile = read_profile()
        check_equal(f"values in {mode[1]}", counts(observed(profile), lambda e: e, keys), EXACT)
        check_equal(f"events in {mode[1]}", counts(profile["rules"]["entries"], lambda e: e["values"], keys), EXACT)
        both = counts(observed(profile), lambda e: e, ("tid",))
        check_equal("the threads", len({tid for value, tid in both if value == 11}), 1)
        check_equal("the threads of both loops", len({tid for value, tid in both if value != 11}), 1)
        processors = sorted(os.sched_getaffinity(0))
        of_value = counts(observed(profile), lambda e: e, ("processor",))
        check_equal(
            f"the processors in {mode[1]}",
            {(value, int(processor)) for value, processor in of_value},
            {(11, processors[-1]), (22, processors[0]), (33, processors[0])},
        )

    outcome = profiled([LINKED_STATICALLY], "-m", "full", "--exhaustive", "-p", "value,rule", "--limit", "0", "--value-by", words, "--rule", RULE.format(words))
    check_equal("the exit status", outcome.status, 0)
    profile = read_profile()
    check_equal("values of what is linked statically", counts(observed(profile), lambda e: e, keys), EXACT)
    check_equal("events of what is linked statically", counts(profile["rules"]["entries"], lambda e: e["values"], keys), EXACT)

    for mode in ("burst", "instant", "shadow"):
        words = "thread, errno, syscall, scheduling, processor"
        outcome = profiled([PROGRAM, TIMES], "-m", mode, "--overhead", "20%", "-p", "value", "--value-by", words, "--limit", "0")
        check_equal("the exit status", outcome.status, 0)
        found = counts(observed(read_profile()), lambda e: e, ("thread", *keys, "processor"))
        check(sum(found.values()) > 100, f"mode {mode} saw only {found}")
        right = {
            11: ("steady", "EAGAIN", "getppid", "batch", str(processors[-1])),
            22: ("hasty", "ENOENT", "getuid", "other", str(processors[0])),
            33: ("hasty", "0", "getuid", "other", str(processors[0])),
        }
        for (value, *state), count in found.items():
            wrong = [(is_so, truth) for is_so, truth in zip(state, right[value]) if is_so not in (truth, None)]
            check(not wrong, f"mode {mode}: {value} was seen {count} times with {state}, not with {right[value]}")
            check(None not in (state[0], state[1], state[3], state[4]), f"mode {mode}: of {value} something is not known: {state}")

    outcome = profiled(["true"], "--value-by", "thread, colour")
    check_equal("the exit status", outcome.status, 125)
    check_equal("the caret", outcome.own_lines()[-2:], ["  thread, colour", "          ^"])
    outcome = profiled(["true"], "--value-by", "caller", "--value-context")
    check_equal("what is said of both", outcome.own_lines(), ["shadowprof: values are told apart by caller or by return address, not by both"])
