"""Values and events are told apart by how many signal handlers the thread is in, and by the locks that it holds:
exactly where all is followed, and never wrongly in samples."""

import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, scratch

PROGRAM = os.path.abspath(sys.argv[1])
RULE = "seen: function observe && mnemonic mov && !load && !store => value(result) by signals, locks"
EXACT = {
    (11, "0", "0"): 300,
    (22, "1", "0"): 100,
    (33, "2", "0"): 50,
    (44, "1", "0"): 70,
    (55, "0", "0"): 60,
    (66, "0", "1 (first_lock)"): 80,
    (77, "0", "2 (second_lock)"): 40,
    (88, "0", "1 (first_lock)"): 20,
    (99, "0", "1 (first_lock)"): 90,
    (110, "0", "1 (first_lock)"): 10,
    (121, "0", "0"): 30,
}
TIMES = "60000000"  # long enough for a busy machine


def counts(entries, values_of):
    found = {}
    for e in entries:
        for top in values_of(e)["top"]:
            key = (int(top["value"], 16) & (1 << 64) - 1, e.get("signals"), e.get("locks"))
            found[key] = found.get(key, 0) + top["count"]
    return found


def observed(profile):
    """The entries of what observe() moves to rax."""
    places = profile["locations"]
    return [
        e
        for e in profile["values"]["entries"]
        if places[e["location"]].get("function", "") == "observe" and e["operand"] == "rax" and places[e["location"]]["text"].startswith("mov rax, r")
    ]


with scratch():
    for mode in (["-m", "full", "--exhaustive"], ["-m", "step", "--sample-size", "0"]):
        outcome = profiled([PROGRAM], *mode, "-p", "value,rule", "--limit", "0", "--value-by", "signals, locks", "--rule", RULE)
        check_equal("the exit status", outcome.status, 0)
        profile = read_profile()
        check_equal(f"events in {mode[1]}", counts(profile["rules"]["entries"], lambda e: e["values"]), EXACT)
        check_equal(f"values in {mode[1]}", counts(observed(profile), lambda e: e), EXACT)

    signals = {value: handlers for value, handlers, _ in EXACT}
    locks = {value: held.replace(" (", " or more (") for value, _, held in EXACT}
    for mode in ("burst", "instant", "shadow"):
        outcome = profiled([PROGRAM, TIMES], "-m", mode, "--overhead", "20%", "-p", "rule", "--limit", "0", "--rule", RULE)
        check_equal("the exit status", outcome.status, 0)
        found = counts(read_profile()["rules"]["entries"], lambda e: e["values"])
        check(sum(found.values()) > 100, f"mode {mode} saw only {found}")
        for (value, handlers, held), count in found.items():
            check(handlers in (signals[value], None), f"mode {mode}: {value} was seen {count} times in {handlers} handlers")
            check(held in (locks[value], None), f"mode {mode}: {value} was seen {count} times with locks {held}")
        of_handlers = [(handlers, count) for (value, handlers, _), count in found.items() if value in (22, 33)]
        known = sum(count for handlers, count in of_handlers if handlers)
        check(known >= sum(count for _, count in of_handlers) / 2, f"mode {mode} does not know in how many handlers: {of_handlers}")
        check(any(held for (value, _, held) in found if value == 99) or 99 not in (value for value, _, _ in found), f"mode {mode} sees no locks: {found}")
