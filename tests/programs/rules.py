"""Rules: hot call pairs and hot methods, written as rules, are those of the built-in types, exactly; values, bursts,
and commands to a running profiler."""

import json
import os
import sys
import time

from vocabulary import SHADOWPROF, check, check_equal, profiled, read_profile, run, scratch, start, stop, wait_until

known_shares, virtual_calls, values_static, interpreter = (os.path.abspath(program) for program in sys.argv[1:])
# It is left running, and ends by itself.
PROGRAM = "import time\nend = time.time() + 30\nwhile time.time() < end: len([])"
BUILT_IN = (
    "--rule",
    "pairs: call => count by target",
    "--rule",
    "methods: call || branch back && local => count at target function",
)


VALUES = [
    word
    for rule in (
        "arguments: call => value(arg 1)",
        "operands: class *arithmetic => value(op 1)",
        "results: load => value(result)",
        "addresses: store && rsp > 0 => value(address)",
        "returned: call => value(return)",
        "calls: syscall => value(rax) by syscall",
        "r15: conditional => value(r15)",
    )
    for word in ("--rule", rule)
]


def check_same_found(one, other):
    check(len(one) > 20, "hardly anything was found")
    differ = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    # Addresses of the stack and the clock's numbers are another run's.
    check({key[0] for key in differ} <= {"addresses", "arguments", "results", "operands", "r15", "returned"}, f"{differ[:5]}")
    counts = [key for key in differ if (one.get(key) or [0])[0] != (other.get(key) or [0])[0]]
    check(len(counts) <= len(one) // 50, f"{len(counts)} places were counted differently: {counts[:5]}")
    check(len(differ) < len(one) // 2, f"{len(differ)} of {len(one)} places differ: {differ[:5]}")


def entries_of(profile, rule):
    return [e for e in profile["rules"]["entries"] if e["rule"] == rule]


def rule_of(profile, name):
    return next(rule for rule in profile["rules"]["rules"] if rule["name"] == name)


def statistics(entry):
    return entry["count"], entry["share"], json.dumps(entry["stats"], sort_keys=True)


def check_built_in(command):
    profiled(command, "-m", "full", "-p", "call,method", "--limit", "0", *BUILT_IN)
    profile = read_profile()
    calls = {(e["from"], e["to"]): statistics(e) for e in profile["calls"]["entries"]}
    pairs = {(e["at"], e["target"]): statistics(e) for e in entries_of(profile, "pairs")}
    check(len(calls) > 0, "there are no calls")
    check_equal(f"the call pairs of {command[0]}", pairs, calls)
    for key in ("total", "unknown", "exhaustive", "samples"):
        check_equal(f"the {key} of call pairs", rule_of(profile, "pairs")[key], profile["calls"][key])
    methods = {e["function"]: e["count"] for e in profile["methods"]["entries"] if e["count"]}
    check_equal("the methods", {e["at"]: e["count"] for e in entries_of(profile, "methods")}, methods)


def refused(rule, *lines):
    outcome = profiled(["true"], "--rule", rule)
    check_equal("the exit status", outcome.status, 125)
    check_equal(f"what is said of {rule!r}", outcome.own_lines(), list(lines))


def send(path, line):
    with open(path, "w", encoding="ascii") as pipe:
        pipe.write(line + "\n")


with scratch():
    check_built_in([virtual_calls])
    check_built_in([known_shares])
    check_built_in(["gzip", "--version"])

    # What is captured for rules is the same whether the processor steps or code is translated.
    def found(*options):
        profiled([values_static], *options, "-p", "rule", "--limit", "0", *VALUES)
        profile = read_profile()
        entries = {(e["rule"], profile["locations"][e["at"]]["offset"], e.get("system_call")): e for e in profile["rules"]["entries"]}
        return {key: (e["count"], e.get("values")) for key, e in entries.items()}

    check_same_found(found("-m", "full", "--exhaustive"), found("-m", "step", "--sample-size", "0"))
    profiled(
        ["gzip", "-c", sys.executable], "-m", "full", "--exhaustive", "-p", "rule", "--rule", 'sizes: call to "read" => value(arg 3)',
        "--rule", 'got: call to "read" => value(return)', "--rule", "after: syscall => value(rax) by syscall",
        stdin=None,
    )  # fmt: skip
    profile = read_profile()
    sizes = entries_of(profile, "sizes")
    check(sizes, "no call to read was seen")
    asked = max(sizes, key=lambda e: e["count"])
    check_equal("what is known of sizes", asked["values"]["executions"], asked["count"])
    got = max(entries_of(profile, "got"), key=lambda e: e["count"])
    check_equal("how many reads returned", got["count"], asked["count"])
    check(
        int(got["values"]["top"][0]["value"], 16) <= max(int(v["value"], 16) for v in asked["values"]["top"]),
        "more was read than was asked for",
    )
    check(any(e.get("system_call") for e in entries_of(profile, "after")), "no system call is known")

    # Bursts: one event of a hundred, and what that stands for.
    profiled([interpreter], "-m", "full", "-p", "rule", "--rule", "all: call => count", "--rule", "some[sparsity=990,burst=10]: call => count")
    profile = read_profile()
    every, some = rule_of(profile, "all"), rule_of(profile, "some")
    check(every["exhaustive"] and not some["exhaustive"], "the wrong rule is exhaustive")
    part = some["total"] / every["total"]
    check(0.005 < part < 0.02, f"a rule that looks at 1 % saw {part:.2%}")
    check(0.8 < some["stands_for"] / every["total"] < 1.25, f"{some['total']} events stand for {some['stands_for']}, not {every['total']}")

    report = run([SHADOWPROF, "report", "profile.json"])
    check(b"some: call => count" in report.stdout, "the report does not name the rule")
    merged = run([SHADOWPROF, "merge", "-o", "sum.json", "profile.json", "profile.json"])
    check_equal("the exit status of merge", merged.status, 0)
    check_equal("the sum of a rule", rule_of(read_profile("sum.json"), "all")["total"], 2 * every["total"])

    refused("a: lode => count", "shadowprof: --rule: 'lode' is no pattern: there are any, call, return, branch, conditional, entry, "
            "local, syscall, load, store, immediate, bytes, mnemonic, extension, class, function, file, module, and comparisons of "
            "values", "  a: lode => count", "     ^")  # fmt: skip

    # Commands.
    for pipe in ("ctl", "ack"):
        os.mkfifo(pipe, 0o600)
    options = ["-q", "-m", "full", "-p", "rule", "-o", "profile.json", "--control", "fifo:ctl,ack", "--rule", "calls: call => count"]
    running = start([SHADOWPROF, "run", *options, "--", sys.executable, "-c", PROGRAM])
    try:
        answers = os.open("ack", os.O_RDWR)

        def asked_for(command):
            send("ctl", command)
            began = time.monotonic()
            answer = os.read(answers, 4096).decode()
            return answer.strip(), time.monotonic() - began

        check_equal("the answer to ping", asked_for("ping")[0], "ack")
        check_equal("the answer to nonsense", asked_for("set calls.burst=0")[0], "error: burst is from 1 to 1000000")
        check_equal("the answer to a rule that is not", asked_for("disable others")[0], "error: there is no rule others")
        time.sleep(2)
        check_equal("the answer to set", asked_for("set calls.sparsity=1000")[0], "ack")
        answer, _ = asked_for("snapshot")
        check_equal("the answer to snapshot", answer, "ack")
        snapshot = read_profile("profile.json.snapshot")
        check(rule_of(snapshot, "calls")["total"] > 0, "the snapshot has no calls")
        check_equal("what is recorded", [c["command"] for c in snapshot["run"]["control"]], ["set calls.sparsity=1000"])
        check_equal("the answer to disable", asked_for("disable")[0], "ack")
        time.sleep(1)
        asked_for("snapshot")
        before = rule_of(read_profile("profile.json.snapshot"), "calls")["total"]
        time.sleep(1)
        asked_for("snapshot")
        check_equal("what a disabled rule counts", rule_of(read_profile("profile.json.snapshot"), "calls")["total"], before)
        running.terminate()
        wait_until(lambda: running.poll() is not None, "shadowprof does not end")
        commands = [c["command"] for c in read_profile()["run"]["control"]]
        check_equal("what is recorded", commands, ["set calls.sparsity=1000", "snapshot", "disable", "snapshot", "snapshot"])
    finally:
        stop(running)

    os.chmod("ctl", 0o622)
    outcome = profiled(["true"], "--control", "fifo:ctl")
    check_equal("what is said of a pipe that others may write to", outcome.own_lines(),
                ["shadowprof: --control: ctl: others may write to it (chmod 600 mends that)"])  # fmt: skip
