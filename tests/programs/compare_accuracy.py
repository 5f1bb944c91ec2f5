"""compare: bursts of a program against the whole program, single-stepped. The test computes every figure
itself, from the two files and the papers' formulas. Profiles that cannot be compared are refused."""

import copy
import json
import math
import os
import sys

from vocabulary import (SCHEMA, SHADOWPROF, check, check_equal, check_one_line, profiled,
                        read_profile, run, scratch)

PROGRAM = os.path.abspath(sys.argv[1])
# With these options the program's own code is most of what the whole run executes, and no minute is needed.
ROUNDS_STEPPED, ROUNDS_SAMPLED = "10000", "400000000"


def compare(*arguments):
    return run([SHADOWPROF, "compare", *arguments])


def figures(sampled, perfect):
    outcome = compare("--json", sampled, perfect)
    check_equal("the exit status of compare", outcome.status, 0)
    check_equal("what compare says", outcome.stderr, b"")
    return json.loads(outcome.stdout)


def counts(profile, name):
    """Counts by a key that is the same in any profile."""

    def place(index):
        location = profile["locations"][index]
        module = profile["modules"][location["module"]]
        return module["build_id"] or module["path"], int(location["offset"], 16)

    def identity(entry):
        if name == "paths":
            return tuple((place(b), n) for b, n in zip(entry["blocks"], entry["lengths"]))
        if name == "methods":
            return place(entry["function"])
        if name == "values":
            return place(entry["location"]), entry["operand_index"], entry["kind"]
        return place(entry["from"]), place(entry["to"])

    return {identity(entry): entry for entry in profile[name]["entries"]}


def shares(profile, name):
    total = profile[name]["total"]
    return {identity: e["count"] / total for identity, e in counts(profile, name).items()}


def hottest(share, number):
    return sorted(share, key=lambda identity: (-share[identity], identity))[:number]


def path_accuracy(sampled, perfect):
    s, p = shares(sampled, "paths"), shares(perfect, "paths")
    number = math.ceil(len(p) * 5 / 100)
    actual = hottest(p, number)
    estimated = set(hottest(s, number))
    return sum(p[i] for i in actual if i in estimated) / sum(p[i] for i in actual)


def edge_accuracy(sampled, perfect):
    s, p = shares(sampled, "edges"), shares(perfect, "edges")
    return (2 - sum(abs(s.get(i, 0) - p.get(i, 0)) for i in s.keys() | p.keys())) / 2


def top_overlap(name, sampled, perfect):
    s, p = shares(sampled, name), shares(perfect, name)
    overlap = best = 0
    for i in hottest(p, len(p)):
        if best >= 0.9:
            break
        best += p[i]
        overlap += min(p[i], s.get(i, 0))
    return overlap / best


def diff_top(sampled, perfect):
    s, p = counts(sampled, "values"), counts(perfect, "values")
    both = [i for i in s.keys() & p.keys() if i[2] == "register"]

    def invariance(entry):
        return entry["top"][0]["count"] / entry["executions"] if entry["top"] else 0

    weight = sum(p[i]["executions"] for i in both)
    return sum(p[i]["executions"] * abs(invariance(s[i]) - invariance(p[i])) for i in both) / weight


def check_near(what, seen, expected):
    check(math.isclose(seen, expected, rel_tol=1e-9, abs_tol=1e-12), f"{what} is {seen}, expected {expected}")


def check_compare_schema(comparison):
    try:
        import jsonschema
    except ImportError:
        print("python3-jsonschema is not installed: the schema is not checked")
        return
    with open(os.path.join(os.path.dirname(SCHEMA), "compare.schema.json"), encoding="utf-8") as file:
        jsonschema.validate(comparison, json.load(file))


def take(name, *options, rounds):
    outcome = profiled([PROGRAM, rounds], "--limit", "0", *options)
    check_equal("the exit status of the program", outcome.status, 0)
    os.rename("profile.json", name)
    return read_profile(name)


def write(name, profile):
    with open(name, "w", encoding="utf-8") as file:
        json.dump(profile, file)


def check_refused(status, *arguments):
    outcome = compare(*arguments)
    check_equal(f"the exit status of compare {arguments}", outcome.status, status)
    check_equal("stdout", outcome.stdout, b"")
    check_one_line(outcome)
    return outcome.own_lines()[0]


def cut(profile, name, limit):
    """As if --limit had dropped the rest."""
    less = copy.deepcopy(profile)
    hotlist = less[name]
    hotlist["unknown"] += sum(e["count"] for e in hotlist["entries"][limit:])
    hotlist["dropped"] = max(0, len(hotlist["entries"]) - limit)
    del hotlist["entries"][limit:]
    return less


