"""What a sampled profile says, and how near it is to a perfect one. Shared by the benches."""

import collections
import json
import os
import statistics
import subprocess


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def shares(path):
    """{(kind, what): (share, low, high)} of a profile, and how many samples it has."""
    whole = load(path)
    modules, locations = whole["modules"], whole["locations"]

    def place(index):
        location = locations[index]
        return os.path.basename(modules[location["module"]]["path"]), location["offset"]

    found = {}

    def entries(section):
        return whole.get(section, {}).get("entries", [])

    def add(kind, what, entry):
        found[kind, what] = (entry["share"], *entry["interval"])

    for entry in entries("methods"):
        add("function", place(entry["function"]), entry["instructions"])
    for entry in entries("edges"):
        add("edge", (place(entry["from"]), place(entry["to"])), entry)
    for entry in entries("paths"):
        add("path", tuple(place(block) for block in entry["blocks"]), entry)
    return found, whole["coverage"]["samples"]


def most_of_unseen(samples):
    return 1 - 0.025 ** (1 / max(samples, 1))


def judge(truth, rounds):
    """Of rounds of (samples, shares), by kind: cases, contained, absent, truth above, truth below, mean error of the
    largest share."""
    by_kind = collections.defaultdict(lambda: collections.Counter())
    errors = collections.defaultdict(list)
    for samples, sampled in rounds:
        for (kind, what), share in truth.items():
            count = by_kind[kind]
            count["cases"] += 1
            estimate = sampled.get((kind, what))
            if estimate is None:
                count["absent"] += 1
                count["contained" if share <= most_of_unseen(samples) else "above"] += 1
                continue
            value, low, high = estimate
            errors[kind, what].append(value - share)
            # The file has six digits.
            if share > high + 1e-6:
                count["above"] += 1
            elif share < low - 1e-6:
                count["below"] += 1
            else:
                count["contained"] += 1
    worst = {}
    for (kind, what), values in errors.items():
        mean = statistics.fmean(values)
        if abs(mean) > abs(worst.get(kind, 0)):
            worst[kind] = mean
    return by_kind, worst


def compare(shadowprof, sampled, perfect):
    """What `shadowprof compare` says, by measure; nothing of what a profile has nothing of."""
    text = subprocess.run([shadowprof, "compare", "--json", sampled, perfect], check=True,
                          stdout=subprocess.PIPE).stdout
    result = json.loads(text)
    keys = {"path": "path_accuracy", "edge": "edge_accuracy", "Diff-Top": "diff_top",
            "call": "call_overlap", "method": "method_overlap",
            "stream": "stream_overlap", "coverage": "coverage"}
    return {name: (result.get(key) or {}).get("value") for name, key in keys.items()}
