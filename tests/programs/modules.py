"""Customisation modules: those that come with shadowprof count what is known, exactly in mode full; and one that goes
wrong ends itself, and nothing else."""

import json
import os
import sys
import time

from vocabulary import SHADOWPROF, check, check_equal, profiled, read_profile, run, same_as_native, scratch

customised, of_a_kind, of_later, *ours = (os.path.abspath(path) for path in sys.argv[1:])
MODULES = {os.path.basename(path).removesuffix(".so"): path for path in ours}


def module(name):
    return "--module", MODULES[name]


def found(profile, name):
    """(function at, function called from, key): count, values."""
    names = [location.get("function", "").split("(")[0] for location in profile["locations"]]
    entries = {}
    for e in profile["customised"]["entries"]:
        if e["module"] != name:
            continue
        called_from = names[e["called_from"]] if "called_from" in e else ""
        key = names[e["at"]].lstrip("_").split("@")[0], called_from, e.get("key", "")
        count, values = entries.get(key, (0, []))
        entries[key] = count + e["count"], [*values, *([e["values"]] if "values" in e else [])]
    return entries


def part(profile, name):
    return next(p for p in profile["customised"]["modules"] if p["name"] == name)


def check_sums(profile):
    section = profile["customised"]
    for of in section["modules"]:
        total = sum(e["count"] for e in section["entries"] if e["module"] == of["name"])
        check_equal(f"the sum of {of['name']}", total + of["unknown"], of["total"])
    check_equal("the sum of all", sum(of["total"] for of in section["modules"]), section["total"])


def check_alloc(profile):
    entries = found(profile, "alloc")
    of = lambda size, by: next((e for (at, called, key), e in entries.items() if called == by and key == size), (0, []))
    count, values = of("24 bytes", "allocate_and_free")
    check_equal("small allocations", count, 50)
    check_equal("those whose life was seen", sum(v["count"] for v in values), 50)
    # What malloc and free execute beside the two calls is not ours to know.
    check(all(1 <= v["least"] <= v["most"] < 1000 for v in values), f"they lived for {values}")
    check_equal("large ones", of("513 to 1024 bytes", "allocate_and_keep"), (3, []))
    for n in range(8):
        count, values = of(f"{16 + 16 * n} bytes" if n < 8 else "", "grow")
        check_equal(f"growing ones of {16 + 16 * n} bytes", (count, sum(v["count"] for v in values)), (1, 1))


def check_floats(profile):
    entries = found(profile, "floats")
    kinds = {key: count for (at, _, key), (count, _) in entries.items() if at == "add"}
    check_equal("sums", kinds, {"zero": 20, "NaN": 30, "infinity": 40, "power of two": 10, "denormal": 60})


def check_locks(profile):
    entries = found(profile, "locks")
    planted = {key: e for key, e in entries.items() if key[2].startswith("planted")}
    counts = {key: count for key, (count, _) in planted.items()}
    check_equal(
        "locks taken",
        counts,
        {
            ("pthread_mutex_lock", "lock_mutex", "planted_mutex"): 99,
            ("pthread_mutex_lock", "lock", "planted_mutex"): 1,
            ("pthread_mutex_trylock", "try_in_vain", "planted_mutex, in vain"): 7,
            ("lock_spin", "lock", "planted_spin"): 25,
        },
    )
    for key, (count, values) in planted.items():
        seen = 0 if "vain" in key[2] else count
        check_equal(f"those of {key} that were given back", sum(v["count"] for v in values), seen)
    [spin] = planted["lock_spin", "lock", "planted_spin"][1]
    # From the exchange to the store: what the compiler makes of the loop and of ++counter.
    check(spin["least"] == spin["most"] and 3 <= spin["most"] <= 12, f"the spin lock is held for {spin}")


def check_known():
    options = [word for name in ("alloc", "floats", "locks") for word in module(name)]
    profile = same_as_native([customised], "-m", "full", *options, "--limit", "0")
    check_sums(profile)
    check(all(of["exhaustive"] for of in profile["customised"]["modules"]), "not everything was seen")
    check_alloc(profile)
    check_floats(profile)
    check_locks(profile)
    check(any("lifetime of" in note for of in profile["customised"]["modules"] for note in of.get("notes", [])), "alloc does not say what it saw")

    # The file is all that a report needs, and two runs add up.
    os.rename("profile.json", "one.json")
    report = run([SHADOWPROF, "report", "one.json", "--top", "50"]).stdout.decode()
    check("Customisation modules" in report and "denormal" in report, f"the report is {report[:500]}")
    check_equal("merging", run([SHADOWPROF, "merge", "-o", "profile.json", "one.json", "one.json"]).status, 0)
    both = read_profile()
    check_sums(both)
    counts = lambda p: {key: count for key, (count, _) in found(p, "locks").items()}
    check_equal("twice", counts(both), {key: 2 * count for key, count in counts(profile).items()})
    check_equal("diff", run([SHADOWPROF, "diff", "one.json", "one.json"]).status, 0)
    check_equal("compare", run([SHADOWPROF, "compare", "one.json", "one.json"]).status, 0)