with scratch():
    perfect = take("perfect.json", "--mode", "step", "--sample-size", "0", rounds=ROUNDS_STEPPED)
    sampled = take("sampled.json", "--mode", "burst", "--overhead", "20%", rounds=ROUNDS_SAMPLED)

    comparison = figures("sampled.json", "perfect.json")
    check_compare_schema(comparison)
    expected = {
        "path_accuracy": path_accuracy(sampled, perfect),
        "edge_accuracy": edge_accuracy(sampled, perfect),
        "call_overlap": top_overlap("calls", sampled, perfect),
        "method_overlap": top_overlap("methods", sampled, perfect),
        "diff_top": diff_top(sampled, perfect),
        "coverage": sampled["coverage"]["instructions"] / perfect["coverage"]["instructions"],
    }
    for key, figure in expected.items():
        check_near(key, comparison[key]["value"], figure)
        check_equal(f"the bounds of {key}", comparison[key]["bounds"], [comparison[key]["value"]] * 2)
    print({key: round(figure, 4) for key, figure in expected.items()})

    # What the program does all the time is found. What it does only when it starts is not: that is a fifth.
    check(expected["path_accuracy"] > 0.7, "the hot paths were missed")
    check(expected["edge_accuracy"] > 0.7, "the hot edges were missed")
    check(expected["call_overlap"] > 0.9, "the hot calls were missed")
    check(expected["diff_top"] < 0.05, "the values are others")
    own = {f.get("function"): f for f in comparison["functions"]}
    for name in ("main", "quarter", "other_eighth"):
        check(own[name]["edge_accuracy"] > 0.98, f"{name}: {own[name]}")
    check(own["main"]["call_overlap"] > 0.98, f"main: {own['main']}")

    # A profile against itself has full accuracy.
    itself = figures("perfect.json", "perfect.json")
    for key in expected:
        check_equal(f"{key} of a profile with itself", itself[key]["value"], 0 if key == "diff_top" else 1)

    # Whatever --limit drops, the figure is within the bounds, and the output calls them bounds.
    for name, key in (("paths", "path_accuracy"), ("edges", "edge_accuracy"), ("calls", "call_overlap")):
        write("less.json", cut(sampled, name, 3))
        write("less-perfect.json", cut(perfect, name, 3))
        for pair in (("less.json", "perfect.json"), ("less.json", "less-perfect.json")):
            less = figures(*pair)
            low, high = less[key]["bounds"]
            check(low - 1e-9 <= expected[key] <= high + 1e-9, f"{key} of {pair} is said to be {low} to {high}")
            check(low == high or any("--limit" in note for note in less["notes"]), f"{less['notes']}")

    page = compare("sampled.json", "perfect.json", "--functions")
    check_equal("the exit status of compare", page.status, 0)
    for words in (b"path accuracy", b"edge accuracy", b"Diff-Top", b"call overlap", b"method overlap", b"quarter"):
        check(words in page.stdout, f"{words} is not on the page")

    # The path of the file does not matter, its build does.
    moved = copy.deepcopy(perfect)
    for module in moved["modules"]:
        module["path"] = module["path"].replace(PROGRAM, "/elsewhere/program")
    write("moved.json", moved)
    check_equal("a moved program", figures("sampled.json", "moved.json")["edge_accuracy"], comparison["edge_accuracy"])
    rebuilt = copy.deepcopy(perfect)
    for module in rebuilt["modules"]:
        module["build_id"] = "00" + module["build_id"][2:] + "00"
    write("rebuilt.json", rebuilt)
    check("different builds" in check_refused(4, "sampled.json", "rebuilt.json"), "builds are not named")
    write("empty.json", {key: value for key, value in perfect.items() if key not in ("modules", "locations")}
          | {"modules": [], "locations": []}
          | {name: {**perfect[name], "entries": [], "unknown": perfect[name]["total"]} for name in
             ("contexts", "callers", "paths", "edges", "calls", "values") if name in perfect}
          | {"methods": {**perfect["methods"], "entries": [], "unknown": perfect["methods"]["total"],
                         "instructions": {**perfect["methods"]["instructions"],
                                          "unknown": perfect["methods"]["instructions"]["total"]}}})
    check("empty.json is empty" in check_refused(4, "empty.json", "perfect.json"), "emptiness is not named")

    check_refused(1, "missing.json", "perfect.json")
    with open("perfect.json", "rb") as whole, open("torn.json", "wb") as torn:
        torn.write(whole.read()[:10000])
    check_refused(1, "sampled.json", "torn.json")
    check_refused(2, "sampled.json")
    check_refused(2, "--no-such-option", "sampled.json", "perfect.json")
