"""Calling contexts in mode full, with counts worked out by hand; and what is made of them: the text of a
function, exports with inclusive costs, merge, and how they agree with callgrind's on real programs.

calling_contexts.py KNOWN_CONTEXTS"""

import gzip
import json
import os
import re
import shutil
import sys
from collections import Counter

from vocabulary import SHADOWPROF, check, check_equal, read_profile, run, scratch

program = os.path.abspath(sys.argv[1])


def profile(output, *command, options=("-m", "full", "--limit", "0")):
    check_equal("the exit status", run([SHADOWPROF, "run", "-q", *options, "-p", "context,path,call,method", "-o", output,
                                        "--", *command]).status, 0)
    return read_profile(output)


def names_of(document):
    return [l.get("function", "?").split("(")[0] for l in document["locations"]]


def known(document):
    names = names_of(document)
    found = {}
    for e in document["contexts"]["entries"]:
        frames = [names[f] for f in e["frames"]]
        if "main" in frames:
            frames = frames[frames.index("main"):]
        found[" ".join([e["root"], *frames])] = e["calls"], e["count"], e["inclusive"]["count"]

    def equal(context, calls, own, inclusive):
        check_equal(f"calls, own and inclusive instructions of {context}", found.get(context), (calls, own, inclusive))

    # Three levels, and the fourth stands for four.
    recursion = "thread main with_recursion"
    for level, (calls, own, inclusive) in enumerate([(1, 5, 33), (1, 5, 28), (1, 5, 23), (4, 18, 18)], 1):
        equal(" ".join([recursion] + level * ["recurse"]), calls, own, inclusive)
    equal(f"{recursion} leaf", 1, 5, 5)
    equal("thread main with_tail_call tail_caller", 1, 3, 8)
    equal("thread main with_tail_call tail_caller leaf", 1, 5, 5)
    equal("thread main with_tail_call leaf", 1, 5, 5)
    for kind, who, after in (("longjmp", "jumps", 2), ("exception", "throws", 2)):
        equal(f"thread main with_{kind} calls_who_{who} {who} leaf", 1, 5, 5)
        equal(f"thread main with_{kind} leaf", after, 5 * after, 5 * after)
        check(f"thread main with_{kind} calls_who_{who} leaf" not in found, f"{kind}: what was left is called again")
    equal("signal handler leaf", 3, 15, 15)
    equal("thread main with_signal leaf", 2, 10, 10)
    in_thread = [(n, c) for n, c in found.items() if n.endswith("in_thread leaf")]
    check(len(in_thread) == 1 and in_thread[0][1] == (4, 20, 20) and in_thread[0][0].startswith("thread "),
          f"in a thread: {in_thread}")
    library = {n: c for n, c in found.items() if n.startswith("thread main with_library ") and n.count(" ") == 3}
    check(any("getppid" in n and "@plt" not in n and c[0] == 3 for n, c in library.items()), f"in a library: {library}")
    check(not any("@plt" in n for n in library), f"stubs: {library}")

    total = document["contexts"]["total"]
    check_equal("all instructions", total, document["coverage"]["instructions"])
    check_equal("unknown", document["contexts"]["unknown"], 0)
    roots = sum(e["inclusive"]["count"] for e in document["contexts"]["entries"] if len(e["frames"]) == 1)
    check_equal("what all outermost functions hold", roots, total)
    in_all = {names[e["function"]]: e for e in document["callers"]["entries"] if "caller" not in e}
    check_equal("recursion", (in_all["recurse"]["calls"], in_all["recurse"]["inclusive"]["count"]), (7, 33))
    leaves = 1 + 2 + 3 + 3 + 3 + 2 + 1 + 4
    check_equal("leaf", (in_all["leaf"]["calls"], in_all["leaf"]["inclusive"]["count"]), (leaves, 5 * leaves))
    own = {names[e["function"]]: e["instructions"]["count"] for e in document["methods"]["entries"]}
    for e in document["callers"]["entries"]:
        name = names[e["function"]]
        if "caller" not in e and name in ("main", "with_longjmp", "with_signal", "recurse", "handler"):
            check(own[name] <= e["inclusive"]["count"] <= total, f"{name} holds {e}, itself {own[name]}")