def check_arguments():
    profiled([customised], "-m", "full", "-p", "module", "--module", MODULES["floats"] + ":all", "--limit", "0")
    profile = read_profile()
    kinds = {key: count for (at, _, key), (count, _) in found(profile, "floats").items() if at == "add"}
    check_equal("ordinary sums", kinds["ordinary"], 5)
    check(part(profile, "floats")["text"].endswith("[all]"), "the arguments are not in the profile")


def check_by_name():
    """Bare names are found beside a binary that is not installed."""
    outcome = profiled([customised], "-m", "full", "-p", "module", "--module", "alloc")
    check_equal("the exit status", outcome.status, 7)
    check_alloc(read_profile())


def check_samples():
    for mode in ("burst", "shadow", "instant"):
        options = [word for name in ("alloc", "floats", "locks") for word in module(name)]
        # Where everything else is busy, no sample of a run may have come to its window.
        for _ in range(4):
            same_as_native([customised, "300000"], "-m", mode, "-p", "module", *options, "--overhead", "30%")
            profile = read_profile()
            check_sums(profile)
            of = part(profile, "floats")
            check(of["stands_for"] >= of["total"], f"mode {mode}: {of}")
            if mode != "instant" or of["total"] > 0:
                break
        check(mode != "instant" or of["total"] > 0, "nothing was seen in place")
        if of["samples"] < 30 or of["total"] < 1000:
            print(f"mode {mode}: {of['samples']} samples on a busy machine tell nothing of shares")
            continue
        kinds = {key: count for (at, _, key), (count, _) in found(profile, "floats").items() if at == "add"}
        # A window sees some rounds, and parts of two: shares are near those of one round.
        share = kinds.get("denormal", 0) / max(1, sum(kinds.values()))
        check(0.1 < share < 0.7, f"mode {mode}: the share of denormals is {share}, of 0.375")


def check_refused(text, *parts):
    outcome = profiled(["true"], "--module", text)
    check_equal(f"the exit status with {text}", outcome.status, 125)
    lines = outcome.own_lines()
    check_equal(f"the number of lines for {text}", len(lines), 1)
    check(all(part in lines[0] for part in parts), f"{text}: {lines[0]}")
    check(not os.path.exists("profile.json"), "a profile was written")


def check_refusals():
    check_refused("./missing.so", "./missing.so", "no such file")
    check_refused("missing", "no such module")
    with open("text.so", "w", encoding="ascii") as file:
        file.write("no module\n")
    check_refused("./text.so", "text.so", "file too short")
    check_refused(of_later, "version 2 of the interface")
    check_refused(of_a_kind + ":refuse", "not on a Sunday")
    check_refused(of_a_kind + ":pattern", "'nonsense' is no pattern")
    check_refused(of_a_kind + ":open-crash", "crashed (SIGSEGV)")
    check_refused(of_a_kind + ":open-exit", "ended itself (exit 5)")
    check_refused(of_a_kind + ":open-loop", "without any progress")
    check_equal("--profile module alone", profiled(["true"], "-p", "module").status, 125)


def check_wrong(way, words, seconds):
    """The program is unharmed, and the other profiles are complete."""
    began = time.monotonic()
    profile = same_as_native(
        [customised], "-m", "full", "-p", "edge,module", "--module", of_a_kind + ":" + way, *module("locks"), "--limit", "0"
    )
    check(time.monotonic() - began < seconds, f"{way} took {time.monotonic() - began} s")
    warnings = [w for w in profile["run"]["warnings"] if w.startswith("module calls ")]
    check_equal(f"the number of warnings of {way}", len(warnings), 1)
    check(any(text in warnings[0] for text in words), warnings[0])
    check_equal(f"what {way} counted", part(profile, "calls")["total"], 0)
    check_locks(profile)
    check(profile["edges"]["exhaustive"] and profile["edges"]["total"] > 1000, "the edges are not complete")


def check_good(extra):
    profiled([customised], "-m", "full", "-p", "call,module", "--module", of_a_kind, "--limit", "0", *extra)
    profile = read_profile()
    calls = sum(e["count"] for e in profile["calls"]["entries"])
    check_equal("the calls of the module", part(profile, "calls")["total"], calls + profile["calls"]["unknown"])


def check_forks():
    """A copy of the module's process takes nothing away from it, and does not outlive it."""
    totals = []
    for way in "", ":fork":
        profiled([customised], "-m", "full", "-p", "module", "--module", of_a_kind + way, "--limit", "0")
        totals.append(part(read_profile(), "calls")["total"])
    check_equal("what a module counts that forks", totals[1], totals[0])


with scratch():
    check_refusals()
    check_known()
    check_arguments()
    check_by_name()
    # With a rule beside it, which captures other things.
    check_good([])
    check_good(["--rule", "stores: store => value(address)"])
    check_wrong("crash", ("crashed (SIGSEGV)",), 60)
    check_wrong("abort", ("crashed (SIGABRT)",), 60)
    check_wrong("exit", ("ended itself (exit 5)",), 60)
    # Where pages are dear, it takes long to come by so many.
    check_wrong("allocate", ("crashed (SIGABRT)", "without any progress"), 60)
    check_wrong("close", ("closed its connection",), 60)
    check_forks()
    check_wrong("loop", ("computed for 3 s without any progress",), 90)
    check_wrong("wait", ("made no progress for 15 s",), 120)
    check_samples()