def text():
    said = run([SHADOWPROF, "report", "--function", "tail_caller", "known.json"]).stdout.decode()
    check(re.search(r"callers +with_tail_call [\d.<]+ % \(1 call\)", said), f"no callers: {said}")
    check(re.search(r"callees +leaf [\d.<]+ % \(1 call\)", said), f"no callees: {said}")
    said = run([SHADOWPROF, "report", "known.json"]).stdout.decode()
    check("Hot functions with what they call" in said, f"no inclusive table: {said}")


def fields(data):
    """Of a protocol buffer: (number, value) for each field."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            length = varint()
            yield tag >> 3, data[at:at + length]
            at += length


def packed(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    return values


def pprof_inclusive(path):
    """Inclusive and own instructions by function."""
    with gzip.open(path) as file:
        data = file.read()
    strings, functions, places, samples = [], {}, {}, []
    for number, value in fields(data):
        if number == 6:
            strings.append(value.decode())
        elif number == 5:
            function = dict(fields(value))
            functions[function[1]] = function.get(2, 0)
        elif number == 4:
            lines = [dict(fields(line)) for n, line in fields(value) if n == 4]
            places[next(v for n, v in fields(value) if n == 1)] = [line[1] for line in lines]
        elif number == 2:
            sample = dict(fields(value))
            samples.append((packed(sample[1]), packed(sample[2])[0]))
    inclusive, own = Counter(), Counter()
    for stack, weight in samples:
        names = [strings[functions[f]] for place in stack for f in places[place]]
        own[names[0]] += weight
        for name in set(names):
            inclusive[name] += weight
    return inclusive, own


def callgrind_inclusive(text):
    """Inclusive costs by function: its own, and those of its calls to others. Where functions call each
    other in circles that counts too much."""
    names, inclusive = {}, Counter()

    def name(value):
        found = re.match(r"\((\d+)\)(?: (.*))?", value)
        if not found:
            return value
        if found[2]:
            names[found[1]] = found[2]
        return names[found[1]]

    current = callee = None
    is_call = False
    for line in text.splitlines():
        if line.startswith("fn="):
            current = name(line[3:])
        elif line.startswith("cfn="):
            callee = name(line[4:])
        elif line.startswith("calls="):
            is_call = True
        elif re.match(r"[\d+*-]", line):
            cost = int(line.split()[1])
            if not is_call or callee != current:
                inclusive[current] += cost
            is_call = False
    return inclusive


def export(form, source, target):
    check_equal(f"the exit status of export {form}", run([SHADOWPROF, "export", "--format", form, "-o", target,
                                                          source]).status, 0)
    with open(target, "rb") as file:
        return file.read()


def exports(document):
    names = names_of(document)
    total = document["contexts"]["total"]
    exact = {names[e["function"]]: e["inclusive"]["count"] for e in document["callers"]["entries"] if "caller" not in e}
    export("pprof", "known.json", "known.pb.gz")
    inclusive, own = pprof_inclusive("known.pb.gz")
    check_equal("pprof's total", sum(own.values()), total)
    of_callgrind = callgrind_inclusive(export("callgrind", "known.json", "known.callgrind").decode())
    for function in ("main", "with_recursion", "with_longjmp", "with_exception", "recurse", "leaf", "tail_caller"):
        check_equal(f"pprof: what {function} holds", inclusive[function], exact[function])
        check_equal(f"callgrind: what {function} holds", of_callgrind[function], exact[function])
    collapsed = Counter()
    for line in export("collapsed", "known.json", "known.folded").decode().splitlines():
        stack, weight = line.rsplit(" ", 1)
        for function in set(stack.split(";")):
            collapsed[function] += int(weight)
    check_equal("collapsed: what main holds", collapsed["main"], exact["main"])
    shape = json.loads(export("speedscope", "known.json", "known.speedscope.json"))
    check_equal("speedscope's total", sum(shape["profiles"][0]["weights"]), total)


def merged(document):
    run([SHADOWPROF, "merge", "-o", "twice.json", "known.json", "known.json"])
    twice = read_profile("twice.json")
    key = lambda e: (e["root"], tuple(e["frames"]))
    sums = {key(e): (e["calls"], e["inclusive"]["count"]) for e in twice["contexts"]["entries"]}
    check_equal("twice", sums, {key(e): (2 * e["calls"], 2 * e["inclusive"]["count"])
                                for e in document["contexts"]["entries"]})


def cut():
    """A list that is cut keeps what is inclusive of the rest."""
    document = profile("cut.json", program, options=("-m", "full", "--limit", "20"))
    contexts = document["contexts"]
    check_equal("the number of contexts", len(contexts["entries"]), 20)
    listed = {(e["root"], tuple(e["frames"])) for e in contexts["entries"]}
    check(all((e["root"], tuple(e["frames"][:-1])) in listed for e in contexts["entries"] if len(e["frames"]) > 1),
          "a context is listed without those that it is in")
    lines = export("collapsed", "cut.json", "cut.folded").decode().splitlines()
    check_equal("what the stacks of a cut list hold", sum(int(l.rsplit(" ", 1)[1]) for l in lines), contexts["total"])
    check(any("[other contexts]" in line for line in lines), "what is not listed has no name")


def kept_samples():
    """All calls of the whole program, which is one sample in mode full: once as they came, and once as contexts."""
    document = profile("kept.json", program, options=("-m", "full", "--limit", "3", "--keep-samples", "1"))
    samples = document["samples"]
    check_equal("the number of samples", samples["samples"], 1)
    check_equal("all of its instructions", samples["total"], document["coverage"]["instructions"])
    names = names_of(document)
    by_thread = {}
    for e in samples["entries"]:
        by_thread.setdefault(e["thread"], []).append(e)
    own, calls = Counter(), Counter()
    for entries in by_thread.values():
        stack = []
        for n, e in enumerate(sorted(entries, key=lambda e: e["order"])):
            check_equal("the order", e["order"], n)
            check(e["depth"] <= len(stack), f"{e} follows {stack}")
            if n and e["depth"] == len(stack):
                calls[names[e["frames"][-1]]] += 1
            stack = stack[:e["depth"]] + e["frames"]
            own[names[stack[-1]]] += e["instructions"]
    check_equal("recursion", (calls["recurse"], own["recurse"]), (7, 33))
    check_equal("leaf", own["leaf"], 95)
    document = json.loads(export("trace", "kept.json", "kept.trace"))
    calls = [e for e in document["traceEvents"] if e["name"] == "recurse" and e["ph"] == "X"]
    check_equal("calls in the trace", len(calls), 7)
    longest = max(calls, key=lambda e: e["dur"])
    check(all(longest["ts"] <= e["ts"] and e["ts"] + e["dur"] <= longest["ts"] + longest["dur"] + 1e-9 for e in calls),
          f"calls are not within each other: {calls}")
    check_equal("times in mode full", {e["picoseconds"] for e in samples["entries"]}, {0})
    check_equal("too many", run([SHADOWPROF, "run", "--keep-samples", "1001", "true"]).status, 125)


def kept_times():
    """How long calls take is an estimate: the sample's time, by instructions."""
    document = profile("times.json", "/usr/bin/python3", "-c", "print(sum(i * i for i in range(10_000_000)))",
                       options=("-m", "instant", "--overhead", "10%", "--keep-samples", "5"))
    paces = [e["picoseconds"] for e in document.get("samples", {"entries": []})["entries"]]
    check(all(10 < pace < 100_000 for pace in paces) and (paces or not document["coverage"]["samples"]), f"{paces}")
    if paces:
        calls = [e for e in json.loads(export("trace", "times.json", "times.trace"))["traceEvents"] if e.get("cat") == "call"]
        sizes = [e["args"]["instructions"] for e in calls]
        longest = calls[sizes.index(max(sizes))]
        pace = longest["dur"] * 1e6 / max(sizes)
        check(any(abs(pace - known) < 0.01 * known for known in paces), f"{longest}: {pace} ps, {set(paces)}")


with scratch():
    kept_samples()
    kept_times()
    found = profile("known.json", program)
    known(found)
    text()
    exports(found)
    merged(found)
    cut()
    if annotate := shutil.which("callgrind_annotate"):
        said = run([annotate, "--inclusive=yes", "known.callgrind"]).stdout.decode()
        check("main" in said, f"callgrind_annotate: {said}")
    for mode in ("burst", "instant", "shadow"):
        sampled = profile("sampled.json", "/usr/bin/python3", "-c", "print(sum(i * i for i in range(10_000_000)))",
                          options=("-m", mode, "--overhead", "10%"))
        check(sampled["contexts"]["entries"] or not sampled["coverage"]["samples"], f"mode {mode}: no contexts")
        check(mode != "burst" or sampled["coverage"]["samples"], f"mode {mode}: {sampled['coverage']}")
        for e in sampled["contexts"]["entries"]:
            check(e["count"] <= e["inclusive"]["count"] <= sampled["contexts"]["total"], f"mode {mode}: {e}")
